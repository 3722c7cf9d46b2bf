"""What values have in common: a mapping that does not change, pickling by fields, a notation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from formal_llm.authored.files import read_text
from formal_llm.errors import NotationError

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dictionary that cannot be changed, and so has a hash, where its values have one.

    It is read as fast as a dictionary, equals one with the same items, and can be pickled and copied.
    """

    __slots__ = ()

    def _refuse_change(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping belongs to a value, and does not change")

    __setitem__ = __delitem__ = __ior__ = _refuse_change
    clear = pop = popitem = setdefault = update = _refuse_change

    def __hash__(self) -> int:  # type: ignore[override]  # a dictionary has none since it changes
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return super().__repr__()

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


class PickledByFields:
    """A frozen dataclass that is pickled and copied by its fields: what it has worked out stays behind."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Written:
    """What has a notation: gives a class the methods that read and write it.

    Readers and writers are built on the values, so a class imports its own inside :meth:`_notation`.
    """

    __slots__ = ()
    #: What is raised for a file that cannot be read.
    notation_error: ClassVar[type[NotationError]] = NotationError

    @staticmethod
    def _notation() -> tuple[Callable[[str, str | None], Any], Callable[[Any], str]]:
        """Return the reader (of a text and the name of its file) and the writer."""
        raise NotImplementedError

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
        made: Self = cls._notation()[0](text, file)
        return made

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a file (UTF-8, with or without a byte order mark); see :meth:`from_string`."""
        made: Self = cls._notation()[0](read_text(path, cls.notation_error), str(path))
        return made

    def with_rules(self, *texts: str) -> Self:
        """The same rules under more rules about order: sentences (``"backup before migrate"``) or formulas.

        Raises:
            NotationError: a text is neither, or names what is no step.
        """
        from formal_llm.automata.notation.formula import add_rules

        return add_rules(self, *texts)  # type: ignore[type-var]

    def __str__(self) -> str:
        return self._notation()[1](self)
