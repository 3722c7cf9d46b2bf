"""When the steps of a plan are, by the clock of its rules."""

from __future__ import annotations

from typing import NamedTuple

from formal_llm.automata import PDA, Source, Word
from formal_llm.automata.models.clockwork import step_times
from formal_llm.automata.models.symbols import turn_word


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


def schedule_word(rules: Source | None, word: Word) -> tuple[ScheduledStep, ...]:
    """Return the steps in their order, each beginning where the last one ends; see :attr:`Plan.schedule`."""
    if not isinstance(rules, PDA) or rules.times.clock is None:
        return ()
    now = rules.times.clock.span.edges[0]
    numbers = {name: symbol.numbers for name, symbol in rules.symbols.items()}
    names = [name for name in turn_word(word, rules.order) if name not in rules.answers]
    return tuple(ScheduledStep(name, now, now := now + rules.times.seconds(numbers, name)) for name in names)
