"""The scratchpad: what a run has done so far, tool by tool. And how long texts are shown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from formal_llm.authored.tables import Keys, problems
from formal_llm.automata import Word
from formal_llm.errors import RecordError


def shorten_text(text: str, most: int) -> str:
    """A text of at most about ``most`` characters: what is left out is noted in its place."""
    if len(text) <= most:
        return text
    left_out = len(text) - most
    return f"{text[: most - most // 4]} [... {left_out:,} characters left out ...] {text[len(text) - most // 4 :]}"


def mark_lines(text: str, first: str, more: str = ": ") -> str:
    """A text in the lines of a list: each line of it but the first has a mark, so none can be taken for the list's."""
    return first + text.replace("\r", "\n").replace("\n", f"\n   {more}")


@dataclass(frozen=True, slots=True)
class Step:
    """One use of a tool.

    Attributes:
        task: what it was to do, in words.
        result: what it gave, as text; of a tool that failed, what went wrong.
        call: how it was called, such as ``calculate("2 + 3")``; empty where it is unknown.
    """

    tool: str
    task: str
    result: str
    call: str = ""
    failed: bool = False


_HEAD = Keys({"summary": str, "summarised": int}, needed=("summary", "summarised"))
_STEP = Keys({"tool": str, "task": str, "result": str, "call": str, "failed": bool}, needed=("tool", "task", "result"))


@dataclass(frozen=True, slots=True)
class Scratchpad:
    """What a run has done so far. A value: ``plus`` gives another one.

    Attributes:
        steps: the uses of tools, in order.
        summary: what the first steps came to, for models that are not shown them any more.
        summarised: how many steps that is.
    """

    steps: tuple[Step, ...] = ()
    summary: str = ""
    summarised: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        if not 0 <= self.summarised <= len(self.steps):
            raise ValueError(f"{self.summarised} of {len(self.steps)} steps cannot be summarised")

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.steps)

    def __bool__(self) -> bool:
        return True

    @property
    def word(self) -> Word:
        """The tools, as a word of the rules."""
        return tuple(step.tool for step in self.steps)

    def plus(self, *steps: Step) -> Scratchpad:
        """This one and what comes after it."""
        return replace(self, steps=(*self.steps, *steps))

    def with_summary(self, summary: str, count: int) -> Scratchpad:
        """The same, its first ``count`` steps shown by a summary."""
        return replace(self, summary=summary, summarised=count)

    def text(self, most: int = 2_000) -> str:
        """What models are shown: the summary, and the steps behind it.

        A line that begins with a number is a step, and no text in a step has such a line.

        Args:
            most: how many characters of each task and result are shown.
        """
        lines = [mark_lines(self.summary, f"Steps 1 to {self.summarised}, in short: ")] if self.summarised else []
        for number, step in enumerate(self.steps[self.summarised :], self.summarised + 1):
            outcome = "failed" if step.failed else "result"
            lines += [
                mark_lines(shorten_text(step.task, most), f"{number}. {step.tool}: "),
                mark_lines(shorten_text(step.result, most), f"   {outcome}: "),
            ]
        return "\n".join(lines)

    def to_jsonl(self) -> str:
        """The scratchpad as JSON lines; each ends with a line break."""
        head = [{"summary": self.summary, "summarised": self.summarised}] if self.summarised else []
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in [*head, *map(asdict, self.steps)])

    @classmethod
    def from_jsonl(cls, text: str) -> Scratchpad:
        """The scratchpad that :meth:`to_jsonl` wrote.

        Raises:
            RecordError: a line is damaged; the message names it.
        """
        steps: list[Step] = []
        summary, summarised = "", 0
        for number, row in _read_rows(text):
            for found in problems(row, _HEAD if isinstance(row, dict) and "summarised" in row else _STEP):
                raise RecordError(f"line {number} of the scratchpad is damaged: {found.problem}")
            assert isinstance(row, dict)
            if "summarised" in row:
                summary, summarised = row["summary"], row["summarised"]
            else:
                steps.append(Step(**row))
        try:
            return cls(tuple(steps), summary, summarised)
        except ValueError as error:
            raise RecordError(f"the scratchpad is damaged: {error}") from None


def _read_rows(text: str) -> Iterable[tuple[int, object]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise RecordError(f"line {number} of the scratchpad is no JSON: {error}") from error


@dataclass(frozen=True, slots=True)
class Turn:
    """A request and its answer."""

    request: str
    answer: str


@dataclass(frozen=True, slots=True)
class Memory:
    """The earlier conversation: the last turns as they were and those before them in short. A value.

    Attributes:
        turns: the last turns, in order.
        summary: the turns before them; empty where there are none.
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
