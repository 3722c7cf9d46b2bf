"""Which prefixes of a word can still be completed, and what could have come next.

A prefix is *viable* when some word of the language, within the limits, begins with it. The configurations that read it
are followed one symbol at a time, those without a completion are dropped, and what is left says how it could go on.
What was found for a prefix serves all words that share it.

There may be infinitely many configurations (left recursion), so following them has a cap. Beyond it the prefix is
decided without any configuration: the automaton is run side by side with a finite automaton for "begins with this
prefix" (the intersection of a context-free and a regular language is context-free), by tabulation where there are no
limits and else by lookahead on the product.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.work import TRIES
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import product
from formal_llm.automata.models.tabulation import reaches
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError

#: How many configurations are kept, of all prefixes together, and how many prefixes that were decided without.
_CACHE, _DECIDED = 200_000, 20_000


class _Front(NamedTuple):
    """The configurations after a prefix, ε-moves made, dead ends left out.

    Attributes:
        after: for each terminal that can be read next the configurations after it; not looked at for dead ends.
        sure: whether one of the configurations can certainly be completed.
        open: whether there is a configuration at all: without one, the prefix is not viable.
        may_stop: whether one of them accepts.
    """

    after: dict[str, list[Hashable]]
    sure: bool
    open: bool
    may_stop: bool


class Prefixes:
    """The viable prefixes of one automaton.

    Args:
        lookahead: knows the automaton (a pushdown automaton, with or without limits) and what can be completed.
        max_configurations: how many configurations after one prefix are followed one by one; where left out, 1,000 and
            some for each transition, since one place may have thousands of options.
        search_time: the seconds of search that each question may take; None for no bound.

    Raises:
        AutomatonError: the automaton is no pushdown automaton.
    """

    def __init__(
        self, lookahead: Lookahead, *, max_configurations: int | None = None, search_time: float | None = None
    ) -> None:
        if lookahead.pda is None:
            raise AutomatonError("prefixes are known for grammars and pushdown automata, not for other automata")
        self.pda: PDA = lookahead.pda
        self.lookahead = lookahead
        self._max = 1_000 + 4 * len(self.pda.transitions) if max_configurations is None else max_configurations
        self._time = search_time
        #: None where there are more configurations than are followed.
        self._fronts: dict[Word, _Front | None] = {}
        self._held = 0  # the configurations of all of these
        self._decided: dict[Word, bool] = {}

    def viable(self, prefix: Word) -> bool | None:
        """Whether some word within the limits begins with ``prefix``; None where the states or the time ran out."""
        with self.lookahead.work.within(self._time):
            front = self._front(prefix)
            if front is None:
                return self._decide(prefix)
        return True if front.sure else None if front.open else False

    def longest(self, word: Word) -> tuple[int, bool]:
        """(length of the longest viable prefix of ``word``, whether that is certain).

        The length is -1 where not even the empty prefix is viable. Where the budget of states ran out, it is that of
        the longest prefix which is certainly viable.
        """
        sure = -1
        with self.lookahead.work.within(self._time):
            for end in range(len(word) + 1):
                front = self._front(word[:end])
                if front is None:
                    return self._bisect(word, sure)
                if front.sure:
                    sure = end
                elif not front.open:
                    return sure, sure == end - 1
        return sure, sure == len(word)

    def _bisect(self, word: Word, low: int) -> tuple[int, bool]:
        """Each prefix of a viable prefix is viable, so the longest one is found by halving."""
        high = len(word) + 1
        while high - low > 1:
            middle = (low + high) // 2
            found = self.viable(word[:middle])
            if found is None:
                return low, False
            low, high = (middle, high) if found else (low, middle)
        return low, True

    def following(self, prefix: Word) -> tuple[Word, bool, bool]:
        """How a prefix can go on.

        Returns:
            The terminals that keep it viable, in the order of the alphabet; whether it is a word as it is; whether it
            is certain that there are no more such terminals.
        """
        found: dict[str, bool | None] = {}
        work = self.lookahead.work
        with work.within(self._time):
            front = self._front(prefix)
            names = [name for name in self.pda.terminals if front is None or name in front.after]
            for place, name in enumerate(names):
                work.share(len(names) - place)
                # Where it leads to says as much as all the moves from there on, which may be thousands.
                values = {self.lookahead.completable(now).value for now in front.after[name]} if front else {"unknown"}
                sure = "yes" in values
                found[name] = sure if sure or "unknown" not in values else self.viable((*prefix, name))
        may_stop = self.pda.accepts(prefix) if front is None else front.may_stop
        return tuple(name for name in names if found[name]), may_stop, None not in found.values()

    # -- one configuration after the other ----------------------------------------------------------------------

    def _front(self, prefix: Word) -> _Front | None:
        at = len(prefix)
        while at and prefix[:at] not in self._fronts:
            at -= 1
        if self._held > _CACHE:
            self._fronts.clear()
            self._held = at = 0
        if () not in self._fronts:
            self._fronts[()] = self._close([self.lookahead.automaton.start()])
        front = self._fronts[prefix[:at]]
        while at < len(prefix) and front is not None:
            front = self._close(front.after.get(prefix[at], []))
            at += 1
            self._fronts[prefix[:at]] = front
        return front

    def _close(self, todo: list[Hashable]) -> _Front | None:
        automaton = self.lookahead.automaton
        after: dict[str, list[Hashable]] = {}
        sure = is_open = may_stop = False
        seen = set(todo)
        todo = list(todo)
        while todo:
            now = todo.pop()
            verdict = self.lookahead.completable(now)
            if not verdict.possible:
                continue
            is_open = True
            sure = sure or verdict.value == "yes"
            may_stop = may_stop or automaton.accepting(now)
            for move in automaton.moves(now):
                following = automaton.step(now, move)
                if move.read is not None:
                    after.setdefault(move.read, []).append(following)
                elif following not in seen:
                    if len(seen) >= self._max:
                        return None
                    seen.add(following)
                    todo.append(following)
        self._held += 1 + sum(map(len, after.values()))
        return _Front(after, sure, is_open, may_stop)

    # -- all configurations at once -----------------------------------------------------------------------------

    def _decide(self, prefix: Word) -> bool | None:
        if prefix not in self._decided:
            if len(self._decided) > _DECIDED:
                self._decided.clear()
            found = self._within_limits(prefix) if self.pda.limits else self._tabulate(prefix)
            if found is None:
                return None
            self._decided[prefix] = found
        return self._decided[prefix]

    def _tabulate(self, prefix: Word) -> bool:
        """Without limits: read the prefix, then any terminals at a position that no longer moves."""
        end = len(prefix)

        def advance(name: str, at: int) -> int | None:
            return at if at == end else at + 1 if prefix[at] == name else None

        return reaches(self.pda, end, advance)

    def _within_limits(self, prefix: Word) -> bool | None:
        work = self.lookahead.work
        if work.left <= 0:
            return None
        both = product(self.pda, beginning(prefix, self.pda.terminals))
        work.left -= len(both.transitions)
        ahead = Lookahead(both, max_states=self.lookahead.max_states)
        with ahead.work.within(None if self._time is None else max(0.0, work.left) / TRIES):
            before = ahead.work.left
            verdict = ahead.completable()
            if self._time is not None:
                work.left -= before - ahead.work.left
        return {"yes": True, "no": False}.get(verdict.value)


def beginning(prefix: Word, alphabet: Iterable[str]) -> PDA:
    """The finite automaton for the words over ``alphabet`` that begin with ``prefix``."""
    end = len(prefix)
    steps = [Transition(at, name, None, at + 1) for at, name in enumerate(prefix)]
    loops = [Transition(end, name, None, end) for name in alphabet]
    return PDA([*steps, *loops], start=0, accepting=[end], check=False)
