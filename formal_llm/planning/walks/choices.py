"""What can be chosen in a configuration: the automaton's moves, made into options that a person would understand.

- A nonterminal on top of the stack: each production is an option. Where a production begins with a class (a symbol
  that stands for a choice of one terminal), its members take its place: people read tool names, not class names.
- A selection on top: its members are the options, and several may be chosen at once.
- An accepting configuration with moves left: stopping is an option too.

Options from which no valid plan can be finished are left out. What is found for a configuration is kept under its
signature, so plans that come by the same place, in the same or another walk, find it there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from formal_llm.automata.lookahead.branches import Branch, Branches, Leap
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.limited import as_automaton, depth
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import EMPTY, Automaton, Configuration, Stack, State
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import constrained
from formal_llm.automata.models.rules import Source
from formal_llm.errors import AutomatonError, unknown
from formal_llm.planning.plans.vocabulary import Vocabulary

_CACHE = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One option: the moves that taking it means; none for stopping here.

    Attributes:
        index: its place among all choices of the configuration, also those that were left out; from 0.
        moves: the moves.
        reads: the terminals that the moves read; of a member of a selection, the member.
        leap: the moves in one, where that is possible.
    """

    index: int
    moves: tuple[Any, ...]
    reads: tuple[str, ...] = ()
    leap: Leap | None = None


@dataclass(slots=True, eq=False)
class Fork:
    """The choices of a configuration.

    Attributes:
        choices: those from which a plan can be finished, as far as the lookahead knows.
        total: how many there are without lookahead.
        several: whether any non-empty subset may be chosen (a selection).
        shown: what options were made of the choices; kept by the walk.
    """

    choices: tuple[Choice, ...]
    total: int
    several: bool = False
    shown: Any = field(default=None, repr=False)


class _Template:
    """The choices at a (state, stack top), whatever lies below."""

    __slots__ = ("branches", "choices", "forks")

    def __init__(self, choices: tuple[Choice, ...], branches: Branches) -> None:
        self.choices = tuple(replace(c, leap=leap) for c, leap in zip(choices, branches.leaps, strict=True))
        self.branches = branches
        self.forks: dict[int, Fork] = {}

    def fork(self, able: int) -> Fork:
        """The fork of the choices whose bits are set; always the same object for the same ones."""
        fork = self.forks.get(able)
        if fork is None:
            choices = tuple(choice for number, choice in enumerate(self.choices) if able >> number & 1)
            fork = self.forks[able] = Fork(choices, len(self.choices))
        return fork


class ChoiceTable:
    """The choices of an automaton's configurations, remembered.

    Args:
        lookahead: knows the automaton and what can be completed.
        look: False to offer every move that the automaton allows now, dead ends included.
    """

    def __init__(self, lookahead: Lookahead, *, look: bool = True) -> None:
        self.lookahead = lookahead
        self.automaton = lookahead.automaton
        self.vocabulary = Vocabulary(lookahead.source)
        self.look = look
        self._rules: str | None = None
        self._templates: dict[tuple[State, str | None], _Template] = {}
        #: (the choices, moves that finish a plan after any of them but for what lies deeper), by signature.
        self._forks: dict[Hashable, tuple[Fork, float]] = {}

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
        return cls(Lookahead(source, limits, max_states=max_states, solver=solver), look=lookahead == "on")

    def rules(self) -> str:
        """The rules as text: the grammar or the automaton in its notation with all limits, then each constraint."""
        if self._rules is None:
            pda, limits = self.lookahead.pda, self.lookahead.limits
            base, *constraints = (pda.factors or (pda,)) if pda is not None else (self.lookahead.source,)
            if isinstance(base, PDA) and base.cfg is not None:
                written = [str(base.cfg.with_limits(limits))]
            else:
                written = [str(base.without_limits if isinstance(base, PDA) else base), *limits.lines()]
            for number, constraint in enumerate(constraints, 1):
                written.append(f"# and: {constraint.name or f'constraint {number}'}")
            self._rules = "\n".join(line.strip("\n") for line in written)
        return self._rules

    def at(self, configuration: Hashable, steps: float) -> Fork:
        """The choices of ``configuration`` when ``steps`` more moves may be made."""
        signature, deeper = self.lookahead.signature(configuration)
        found = self._forks.get(signature)
        if found is None:
            if len(self._forks) > _CACHE:
                self._forks.clear()
            found = self._forks[signature] = self._make(configuration, deeper)
        fork, reach = found
        if reach + deeper <= steps or not self.look:
            return fork
        # Near the end of the step budget the number of moves decides: asked anew, not remembered.
        if fork.several:
            members = self._members(configuration, self.lookahead.selection(configuration) or (), steps)
            return Fork(tuple(choice for choice, _ in members), fork.total, several=True)
        near = tuple(choice for choice in fork.choices if self._within(configuration, choice, steps))
        return Fork(near, fork.total, fork.several)

    def _within(self, configuration: Any, choice: Choice, steps: float) -> bool:
        return self._finishes(self.after(configuration, choice), steps - len(choice.moves))

    def _finishes(self, configuration: Any, steps: float) -> bool:
        """Whether a plan may be finished within ``steps`` moves; without lookahead anything may."""
        if not self.look:
            return True
        bound = None if steps == INFINITE else int(steps)
        return steps >= 0 and self.lookahead.completable(configuration, steps=bound).possible

    def after(self, configuration: Hashable, choice: Choice) -> Hashable:
        """The configuration after a choice."""
        if choice.leap is not None:
            return self.lookahead.leap(configuration, choice.leap)
        for move in choice.moves:
            configuration = self.automaton.step(configuration, move)
        return configuration

    def _make(self, configuration: Hashable, deeper: float) -> tuple[Fork, float]:
        chosen = self.lookahead.selection(configuration)
        if chosen is not None and len(chosen) > 1:
            members = list(self._members(configuration, chosen, INFINITE))
            return self._filtered(members, len(chosen), deeper, several=True)
        top = self.lookahead.top(configuration) if self.look else None
        if top is None:
            found = list(self._candidates(self.automaton, configuration, self.lookahead.at_class))
            return self._filtered(found, len(found), deeper)
        template = self._templates.get(top)
        while template is None or template.branches.stale:
            template = self._templates[top] = self._make_template(top)
        able, reach = self.lookahead.able(template.branches, configuration)
        return template.fork(able), reach

    def _make_template(self, top: tuple[State, str | None]) -> _Template:
        pda = self.lookahead.pda
        assert pda is not None
        start = Configuration(top[0], EMPTY if top[1] is None else Stack(top[1], EMPTY))
        found = list(self._candidates(pda, start, pda.at_class))
        branches = [Branch(len(choice.moves), choice.reads, after) for choice, after in found]
        return _Template(tuple(choice for choice, _ in found), self.lookahead.branches(top, branches))

    def _filtered(
        self, found: list[tuple[Choice, Any]], total: int, deeper: float, several: bool = False
    ) -> tuple[Fork, float]:
        if not self.look:
            return Fork(tuple(choice for choice, _ in found), total, several), 0.0
        kept, reach = [], 0.0
        for choice, after in found:
            verdict = self.lookahead.completable(after)
            if verdict.possible:
                kept.append(choice)
                steps = -1 if verdict.steps is None else verdict.steps
                reach = max(reach, len(choice.moves) + steps - deeper)
        return Fork(tuple(kept), total, several), reach

    @staticmethod
    def _candidates(
        automaton: Automaton[Any, Any], configuration: Any, at_class: Callable[[Any], bool]
    ) -> Iterator[tuple[Choice, Any]]:
        """The choices of a configuration that are single options, with what they lead to."""
        base = depth(configuration) - 1
        number = 0
        if automaton.accepting(configuration):
            yield Choice(0, ()), configuration
            number = 1
        for move in automaton.moves(configuration):
            after = automaton.step(configuration, move)
            paths: list[tuple[tuple[Any, ...], Any]] = [((move,), after)]
            if move.read is None and at_class(after) and depth(after) > base:
                paths = [((move, member), automaton.step(after, member)) for member in automaton.moves(after)]
            for moves, end in paths:
                # A terminal that the option has put on the stack, and that must come now, belongs to the option.
                if moves[-1].read is None and depth(end) > base and not automaton.accepting(end):
                    following = automaton.moves(end)
                    if len(following) == 1 and following[0].read is not None:
                        moves, end = (*moves, following[0]), automaton.step(end, following[0])
                    elif not following:
                        number += 1
                        continue
                yield Choice(number, moves, tuple(m.read for m in moves if m.read is not None)), end
                number += 1

    # -- selections ---------------------------------------------------------------------------------------------

    def _members(self, configuration: Any, members: tuple[str, ...], steps: float) -> Iterator[tuple[Choice, Any]]:
        """The members of a selection that some possible subset holds, with a configuration after such a subset."""
        for index, name in enumerate(members):
            found = self._select(configuration, members, frozenset((name,)), frozenset(members), steps)
            if found is not None:
                yield Choice(index, found[0], (name,)), found[1]

    def subset(self, configuration: Hashable, names: frozenset[str], steps: float) -> Choice | None:
        """The choice of just these members of the selection on top of the stack, with ``steps`` more moves; or None."""
        members = self.lookahead.selection(configuration) or ()
        found = self._select(configuration, members, names, names, steps)
        return None if found is None else Choice(-1, found[0], tuple(name for name in members if name in names))

    def subsets(self, configuration: Hashable, steps: float) -> Iterator[frozenset[str]]:
        """The sets of members that may be chosen of the selection on top of the stack, each once; steps as above.

        The first few come soon, however many sets there are: what leads to no set is never looked at twice.
        """
        members = self.lookahead.selection(configuration) or ()
        for _, _, taken in self._ways(configuration, members, frozenset(), frozenset(members), steps):
            yield frozenset(taken)

    def some_subset(self, configuration: Hashable, must: frozenset[str], may: frozenset[str], steps: float) -> bool:
        """Whether a choice is allowed of all of ``must`` and some of ``may``; arguments as of :meth:`subset`."""
        members = self.lookahead.selection(configuration) or ()
        return self._select(configuration, members, must, may, steps) is not None

    def _select(
        self, configuration: Any, members: tuple[str, ...], must: frozenset[str], may: frozenset[str], steps: float
    ) -> tuple[tuple[Any, ...], Any] | None:
        """Moves through a selection that take all of ``must`` and nothing but ``may``, and what they lead to."""
        found = next(self._ways(configuration, members, must, may, steps), None)
        return None if found is None else found[:2]

    def _ways(
        self, configuration: Any, members: tuple[str, ...], must: frozenset[str], may: frozenset[str], steps: float
    ) -> Iterator[tuple[tuple[Any, ...], Any, tuple[str, ...]]]:
        """As :meth:`_select`, but for every set that can be chosen, few members first; with the set itself."""
        count = 0
        seen: set[Hashable] = set()  # a set may come about in several ways
        barren: set[Hashable] = set()  # from here no set can be chosen
        # A way, or what is noted once all that it can lead to has been looked at: the place, and the count before.
        todo: list[tuple[tuple[Any, ...], Any, tuple[str, ...], int] | tuple[Hashable, int]] = [
            ((), configuration, (), 0)
        ]
        while todo:
            way = todo.pop()
            if len(way) == 2:
                if way[1] == count:
                    barren.add(way[0])
                continue
            moves, now, taken, place = way
            if (moves or place == len(members)) and not self._finishes(now, steps - len(moves)):
                continue
            signature, deeper = self.lookahead.signature(now)
            here = (place, signature, steps - len(moves) - deeper)
            mark = (taken, *here) if place < len(members) else taken
            if here in barren or mark in seen:
                continue
            seen.add(mark)
            if place == len(members):
                count += 1
                yield moves, now, taken
                continue
            todo.append((here, count))
            name = members[place]
            for move in self.automaton.moves(now):
                after = self.automaton.step(now, move)
                if move.push[:1] == (name,):
                    if name in may:
                        todo += (
                            ((*moves, move, match), self.automaton.step(after, match), (*taken, name), place + 1)
                            for match in self.automaton.moves(after)
                        )
                elif name not in must:
                    todo.append(((*moves, move), after, taken, place + 1))
