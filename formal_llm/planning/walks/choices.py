"""What can be chosen in a configuration: the automaton's moves, made into options that a person would understand.

- A nonterminal on top of the stack: each production is an option. Where a production begins with a class (a symbol
  that stands for a choice of one terminal), its members take its place: people read tool names, not class names.
- A selection on top: its members are the options, and several may be chosen at once.
- An accepting configuration with moves left: stopping is an option too.

Options from which no valid plan can be finished are left out. What is found for a configuration is kept under its
signature, so plans that come by the same place, in the same or another walk, find it there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from formal_llm.automata import CFG, Limits
from formal_llm.automata.lookahead.flow import INFINITE
from formal_llm.automata.lookahead.lookahead import Lookahead, as_automaton
from formal_llm.automata.lookahead.search import Completion
from formal_llm.automata.lookahead.stacks import Profile
from formal_llm.automata.models.automaton import EMPTY, Configuration, Stack, State
from formal_llm.automata.models.limited import Counters, LimitedAutomaton, LimitedConfiguration, split
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import constrained
from formal_llm.errors import AutomatonError

_CACHE = 200_000


class Jump(NamedTuple):
    """All moves of a choice at once, for a pushdown automaton under limits: where to, what is pushed, what is taken."""

    target: State
    pushed: tuple[str, ...]
    need: int


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One option: the moves that taking it means; none for stopping here.

    Attributes:
        index: its place among all choices of the configuration, also those that were left out; from 0.
        moves: the moves.
        reads: the terminals that the moves read; of a member of a selection, the member.
        jump: the moves in one, where that is possible.
    """

    index: int
    moves: tuple[Any, ...]
    reads: tuple[str, ...] = ()
    jump: Jump | None = None


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


class _Row(NamedTuple):
    """A choice at a (state, stack top), and what is the same wherever that top lies."""

    choice: Choice
    need: int  # as the counters pack it: exact for each terminal
    promised: int
    take: int  # as the resources pack it: interchangeable terminals together
    added: Profile


class _Template:
    """The choices at a (state, stack top), whatever lies below."""

    __slots__ = ("forks", "guard", "rows", "total", "version")

    def __init__(self, rows: list[_Row], total: int, version: int) -> None:
        self.rows = rows
        self.total = total
        self.version = version
        self.forks: dict[int, Fork] = {}

    def fork(self, kept: int) -> Fork:
        """The fork of the rows whose bits are set; always the same object for the same rows."""
        fork = self.forks.get(kept)
        if fork is None:
            choices = tuple(row.choice for number, row in enumerate(self.rows) if kept >> number & 1)
            fork = self.forks[kept] = Fork(choices, self.total)
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
        self.look = look
        inner, _ = split(self.automaton)
        self._pda: PDA | None = inner if isinstance(inner, PDA) else None
        self._counters: Counters | None = getattr(self.automaton, "counters", None)
        self._rules: str | None = None
        self._templates: dict[tuple[State, str | None], _Template] = {}
        #: (the choices, moves that finish a plan after any of them but for what lies deeper), by signature.
        self._forks: dict[Hashable, tuple[Fork, float]] = {}

    @classmethod
    def of(
        cls,
        source: CFG | Any,
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
            AutomatonError: a goal or constraints for an automaton that cannot have them.
        """
        if lookahead not in ("on", "off"):
            raise ValueError(f"lookahead is 'on' or 'off', not {lookahead!r}")
        if goal is not None:
            if not isinstance(source, CFG):
                raise AutomatonError("a task with a goal needs a grammar: an automaton starts where it starts")
            source = source.with_start(goal)
        automaton = as_automaton(source, limits)
        if constraints:
            inner, own = split(automaton)
            if not isinstance(inner, PDA):
                raise AutomatonError("constraints need a grammar or a PDA to be combined with")
            combined = constrained(inner, constraints)
            own &= combined.limits
            combined = combined.without_limits
            automaton = LimitedAutomaton(combined, own, tuple(automaton.terminals)) if own else combined
        return cls(Lookahead(automaton, max_states=max_states, solver=solver), look=lookahead == "on")

    def rules(self) -> str:
        """The rules as text: the grammar or the automaton in its notation with all limits, then each constraint."""
        if self._rules is None:
            inner, own = split(self.automaton)
            base, *constraints = getattr(inner, "factors", ()) or (inner,)
            cfg = getattr(base, "cfg", None)
            written = [str(cfg.with_limits(own))] if cfg is not None else [str(base), *own.lines()]
            for number, constraint in enumerate(constraints, 1):
                written.append(f"# and: {constraint.name or f'constraint {number}'}")
            self._rules = "\n".join(line.strip("\n") for line in written)
        return self._rules

    def at(self, configuration: Any, steps: float) -> Fork:
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
            members = self._members(configuration, self.automaton.selection(configuration), steps)
            return Fork(tuple(choice for choice, _ in members), fork.total, several=True)
        near = tuple(choice for choice in fork.choices if self._within(configuration, choice, steps))
        return Fork(near, fork.total, fork.several)

    def _within(self, configuration: Any, choice: Choice, steps: float) -> bool:
        return self._finishes(self.after(configuration, choice), steps - len(choice.moves))

    def _finishes(self, configuration: Any, steps: float) -> bool:
        """Whether a plan may be finished within ``steps`` moves; without lookahead anything may."""
        if not self.look:
            return True
        found = self.lookahead.steps(configuration)
        if 0 <= found <= steps or found == INFINITE or steps == INFINITE:
            return found < INFINITE
        return steps >= 0 and self.lookahead.completable(configuration, steps=int(steps)).possible

    def after(self, configuration: Any, choice: Choice) -> Any:
        """The configuration after a choice."""
        if choice.jump is None:
            for move in choice.moves:
                configuration = self.automaton.step(configuration, move)
            return configuration
        target, pushed, need = choice.jump
        if self._counters is None:
            return Configuration(target, configuration.stack.rest.push(pushed))
        (_, stack), remaining, needed = configuration
        if needed:
            for name in choice.reads:
                needed = self._counters.pay(name, needed)
        return LimitedConfiguration(Configuration(target, stack.rest.push(pushed)), remaining - need, needed)

    def _make(self, configuration: Any, deeper: float) -> tuple[Fork, float]:
        selection = getattr(self.automaton, "selection", None)
        chosen = selection(configuration) if selection is not None else None
        if chosen is not None and len(chosen) > 1:
            members = list(self._members(configuration, chosen, INFINITE))
            return self._filtered(members, len(chosen), deeper, several=True)
        completion = self.lookahead.completion
        if completion is None or completion.grammar.open or not self.look:
            found = list(self._candidates(self.automaton, configuration))
            return self._filtered(found, len(found), deeper)
        if self._counters is None:
            return self._from_template(completion, configuration, 0, 0)
        return self._from_template(completion, *configuration)

    def _filtered(
        self, found: list[tuple[Choice, Any]], total: int, deeper: float, several: bool = False
    ) -> tuple[Fork, float]:
        if not self.look:
            return Fork(tuple(choice for choice, _ in found), total, several), 0.0
        kept, reach = [], 0.0
        for choice, after in found:
            steps = self.lookahead.steps(after)
            if steps < INFINITE:
                kept.append(choice)
                reach = max(reach, len(choice.moves) + steps - deeper)
        return Fork(tuple(kept), total, several), reach

    # -- choices by the top of the stack ------------------------------------------------------------------------

    def _from_template(
        self, completion: Completion, configuration: Configuration, remaining: int, needed: int
    ) -> tuple[Fork, float]:
        """The choices at a stack top, filtered by what is below it and what is left: no stack is built for that."""
        state, stack = configuration
        template = self._templates.get((state, stack.top))
        if template is None or template.version != completion.profiles.version:
            template = self._templates[state, stack.top] = self._make_template(completion, state, stack.top)
        below = completion.profiles.below(state, stack)
        if below is None or below.least_steps == INFINITE:
            return template.fork(0), 0.0
        counters, guard = completion.counters, completion.counters.guard
        still_needed = needed
        pending, spine, reach, kept = below.pending, below.spine, 0.0, 0
        remaining -= below.promised
        if needed and below.paid:
            needed = counters.less(needed, below.paid)
        left = completion.profiles.resources.of(remaining)
        for number, (choice, need, promised, take, added) in enumerate(template.rows):
            if not choice.moves:  # to stop here: what could be done instead does not count
                kept |= (not still_needed) << number
                continue
            if (remaining - need) & guard != guard or (remaining - need - promised) & guard != guard:
                continue
            due = needed
            if due:
                for name in choice.reads:
                    due = counters.pay(name, due)
                due = counters.less(due, added.paid)
            steps = 0.0
            if pending or added.pending or due or spine is not None:
                steps = completion.finish(pending + added.pending, spine, left - take, due)
                if steps == INFINITE:
                    continue
            kept |= 1 << number
            reach = max(reach, len(choice.moves) + steps + added.free_steps)
        return template.fork(kept), reach

    def _make_template(self, completion: Completion, state: State, top: str | None) -> _Template:
        assert self._pda is not None
        start = Configuration(state, EMPTY if top is None else Stack(top, EMPTY))
        rows, total = [], 0
        for choice, after in self._candidates(self._pda, start):
            total += 1
            pushed = tuple(after.stack)
            # On an empty stack nothing lies below: what comes after the choice is all that is left to do.
            profiles = completion.profiles
            added = profiles.delta(after.state, pushed) if top is not None else profiles.profile(*after)
            need = sum(completion.counters.need.get(name, 0) for name in choice.reads)
            if added.least_steps < INFINITE:
                if choice.moves and top is not None:
                    choice = replace(choice, jump=Jump(after.state, pushed, need))
                resources = completion.profiles.resources
                take = resources.need(need) + resources.need(added.promised)
                rows.append(_Row(choice, need, added.promised, take, added))
        return _Template(rows, total, completion.profiles.version)

    @staticmethod
    def _candidates(automaton: Any, configuration: Any) -> Iterator[tuple[Choice, Any]]:
        """The choices of a configuration that are single options, with what they lead to."""
        at_class = getattr(automaton, "at_class", None)
        base = _depth(configuration) - 1
        number = 0
        if automaton.accepting(configuration):
            yield Choice(0, ()), configuration
            number = 1
        for move in automaton.moves(configuration):
            after = automaton.step(configuration, move)
            paths: list[tuple[tuple[Any, ...], Any]] = [((move,), after)]
            if move.read is None and at_class is not None and at_class(after) and _depth(after) > base:
                paths = [((move, member), automaton.step(after, member)) for member in automaton.moves(after)]
            for moves, end in paths:
                # A terminal that the option has put on the stack, and that must come now, belongs to the option.
                if moves[-1].read is None and _depth(end) > base and not automaton.accepting(end):
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

    def subset(self, configuration: Any, names: frozenset[str], steps: float) -> Choice | None:
        """The choice of just these members of a selection; None where the rules do not allow them together.

        Args:
            configuration: where the selection is on top of the stack.
            names: the members to choose.
            steps: how many more moves may be made.
        """
        members = self.automaton.selection(configuration)
        found = self._select(configuration, members, names, names, steps)
        return None if found is None else Choice(-1, found[0], tuple(name for name in members if name in names))

    def some_subset(self, configuration: Any, must: frozenset[str], may: frozenset[str], steps: float) -> bool:
        """Whether a choice is allowed of all of ``must`` and some of ``may``; arguments as of :meth:`subset`."""
        members = self.automaton.selection(configuration)
        return self._select(configuration, members, must, may, steps) is not None

    def _select(
        self, configuration: Any, members: tuple[str, ...], must: frozenset[str], may: frozenset[str], steps: float
    ) -> tuple[tuple[Any, ...], Any] | None:
        """Moves through a selection that take all of ``must`` and nothing but ``may``, few members first."""
        todo: list[tuple[tuple[Any, ...], Any, int]] = [((), configuration, 0)]
        while todo:
            moves, now, place = todo.pop()
            if place == len(members):
                if self._finishes(now, steps - len(moves)):
                    return moves, now
                continue
            if moves and not self._finishes(now, INFINITE):
                continue
            name = members[place]
            for move in self.automaton.moves(now):
                after = self.automaton.step(now, move)
                if move.push[:1] == (name,):
                    if name in may:
                        todo += (
                            ((*moves, move, match), self.automaton.step(after, match), place + 1)
                            for match in self.automaton.moves(after)
                        )
                elif name not in must:
                    todo.append(((*moves, move), after, place + 1))
        return None


def _depth(configuration: Any) -> int:
    """How deep the stack is; 1 for an automaton without one, so that all it does counts as its own."""
    inner = getattr(configuration, "inner", configuration)
    return inner.stack.depth if isinstance(inner, Configuration) else 1
