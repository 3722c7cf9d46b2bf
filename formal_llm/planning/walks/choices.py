"""What can be chosen in a configuration: the automaton's moves, made into options that a person would understand.

- A nonterminal on top of the stack: each production is an option. Where a production begins with a class (a symbol
  that stands for a choice of one terminal), its members take its place: people read tool names, not class names.
- A selection on top: its members are the options, and several may be chosen at once.
- An accepting configuration with moves left: stopping is an option too.

Options from which no valid plan can be finished are left out. What is found for a configuration is kept under its
signature, so plans that come by the same place, in the same or another walk, find it there.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import Any

from formal_llm.automata.lookahead.branches import Branch
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.verdicts import SEARCH, TALLY, TIME, Verdict
from formal_llm.automata.lookahead.work import SEARCH_TIME, START, building
from formal_llm.automata.models.automaton import EMPTY, Configuration, Stack, State
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import constrained
from formal_llm.automata.models.rules import Source
from formal_llm.errors import AutomatonError, unknown
from formal_llm.planning.plans.vocabulary import Vocabulary
from formal_llm.planning.walks.forks import (
    Choice,
    ChoiceFork,
    ForkCache,
    ForkTemplate,
    collect_indices,
    list_candidates,
)
from formal_llm.planning.walks.subsets import Names, Subset, iter_subsets


@cache
def _warn_missing_solver() -> None:
    warnings.warn(
        "whether some options lead to a valid plan was not decided in the search time of a question; the solver "
        'decides most of these: pip install "formal-llm[solver]"',
        stacklevel=5,
    )


class ChoiceTable:
    """The choices of an automaton's configurations, remembered.

    Args:
        lookahead: knows the automaton and what can be completed.
        look: False to offer every move that the automaton allows now, dead ends included.
        search_time: the seconds of search that a question may take; None for no bound. What is not decided by then is
            offered as well, and is looked at again when it is chosen.
    """

    def __init__(self, lookahead: Lookahead, *, look: bool = True, search_time: float | None = SEARCH_TIME) -> None:
        if search_time is not None and not search_time >= 0:
            raise ValueError(f"search_time counts seconds from 0, not {search_time}")
        self.lookahead = lookahead
        self.search_time = search_time
        self.automaton = lookahead.automaton
        self.vocabulary = Vocabulary(lookahead.source)
        self.look = look
        self._rules: str | None = None
        self._templates: dict[tuple[State, str | None], ForkTemplate] = {}
        #: (the choices, moves that finish a plan after any of them but for what lies deeper), by signature.
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
        """The choices of a grammar or automaton.

        Args:
            source: the grammar or automaton.
            goal: the nonterminal to derive instead of the grammar's start symbol.
            limits: more limits.
            constraints: finite automata that the word must satisfy as well.
            lookahead: ``"on"`` or ``"off"``.
            max_states: the budget of one lookahead query.
            solver: whether an integer program may decide what the lookahead's search does not.
            search_time: the seconds of search that a question may take.

        Raises:
            AutomatonError: a goal or constraints for an automaton that cannot have them; a goal that is no nonterminal.
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
        """The rules as text: the grammar or the automaton in its notation with all limits, then each constraint."""
        if self._rules is None:
            pda, limits = self.lookahead.pda, self.lookahead.limits
            base, *constraints = (pda.factors or (pda,)) if pda is not None else (self.lookahead.source,)
            if isinstance(base, PDA) and base.cfg is not None:
                written = [str(replace(base.cfg, limits=limits, comments={}))]
            else:
                written = [str(base.without_limits if isinstance(base, PDA) else base), *limits.lines()]
            for number, constraint in enumerate(constraints, 1):
                written.append(f"# and: {constraint.name or f'constraint {number}'}")
            self._rules = "\n".join(line.strip("\n") for line in written)
        return self._rules

    def at(self, configuration: Hashable, steps: float) -> ChoiceFork:
        """The choices of ``configuration`` when ``steps`` more moves may be made."""
        signature, deeper = self.lookahead.signature(configuration)
        found = self._forks.get(signature)
        if found is not None and not found[0].unknown and found[1] + deeper <= steps:
            return found[0]
        with self.lookahead.work.within(self.search_time):
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
        """Bound what a question takes."""
        return self.lookahead.work.within(self.search_time)

    def _filter_remaining(self, configuration: Hashable, fork: ChoiceFork, steps: float, enough: bool) -> ChoiceFork:
        """What is left of a fork with so many moves: asked anew, not remembered.

        Where they are ``enough`` for the choices that are decided, the others are only looked at by what is known.
        """
        if fork.several:
            return self._make_selection_fork(configuration, self.lookahead.selection(configuration) or (), 0.0, steps)[
                0
            ]
        asked = fork.unknown if enough else collect_indices(fork.choices)
        self.lookahead.work.share(len(asked))
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
        """Whether a plan can be made at all, from where it starts."""
        with self.lookahead.work.within(self.start_time):
            return self.lookahead.completable(configuration)

    def second_look(self, configuration: Hashable, choice: Choice) -> Verdict:
        """Whether a plan can be finished after a choice, with the time of a question for this alone (at any time)."""
        return self.lookahead.second_look(self.after(configuration, choice), self.search_time)

    def rule_out(self, configuration: Hashable, choice: Choice, verdict: Verdict) -> None:
        """Remember a second look after which a choice is not offered any more."""
        self.lookahead.learn(self.after(configuration, choice), verdict)

    def _can_finish(self, configuration: Any, steps: float) -> bool:
        """Whether a plan may be finished within ``steps`` moves; without lookahead anything may."""
        bound = None if steps == INFINITE else int(steps)
        return not self.look or (steps >= 0 and self.lookahead.completable(configuration, steps=bound).possible)

    def after(self, configuration: Hashable, choice: Choice) -> Hashable:
        """The configuration after a choice."""
        if choice.leap is not None:
            return self.lookahead.leap(configuration, choice.leap)
        for move in choice.moves:
            configuration = self.automaton.step(configuration, move)
        return configuration

    def _make_fork(self, configuration: Hashable, deeper: float) -> tuple[ChoiceFork, float]:
        top = self.lookahead.top(configuration) if self.look else None
        template = None if top is None else self._templates.get(top)  # there are none of selections
        chosen = self.lookahead.selection(configuration) if template is None else None
        if chosen is not None and len(chosen) > 1:
            return self._make_selection_fork(configuration, chosen, deeper, INFINITE)
        if top is None:
            found = list(list_candidates(self.automaton, configuration, self.lookahead.at_class))
            return self._filter_candidates(found, len(found), deeper)
        while template is None or template.branches.stale:
            template = self._templates[top] = self._make_template(top)
        judged = self.lookahead.able(template.branches, configuration)
        return template.get_fork(judged), judged.reach

    @building()
    def _make_template(self, top: tuple[State, str | None]) -> ForkTemplate:
        pda = self.lookahead.pda
        assert pda is not None
        start = Configuration(top[0], EMPTY if top[1] is None else Stack(top[1], EMPTY))
        found = list(list_candidates(pda, start, pda.at_class))
        branches = [Branch(len(choice.moves), choice.reads, after) for choice, after in found]
        return ForkTemplate(tuple(choice for choice, _ in found), self.lookahead.branches(top, branches))

    def _filter_candidates(
        self, found: list[tuple[Choice, Any]], total: int, deeper: float
    ) -> tuple[ChoiceFork, float]:
        if not self.look:
            return ChoiceFork(tuple(choice for choice, _ in found), total), 0.0
        self.lookahead.work.share(len(found))
        verdicts = [self.lookahead.completable(after) for _, after in found]
        doubtful = [number for number, verdict in enumerate(verdicts) if verdict.value == "unknown"]
        for place, number in enumerate(doubtful):  # once more, with what the others have left of the time
            self.lookahead.work.share(len(doubtful) - place)
            verdicts[number] = self.lookahead.completable(found[number][1])
        return self._build_fork(list(zip((choice for choice, _ in found), verdicts, strict=True)), total, deeper)

    def _build_fork(self, judged: list[tuple[Choice, Verdict]], total: int, deeper: float) -> tuple[ChoiceFork, float]:
        """The fork of choices with their verdicts, and the moves that finish a plan after those that are decided."""
        reach = max(
            (self._count_reach(c.moves, verdict, deeper) for c, verdict in judged if verdict.possible), default=0.0
        )
        return ChoiceFork(
            tuple(choice for choice, verdict in judged if verdict.possible),
            total,
            unknown=collect_indices(choice for choice, verdict in judged if verdict.value == "unknown"),
            open=collect_indices(
                choice for choice, verdict in judged if (verdict.value, verdict.how) == ("unknown", TIME)
            ),
            tally=sum(TALLY.get(verdict.how, TALLY[SEARCH]) for _, verdict in judged),
        ), max(reach, 0.0)

    @staticmethod
    def _count_reach(moves: tuple[Any, ...], verdict: Verdict, deeper: float) -> float:
        return len(moves) + (-1 if verdict.steps is None else verdict.steps) - deeper

    def _make_selection_fork(
        self, configuration: Any, members: tuple[str, ...], deeper: float, steps: float
    ) -> tuple[ChoiceFork, float]:
        """The fork of a selection, and the moves that finish a plan after what is known to be possible there."""
        self.lookahead.work.share(len(members))
        found = list(self._list_members(configuration, members, steps))
        few, all_of_them = self.few_subsets(configuration, steps, 1) if len(found) > 1 else ([], False)
        only = few[0].names if few and all_of_them else None
        fork = ChoiceFork(tuple(choice for choice, _ in found), len(members), several=True, only=only)
        reach = 0.0
        if self.look and steps == INFINITE:
            lost, decide = Verdict("unknown", TIME), self.lookahead.completable  # lost: no way was found in time
            judged = [(choice, lost if after is None else decide(after)) for choice, after in found]
            told, reach = self._build_fork(judged, len(members), deeper)
            fork = replace(fork, unknown=told.unknown, open=told.open, tally=told.tally)
            # Two sets that can be finished in so many moves: where there are as many, more than one can be chosen.
            for way in few:
                reach = max(reach, self._count_reach(way.moves, self.lookahead.completable(way.after), deeper))
        return fork, reach

    def _list_members(self, configuration: Any, members: tuple[str, ...], steps: float) -> Iterator[tuple[Choice, Any]]:
        """The members of a selection that some possible subset holds, with what comes after it; None: not known."""
        for index, name in enumerate(members):
            found = self._find_subset(configuration, frozenset((name,)), frozenset(members), steps)
            if found is not None:
                yield Choice(index, found[0], (name,)), found[1]
            elif self.lookahead.work.left <= 0:
                yield Choice(index, (), (name,)), None

    def subset(self, configuration: Hashable, names: Names, steps: float) -> Choice | None:
        """The choice of just these members of the selection on top of the stack, with ``steps`` more moves; or None."""
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
        """Up to ``most + 1`` sets that can be chosen and are not in ``excluded``; and whether these are all there are.

        ``within`` are the members that each set must have, and those that it may have.

        The first one is looked for until it is found or there is none, those after it within a bound on the ways tried.
        """
        must, may = within or (frozenset(), frozenset(self.lookahead.selection(configuration) or ()))
        found: list[Subset] = []
        with self.in_time():
            for way in self._iter_subsets(configuration, must, may, steps):
                if way is None:
                    if found or self.lookahead.work.left <= 0:
                        return found, False
                elif way.names not in excluded:
                    found.append(way)
                    if len(found) > most:
                        return found, False
        return found, True

    def some_subset(
        self, configuration: Hashable, must: Names, may: Names, steps: float, excluded: Container[object] = ()
    ) -> bool:
        """Whether a choice that is not ``excluded`` is allowed of all of ``must`` and some of ``may``."""
        with self.in_time():
            return bool(self._find_subset(configuration, must, may, steps, excluded)) or self.lookahead.work.left <= 0

    def _find_subset(
        self, configuration: Any, must: Names, may: Names, steps: float, excluded: Container[object] = ()
    ) -> tuple[tuple[Any, ...], Any] | None:
        """Moves through a selection that take all of ``must`` and nothing but ``may``, and what they lead to.

        None where there are none, or where the time is spent first; it never is where just one set is asked for.
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
