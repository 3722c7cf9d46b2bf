"""Lookahead: can a configuration still be completed within the limits, and how soon.

The verdict is *yes*, *no* or *unknown*, never a guess: cheap filters first, then a memoised search with a budget of
states, then, where the optional solver is installed, an integer program; when all that is spent the answer is unknown.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, Literal

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN, least_cost
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import LENGTH, FlowGrammar
from formal_llm.automata.lookahead.limited import (
    LimitedAutomaton,
    LimitedConfiguration,
    add_counters,
    as_automaton,
)
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.shortest import ShortestSearch, shortest_word
from formal_llm.automata.lookahead.stacks import FEWEST_MOVES, SHORTEST, PendingSymbols
from formal_llm.automata.lookahead.verdicts import (
    BUDGET,
    MADE,
    SEARCH,
    TIME,
    Verdict,
    WorkBudget,
    pause_garbage_collection,
)
from formal_llm.automata.models.automaton import Automaton, C, Configuration, Foresees, HasTerminals, M, Word
from formal_llm.automata.models.limits import Bound, Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.rules import Source
from formal_llm.errors import AutomatonError, Undecided
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Picture

if TYPE_CHECKING:
    from formal_llm.automata.lookahead.derivations import DerivationStates


#: What is counted, or equally likely: distinct words, or derivations (accepting runs).
Of = Literal["words", "derivations"]


def _keep(kept: dict[Any, Any], key: Hashable, value: object) -> None:
    """Keep a value, of the last few ones."""
    if len(kept) >= _KEPT:
        kept.pop(next(iter(kept)))
    kept[key] = value


class PlainSearch(Generic[C, M]):
    """The search over the configurations of ``automaton``, at most ``max_states`` a query.

    Attributes:
        work: what queries may still cost.
    """

    def __init__(self, automaton: Automaton[C, M], max_states: int) -> None:
        self.automaton = automaton
        self.max_states = max_states
        self.work = WorkBudget()
        self._steps: dict[C, float] = {}
        self._foresees = automaton if isinstance(automaton, Foresees) else None

    def cheapest_cost(self, configuration: C, *, by_length: bool) -> float:
        """The least moves, or least length, to acceptance; infinite for none, ``UNKNOWN`` when the budget is spent."""

        def successor_costs(now: C) -> Iterator[tuple[float, C, float]]:
            for move in self.automaton.moves(now):
                self.work.left -= 1
                price = 1 + (LENGTH if by_length and move.read is not None else 0)
                then = self.automaton.step(now, move)
                least = 0 if self._foresees is None else self._foresees.to_end(then)
                if least is not None:
                    yield price, then, least

        self.work.begin_query()
        ends, over = self.automaton.accepting, lambda: self.work.is_over
        return least_cost((0, configuration, 0), successor_costs, ends, self.max_states, over)

    def least_moves(self, configuration: C) -> float:
        """Like ``cheapest`` in moves, remembered."""
        found = self._steps.get(configuration)
        if found is None and self._foresees is not None:
            least = self._foresees.to_end(configuration)
            found = self._steps[configuration] = INFINITE if least is None else float(least)
        if found is None:
            found = self.cheapest_cost(configuration, by_length=False)
            if found != UNKNOWN or not self.work.is_over:
                self._steps[configuration] = found
        return found

    def remember_moves(self, configuration: C, steps: float) -> None:
        """Remember what :meth:`least_moves` of a search like this one has found."""
        self._steps[configuration] = steps

    def reachable_terminals(self, configuration: C) -> frozenset[str]:
        """The terminals that moves within the budget can read; all of them where the automaton has them at hand."""
        if self._foresees is not None and isinstance(self.automaton, HasTerminals):
            return frozenset(self.automaton.terminals)
        seen = {configuration}
        todo = [configuration]
        found: set[str] = set()
        while todo and len(seen) < self.max_states:
            now = todo.pop()
            for move in self.automaton.moves(now):
                if move.read is not None:
                    found.add(move.read)
                after = self.automaton.step(now, move)
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        return frozenset(found)


#: The least budget of states for counting, which visits all of them where a search for one plan stops at the first.
_COUNTED_STATES = 100_000
#: The bounds on the length, and the configurations, for which counts are kept.
_KEPT = 4
#: The tries that a lower bound may cost by default: a twentieth of a second.
_LITTLE_WORK = 4_000
#: The symbols of a product's flow grammar, with the states in which they are popped, that take about a second to find.
_ROOM = 25_000


class Lookahead(Drawable):
    """What can still be completed, for one automaton.

    Args:
        source: a grammar (with its limits) or an automaton.
        limits: more limits.
        max_states: how many states of the search one query may visit before it answers "unknown".
        solver: whether an integer program may decide what the search does not decide soon. It needs the extra
            ``solver`` (``pip install "formal-llm[solver]"``); without that, or for an automaton that is no PDA, this
            changes nothing. It decides whether a completion exists, not which one is the shortest.

    Attributes:
        source: the rules as an automaton; a PDA carries all the limits.
        pda: the same, where it is a PDA; else None.
        automaton: what runs: the automaton with counters around it where it has limits. Configurations are of this one.
        max_states, solver: as given.
        work: what queries may cost: ``with lookahead.work.limit_seconds(0.05): ...`` bounds those inside.
        made: what making it took, in tries.

    Everything found is remembered, so one Lookahead serves all plans over its automaton; a copy, or what is read back
    from a pickle, finds it anew.
    """

    @pause_garbage_collection()
    def __init__(
        self, source: Source, limits: Limits | None = None, *, max_states: int = 20_000, solver: bool = True
    ) -> None:
        self.source = as_automaton(source, limits)
        self.pda = self.source if isinstance(self.source, PDA) else None
        self.automaton = add_counters(self.source)
        self.max_states, self.solver = max_states, solver
        self.made = 0
        #: By the bound on the length, and by configuration: few, since each may be large.
        self._counted_grammars: dict[int | None, FlowGrammar] = {}
        self._derived: dict[tuple[Hashable, Of, int | None], DerivationStates | list[Word]] = {}
        self._counted = self.automaton if isinstance(self.automaton, LimitedAutomaton) else None
        #: What an automaton may report besides.
        self._selection: Callable[[Hashable], Word | None] | None = getattr(self.automaton, "selection", None)
        self._at_class: Callable[[Hashable], bool] | None = getattr(self.automaton, "at_class", None)
        #: The searches of pushdown automata; None for other automata, and for products of a grammar and a constraint
        #: (such as a clock) that would take too long to look through beforehand. Those have the plain one.
        self._search: CompletionSearch | None = None
        if self.pda is not None:
            counters = self._counted.counters if self._counted is not None else Counters(())
            grammar = FlowGrammar(self.pda, counters)
            grammar.table.room = _ROOM if len(self.pda.factors) > 1 else INFINITE
            with suppress(Undecided):
                self._search = CompletionSearch(PendingSymbols(grammar), max_states, solver=solver)
            grammar.table.room = INFINITE
            self.made = MADE * len(grammar.symbols)
        if self._search is None:
            self._plain = PlainSearch[Any, Any](self.automaton, max_states)
        self.work: WorkBudget = self._plain.work if self._search is None else self._search.work

    def __repr__(self) -> str:
        return f"<Lookahead over {self.source!r}>"

    def __reduce__(self) -> tuple[Callable[[Source], Lookahead], tuple[Source]]:
        return partial(Lookahead, max_states=self.max_states, solver=self.solver), (self.source,)

    @property
    def picture(self) -> Picture:
        """The picture of its source, if that has one."""
        return self.source.picture if isinstance(self.source, Drawable) else super().picture

    @property
    def lacks_solver(self) -> bool:
        """Whether a solver was wanted that is not installed."""
        return self._search is not None and self._search.missed

    @property
    def limits(self) -> Limits:
        """All the limits."""
        return Limits() if self._counted is None else self._counted.limits

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The limits over the alphabet, one bound each."""
        return () if self._counted is None else self._counted.counters.bounds

    def _split_configuration(self, configuration: Any) -> LimitedConfiguration:
        if self._counted is not None:
            counted: LimitedConfiguration = configuration
            return counted
        return LimitedConfiguration(configuration, 0, 0)

    def completable(self, configuration: Hashable = None, *, steps: int | None = None) -> Verdict:
        """Whether some run from ``configuration`` (the start, if left out) accepts within the limits.

        Args:
            configuration: of :attr:`automaton`.
            steps: the most moves that the run may take; any number where left out.
        """
        now = self.automaton.start() if configuration is None else configuration
        found, how = self._decide(now)
        if steps is None or found == INFINITE or (found != UNKNOWN and found <= steps):
            return Verdict.of(found, how)
        found, how = self._decide(now, steps)
        return Verdict("no", "step budget") if found == INFINITE else Verdict.of(found, how)

    def _decide(self, configuration: Hashable, most_moves: float = INFINITE) -> tuple[float, str]:
        """(moves of some completion, infinite for none, ``UNKNOWN``; what decided it or ended it)."""
        if self._search is None:
            found = self._plain.least_moves(configuration)
            if found == UNKNOWN:
                return UNKNOWN, TIME if self.work.is_over else BUDGET
            return (found if found <= most_moves else INFINITE), SEARCH
        inner, remaining, needed = self._split_configuration(configuration)
        search = self._search if most_moves == INFINITE else self._within
        return search.decide(search.demands.for_configuration(*inner), remaining, needed, most_moves)

    def second_look(self, configuration: Hashable, seconds: float | None) -> Verdict:
        """Whether a configuration can be completed, with this time for this question alone.

        Nothing found before plays a part, and nothing is remembered (but by :meth:`learn`): it may be asked beforehand.
        """
        if self._search is None:
            plain = PlainSearch[Any, Any](self.automaton, self.max_states)
            with plain.work.limit_seconds(seconds):
                found = plain.least_moves(configuration)
            return Verdict.of(found, SEARCH if found != UNKNOWN else TIME)
        inner, remaining, needed = self._split_configuration(configuration)
        alone = self._search.fresh_copy()
        with alone.work.limit_seconds(seconds):
            return Verdict.of(*alone.decide(alone.demands.for_configuration(*inner), remaining, needed))

    def learn(self, configuration: Hashable, verdict: Verdict) -> None:
        """Remember a verdict of "no"."""
        if self._search is None:
            self._plain.remember_moves(configuration, INFINITE)
            return
        (state, stack), remaining, needed = self._split_configuration(configuration)
        demands = self._search.demands
        rest = demands.rest_of(demands.for_configuration(state, stack), remaining, needed)
        if rest is not None:
            self._search.remember(rest, (INFINITE, verdict.how))

    @cached_property
    def _within(self) -> CompletionSearch:
        """The search with moves bounded."""
        demands = self._fewest.demands
        return CompletionSearch(demands, self.max_states, solver=self.solver, work=self.work)

    @cached_property
    def _fewest(self) -> ShortestSearch:
        return ShortestSearch(self._completion, FEWEST_MOVES)

    @cached_property
    def _shortest(self) -> ShortestSearch:
        return ShortestSearch(self._completion, SHORTEST)

    @property
    def _completion(self) -> CompletionSearch:
        assert self._search is not None
        return self._search

    def _cheapest_cost(self, configuration: Hashable, *, by_length: bool) -> float:
        """The least moves of a completion, or its least length in the unit of :data:`flow.LENGTH`.

        Infinite where there is none, ``UNKNOWN`` where the budget of states ran out first.
        """
        if self._search is None:
            return self._plain.cheapest_cost(configuration, by_length=by_length)
        (state, stack), remaining, needed = self._split_configuration(configuration)
        search = self._shortest if by_length else self._fewest
        return search.find_cheapest(state, stack, remaining, needed)

    def fewest_moves(self, configuration: Hashable = None, *, search_time: float | None = None) -> int | None:
        """The least number of moves that complete a configuration; None where nothing does.

        Raises:
            Undecided: the budget of states, or the seconds of search (None for no bound), ran out before it was known.
        """
        return self._least_cost(configuration, search_time, by_length=False)

    def shortest(self, configuration: Hashable = None, *, search_time: float | None = None) -> int | None:
        """The least number of terminals that complete a configuration; otherwise as :meth:`fewest_moves`."""
        least = self._least_cost(configuration, search_time, by_length=True)
        return None if least is None else least // LENGTH

    def _least_cost(self, configuration: Hashable, search_time: float | None, *, by_length: bool) -> int | None:
        now = self.automaton.start() if configuration is None else configuration
        with self.work.limit_seconds(search_time):
            found = self._cheapest_cost(now, by_length=by_length)
            if found == UNKNOWN:
                spent = "the search time; allow more" if self.work.is_over else "the budget of states; raise max_states"
                raise Undecided(f"the shortest completion was not found within {spent}")
        return None if found == INFINITE else int(found)

    def shortest_word(self, configuration: Hashable = None) -> Word | None:
        """One of the shortest completions, as a word; None where there is none.

        Raises:
            Undecided: the budget of states ran out before it was known.
        """
        now = self.automaton.start() if configuration is None else configuration
        return shortest_word(self.automaton, partial(self._cheapest_cost, by_length=True), now)

    def detours(self, configuration: Hashable, *, limits: bool = True) -> dict[str, int]:
        """The terminals that a completion may still use, each with by how many terminals that lengthens it at least.

        An upper set: of the limits only those that are used up are looked at, without ``limits`` not even those.
        """
        if self._search is None:
            known = self._plain.reachable_terminals(configuration) if self.pda is None else self.pda.terminals
            return dict.fromkeys(known, 0)
        (state, stack), remaining, _ = self._split_configuration(configuration)
        found, counters = self._search.demands.detours_of_stack(state, stack), self._search.counters
        if not counters.need or not limits:
            return found
        return {name: extra for name, extra in found.items() if counters.can_afford(name, remaining)}

    def count(self, configuration: Hashable = None, *, of: Of = "words", max_length: int | None = None) -> int:
        """The number of completions of a configuration (the start, if left out) within the limits. Exact.

        Args:
            configuration: of :attr:`automaton`.
            of: distinct words, or derivations (accepting runs); they differ where the automaton is ambiguous.
            max_length: the most terminals of a completion.

        Raises:
            InfiniteLanguage: there are infinitely many; give ``max_length``.
            Undecided: the budget of states, or of words where they must be distinguished one by one, is spent.
        """
        begin = self.automaton.start() if configuration is None else configuration
        found = self._derive(begin, of, max_length)
        return len(found) if isinstance(found, list) else found.count()

    def sample(
        self, rng: random.Random, configuration: Hashable = None, *, of: Of = "words", max_length: int | None = None
    ) -> Word | None:
        """A completion at random, all words (or all derivations) equally likely; or None; raises as :meth:`count`.

        Args:
            rng: where chance comes from; the same state gives the same word.
            configuration: of :attr:`automaton`; the start, if left out.
            of: what is equally likely.
            max_length: the most terminals of a completion.
        """
        begin = self.automaton.start() if configuration is None else configuration
        found = self._derive(begin, of, max_length)
        if isinstance(found, list):
            return rng.choice(found) if found else None
        return found.sample(rng)

    def _derive(self, configuration: Hashable, of: Of, max_length: int | None) -> DerivationStates | list[Word]:
        """The derivations from a configuration, or the words, where these have to be told apart."""
        from formal_llm.automata.lookahead.derivations import DerivationStates  # a plan counts nothing
        from formal_llm.automata.lookahead.unambiguous import is_unambiguous, list_words

        if self.pda is None:
            raise AutomatonError("counting needs a grammar or a pushdown automaton")
        if max_length is not None and max_length < 0:
            raise ValueError("max_length counts from 0")
        if of not in ("words", "derivations"):
            raise ValueError(f"what is counted is 'words' or 'derivations', not {of!r}")
        found = self._derived.get((configuration, of, max_length))
        if found is None:
            inner, remaining, needed = self._split_configuration(configuration)
            grammar = self._counted_grammars.get(max_length)
            if grammar is None:
                longest = Bound(dict.fromkeys(self.pda.terminals, 1), 0, max_length, f"length <= {max_length}")
                counters = Counters(self.bounds if max_length is None else (*self.bounds, longest))
                grammar = FlowGrammar(self.pda, counters)
                _keep(self._counted_grammars, max_length, grammar)
            width = Counters(self.bounds).guard.bit_length()
            begin = LimitedConfiguration(inner, remaining | grammar.counters.remaining >> width << width, needed)
            if self.completable(configuration).value == "no":
                found = []
            else:
                found = DerivationStates(grammar, begin, max_states=max(self.max_states, _COUNTED_STATES))
                if of == "words" and not is_unambiguous(grammar, *inner):
                    if max_length is None:
                        found.check_words()
                    found = list_words(grammar, begin)
            _keep(self._derived, (configuration, of, max_length), found)
        return found

    def selection(self, configuration: Hashable) -> Word | None:
        """The terminals of which a non-empty subset is chosen next; None where the next choice is another one."""
        return None if self._selection is None else self._selection(configuration)

    def at_class(self, configuration: Hashable) -> bool:
        """Whether the next choice is one terminal of a class."""
        return self._at_class is not None and self._at_class(configuration)

    def uncounted(self, configuration: Hashable) -> Configuration:
        """The configuration of the pushdown automaton, without counters."""
        return Configuration(*self._split_configuration(configuration).inner)

    def signature(self, configuration: Hashable) -> tuple[Hashable, float]:
        """(what decides the moves and their verdicts, moves that complete what does not decide them).

        Configurations with equal signatures have the same moves with the same verdicts.
        """
        if self._search is None:
            return configuration, 0.0
        (state, stack), remaining, needed = self._split_configuration(configuration)
        if stack.top is None:
            return (state, None, remaining, needed), 0.0
        # The state below the top is known only where the top can be popped in one way; else the stack itself decides.
        below = self._search.demands.demand_below(state, stack)
        if below is None:
            return (state, stack, remaining, needed), 0.0
        if below.least_steps == INFINITE:
            return (state, stack.top, None), 0.0
        return (
            (state, stack.top, below.pending, below.unresolved, below.promised, below.paid, remaining, needed),
            below.free_cost,
        )

    def least_steps(self, configuration: Hashable) -> float:
        """A cheap lower bound of the moves to the end, limits aside; infinite where even that is impossible."""
        if self._search is None:
            return 0.0
        return self._search.demands.for_configuration(*self._split_configuration(configuration).inner).least_steps

    def least_length(self, configuration: Hashable, *, tries: int = _LITTLE_WORK) -> float:
        """A lower bound of the terminals to the end; ``tries`` are for open lower bounds."""
        return self.least_lengths([configuration], tries)[0]

    def least_lengths(self, configurations: Sequence[Hashable], tries: float = _LITTLE_WORK) -> list[float]:
        """The :meth:`least_length` of several, in ``tries`` together."""
        if self._search is None:
            return [0.0] * len(configurations)
        places = [self._split_configuration(configuration) for configuration in configurations]
        return [least // LENGTH if least < INFINITE else least for least in self._shortest.lower_bounds(places, tries)]
