"""What contradicts itself in a pushdown automaton that somebody wrote, in code or as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from formal_llm.automata.models.automaton import State
from formal_llm.errors import did_you_mean

if TYPE_CHECKING:
    from formal_llm.automata.models.pda import PDA, Transition


class Problem(NamedTuple):
    """Something wrong with an automaton: what, and the transition and the name in it that it is about."""

    message: str
    name: State | None = None
    transition: Transition | None = None


def find_problem(pda: PDA) -> Problem | None:
    """The first thing that contradicts itself; None where nothing does."""
    if not pda.accepting_states:
        return Problem("no final state: no run can accept; name at least one in accepting=")
    for state in pda.accepting_states:
        if state not in pda.states:
            return Problem(f"final state {state!r} is in no transition" + near(state, pda.states), state)
    reached = {pda.start_state}
    while more := {t.target for t in pda.transitions if t.state in reached} - reached:
        reached |= more
    for transition in pda.transitions:
        if (state := transition.state) not in reached:
            message = f"state {state!r} cannot be reached from {pda.start_state!r}: {transition}"
            return Problem(message + near(state, reached), state, transition)
    for transition in pda.transitions:
        if transition.pop is not None and transition.pop not in pda.stack_symbols:
            message = f"stack symbol {transition.pop!r} is popped but never pushed: {transition}"
            return Problem(message + near(transition.pop, pda.stack_symbols), transition.pop, transition)
    return None


def dead_ends(pda: PDA) -> Iterable[State]:
    """States that no transition leaves and that are not final: a run that comes there is lost."""
    left = {transition.state for transition in pda.transitions}
    return (state for state in pda.states if state not in left and state not in pda.accepting_states)


def near(name: object, known: Iterable[object]) -> str:
    """The end of a message: the known name that was probably meant."""
    found = did_you_mean(str(name), map(str, known))
    return f"; did you mean {found!r}?" if found and found != str(name) else ""
