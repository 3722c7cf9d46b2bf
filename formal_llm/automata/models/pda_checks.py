"""What contradicts itself in a pushdown automaton that somebody wrote, in code or as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import did_you_mean


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
            return AutomatonProblem(f"final state {state!r} is in no transition" + near(state, states), state)
    reached = {start}
    while more := {t.target for t in transitions if t.state in reached} - reached:
        reached |= more
    for transition in transitions:
        if (state := transition.state) not in reached:
            message = f"state {state!r} cannot be reached from {start!r}: {transition}"
            return AutomatonProblem(message + near(state, reached), state, transition)
    for transition in transitions:
        if transition.pop is not None and transition.pop not in stack_symbols:
            message = f"stack symbol {transition.pop!r} is popped but never pushed: {transition}"
            return AutomatonProblem(message + near(transition.pop, stack_symbols), transition.pop, transition)
    return None


def dead_ends(transitions: Sequence[Transition], start: State, accepting: Collection[State]) -> Iterable[State]:
    """States that no transition leaves and that are not final: a run that comes there is lost."""
    left = {transition.state for transition in transitions}
    return (state for state in states_of(transitions, start) if state not in left and state not in accepting)


def near(name: object, known: Iterable[object]) -> str:
    """The end of a message: the known name that was probably meant."""
    found = did_you_mean(str(name), map(str, known))
    return f"; did you mean {found!r}?" if found and found != str(name) else ""
