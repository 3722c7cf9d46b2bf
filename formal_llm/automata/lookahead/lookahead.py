"""Lookahead: can a configuration still be completed within the limits, and how soon.

The verdict is *yes*, *no* or *unknown*, never a guess: cheap filters first, then a memoised search with a budget of
states, then, where the optional solver is installed, an integer program; when all that is spent the answer is unknown.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

from formal_llm.automata.lookahead.flow import INFINITE, LENGTH, FlowGrammar
from formal_llm.automata.lookahead.plain_search import Exploration
from formal_llm.automata.lookahead.sampling import Census
from formal_llm.automata.lookahead.search import BUDGET, SEARCH, UNKNOWN, Completion
from formal_llm.automata.lookahead.shortest import Cheapest
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limited import Counters, LimitedAutomaton, LimitedConfiguration, limited, split
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.errors import AutomatonError, Undecided

#: The least budget of states for counting, which visits all of them where a search for one plan stops at the first.
_COUNTED_STATES = 100_000
#: The states that a lower bound may cost.
_LITTLE_WORK = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something can be completed.

    Attributes:
        value: ``"yes"``, ``"no"`` or ``"unknown"``.
        how: what decided it: ``"filter"`` (no search was needed), ``"search"``, ``"integer program"``, or the
            budget that ran out: ``"state budget"``, ``"step budget"``.
        steps: for yes, the moves of one completion (not the cheapest one in general).
    """

    value: Literal["yes", "no", "unknown"]
    how: str
    steps: int | None = None

    @property
    def possible(self) -> bool:
        """Not ruled out: yes or unknown."""
        return self.value != "no"

    def __bool__(self) -> bool:
        raise TypeError("a verdict has three values: ask for verdict.value or verdict.possible")

    def __str__(self) -> str:
        return f"{self.value} ({self.how})"


def as_automaton(source: CFG | Any, limits: Limits | None = None) -> Any:
    """A grammar as its PDA under its limits, an automaton as it is; ``limits`` come on top."""
    if isinstance(source, CFG):
        return limited(limited(PDA.from_cfg(source), source.limits), limits)
    if isinstance(source, PDA) and source.limits:
        source = limited(source.without_limits, source.limits)
    return limited(source, limits)


def _words(of: str) -> bool:
    if of not in ("words", "derivations"):
        raise ValueError(f"what is counted is 'words' or 'derivations', not {of!r}")
    return of == "words"


class Lookahead:
    """What can still be completed, for one automaton.

    Args:
        source: a grammar (with its limits) or an automaton.
        limits: more limits.
        max_states: how many states of the search one query may visit before it answers "unknown".
        solver: whether an integer program may decide what the search does not decide soon. It needs the extra
            ``solver`` (``pip install "formal-llm[solver]"``); without that, or for an automaton that is no PDA, this
            changes nothing. It decides whether a completion exists, not which one is the shortest.

    Everything found is remembered, so one Lookahead serves all plans over its automaton.
    """

    def __init__(
        self, source: CFG | Any, limits: Limits | None = None, *, max_states: int = 20_000, solver: bool = True
    ) -> None:
        self.automaton = as_automaton(source, limits)
        inner, _ = split(self.automaton)
        self.max_states = max_states
        self._max_states = max(max_states, _COUNTED_STATES)
        self._censuses: dict[int | None, Census] = {}
        self._limited = isinstance(self.automaton, LimitedAutomaton)
        #: The search for pushdown automata; None for other automata.
        self.completion: Completion | None = None
        self._exploration: Exploration | None = None
        if isinstance(inner, PDA):
            counters = self.automaton.counters if self._limited else Counters(())
            self.completion = Completion(FlowGrammar(inner, counters), max_states, solver=solver)
            self._search = Cheapest(self.completion)
        else:
            self._exploration = Exploration(self.automaton, max_states)

    def _parts(self, configuration: Any) -> LimitedConfiguration:
        if self._limited:
            limited_configuration: LimitedConfiguration = configuration
            return limited_configuration
        return LimitedConfiguration(configuration, 0, 0)

    # -- verdicts -----------------------------------------------------------------------------------------------

    def steps(self, configuration: Any) -> float:
        """Moves of some completion; infinite when there is none, negative when it is unknown."""
        return self._decide(configuration)[0]

    def _decide(self, configuration: Any) -> tuple[float, str]:
        """(as :meth:`steps`, what decided it)."""
        if self.completion is None:
            assert self._exploration is not None
            found = self._exploration.steps(configuration)
            return found, BUDGET if found == UNKNOWN else SEARCH
        (state, stack), remaining, needed = self._parts(configuration)
        return self.completion.decide(self.completion.profiles.profile(state, stack), remaining, needed)

    def completable(self, configuration: Any = None, *, steps: int | None = None) -> Verdict:
        """Whether some run from ``configuration`` (the start, if left out) accepts within the limits.

        Args:
            configuration: of :attr:`automaton`.
            steps: the most moves that the run may take; any number where left out.
        """
        if configuration is None:
            configuration = self.automaton.start()
        found, how = self._decide(configuration)
        if found == INFINITE:
            return Verdict("no", how)
        if found != UNKNOWN and (steps is None or found <= steps):
            return Verdict("yes", how, int(found))
        if steps is not None:
            found = self.cheapest(configuration, by_length=False)
            if found != UNKNOWN:
                return Verdict("yes", SEARCH, int(found)) if found <= steps else Verdict("no", "step budget")
        return Verdict("unknown", BUDGET)

    def cheapest(self, configuration: Any, *, by_length: bool, max_states: int | None = None) -> float:
        """The least moves of a completion, or its least length in the unit of :data:`flow.LENGTH`.

        Infinite where there is none, negative where the budget of states ran out first.
        """
        if self.completion is None:
            assert self._exploration is not None
            return self._exploration.cheapest(configuration, by_length=by_length)
        (state, stack), remaining, needed = self._parts(configuration)
        return self._search.find(state, stack, remaining, needed, by_length=by_length, max_states=max_states)

    def shortest(self, configuration: Any = None) -> int | None:
        """The least number of terminals that complete a configuration; None where nothing does.

        Raises:
            Undecided: the budget of states ran out before it was known.
        """
        found = self.cheapest(self.automaton.start() if configuration is None else configuration, by_length=True)
        if found == UNKNOWN:
            raise Undecided("the shortest completion was not found within the budget of states; raise max_states")
        return None if found == INFINITE else int(found // LENGTH)

    def shortest_word(self, configuration: Any = None) -> tuple[str, ...] | None:
        """One of the shortest completions, as a word; None where there is none.

        Raises:
            Undecided: the budget of states ran out before it was known.
        """
        now = self.automaton.start() if configuration is None else configuration
        left = self.cheapest(now, by_length=True)
        if left == INFINITE:
            return None
        word: list[str] = []
        # Moves are part of the measure, so each step makes what is left strictly smaller.
        while not (self.automaton.accepting(now) and left == 0):
            for move in self.automaton.moves(now):
                after = self.automaton.step(now, move)
                rest = self.cheapest(after, by_length=True)
                if rest != UNKNOWN and rest + 1 + (LENGTH if move.read is not None else 0) == left:
                    if move.read is not None:
                        word.append(move.read)
                    now, left = after, rest
                    break
            else:
                raise Undecided("the shortest word was not found within the budget of states; raise max_states")
        return tuple(word)

    def detours(self, configuration: Any) -> dict[str, int]:
        """The terminals that a completion may still use, each with by how many terminals that lengthens it at least.

        An upper set with lower bounds: of the limits only those that are used up are looked at.
        """
        if self.completion is None:
            assert self._exploration is not None
            return dict.fromkeys(self._exploration.terminals(configuration), 0)
        (state, stack), remaining, _ = self._parts(configuration)
        found = self.completion.profiles.detours(state, stack)
        if not self._limited:
            return found
        affords = self.automaton.counters.affords
        return {name: extra for name, extra in found.items() if affords(name, remaining)}

    # -- how many -----------------------------------------------------------------------------------------------

    def count(
        self, configuration: Any = None, *, of: Literal["words", "derivations"] = "words", max_length: int | None = None
    ) -> int:
        """The number of completions of a configuration (the start, if left out) within the limits. Exact.

        Args:
            configuration: of :attr:`automaton`.
            of: distinct words, or derivations (accepting runs); they differ where the automaton is ambiguous.
            max_length: the most terminals of a completion.

        Raises:
            InfiniteLanguage: there are infinitely many; give ``max_length``.
            Undecided: the budget of states, or of words where they must be told apart one by one, is spent.
        """
        census, begin = self._census(configuration, max_length)
        return census.count(begin, words=_words(of))

    def sample(
        self,
        rng: random.Random,
        configuration: Any = None,
        *,
        of: Literal["words", "derivations"] = "words",
        max_length: int | None = None,
    ) -> tuple[str, ...] | None:
        """A completion at random, all words (or all derivations) equally likely; None where there is none.

        Args:
            rng: where chance comes from; the same state gives the same word.
            configuration: of :attr:`automaton`; the start, if left out.
            of: what is equally likely.
            max_length: the most terminals of a completion.

        Raises:
            InfiniteLanguage: there are infinitely many; give ``max_length``.
            Undecided: the budget of states, or of words where they must be told apart one by one, is spent.
        """
        census, begin = self._census(configuration, max_length)
        return census.sample(begin, rng, words=_words(of))

    def _census(self, configuration: Any, max_length: int | None) -> tuple[Census, LimitedConfiguration]:
        inner, _ = split(self.automaton)
        if not isinstance(inner, PDA):
            raise AutomatonError("counting needs a grammar or a pushdown automaton")
        if max_length is not None and max_length < 0:
            raise ValueError("max_length counts from 0")
        census = self._censuses.get(max_length)
        if census is None:
            bounds = self.automaton.counters.bounds if self._limited else ()
            census = self._censuses[max_length] = Census(inner, bounds, max_length, self._max_states)
        return census, self._parts(self.automaton.start() if configuration is None else configuration)

    # -- for the walk -------------------------------------------------------------------------------------------

    def signature(self, configuration: Any) -> tuple[Hashable, float]:
        """(what decides the moves and their verdicts, moves that complete what does not decide them).

        Configurations with equal signatures have the same moves with the same verdicts, whatever lies deep in their
        stacks, so what was found for one holds for all.
        """
        if self.completion is None:
            return configuration, 0.0
        (state, stack), remaining, needed = self._parts(configuration)
        if stack.top is None:
            return (state, None, remaining, needed), 0.0
        # The state below the top is known only where the top can be popped in one way; else the stack itself decides.
        below = self.completion.profiles.below(state, stack)
        if below is None:
            return (state, stack, remaining, needed), 0.0
        if below.least_steps == INFINITE:
            return (state, stack.top, None), 0.0
        return (
            state,
            stack.top,
            below.pending,
            below.spine,
            below.promised,
            below.paid,
            remaining,
            needed,
        ), below.free_steps

    def least_steps(self, configuration: Any) -> float:
        """A cheap lower bound of the moves to the end, limits aside; infinite where even that is impossible."""
        if self.completion is None:
            return 0.0
        state, stack = self._parts(configuration).inner
        return self.completion.profiles.profile(state, stack).least_steps

    def least_length(self, configuration: Any) -> float:
        """A lower bound of the terminals to the end: cheap, and exact as far as little work makes it so.

        Limits are looked at only while a lower bound is open, since that is when they make plans longer.
        """
        if self.completion is None:
            return 0.0
        (state, stack), _, needed = self._parts(configuration)
        least = self.completion.profiles.profile(state, stack).least_length
        if needed:
            least = max(least, self.cheapest(configuration, by_length=True, max_states=_LITTLE_WORK))
        return least if least == INFINITE else least // LENGTH
