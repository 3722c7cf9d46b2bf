"""Notations: how ``from_string``, ``from_file`` and ``str()`` come to a class that knows nothing of its notation.

The readers and writers lie above the values that they read and write. So they are kept in a table by class, as a
printer keeps its methods, and :mod:`formal_llm.automata` fills it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast

from formal_llm.authored.files import read_text
from formal_llm.errors import NotationError
from formal_llm.exports import ByClass, LazyFunction, load_function

T = TypeVar("T")
W = TypeVar("W", bound="Written")


@dataclass(frozen=True, slots=True)
class Notation(Generic[T]):
    """How values of one class are written.

    Attributes:
        read: makes a value of a text; the second argument names the file it is from, None for a string.
        write: the text of a value, from which ``read`` makes an equal one.
        error: what is raised for a file that cannot be read.
        others: readers of other notations for the same values, by name.
    """

    read: Callable[..., T]
    write: Callable[[T], str]
    error: type[NotationError] = NotationError
    others: Mapping[str, Callable[..., T]] = field(default_factory=dict)

    def get_reader(self, name: str = "") -> Callable[..., T]:
        """The reader of another notation by its name, or of this one where that is not the name of another."""
        return load_function(self.others.get(name, self.read))


_add_rules = LazyFunction("formal_llm.automata.notation.formula:add_rules")
_NOTATIONS = ByClass[Notation[Any]]()


def register_notation(kind: type[T] | str, notation: Notation[T]) -> None:
    """Set how values of a class, given itself or as ``"module:name"``, and of its subclasses are written."""
    _NOTATIONS.register(kind, notation)


def notation_of(kind: type[T]) -> Notation[T]:
    """How values of a class are written.

    Raises:
        TypeError: no notation is known.
    """
    notation = _NOTATIONS.find(kind)
    if notation is None:
        raise TypeError(f"{kind.__name__} has no notation")
    return notation


class Written:
    """What has a notation: gives a class the methods that read and write it."""

    __slots__ = ()

    @classmethod
    def from_string(cls, text: str, *, file: str | None = None) -> Self:
        """Read the notation.

        Warns with :class:`~formal_llm.errors.GrammarWarning` for each thing that looks like a mistake but is legal.

        Args:
            text: what is written.
            file: what messages call the place it is from.

        Raises:
            NotationError: it cannot be read, or has no meaning; with line, column, a caret and what was
                expected there. Of grammars it is a ``GrammarError``.
        """
        return notation_of(cls).get_reader()(text, file)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a file (UTF-8, with or without a byte order mark); see :meth:`from_string`."""
        notation = notation_of(cls)
        return notation.get_reader()(read_text(path, notation.error), str(path))

    def with_rules(self, *texts: str) -> Self:
        """The same rules under more rules about order: sentences (``"backup before migrate"``) or formulas.

        Raises:
            NotationError: a text is neither, or names what is no step.
        """
        return cast("Self", _add_rules(self, *texts))

    def __str__(self) -> str:
        return notation_of(type(self)).write(self)
