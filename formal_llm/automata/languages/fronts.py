"""Fronts: the sets of all configurations after a word.

Rules need not be deterministic, so after one word an automaton may be in several configurations. All of them
are followed together, one terminal at a time; those without a completion are dropped. The remaining set, the front,
determines how the word can continue. Words with the same front share the results for it, so a long word uses
no more memory than the distinct fronts along it.

There may be very many configurations, and infinitely many under left recursion. So left recursion is first removed from
grammars, and the number of configurations followed is capped. A larger front stores its word instead, and is decided
on the product of the automaton with "begins with this word" (the intersection of a context-free and a regular language
is context-free): by tabulation if there are no limits, otherwise by lookahead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from formal_llm.automata.languages.grammar_warnings import without_left_recursion
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.verdicts import TRIES
from formal_llm.automata.models.automaton import Move, Word
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import product
from formal_llm.automata.models.rules import Source
from formal_llm.automata.models.tabulation import can_reach_end
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError, Undecided


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


class ConfigurationSet(ABC):
    """The result of reading a word; created by :class:`~formal_llm.automata.languages.fronts.ConfigurationSets`.

    Attributes:
        word: the word, if it leads to too many configurations to follow; otherwise None.
    """

    __slots__ = ("_allowed", "_known", "_next", "_shortest", "word")

    def __init__(self) -> None:
        self._next: dict[str, ConfigurationSet] = {}
        self._allowed: Mapping[str, Allowed] | None = None
        self._known = False
        self._shortest: int | None = None
        self.word: Word | None = None

    @property
    def configurations(self) -> frozenset[Hashable] | None:
        """The configurations right after the word, including dead ends; None if there are too many to follow."""
        return None

    @property
    @abstractmethod
    def may_stop(self) -> bool:
        """Whether the word may end here."""

    @property
    @abstractmethod
    def is_viable(self) -> bool | None:
        """Whether some word within the limits continues from here; None if the budget of states ran out."""

    @property
    @abstractmethod
    def next_terminals(self) -> Iterable[str]:
        """The terminals that can be read next, in the order of the alphabet; they may lead to a dead end."""

    @property
    @abstractmethod
    def readable_terminals(self) -> Collection[str]:
        """The terminals that the automaton can read next without lookahead, including dead ends."""

    @property
    def shortest_length(self) -> int | None:
        """The least number of terminals to an end; None if there is none, or the budget of states ran out."""
        if not self._known:
            self._shortest = 0 if self.may_stop else self._find_shortest()
            self._known = True
        return self._shortest

    @property
    def allowed_terminals(self) -> Mapping[str, Allowed]:
        """The terminals after which the word can still be completed, in the order of the alphabet."""
        if self._allowed is None:
            found = {}
            for name in self.next_terminals:
                allowed = self._describe_terminal(name)
                if allowed is not None:
                    found[name] = allowed
            self._allowed = FrozenDict(found)
        return self._allowed

    def can_continue_with(self, name: str) -> bool | None:
        """Return whether some word continues with a terminal; None if that is unknown."""
        return self.after_terminal(name).is_viable

    def after_terminal(self, name: str) -> ConfigurationSet:
        """Return the front after another terminal; it is not viable if the terminal cannot come here."""
        found = self._next.get(name)
        return self._follow_terminal(name) if found is None else found

    @abstractmethod
    def _find_shortest(self) -> int | None:
        """Compute :attr:`shortest_length` if the word may not end here."""

    def _describe_terminal(self, name: str) -> Allowed | None:
        """Return the properties of a terminal that may come next; None if it leads to a dead end."""
        front = self.after_terminal(name)
        return None if front.is_viable is False else Allowed(front.shortest_length, front.is_viable is True)

    @abstractmethod
    def _follow_terminal(self, name: str) -> ConfigurationSet:
        """Create and keep the result of :meth:`after_terminal`."""

    def forget_followers(self) -> None:
        """Release the fronts after this one; they are recreated on demand."""
        self._next = {}
        self._allowed = None


#: The maximum number of continuations to remember, of all fronts together; beyond it, all are forgotten at once.
_KEPT = 100_000
#: The maximum number of remembered words with too many configurations; they may be long.
_KEPT_WORDS = 200


#: A word from its last terminal to its first; None for the empty one.
Path = tuple["Path | None", str]


class _Place:
    """A configuration of a front, and its moves by what they read."""

    __slots__ = ("_lookahead", "_moves", "_now")

    def __init__(self, lookahead: Lookahead, now: Hashable) -> None:
        self._lookahead = lookahead
        self._now = now
        self._moves: dict[str | None, list[Move]] = {}
        for move in lookahead.automaton.moves(now):
            self._moves.setdefault(move.read, []).append(move)

    def can_read(self, name: str) -> bool:
        """Return whether a move reads a terminal here; it may lead to a dead end."""
        return name in self._moves

    def follow(self, name: str | None) -> Iterator[Hashable]:
        """Yield where the moves lead that read a terminal, or None; they are not checked for dead ends."""
        return (self._lookahead.automaton.step(self._now, move) for move in self._moves.get(name, ()))


class _FollowedSet(ConfigurationSet):
    """A front whose configurations are followed individually.

    Attributes:
        seeds: the configurations right after the last terminal, including dead ends.
        places: the configurations at which something may be read or the word may end.
        path: a word that leads here, its last terminal first. All such words have the same continuations.
    """

    __slots__ = ("_fronts", "ends", "open", "path", "places", "seeds", "sure")

    def __init__(self, fronts: ConfigurationSets, seeds: frozenset[Hashable], path: Path | None) -> None:
        super().__init__()
        self._fronts = fronts
        self.seeds = seeds
        self.path = path
        self.places: list[_Place] = []
        self.sure = self.open = self.ends = False

    @property
    def configurations(self) -> frozenset[Hashable]:
        return self.seeds

    @property
    def may_stop(self) -> bool:
        return self.ends

    @property
    def is_viable(self) -> bool | None:
        return True if self.sure else None if self.open else False

    @property
    def next_terminals(self) -> Iterable[str]:
        return [name for name in self._fronts.terminals if any(place.can_read(name) for place in self.places)]

    @property
    def readable_terminals(self) -> Collection[str]:
        found: dict[str, None] = {}
        try:
            for moves in self._fronts.list_moves_ahead(self.seeds):
                found.update((move.read, None) for move in moves if move.read is not None)
        except _TooManyConfigurations:
            return list(self.next_terminals)
        return found

    def _find_shortest(self) -> int | None:
        return self._find_shortest_from(self.seeds)

    def _describe_terminal(self, name: str) -> Allowed | None:
        # Under limits there are as many fronts as sets of tools: none is made to look at a terminal.
        if not self._fronts.limited:
            return super()._describe_terminal(name)
        seeds = self._find_seeds_after(name)
        can = self.can_continue_with(name)
        if can is False:
            return None
        if self._fronts.has_set(seeds) or can is None:
            return super()._describe_terminal(name)
        shortest = self._find_shortest_from(seeds)
        return super()._describe_terminal(name) if shortest is None else Allowed(shortest)

    def _find_seeds_after(self, name: str) -> frozenset[Hashable]:
        return frozenset(after for place in self.places for after in place.follow(name))

    def _find_shortest_from(self, configurations: Iterable[Hashable]) -> int | None:
        lookahead, best = self._fronts.lookahead, None
        for configuration in configurations:
            if best is not None and lookahead.least_length(configuration, tries=0) >= best:
                continue
            try:
                found = lookahead.shortest(configuration)
            except Undecided:
                return None
            if found is not None and (best is None or found < best):
                best = found
        return best

    def can_continue_with(self, name: str) -> bool | None:
        # The targets are as informative as all moves from there on, of which there may be thousands.
        values = {self._fronts.lookahead.completable(now).value for now in self._find_seeds_after(name)}
        return True if "yes" in values else super().can_continue_with(name) if "unknown" in values else False

    def _follow_terminal(self, name: str) -> ConfigurationSet:
        seeds = self._find_seeds_after(name)
        found = self._fronts.get_set(seeds, (self.path, name)) if seeds else self._fronts.dead
        self._next[name] = found
        return found


class _WordOnlySet(ConfigurationSet):
    """A front with too many configurations, which stores its word instead."""

    __slots__ = ("__dict__", "_fronts")
    word: Word

    def __init__(self, fronts: ConfigurationSets, word: Word) -> None:
        super().__init__()
        self._fronts = fronts
        self.word = word

    @cached_property
    def _prefix_lookahead(self) -> Lookahead:
        pda = self._fronts.pda
        both = product(pda, prefix_automaton(self.word, pda.terminals))
        return Lookahead(both, max_states=self._fronts.lookahead.max_states)

    @cached_property
    def _has_completion(self) -> bool | None:
        pda = self._fronts.pda
        if pda.limits:
            work = self._fronts.lookahead.work
            work.left -= len(self._prefix_lookahead.pda.transitions) if self._prefix_lookahead.pda is not None else 0
            with self._prefix_lookahead.work.limit_seconds(
                max(0.0, work.left) / TRIES if work.left < INFINITE else None
            ):
                before = self._prefix_lookahead.work.left
                verdict = self._prefix_lookahead.completable()
                work.left -= before - self._prefix_lookahead.work.left if before < INFINITE else 0
            return {"yes": True, "no": False}.get(verdict.value)
        word, end = self.word, len(self.word)

        def advance_position(name: str, at: int) -> int | None:
            # Read the word, then any terminals at a position that no longer moves.
            return at if at == end else at + 1 if word[at] == name else None

        return can_reach_end(pda, end, advance_position)

    @cached_property
    def _accepts_word(self) -> bool:
        return self._fronts.pda.accepts(self.word)

    @property
    def may_stop(self) -> bool:
        return self._accepts_word

    @property
    def is_viable(self) -> bool | None:
        return self._has_completion

    @property
    def next_terminals(self) -> Iterable[str]:
        return self._fronts.terminals

    @property
    def readable_terminals(self) -> Collection[str]:
        return self.allowed_terminals

    def _find_shortest(self) -> int | None:
        try:
            found = self._prefix_lookahead.shortest()
        except Undecided:
            return None
        return None if found is None else found - len(self.word)

    def _follow_terminal(self, name: str) -> ConfigurationSet:
        return self._fronts.get_word_set((*self.word, name))


class ConfigurationSets:
    """The fronts of one automaton, created on demand.

    Args:
        max_configurations: how many configurations of a front to follow individually; by default 1,000 and some
            for each transition, since one place may have thousands of options.
    """

    def __init__(self, lookahead: Lookahead, *, max_configurations: int | None = None) -> None:
        #: The alphabet, in order.
        self.terminals = tuple(lookahead.automaton.terminals)
        if lookahead.pda is not None and (straight := without_left_recursion(lookahead.pda)) is not lookahead.pda:
            lookahead = Lookahead(straight, max_states=lookahead.max_states, solver=lookahead.solver)
        self.lookahead = lookahead
        #: Whether there are limits.
        self.limited = bool(lookahead.bounds)
        ways = len(lookahead.pda.transitions) if lookahead.pda is not None else 0
        self._max = 1_000 + 4 * ways if max_configurations is None else max_configurations
        self._known: dict[frozenset[Hashable], ConfigurationSet] = {}
        self._ways = 0
        self._words: dict[Word, ConfigurationSet] = {}
        #: The front of words that cannot be continued and are not in the language.
        self.dead: ConfigurationSet = _FollowedSet(self, frozenset(), None)

    @property
    def pda(self) -> PDA:
        """The automaton.

        Raises:
            Undecided: it is not a pushdown automaton: beyond the cap, others cannot be decided.
        """
        if self.lookahead.pda is None:
            raise Undecided(f"after this word there are more than {self._max} configurations; raise the cap on them")
        return self.lookahead.pda

    @cached_property
    def start(self) -> ConfigurationSet:
        """The front of the empty word."""
        return self.get_set(frozenset((self.lookahead.automaton.start(),)), None)

    def after_word(self, word: Iterable[str]) -> ConfigurationSet:
        """Return the front after a word."""
        front = self.start
        for name in word:
            front = front.after_terminal(name)
            if front is self.dead:
                break
        return front

    def has_set(self, seeds: frozenset[Hashable]) -> bool:
        """Whether the front of these configurations was made before."""
        return seeds in self._known

    def get_set(self, seeds: frozenset[Hashable], path: Path | None) -> ConfigurationSet:
        """Return the front of these configurations, to which this path leads."""
        found = self._known.get(seeds)
        if found is None:
            if self._ways >= _KEPT:
                for known in self._known.values():
                    known.forget_followers()
                self._known.clear()
                self._ways = 0
            found = self._known[seeds] = self._make_set(seeds, path)
            self._ways += 1 + (len(found.places) if isinstance(found, _FollowedSet) else 0)
        return found

    def get_word_set(self, word: Word) -> ConfigurationSet:
        """Return the front of a word with too many configurations."""
        found = self._words.get(word)
        if found is None:
            if len(self._words) >= _KEPT_WORDS:
                self._words.clear()
            found = self._words[word] = _WordOnlySet(self, word)
        return found

    def _make_set(self, seeds: frozenset[Hashable], path: Path | None) -> ConfigurationSet:
        """Follow the ε-moves and leave out dead ends."""
        lookahead, front = self.lookahead, _FollowedSet(self, seeds, path)
        seen, todo = set(seeds), list(seeds)
        while todo:
            now = todo.pop()
            verdict = lookahead.completable(now)
            if not verdict.possible:
                continue
            front.open, front.sure = True, front.sure or verdict.value == "yes"
            front.ends = front.ends or lookahead.automaton.accepting(now)
            front.places.append(place := _Place(lookahead, now))
            for following in place.follow(None):
                if following not in seen:
                    if len(seen) >= self._max:
                        return self.get_word_set(_path_to_word(path))
                    seen.add(following)
                    todo.append(following)
        return front if front.open else self.dead

    def list_moves_ahead(self, seeds: Iterable[Hashable]) -> Iterator[Sequence[Move]]:
        """Yield the moves of all configurations that ε-moves lead to, dead ends included.

        Raises:
            _TooManyConfigurations: there are more than are followed.
        """
        automaton = self.lookahead.automaton
        seen, todo = set(seeds), list(seeds)
        while todo:
            now = todo.pop()
            moves = automaton.moves(now)
            for following in [automaton.step(now, move) for move in moves if move.read is None]:
                if following not in seen:
                    if len(seen) >= self._max:
                        raise _TooManyConfigurations
                    seen.add(following)
                    todo.append(following)
            yield moves


class _TooManyConfigurations(Exception):
    """Raised when there are more configurations than are followed individually."""


def _path_to_word(path: Path | None) -> Word:
    names = []
    while path is not None:
        path, name = path
        names.append(name)
    return tuple(reversed(names))


def prefix_automaton(prefix: Word, alphabet: Iterable[str]) -> PDA:
    """Return the finite automaton for the words over ``alphabet`` that begin with ``prefix``."""
    end = len(prefix)
    steps = [Transition(at, name, None, at + 1) for at, name in enumerate(prefix)]
    loops = [Transition(end, name, None, end) for name in alphabet]
    return PDA([*steps, *loops], start=0, accepting=[end], check=False)


class ViablePrefixes:
    """The viable prefixes of one automaton.

    Args:
        lookahead: the lookahead of a pushdown automaton, with or without limits.
        max_configurations: how many configurations after one prefix to follow individually (see
            :class:`ConfigurationSets`).
        search_time: the search time for each question, in seconds; None for no bound.

    Raises:
        AutomatonError: the automaton is not a pushdown automaton.
    """

    def __init__(
        self, lookahead: Lookahead, *, max_configurations: int | None = None, search_time: float | None = None
    ) -> None:
        if lookahead.pda is None:
            raise AutomatonError("prefixes are known for grammars and pushdown automata, not for other automata")
        self.pda: PDA = lookahead.pda
        self._time = search_time
        self.fronts = ConfigurationSets(lookahead, max_configurations=max_configurations)

    def is_viable(self, prefix: Word) -> bool | None:
        """Return whether some word within the limits begins with ``prefix``; None if the budget of states ran out."""
        with self.fronts.lookahead.work.limit_seconds(self._time):
            return self.fronts.after_word(prefix).is_viable

    def longest_viable(self, word: Word) -> tuple[int, bool]:
        """Return the length of the longest viable prefix of ``word``, and whether that is certain.

        The length is -1 if not even the empty prefix is viable. If the budget of states ran out, it is that of
        the longest prefix which is certainly viable.
        """
        with self.fronts.lookahead.work.limit_seconds(self._time):
            return self._walk_to_longest(word)

    def _walk_to_longest(self, word: Word) -> tuple[int, bool]:
        sure, front = -1, self.fronts.start
        for end in range(len(word) + 1):
            front = front.after_terminal(word[end - 1]) if end else front
            if front.word is not None:
                return self._bisect_longest(word, sure)
            if front.is_viable:
                sure = end
            elif front.is_viable is False:
                return sure, sure == end - 1
        return sure, sure == len(word)

    def _bisect_longest(self, word: Word, low: int) -> tuple[int, bool]:
        """Bisect for the longest viable prefix, since each prefix of a viable prefix is viable."""
        high = len(word) + 1
        while high - low > 1:
            middle = (low + high) // 2
            found = self.is_viable(word[:middle])
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
        work, found = self.fronts.lookahead.work, dict[str, bool | None]()
        with work.limit_seconds(self._time):
            front = self.fronts.after_word(prefix)
            for place, name in enumerate(names := list(front.next_terminals)):
                work.share_among(len(names) - place)
                found[name] = front.can_continue_with(name)
        return tuple(name for name in found if found[name]), front.may_stop, None not in found.values()


def list_terminals_after(source: Source, word: Iterable[str]) -> list[str]:
    """List the terminals that may follow a word, in order; what is undecided is among them."""
    return list(ConfigurationSets(Lookahead(source)).after_word(word).next_terminals)
