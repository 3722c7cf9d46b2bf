"""The choices in a configuration: the automaton's moves, grouped into options that a person understands.

- A nonterminal on top of the stack: each production is an option. If a production begins with a class (a symbol that
  stands for a choice of one terminal), the members replace the class: people read tool names, not class names.
- A selection on top: its members are the options, and several may be chosen at once.
- An accepting configuration with moves left: stopping is an option too.

Options from which no valid plan can be finished are left out. The choices of a configuration are cached under its
signature, for all plans that pass through an equivalent configuration, in this walk or another.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.limited import LimitedConfiguration, as_automaton
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.verdicts import SEARCH, SEARCH_TIME, START, TALLY, TIME, Verdict
from formal_llm.automata.models.automaton import Automaton, C, Configuration, M, State
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import constrained
from formal_llm.automata.models.rules import Source
from formal_llm.errors import AutomatonError, unknown
from formal_llm.planning.plans.vocabulary import Vocabulary

#: How many options are cached for all configurations (about 100 megabytes), and what a configuration itself counts.
_CACHE, _OWN = 500_000, 10


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One option: the moves that it makes; none for stopping here.

    Attributes:
        index: its index among all choices of the configuration, including those left out; from 0.
        reads: the terminals that the moves read; for a member of a selection, the member.
        menu: for an option that makes no choice but opens more choices of the same configuration: these.
    """

    index: int
    moves: tuple[Any, ...]
    reads: tuple[str, ...] = ()
    menu: Menu | None = None

    def iter_choices(self) -> Iterator[Choice]:
        """Yield the choice itself; for a menu, all choices that it eventually leads to."""
        if self.menu is None:
            yield self
        else:
            for item in self.menu.items:
                yield from item.iter_choices()


@dataclass(frozen=True, slots=True, eq=False)
class Menu:
    """Choices behind one option of a page (see :mod:`formal_llm.planning.walks.pages`).

    Attributes:
        items: the choices, possibly menus themselves.
        make: creates their page, given what was chosen on earlier pages of a selection.
        key: a negative number that identifies the choices, the same in every process.
    """

    text: str
    items: tuple[Choice, ...]
    make: Callable[[frozenset[str]], ChoiceFork]
    key: int

    @property
    def marker(self) -> str:
        """The element of a set of names that represents continuing to this page."""
        return f"… {-self.key:x}"


@dataclass(frozen=True, slots=True)
class SelectionPart:
    """The part of a selection that one question asks for.

    Attributes:
        here: the members of its page and those chosen before.
        taken: the members chosen on earlier pages.
        later: the members of later pages.
        marker: the element of an answer that represents continuing to later pages.
    """

    here: frozenset[str]
    taken: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    marker: str = ""

    @property
    def all_members(self) -> frozenset[str]:
        """All members of the selection that can still be chosen, and those chosen before."""
        return self.here | self.later

    def make_answer(self, names: frozenset[str]) -> frozenset[str]:
        """Return the answer here by which these names are chosen in the end: names, possibly with the marker."""
        return names if not self.marker or names <= self.here else (names & self.here) | {self.marker}


@dataclass(frozen=True, slots=True)
class RuledOut:
    """The sets ruled out on a page of a selection: individual sets, and all sets that an answer leads to."""

    answers: frozenset[Any]
    part: SelectionPart

    def __contains__(self, names: object) -> bool:
        return isinstance(names, frozenset) and (names in self.answers or self.part.make_answer(names) in self.answers)


@dataclass(slots=True, eq=False)
class ChoiceFork:
    """The choices of a configuration.

    Attributes:
        choices: those after which a plan can be finished, as far as the lookahead knows.
        total: how many there are without lookahead.
        several: whether any non-empty subset may be chosen (a selection).
        only: for a selection, the only set that can be chosen; None if there are more or it is not known.
        unknown: the indices of the choices after which it is not known whether a plan can be finished.
        open: those among them that are undecided because the time for the question ran out.
        tally: how many choices were decided by what (see :data:`~formal_llm.automata.lookahead.verdicts.TALLY`).
        shown: the options made of the choices; cached by the walk.
        paged: the first page of the choices with its pager; cached by the walk.
        part: for a page of a selection, the part that it asks for.
        more: for a page of a selection, the later pages.
    """

    choices: tuple[Choice, ...]
    total: int
    several: bool = False
    only: frozenset[str] | None = None
    unknown: frozenset[int] = frozenset()
    open: frozenset[int] = frozenset()
    tally: int = 0
    shown: Any = field(default=None, repr=False)
    paged: Any = field(default=None, repr=False)
    part: SelectionPart | None = None
    more: Menu | None = field(default=None, repr=False)

    @property
    def is_certain(self) -> bool:
        """Whether filters alone decided what is offered, so that the result is the same in every run."""
        return not self.tally >> 32

    def iter_choices(self) -> Iterator[Choice]:
        """Yield the choices, and for a page those on later pages."""
        for choice in (*self.choices, *(self.more.items if self.more is not None else ())):
            yield from choice.iter_choices()

    @property
    def scope(self) -> SelectionPart:
        """For a selection, the part that is asked for: all of it if there are no pages."""
        return self.part or SelectionPart(frozenset(choice.reads[0] for choice in self.choices))


class ForkCache:
    """A cache of forks by signature, each with the number of moves that finish a plan; bounded in memory."""

    __slots__ = ("_forks", "_options")

    def __init__(self) -> None:
        self._forks: dict[Hashable, tuple[ChoiceFork, float]] = {}
        self._options = 0

    def get(self, signature: Hashable) -> tuple[ChoiceFork, float] | None:
        """Return the fork cached under a signature."""
        return self._forks.get(signature)

    def store_fork(self, signature: Hashable, fork: ChoiceFork, reach: float) -> tuple[ChoiceFork, float]:
        """Cache a fork; drop all others when there are too many."""
        self._options += _OWN + len(fork.choices)
        if self._options > _CACHE:
            self._forks.clear()
            self._options = _OWN + len(fork.choices)
        found = self._forks[signature] = fork, reach
        return found


def collect_indices(choices: Iterable[Choice]) -> frozenset[int]:
    """Collect the indices of choices."""
    return frozenset(choice.index for choice in choices)


def list_candidates(
    automaton: Automaton[C, M], configuration: C, at_class: Callable[[C], bool]
) -> Iterator[tuple[Choice, C]]:
    """Yield the choices of a configuration that are single options, with the resulting configurations."""
    limited = isinstance(configuration, LimitedConfiguration)
    here: Any = configuration.inner if isinstance(configuration, LimitedConfiguration) else configuration
    # An option has pushed something where the stack is higher afterwards than without its top; else all belongs to it.
    base = here.stack.depth - 1 if isinstance(here, Configuration) else None
    number = 0
    if automaton.accepting(configuration):
        yield Choice(0, ()), configuration
        number = 1
    for move in automaton.moves(configuration):
        after = automaton.step(configuration, move)
        paths: list[tuple[tuple[M, ...], C]] = [((move,), after)]
        inner: Any = after.inner if limited else after  # type: ignore[attr-defined]
        if move.read is None and (base is None or inner.stack.depth > base) and at_class(after):
            paths = [((move, member), automaton.step(after, member)) for member in automaton.moves(after)]
        for moves, end in paths:
            # A terminal that the option has pushed, and that must come next, belongs to the option.
            inner = end.inner if limited else end  # type: ignore[attr-defined]
            if moves[-1].read is None and (base is None or inner.stack.depth > base) and not automaton.accepting(end):
                following = automaton.moves(end)
                if len(following) == 1 and following[0].read is not None:
                    moves, end = (*moves, following[0]), automaton.step(end, following[0])
                elif not following:
                    number += 1
                    continue
            yield Choice(number, moves, tuple([m.read for m in moves if m.read is not None])), end
            number += 1


#: A set of terminals.
Names: TypeAlias = frozenset[str]

#: After this many partial runs without a new set, the caller gets a chance to stop.
_TRIES = 1_000
#: The most sets that are tried one after the other.
_MOST_SETS = 4_096
#: The cost of examining one partial run, in the tries of :class:`Work`.
_WORTH = 5


class Subset(NamedTuple):
    """A set of members of a selection that can be chosen: its moves, the resulting configuration, the set."""

    moves: tuple[Any, ...]
    after: Any
    names: Names


#: A part of a way to choose a set: the moves made, what they lead to, the members taken, how many were decided.
_Way: TypeAlias = tuple[tuple[Any, ...], Any, tuple[str, ...], int]


def iter_subsets(
    lookahead: Lookahead,
    finishes: Callable[[Hashable, float], bool],
    configuration: Hashable,
    must: Names,
    may: Names,
    steps: float,
) -> Iterator[Subset | None]:
    """Yield the sets that may be chosen from the selection on top of a stack, each once, small sets first.

    Args:
        lookahead: the lookahead of the automaton.
        finishes: whether a plan may be finished from a configuration within a number of moves.
        configuration: a configuration with the selection on top of its stack.
        must: the members that each set has.
        may: the members that a set may have.
        steps: how many moves may be made.

    Yields:
        The sets; and None when many tries found no further set, or the time for the question ran out, so that the
        caller can stop.
    """
    automaton = lookahead.automaton
    members = lookahead.selection(configuration) or ()
    count = tries = 0
    seen: set[Hashable] = set()  # a set may be reached in several ways
    barren: set[Hashable] = set()  # from here no set can be chosen
    # A partial run; or, to be examined after everything it leads to: its mark, and the count of sets before.
    todo: list[_Way | tuple[Hashable, int]] = [((), configuration, (), 0)]
    while todo:
        way = todo.pop()
        if len(way) == 2:
            if way[1] == count:
                barren.add(way[0])
            continue
        moves, now, taken, place = way
        tries += 1
        lookahead.work.left -= _WORTH
        if lookahead.work.left <= 0:
            yield None
        if tries == _TRIES + 8 * len(members):
            tries = 0
            yield None
        if (moves or place == len(members)) and not finishes(now, steps - len(moves)):
            continue
        signature, deeper = lookahead.signature(now)
        here = (place, signature, steps - len(moves) - deeper)
        mark = (taken, *here) if place < len(members) else taken
        if here in barren or mark in seen:
            continue
        seen.add(mark)
        if place == len(members):
            count += 1
            tries = 0
            yield Subset(moves, now, frozenset(taken))
            continue
        todo.append((here, count))
        todo += _take_or_leave_member(automaton, way, members[place], must, may)


def _take_or_leave_member(
    automaton: Automaton[Any, Any], way: _Way, name: str, must: Names, may: Names
) -> Iterator[_Way]:
    """The ways on over a member of a selection: with it, if it may be chosen, and without it, unless it must be."""
    moves, now, taken, place = way
    for move in automaton.moves(now):
        after = automaton.step(now, move)
        if move.push[:1] == (name,):
            if name in may:
                for match in automaton.moves(after):
                    yield (*moves, move, match), automaton.step(after, match), (*taken, name), place + 1
        elif name not in must:
            yield (*moves, move), after, taken, place + 1


@cache
def _warn_missing_solver() -> None:
    warnings.warn(
        "whether some options lead to a valid plan was not decided in the search time of a question; the solver "
        'decides most of these: pip install "formal-llm[solver]"',
        stacklevel=5,
    )


class ChoiceTable:
    """The choices of an automaton's configurations, cached.

    Args:
        look: False to offer every move that the automaton allows now, including dead ends.
        search_time: the seconds of search for a question; None for no bound. An option undecided by then is offered.
    """

    patience = 10.0  #: the seconds of search that a walk may take for questions that get more time after dead ends

    def __init__(self, lookahead: Lookahead, *, look: bool = True, search_time: float | None = SEARCH_TIME) -> None:
        if search_time is not None and not search_time >= 0:
            raise ValueError(f"search_time counts seconds from 0, not {search_time}")
        self.lookahead = lookahead
        self.search_time = search_time
        self.automaton = lookahead.automaton
        self.vocabulary = Vocabulary(lookahead.source)
        self.look = look
        self._rules: str | None = None
        #: The weighted rules, by the terminals that a plan is required to have (``search="exact"``).
        self.weighted: dict[frozenset[str], Any] = {}
        #: How many choices there are without limits, by state and stack top.
        self._totals: dict[tuple[State, str | None], int] = {}
        #: By signature: the choices, and the moves that finish a plan after any of them except for deeper stack levels.
        self._forks = ForkCache()

    @classmethod
    def of(
        cls,
        source: Source,
        *,
        goal: str | None = None,
        limits: Limits | None = None,
        constraints: Sequence[PDA] = (),
        lookahead: str = "on",
        max_states: int = 20_000,
        solver: bool = True,
        search_time: float | None = SEARCH_TIME,
    ) -> ChoiceTable:
        """Create the table of a grammar or automaton.

        Args:
            source: the grammar or automaton.
            goal: the nonterminal to derive instead of the grammar's start symbol.
            limits: more limits.
            constraints: finite automata that the word must also satisfy.
            lookahead: ``"on"`` or ``"off"``.
            max_states: the budget of one lookahead query.
            solver: whether an integer program may decide what the lookahead's search does not.
            search_time: the seconds of search that a question may take.

        Raises:
            AutomatonError: the automaton cannot have a goal or constraints, or the goal is not a nonterminal.
        """
        if lookahead not in ("on", "off"):
            raise ValueError(f"lookahead is 'on' or 'off', not {lookahead!r}")
        if goal is not None:
            if not isinstance(source, CFG):
                raise AutomatonError("a task with a goal needs a grammar: an automaton starts where it starts")
            if goal not in source.nonterminals:
                goals = ", ".join(source.nonterminals)
                raise AutomatonError(f"{unknown('goal of the task', goal, source.nonterminals)}; goals are {goals}")
            source = source.with_start(goal)
        if constraints:
            automaton = as_automaton(source, limits)
            if not isinstance(automaton, PDA):
                raise AutomatonError("constraints need a grammar or a PDA to be combined with")
            source, limits = constrained(automaton, constraints), None
        ahead = Lookahead(source, limits, max_states=max_states, solver=solver)
        return cls(ahead, look=lookahead == "on", search_time=search_time)

    def rules(self) -> str:
        """Return the rules as text: the grammar or automaton in its notation with all limits, then each constraint."""
        if self._rules is None:
            pda, limits = self.lookahead.pda, self.lookahead.limits
            base, *constraints = (pda.factors or (pda,)) if pda is not None else (self.lookahead.source,)
            if isinstance(base, PDA) and base.cfg is not None:
                written = [str(replace(base.cfg, limits=limits))]
            else:
                written = [str(base.without_limits if isinstance(base, PDA) else base), *limits.lines()]
            for number, constraint in enumerate(constraints, 1):
                written.append(f"# and: {constraint.name or f'constraint {number}'}")
            self._rules = "\n".join(line.strip("\n") for line in written)
        return self._rules

    def at(self, configuration: Hashable, steps: float, seconds: float | None = None) -> ChoiceFork:
        """Return the choices of ``configuration`` if ``steps`` more moves may be made, after so many ``seconds``."""
        signature, deeper = self.lookahead.signature(configuration)
        found = self._forks.get(signature)
        if found is not None and not found[0].unknown and found[1] + deeper <= steps:
            return found[0]
        with self.lookahead.work.limit_seconds(self.search_time if seconds is None else seconds):
            if found is None or found[0].open:
                found = self._forks.store_fork(signature, *self._make_fork(configuration, deeper))
                if found[0].unknown and self.lookahead.lacks_solver:
                    _warn_missing_solver()
            fork, reach = found
            enough = reach + deeper <= steps
            if not self.look or (enough and (fork.several or not fork.unknown)):
                return fork
            return self._filter_remaining(configuration, fork, steps, enough)

    def in_time(self) -> AbstractContextManager[None]:
        """Bound the search time of a question."""
        return self.lookahead.work.limit_seconds(self.search_time)

    def _filter_remaining(self, configuration: Hashable, fork: ChoiceFork, steps: float, enough: bool) -> ChoiceFork:
        """Return the part of a fork that is possible within ``steps`` moves; not cached.

        If these are ``enough`` for the decided choices, the others are examined without further search.
        """
        if fork.several:
            return self._make_selection_fork(configuration, self.lookahead.selection(configuration) or (), 0.0, steps)[
                0
            ]
        asked = fork.unknown if enough else collect_indices(fork.choices)
        self.lookahead.work.share_among(len(asked))
        if enough and self.search_time is not None:
            self.lookahead.work.part = 0.0
        ruled_out = {
            choice.index
            for choice in fork.choices
            if choice.index in asked
            and not self._can_finish(self.after(configuration, choice), steps - len(choice.moves))
        }
        if not ruled_out:
            return fork
        near = tuple(choice for choice in fork.choices if choice.index not in ruled_out)
        return ChoiceFork(
            near, fork.total, unknown=fork.unknown - ruled_out, open=fork.open - ruled_out, tally=fork.tally
        )

    @property
    def start_time(self) -> float | None:
        """The seconds of search that the start of a plan may take: 20 times those of a question."""
        return None if self.search_time is None else START * self.search_time

    def begin(self, configuration: Hashable) -> Verdict:
        """Decide whether any plan can be made from the start configuration."""
        with self.lookahead.work.limit_seconds(self.start_time):
            return self.lookahead.completable(configuration)

    def second_look(self, configuration: Hashable, choice: Choice) -> Verdict:
        """Decide whether a plan can be finished after a choice, with half the search time of a question for it."""
        return self.lookahead.second_look(self.after(configuration, choice), self.search_time and self.search_time / 2)

    def rule_out(self, configuration: Hashable, choice: Choice, verdict: Verdict) -> None:
        """Record the result of a second look, so that the choice is no longer offered."""
        self.lookahead.learn(self.after(configuration, choice), verdict)

    def _can_finish(self, configuration: Any, steps: float) -> bool:
        """Return whether a plan may be finished within ``steps`` moves; always True without lookahead."""
        bound = None if steps == INFINITE else int(steps)
        return not self.look or (steps >= 0 and self.lookahead.completable(configuration, steps=bound).possible)

    def after(self, configuration: Hashable, choice: Choice) -> Hashable:
        """Return the configuration after a choice."""
        for move in choice.moves:
            configuration = self.automaton.step(configuration, move)
        return configuration

    def _make_fork(self, configuration: Hashable, deeper: float) -> tuple[ChoiceFork, float]:
        chosen = self.lookahead.selection(configuration)
        if chosen is not None and len(chosen) > 1:
            return self._make_selection_fork(configuration, chosen, deeper, INFINITE)
        found = list(list_candidates(self.automaton, configuration, self.lookahead.at_class))
        total, pda = len(found), self.lookahead.pda
        if self.look and pda is not None and pda.limits:  # what a limit rules out counts, too
            here = self.lookahead.uncounted(configuration)
            place = here.state, here.stack.top
            if place not in self._totals:
                self._totals[place] = sum(1 for _ in list_candidates(pda, here, pda.at_class))
            total = self._totals[place]
        return self._filter_candidates(found, total, deeper)

    def _filter_candidates(
        self, found: list[tuple[Choice, Any]], total: int, deeper: float
    ) -> tuple[ChoiceFork, float]:
        if not self.look:
            return ChoiceFork(tuple(choice for choice, _ in found), total), 0.0
        self.lookahead.work.share_among(len(found))
        verdicts = [self.lookahead.completable(after) for _, after in found]
        doubtful = [number for number, verdict in enumerate(verdicts) if verdict.value == "unknown"]
        for place, number in enumerate(doubtful):  # again, with the time that the others have left
            self.lookahead.work.share_among(len(doubtful) - place)
            verdicts[number] = self.lookahead.completable(found[number][1])
        return self._build_fork([(found[n][0], verdict) for n, verdict in enumerate(verdicts)], total, deeper)

    def _build_fork(self, judged: list[tuple[Choice, Verdict]], total: int, deeper: float) -> tuple[ChoiceFork, float]:
        """Build the fork of judged choices, and compute the moves that finish a plan after the decided ones."""
        reach, tally = 0.0, 0
        possible: list[Choice] = []
        unknown: list[Choice] = []
        for choice, verdict in judged:
            tally += TALLY.get(verdict.how) or TALLY[SEARCH]
            if verdict.value != "no":
                possible.append(choice)
                reach = max(reach, self._count_reach(choice.moves, verdict, deeper))
                if verdict.value == "unknown":
                    unknown.append(choice)
        undecided = frozenset([choice.index for choice in unknown])
        later = frozenset([c.index for c, verdict in judged if verdict.how is TIME]) if unknown else undecided
        return ChoiceFork(tuple(possible), total, unknown=undecided, open=later, tally=tally), reach

    @staticmethod
    def _count_reach(moves: tuple[Any, ...], verdict: Verdict, deeper: float) -> float:
        return len(moves) + (-1 if verdict.steps is None else verdict.steps) - deeper

    def _make_selection_fork(
        self, configuration: Any, members: tuple[str, ...], deeper: float, steps: float
    ) -> tuple[ChoiceFork, float]:
        """Build the fork of a selection, and compute the moves that finish a plan after the possible choices."""
        self.lookahead.work.share_among(len(members))
        found = list(self._list_members(configuration, members, steps))
        subsets, complete = self.few_subsets(configuration, steps, 1) if len(found) > 1 else ([], False)
        only = subsets[0].names if subsets and complete else None
        fork = ChoiceFork(tuple(choice for choice, _ in found), len(members), several=True, only=only)
        reach = 0.0
        if self.look and steps == INFINITE:
            undecided, decide = Verdict("unknown", TIME), self.lookahead.completable  # no way was found in time
            judged = [(choice, undecided if after is None else decide(after)) for choice, after in found]
            judged_fork, reach = self._build_fork(judged, len(members), deeper)
            fork = replace(fork, unknown=judged_fork.unknown, open=judged_fork.open, tally=judged_fork.tally)
            # Two sets can be finished within ``reach`` moves: with that many moves, more than one set can be chosen.
            for way in subsets:
                reach = max(reach, self._count_reach(way.moves, self.lookahead.completable(way.after), deeper))
        return fork, reach

    def _list_members(self, configuration: Any, members: tuple[str, ...], steps: float) -> Iterator[tuple[Choice, Any]]:
        """Yield the members of possible subsets, each with the configuration after one; None if it is not known."""
        for index, name in enumerate(members):
            found = self._find_subset(configuration, frozenset((name,)), frozenset(members), steps)
            if found is not None:
                yield Choice(index, found[0], (name,)), found[1]
            elif self.lookahead.work.left <= 0:
                yield Choice(index, (), (name,)), None

    def subset(self, configuration: Hashable, names: Names, steps: float) -> Choice | None:
        """Return the choice of exactly these members of the selection on top, within ``steps`` moves; or None."""
        members = self.lookahead.selection(configuration) or ()
        with self.in_time():
            found = self._find_subset(configuration, names, names, steps)
        return None if found is None else Choice(-1, found[0], tuple(name for name in members if name in names))

    def few_subsets(
        self,
        configuration: Hashable,
        steps: float,
        most: int,
        excluded: Container[object] = (),
        within: tuple[Names, Names] | None = None,
    ) -> tuple[list[Subset], bool]:
        """Find up to ``most + 1`` sets that can be chosen and are not ``excluded``, and whether these are all.

        ``within`` gives the members that each set must have, and those that it may have.

        The search for the first set is exhaustive, that for further ones has a bound on the ways tried.
        """
        must, may = within or (frozenset(), frozenset(self.lookahead.selection(configuration) or ()))
        found: list[Subset] = []
        with self.in_time():
            for way in self._iter_subsets(configuration, must, may, steps):
                if way is None:
                    if found:
                        return found, False
                    if self.lookahead.work.left <= 0:
                        return self._find_first_set(configuration, must, may, steps, excluded)
                elif way.names not in excluded:
                    found.append(way)
                    if len(found) > most:
                        return found, False
        return found, True

    def _find_first_set(
        self, configuration: Any, must: Names, may: Names, steps: float, excluded: Container[object]
    ) -> tuple[list[Subset], bool]:
        """As :meth:`few_subsets` where no time is left: one set is soon decided, so one after the other is tried."""
        free = sorted(may - must)
        sets = (must.union(more) for size in range(not must, len(free) + 1) for more in combinations(free, size))
        for number, names in enumerate(sets):
            if number == _MOST_SETS:
                return [], False
            if names not in excluded:
                found = self._find_subset(configuration, names, names, steps)
                if found is not None:
                    return [Subset(*found, names)], False
        return [], True

    def some_subset(
        self, configuration: Hashable, must: Names, may: Names, steps: float, excluded: Container[object] = ()
    ) -> bool:
        """Return whether a set with all of ``must`` and some of ``may`` can be chosen that is not ``excluded``."""
        with self.in_time():
            return bool(self._find_subset(configuration, must, may, steps, excluded)) or self.lookahead.work.left <= 0

    def _find_subset(
        self, configuration: Any, must: Names, may: Names, steps: float, excluded: Container[object] = ()
    ) -> tuple[tuple[Any, ...], Any] | None:
        """Find moves through a selection that take all of ``must`` and only ``may``, and where they lead.

        None if there are none or the time runs out first, which never happens for a single set.
        """
        for way in self._iter_subsets(configuration, must, may, steps):
            if way is not None:
                if way.names not in excluded:
                    return way.moves, way.after
            elif self.lookahead.work.left <= 0 and must != may:
                break
        return None

    def _iter_subsets(self, configuration: Any, must: Names, may: Names, steps: float) -> Iterator[Subset | None]:
        return iter_subsets(self.lookahead, self._can_finish, configuration, must, may, steps)
