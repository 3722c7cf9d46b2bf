"""A source text and the places in it, which all readers of notations need for precise errors."""

from __future__ import annotations

import re
import unicodedata
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

from formal_llm.errors import GrammarError, GrammarWarning, NotationError, did_you_mean

if TYPE_CHECKING:
    from lark import Token as LarkToken


class Place(NamedTuple):
    """A place in a text, counted from 1."""

    line: int
    column: int


def place_of(token: LarkToken) -> Place:
    """Return the place of a token of a grammar."""
    return Place(token.line or 1, token.column or 1)


class Word(Protocol):
    """A part of a text and its place."""

    @property
    def text(self) -> str:
        """What is written there."""
        ...

    @property
    def place(self) -> Place:
        """Where it begins."""
        ...


class PlacedWord(NamedTuple):
    """A word of a text and its place."""

    text: str
    place: Place


def normalize_name(name: str) -> str:
    """Return a name in the one Unicode form (NFC) that all ways to write its characters have in common."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


@dataclass
class SourceText:
    """A text with the places of its parts; raises errors and warns with the place."""

    text: str
    file: str | None
    places: dict[str, Place] = field(default_factory=dict)
    error: type[NotationError] = GrammarError

    @classmethod
    def from_text(cls, text: str, file: str | None, error: type[NotationError] = GrammarError) -> SourceText:
        """Normalize a text: no byte order mark, plain line ends; a zero byte shows that it is not a text.

        Raises:
            NotationError: the text contains a zero byte.
        """
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        source = cls(text, file, error=error)
        if "\0" in text:
            source.fail_at(f"this is not a text (zero byte at {text.index(chr(0))})", None)
        return source

    def place_of(self, offset: int) -> Place:
        """Return the place of the character at ``offset``."""
        line = bisect_left(self._ends, offset)
        return Place(line + 1, offset - (self._ends[line - 1] if line else -1))

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.split("\n")

    @cached_property
    def _ends(self) -> list[int]:
        """The offsets of the line ends, computed once since a text has as many places as names."""
        return [match.start() for match in re.finditer("\n", self.text)]

    def warn_at(self, message: str, place: Place | None, *, stacklevel: int = 1) -> None:
        """Warn of a problem at a place; ``stacklevel`` as in :func:`warnings.warn`, called in its place."""
        line, column = place or (None, None)
        warnings.warn(GrammarWarning(message, file=self.file, line=line, column=column), stacklevel=stacklevel + 1)

    def fail_at(
        self, problem: str, place: Place | None, *, expected: Sequence[str] = (), suggestion: str | None = None
    ) -> NoReturn:
        """Raise an error for a problem at a place of the text.

        Raises:
            NotationError: always; of the class for this source's notation.
        """
        raise self.error(
            problem,
            file=self.file,
            line=place.line if place else None,
            column=place.column if place else None,
            source_line=self.lines[place.line - 1] if place and place.line <= len(self.lines) else None,
            expected=expected,
            suggestion=suggestion,
        ) from None

    def fail_near(
        self,
        problem: str,
        place: Place | None,
        name: str,
        known: Iterable[str],
        otherwise: str | None = None,
        *,
        expected: Sequence[str] = (),
    ) -> NoReturn:
        """Raise an error for a name that is not known: it suggests the nearest one that is.

        Args:
            problem: what is wrong.
            place: where.
            name: the name that is not known.
            known: those that are.
            otherwise: the suggestion where none is near.
            expected: what could stand there.

        Raises:
            NotationError: always.
        """
        near = did_you_mean(name, known)
        self.fail_at(problem, place, expected=expected, suggestion=f"did you mean {near}?" if near else otherwise)
