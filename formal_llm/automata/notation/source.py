"""A text that somebody wrote, and the places in it: what every reader of a notation needs to tell an error well."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, NoReturn

from formal_llm.errors import GrammarError, GrammarWarning, NotationError


class Place(NamedTuple):
    """A place in a text, counted from 1."""

    line: int
    column: int


@dataclass
class SourceText:
    """A text and where in it things stand; raises and warns with the place."""

    text: str
    file: str | None
    places: dict[str, Place] = field(default_factory=dict)
    error: type[NotationError] = GrammarError
    #: Of a text with imports: the line where each file begins, and its name; the first is the text's own.
    parts: list[tuple[int, str | None]] = field(default_factory=list)

    @classmethod
    def from_text(cls, text: str, file: str | None, error: type[NotationError] = GrammarError) -> SourceText:
        """A text without byte order mark and with plain line ends; a zero byte shows that it is none.

        Raises:
            NotationError: the text holds a zero byte.
        """
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        source = cls(text, file, error=error)
        if "\0" in text:
            source.fail_at(f"this is not a text (zero byte at {text.index(chr(0))})", None)
        return source

    def place_of(self, offset: int) -> Place:
        """The place of the character at ``offset``."""
        line = bisect_left(self._ends, offset)
        return Place(line + 1, offset - (self._ends[line - 1] if line else -1))

    @cached_property
    def _ends(self) -> list[int]:
        """Where the lines end; places are asked for as often as a text has names."""
        return [match.start() for match in re.finditer("\n", self.text)]

    def part_of(self, line: int) -> int:
        """Which of the files a line is from; 0 for the text's own."""
        return max((n for n, (begins, _) in enumerate(self.parts) if begins <= line), default=0)

    def is_own(self, line: int) -> bool:
        """Whether a line is of the text itself, and not of what it imports."""
        return len(self.parts) < 2 or line < self.parts[1][0]

    @property
    def own_text(self) -> str:
        """The text itself, without what it imports."""
        if len(self.parts) < 2:
            return self.text
        return "\n".join(self.text.split("\n")[: self.parts[1][0] - 1])

    def _locate_part(self, place: Place | None) -> tuple[str | None, Place | None]:
        """The file and the place in it."""
        if place is None or len(self.parts) < 2:
            return self.file, place
        begins, file = self.parts[self.part_of(place.line)]
        return file, place._replace(line=place.line - begins + 1)

    def warn_at(self, message: str, place: Place | None, *, stacklevel: int = 1) -> None:
        """Warn of something at a place of the text; ``stacklevel`` as of :func:`warnings.warn`, called in its stead."""
        file, told = self._locate_part(place)
        line, column = told or (None, None)
        warnings.warn(GrammarWarning(message, file=file, line=line, column=column), stacklevel=stacklevel + 1)

    def fail_at(
        self, problem: str, place: Place | None, *, expected: Sequence[str] = (), suggestion: str | None = None
    ) -> NoReturn:
        """Raise for a problem at a place of the text.

        Raises:
            NotationError: always; of the class that this source's notation has.
        """
        lines = self.text.split("\n")
        file, told = self._locate_part(place)
        raise self.error(
            problem,
            file=file,
            line=told.line if told else None,
            column=place.column if place else None,
            source_line=lines[place.line - 1] if place and place.line <= len(lines) else None,
            expected=expected,
            suggestion=suggestion,
        ) from None
