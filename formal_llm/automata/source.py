"""A text that somebody wrote, and the places in it: what every reader of a notation needs to tell an error well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

from formal_llm.errors import GrammarError


class Place(NamedTuple):
    """A place in a text, counted from 1."""

    line: int
    column: int


@dataclass
class Source:
    """A text and where in it things stand; raises and warns with the place."""

    text: str
    file: str | None
    places: dict[str, Place] = field(default_factory=dict)

    def fail(
        self, problem: str, place: Place | None, *, expected: Sequence[str] = (), suggestion: str | None = None
    ) -> NoReturn:
        """Raise for a problem at a place of the text.

        Raises:
            GrammarError: always.
        """
        lines = self.text.split("\n")
        raise GrammarError(
            problem,
            file=self.file,
            line=place.line if place else None,
            column=place.column if place else None,
            source_line=lines[place.line - 1] if place and place.line <= len(lines) else None,
            expected=expected,
            suggestion=suggestion,
        ) from None


def read_file(path: str | Path) -> str:
    """The text of an authored file.

    Raises:
        GrammarError: the file is missing, a folder, or not UTF-8 text; the message says which.
    """
    name = str(path)
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise GrammarError("there is no such file", file=name) from None
    except OSError as error:
        raise GrammarError(f"the file cannot be read: {error.strerror}", file=name) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GrammarError(
            f"this is not a text file in UTF-8 (byte {error.start} cannot be read)",
            file=name,
            suggestion="save it as UTF-8 text",
        ) from None
    if "\0" in text:
        raise GrammarError(f"this is not a text file (zero byte at {text.index(chr(0))})", file=name)
    return text
