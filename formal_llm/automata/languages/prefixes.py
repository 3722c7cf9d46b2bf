"""Viable prefixes: how a word can begin and go on, by the sets of configurations that its prefixes lead to.

Rules need not be deterministic, so after one word an automaton may be in several configurations. They are followed
together, one terminal at a time, as in the subset construction (Rabin and Scott 1959); those without a completion are
left out. Words that lead to the same set have the same continuations and share what is known of them.

Moves without input may lead to very many configurations, under left recursion to infinitely many. A set of more than
:data:`CONFIGURATIONS` keeps its word instead, and is decided on the product of the automaton with "begins with this
word" (the intersection of a context-free and a regular language is context-free).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.verdicts import TRIES
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import product
from formal_llm.automata.models.rules import Source
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import Undecided

#: The maximum number of configurations of a set to follow, beside four for each transition: one place may have
#: thousands of options.
CONFIGURATIONS = 1_000
#: The maximum number of configurations to remember, of all sets together; beyond it, all are forgotten at once.
_KEPT = 100_000
#: What a set with too many configurations counts as: it may have an automaton of its own.
_PRODUCT = 500


class Allowed(NamedTuple):
    """The properties of a terminal that may come next.

    Attributes:
        shortest: the minimum number of terminals that follow it before the word may end; None if undecided within
            the budget of states.
        certain: whether an end can certainly be reached after it. False if the budget of states ran out before
            a path was found or excluded.
    """

    shortest: int | None
    certain: bool = True


#: A word from its last terminal to its first; None for the empty one.
_Path = tuple["_Path | None", str]


class _Closure(NamedTuple):
    """What moves without input lead to: whether the word may end, whether it certainly can be completed, what follows.

    ``after`` has for each terminal the configurations right after it, dead ends included.
    """

    ends: bool
    sure: bool
    after: dict[str, dict[Hashable, None]]


class ConfigurationSet:
    """What a word leads to; made by :class:`ConfigurationSets`, which keeps one for equal configurations."""

    def __init__(
        self, sets: ConfigurationSets, seeds: frozenset[Hashable] | None, sure: bool, path: _Path | None
    ) -> None:
        self._sets = sets
        #: The configurations right after the last terminal, without dead ends; None if there are too many.
        self._seeds = seeds
        self.is_certain = sure
        self._path = path
        self._next: dict[str, ConfigurationSet] = {}

    @property
    def word(self) -> Word | None:
        """The word, if it leads to too many configurations to follow; otherwise None."""
        return self._spell() if self._closure is None else None

    @property
    def configurations(self) -> frozenset[Hashable] | None:
        """The configurations right after the word, without dead ends; None if there are too many to follow."""
        return None if self._closure is None else self._seeds

    @cached_property
    def may_stop(self) -> bool:
        """Whether the word may end here."""
        return self._sets.pda.accepts(self._spell()) if self._closure is None else self._closure.ends

    @cached_property
    def is_viable(self) -> bool | None:
        """Whether some word within the limits continues from here; None if the budget of states ran out."""
        if self.is_certain:
            return True
        if self._closure is None:
            return self._decide_by_product()
        return False if not self._seeds else True if self._closure.sure else None

    @cached_property
    def shortest_length(self) -> int | None:
        """The least number of terminals to an end; None if there is none, or the budget of states ran out."""
        try:
            if self.may_stop:
                return 0
            if self._closure is None:
                found = self._continuations.shortest()
                return None if found is None else found - len(self._spell())
            return self._find_shortest()
        except Undecided:
            return None

    @cached_property
    def allowed_terminals(self) -> Mapping[str, Allowed]:
        """The terminals after which the word can still be completed, in the order of the alphabet."""
        found = {name: self.after_terminal(name) for name in self.next_terminals}
        return FrozenDict(
            {
                name: Allowed(after.shortest_length, after.is_viable is True)
                for name, after in found.items()
                if after.is_viable is not False
            }
        )

    @property
    def next_terminals(self) -> list[str]:
        """The terminals that can be read next, in the order of the alphabet; they may lead to a dead end."""
        closure = self._closure
        return [name for name in self._sets.terminals if closure is None or name in closure.after]

    @property
    def least_length(self) -> float:
        """A lower bound of the number of terminals to an end, found without a search."""
        if self._closure is None or not self._seeds:
            return 0
        return min(self._sets.lookahead.least_lengths(list(self._seeds), 0))

    def after_terminal(self, name: str) -> ConfigurationSet:
        """Return the set after another terminal; it is not viable if the terminal cannot come here."""
        found = self._next.get(name)
        if found is None:
            if self._closure is None:
                self._sets.make_room(_PRODUCT)
                found = ConfigurationSet(self._sets, None, False, (self._path, name))
            else:
                found = self._sets.get_set(self._closure.after.get(name, ()), (self._path, name))
            self._next[name] = found
        return found

    def forget_next(self) -> None:
        """Release the sets after this one; they are made again on demand."""
        self._next = {}

    @cached_property
    def _closure(self) -> _Closure | None:
        """What moves without input lead to; None if that is too much to follow."""
        if self._seeds is None or len(self._seeds) > max(1, self._sets.max_configurations):
            return None
        sets, lookahead, automaton = self._sets, self._sets.lookahead, self._sets.lookahead.automaton
        ends, sure = False, self.is_certain
        after: dict[str, dict[Hashable, None]] = {}
        seen, todo = set(self._seeds), list(self._seeds)
        while todo:
            now = todo.pop()
            ends = ends or automaton.accepting(now)
            for move in automaton.moves(now):
                following = automaton.step(now, move)
                if move.read is not None:
                    after.setdefault(move.read, {})[following] = None
                elif following not in seen:
                    if len(seen) >= sets.max_configurations:
                        return None
                    seen.add(following)
                    verdict = lookahead.completable(following)
                    sure = sure or verdict.value == "yes"
                    if verdict.possible:
                        todo.append(following)
        sets.make_room(len(seen))
        return _Closure(ends, sure, after)

    def _find_shortest(self) -> int | None:
        lookahead, best = self._sets.lookahead, None
        for configuration in self._seeds or ():
            if best is None or lookahead.least_length(configuration, tries=0) < best:
                found = lookahead.shortest(configuration)
                if found is not None and (best is None or found < best):
                    best = found
        return best

    # -- the fallback ---------------------------------------------------------------------------------------------

    def _spell(self) -> Word:
        names = []
        path = self._path
        while path is not None:
            path, name = path
            names.append(name)
        return tuple(reversed(names))

    @cached_property
    def _continuations(self) -> Lookahead:
        """The lookahead of all words that begin with this one."""
        pda, given = self._sets.pda, self._sets.lookahead
        both = product(pda, prefix_automaton(self._spell(), pda.terminals))
        return Lookahead(both, max_states=given.max_states, solver=given.solver)

    def _decide_by_product(self) -> bool | None:
        """Determine whether some word continues from here, within what questions may still cost."""
        work, other = self._sets.lookahead.work, self._continuations.work
        with other.limit_seconds(max(0.0, work.left) / TRIES if work.left < INFINITE else None):
            verdict = self._continuations.completable().value
        work.left -= other.used * TRIES + self._continuations.made
        return {"yes": True, "no": False}.get(verdict)


class ConfigurationSets:
    """The sets of configurations of one automaton, made on demand, and the viable prefixes of its language.

    Args:
        lookahead: that of the automaton, with or without limits.
        max_configurations: how many configurations of a set to follow individually.
        search_time: the search time of each question below, in seconds; None for no bound.
    """

    def __init__(
        self, lookahead: Lookahead, *, max_configurations: int | None = None, search_time: float | None = None
    ) -> None:
        self.lookahead = lookahead
        #: The alphabet, in order.
        self.terminals: Word = tuple(lookahead.automaton.terminals)
        ways = len(lookahead.pda.transitions) if lookahead.pda is not None else 0
        self.max_configurations = CONFIGURATIONS + 4 * ways if max_configurations is None else max_configurations
        self._time = search_time
        self._known: dict[frozenset[Hashable], ConfigurationSet] = {}
        self._room = _KEPT
        #: The set of words that no word of the language begins with.
        self.dead = ConfigurationSet(self, frozenset(), False, None)

    @property
    def pda(self) -> PDA:
        """The automaton.

        Raises:
            Undecided: it is not a pushdown automaton: beyond the cap, others cannot be decided.
        """
        if self.lookahead.pda is None:
            most = self.max_configurations
            raise Undecided(f"after this word there are more than {most} configurations; raise the cap on them")
        return self.lookahead.pda

    @cached_property
    def start(self) -> ConfigurationSet:
        """The set of the empty word."""
        return self.get_set((self.lookahead.automaton.start(),), None)

    def after_word(self, word: Iterable[str]) -> ConfigurationSet:
        """Return the set after a word."""
        found = self.start
        for name in word:
            found = found.after_terminal(name)
            if found is self.dead:
                break
        return found

    def is_viable(self, prefix: Word) -> bool | None:
        """Return whether some word within the limits begins with ``prefix``; None if the budget of states ran out."""
        with self.lookahead.work.limit_seconds(self._time):
            return self.after_word(prefix).is_viable

    def longest_viable(self, word: Word) -> tuple[int, bool]:
        """Return the length of the longest viable prefix of ``word``, and whether that is certain.

        The length is -1 if not even the empty prefix is viable. If the budget of states ran out, it is that of
        the longest prefix which is certainly viable.
        """
        with self.lookahead.work.limit_seconds(self._time):
            sure, found = -1, self.start
            for end in range(len(word) + 1):
                found = found.after_terminal(word[end - 1]) if end else found
                if found.is_viable is False:
                    return sure, sure == end - 1
                if found.is_viable:
                    sure = end
                if found.word is not None:
                    return self._bisect_longest(word, sure)
            return sure, sure == len(word)

    def _bisect_longest(self, word: Word, low: int) -> tuple[int, bool]:
        """Bisect for the longest viable prefix, since each prefix of a viable prefix is viable."""
        high = len(word) + 1
        while high - low > 1:
            middle = (low + high) // 2
            found = self.after_word(word[:middle]).is_viable
            if found is None:
                return low, False
            low, high = (middle, high) if found else (low, middle)
        return low, True

    def next_terminals(self, prefix: Word) -> tuple[Word, bool, bool]:
        """Determine how a prefix can continue.

        Returns:
            The terminals that keep it viable, in the order of the alphabet; whether it is a word itself; whether it
            is certain that there are no other such terminals.
        """
        work = self.lookahead.work
        with work.limit_seconds(self._time):
            here, found = self.after_word(prefix), dict[str, bool | None]()
            for place, name in enumerate(names := here.next_terminals):
                work.share_among(len(names) - place)
                found[name] = here.after_terminal(name).is_viable
        return tuple(name for name in found if found[name]), here.may_stop, None not in found.values()

    # -- what is kept ---------------------------------------------------------------------------------------------

    def get_set(self, configurations: Iterable[Hashable], path: _Path | None) -> ConfigurationSet:
        """Return the set of those of these configurations that can be completed, to which this path leads."""
        verdicts = {one: self.lookahead.completable(one).value for one in configurations}
        live = frozenset(one for one, verdict in verdicts.items() if verdict != "no")
        if not live:
            return self.dead
        sure, found = "yes" in verdicts.values(), self._known.get(live)
        if found is None or (sure and not found.is_certain):
            self.make_room(1)
            found = self._known[live] = ConfigurationSet(self, live, sure, path)
        return found

    def make_room(self, size: int) -> None:
        """Take note of so many more configurations; where they are too many, forget all sets."""
        self._room -= size
        if self._room < 0:
            for known in self._known.values():
                known.forget_next()
            self._known.clear()
            self._room = _KEPT


def prefix_automaton(prefix: Word, alphabet: Iterable[str]) -> PDA:
    """Return the finite automaton for the words over ``alphabet`` that begin with ``prefix``."""
    end = len(prefix)
    steps = [Transition(at, name, None, at + 1) for at, name in enumerate(prefix)]
    loops = [Transition(end, name, None, end) for name in alphabet]
    return PDA([*steps, *loops], start=0, accepting=[end], check=False)


def list_terminals_after(source: Source, word: Iterable[str]) -> list[str]:
    """List the terminals that may follow a word, in order; what is undecided is among them."""
    found = ConfigurationSets(Lookahead(source)).after_word(word)
    return [name for name in found.next_terminals if found.after_terminal(name).is_viable is not False]
