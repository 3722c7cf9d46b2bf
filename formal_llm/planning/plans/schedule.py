"""When the steps of a plan are, by the clock of its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from formal_llm.automata import PDA
from formal_llm.automata.models.clockwork import step_times
from formal_llm.automata.models.symbols import turn_word

if TYPE_CHECKING:
    from formal_llm.planning.plans.plan import Plan


class ScheduledStep(NamedTuple):
    """A step with its times, in seconds since midnight.

    Attributes:
        name: the terminal.
    """

    name: str
    begin: int
    end: int

    def __str__(self) -> str:
        return f"{step_times(self.begin, self.end)}: {self.name}"


def schedule_of(plan: Plan) -> tuple[ScheduledStep, ...]:
    """Return the steps in their order, each beginning where the last one ends; see :attr:`Plan.schedule`."""
    rules = plan.rules
    if not isinstance(rules, PDA) or rules.times.clock is None:
        return ()
    now = rules.times.clock.span.edges[0]
    numbers = {name: symbol.numbers for name, symbol in rules.symbols.items()}
    names = [name for name in turn_word(plan.word, plan.order) if name not in rules.answers]
    return tuple(ScheduledStep(name, now, now := now + rules.times.seconds(numbers, name)) for name in names)
