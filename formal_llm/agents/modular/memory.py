"""The memory of a conversation: what was asked before, and what was answered."""

from __future__ import annotations

from dataclasses import dataclass, replace

from formal_llm.agents.modular.scratchpad import mark_lines, shorten_text


@dataclass(frozen=True, slots=True)
class Turn:
    """A request and its answer."""

    request: str
    answer: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What was said before, the last turns as they were and those before them in short. A value.

    Attributes:
        turns: the last turns, in order.
        summary: what was said before them; empty where nothing was.
    """

    turns: tuple[Turn, ...] = ()
    summary: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "turns", tuple(self.turns))

    def __bool__(self) -> bool:
        return bool(self.turns or self.summary)

    def plus(self, request: str, answer: str) -> Memory:
        """This one and one more turn."""
        return replace(self, turns=(*self.turns, Turn(request, answer)))

    def text(self, most: int = 1_000) -> str:
        """What models are shown.

        Args:
            most: how many characters of each request and answer are shown.
        """
        lines = [mark_lines(self.summary, "Before that, in short: ")] if self.summary else []
        for turn in self.turns:
            lines.append(mark_lines(shorten_text(turn.request, most), "User: "))
            lines.append(mark_lines(shorten_text(turn.answer, most), "Answer: "))
        return "\n".join(lines)
