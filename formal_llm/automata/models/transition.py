"""What a pushdown automaton can do in a state: its transitions, and what contradicts itself in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.symbols import Production, find_reachable
from formal_llm.errors import AutomatonError, did_you_mean


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """(state, read, pop -> target, push).

    Attributes:
        state: where it starts.
        read: the terminal it consumes, None for ε.
        pop: the symbol it takes from the stack, None to take nothing.
        target: where it leads.
        push: what it puts on the stack, the first symbol on top.
        text: the text of an option that shows this transition; where empty, it is composed of the labels.
        production: the grammar's production that it expands, if it comes from one.
        question: what is asked where this can be chosen; where empty, the wording's own words for the next part.
        decision: whether it only answers its question: the progress of a plan shows it, but it is no step of the plan.
    """

    state: State
    read: str | None
    pop: str | None
    target: State
    push: tuple[str, ...] = ()
    text: str = ""
    production: Production | None = None
    question: str = ""
    decision: bool = False

    def parts(self) -> tuple[object, ...]:
        """What makes it the transition it is, as a comparable tuple."""
        return (self.state, self.read, self.pop, self.target, self.push)

    def __eq__(self, other: object) -> bool:
        return self.parts() == other.parts() if isinstance(other, Transition) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.parts())

    def __str__(self) -> str:
        return f"({self.state}, {self.read or 'ε'}, {self.pop or 'ε'} -> {self.target}, {' '.join(self.push) or 'ε'})"


def transition_of(parts: Sequence[object]) -> Transition:
    """A transition that is written as a tuple (state, read, pop, target, push[, text]).

    Raises:
        AutomatonError: there are too few or too many parts.
    """
    if not 4 <= len(parts) <= 6:
        raise AutomatonError(f"a transition is (state, read, pop, target, push[, text]), not {tuple(parts)!r}")
    state, read, pop, target, *more = parts
    push = more[0] if more else ()
    return Transition(state, read or None, pop or None, target, tuple(push), *more[1:])  # type: ignore[arg-type]


class AutomatonProblem(NamedTuple):
    """Something wrong with an automaton: what, and the transition and the name in it that it is about."""

    message: str
    name: State | None = None
    transition: Transition | None = None


def states_of(transitions: Iterable[Transition], start: State) -> dict[State, None]:
    """The states, the start first and then in order of appearance."""
    return dict.fromkeys([start, *(state for t in transitions for state in (t.state, t.target))])


def find_problem(
    transitions: Sequence[Transition], start: State, accepting: Collection[State], stack_symbols: Collection[str]
) -> AutomatonProblem | None:
    """The first thing that contradicts itself; None where nothing does."""
    states = states_of(transitions, start)
    if not accepting:
        return AutomatonProblem("no final state: no run can accept; name at least one in accepting=")
    for state in accepting:
        if state not in states:
            return AutomatonProblem(f"final state {state!r} is in no transition" + suggest_name(state, states), state)
    after: dict[State, dict[State, None]] = {}
    for transition in transitions:
        after.setdefault(transition.state, {})[transition.target] = None
    reached = find_reachable([start], lambda state: after.get(state, ()))
    for transition in transitions:
        if (state := transition.state) not in reached:
            message = f"state {state!r} cannot be reached from {start!r}: {transition}"
            return AutomatonProblem(message + suggest_name(state, reached), state, transition)
    for transition in transitions:
        if transition.pop is not None and transition.pop not in stack_symbols:
            message = f"stack symbol {transition.pop!r} is popped but never pushed: {transition}"
            return AutomatonProblem(message + suggest_name(transition.pop, stack_symbols), transition.pop, transition)
    return None


def dead_ends(transitions: Sequence[Transition], start: State, accepting: Collection[State]) -> Iterable[State]:
    """States that no transition leaves and that are not final: a run that comes there is lost."""
    left = {transition.state for transition in transitions}
    return (state for state in states_of(transitions, start) if state not in left and state not in accepting)


def suggest_name(name: object, known: Iterable[object]) -> str:
    """The end of a message: the known name that was probably meant."""
    found = did_you_mean(str(name), map(str, known))
    return f"; did you mean {found!r}?" if found and found != str(name) else ""
