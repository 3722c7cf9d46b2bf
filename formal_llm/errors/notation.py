"""What can be wrong with rules: their text, what they mean together, what can be found out about them."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.errors.base import FormalLLMError

#: How many characters of a line an error shows.
_SHOWN = 160


class GrammarWarning(UserWarning):
    """A grammar, formula or behaviour that can be used, but probably means something else than its author intended.

    Attributes:
        problem: what looks wrong, in one sentence.
        file: the name of the source, or None for a string.
        line, column: the place, counted from 1; None where it is no single place.
    """

    def __init__(
        self, problem: str, *, file: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.column = column
        super().__init__(problem)

    def __str__(self) -> str:
        place = "" if self.line is None else f":{self.line}:{self.column}"
        return f"{self.file or '<string>'}{place}: {self.problem}"


class NotationError(FormalLLMError, ValueError):
    """A text that does not follow its notation.

    Attributes:
        problem: what is wrong, in one sentence.
        file: the name of the source, or None for a string.
        line, column: the place, counted from 1; None where the trouble is no single place.
        expected: what could have stood there.
        suggestion: the nearest known name, or another way out.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        source_line: str | None = None,
        expected: Sequence[str] = (),
        suggestion: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.column = column
        self.source_line = source_line
        self.expected = tuple(expected)
        self.suggestion = suggestion
        super().__init__(problem)

    def __str__(self) -> str:
        place = [self.file or "<string>"]
        if self.line is not None:
            place.append(str(self.line))
            if self.column is not None:
                place.append(str(self.column))
        lines = [f"{':'.join(place)}: {self.problem}"]
        if self.source_line is not None:
            number = "" if self.line is None else str(self.line)
            # Tabs are shown as one blank each, so that the caret is under its character.
            shown, at = _cut_window(self.source_line.expandtabs(1), (self.column or 1) - 1)
            lines.append(f"  {number} | {shown}")
            if self.column is not None:
                lines.append(f"  {' ' * len(number)} | {' ' * at}^")
        if self.expected:
            lines.append(f"  expected: {', '.join(self.expected)}")
        if self.suggestion:
            lines.append(f"  {self.suggestion}")
        return "\n".join(lines)


def _cut_window(line: str, at: int) -> tuple[str, int]:
    """What is shown of a line, and where in it its place ``at`` is: of a long line, what stands around it."""
    if len(line) <= _SHOWN:
        return line, at
    begin = max(0, min(at - _SHOWN // 2, len(line) - _SHOWN))
    before, behind = "…" if begin else "", "…" if begin + _SHOWN < len(line) else ""
    return f"{before}{line[begin : begin + _SHOWN]}{behind}", at - begin + len(before)


class GrammarError(NotationError):
    """A grammar that cannot be read, or that describes no language."""


class CalculationError(NotationError):
    """An expression that has no value here: it cannot be read, is not defined, or is too large; with the place."""


class AutomatonError(FormalLLMError, ValueError):
    """An automaton written in code that contradicts itself (unknown state, symbol never pushed, ...)."""


class Undecided(FormalLLMError):
    """A question about an automaton was not decided within its budget of states."""


class InfiniteLanguage(FormalLLMError):
    """There are infinitely many of what was to be counted; give a bound on the length (``max_length``)."""
