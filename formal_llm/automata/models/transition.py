"""What a pushdown automaton can do in a state: its transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.symbols import Production
from formal_llm.errors import AutomatonError


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """(state, read, pop -> target, push).

    Attributes:
        state: where it starts.
        read: the terminal it consumes, None for ε.
        pop: the symbol it takes from the stack, None to take nothing.
        target: where it leads.
        push: what it puts on the stack, the first symbol on top.
        text: what an option that shows this transition says; where empty, it is made from the labels.
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
