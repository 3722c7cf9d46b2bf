"""Tables that people write, in TOML or JSON: a *shape* defines what may be in them, and nothing else is accepted.

An unknown key is an error that names the file, the line and the nearest known key, since what a reader passes
over in silence is a rule that does not hold::

    GROUP = Keys({"name": str, "text": str, "slots": Items(str)}, needed=("name", "text"))
    PACK = Keys({"title": str, "facts": Named(SCALAR), "groups": Items(GROUP)}, needed=("title",))
    data = read_toml("pack.toml", PACK)
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, NoReturn, TypeAlias

from formal_llm.authored.files import read_text
from formal_llm.errors import NotationError, did_you_mean

#: Where something is in a table: keys, and places in lists from 0.
TablePath: TypeAlias = "tuple[str | int, ...]"


@dataclass(frozen=True)
class Keys:
    """A table with these keys, each with the shape of its value; those in ``needed`` must be there."""

    known: Mapping[str, Shape]
    needed: Sequence[str] = ()


@dataclass(frozen=True)
class NamedEntries:
    """A table whose keys are names that its author chose; each value has the shape ``each``."""

    each: Shape


@dataclass(frozen=True)
class Items:
    """A list of values that have the shape ``each``."""

    each: Shape


@dataclass(frozen=True)
class AlternativeShape:
    """A value that has one of these shapes, or is one of these texts."""

    shapes: Sequence[Shape] = ()
    texts: Sequence[str] = field(default=())


#: A type (``float`` for any number), ``object`` for whatever is there, or one of the above.
Shape = type | Keys | NamedEntries | Items | AlternativeShape
#: A value that can be written as a text.
SCALAR = AlternativeShape((str, int, float, bool))
_CALLED = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


class TableProblem(NamedTuple):
    """Something wrong in a table: where, what, and what could be there instead.

    Attributes:
        path: where it is; of a key that is missing, the table that lacks it.
        expected: what could be there.
        suggestion: the nearest known key.
    """

    path: TablePath
    problem: str
    expected: tuple[str, ...] = ()
    suggestion: str | None = None


@dataclass(frozen=True)
class TomlFile:
    """A TOML file whose table has its shape.

    Attributes:
        name: the path, as messages show it.
        text: what is written.
    """

    name: str
    text: str
    data: dict[str, Any]

    @classmethod
    def read(cls, path: str | Path, shape: Shape, called: str = "") -> TomlFile:
        """Read a file; for the arguments see :func:`read_toml`."""
        text = read_text(path)
        file = cls(str(path), text, parse_toml(text, str(path)))
        for found in problems(file.data, shape, called):
            file.fail(found)
        return file

    def fail(self, found: TableProblem) -> NoReturn:
        """Raise for a problem in the table, with the line where it is.

        Raises:
            NotationError: always.
        """
        line = line_of(self.text, found.path)
        source_line = self.text.split("\n")[line - 1].rstrip("\r") if line else None
        named = _compile_last_key(found.path).search(source_line or "")
        column = named.start() + 1 if named and named[0] and isinstance(found.path[-1], str) else None
        raise NotationError(
            found.problem, file=self.name, line=line, column=column, source_line=source_line,
            expected=found.expected, suggestion=found.suggestion,
        ) from None  # fmt: skip


def read_toml(path: str | Path, shape: Shape, called: str = "") -> dict[str, Any]:
    """The table of a TOML file.

    Args:
        path: the file.
        shape: what may be in it.
        called: what a message calls the table, such as ``"in a wording"``.

    Raises:
        NotationError: the file cannot be read, is no TOML, or something in it does not have that shape; with the line.
    """
    return TomlFile.read(path, shape, called).data


def parse_toml(text: str, file: str | None = None) -> dict[str, Any]:
    """The table of a TOML text, whatever is in it.

    Raises:
        NotationError: it is no TOML, or nested too deeply.
    """
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise NotationError("lists or tables are nested too deeply", file=file) from None
    except tomllib.TOMLDecodeError as error:
        matched = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL)
        if matched is None:
            raise NotationError(f"this is not TOML: {error}", file=file) from None
        lines = text.rstrip("\n").split("\n")
        line, column = (int(matched[2]), int(matched[3])) if matched[2] else (len(lines), len(lines[-1]) + 1)
        source_line = lines[line - 1] if line <= len(lines) else None
        raise NotationError(
            f"this is not TOML: {matched[1]}", file=file, line=line, column=column, source_line=source_line,
            suggestion='write name = value; a text stands in quotes: title = "Tea"',
        ) from None  # fmt: skip


def problems(data: object, shape: Shape, called: str = "") -> Iterator[TableProblem]:
    """What in a table does not have its shape, in the order in which it is there.

    Args:
        data: the table.
        shape: what may be in it.
        called: what a message calls the table, such as ``"in a wording"``; where its path does not show it.
    """
    todo: list[tuple[TablePath, object, Shape]] = [((), data, shape)]
    while todo:
        path, value, wanted = todo.pop()
        inner: list[tuple[TablePath, object, Shape]] = []
        if isinstance(wanted, AlternativeShape):
            if isinstance(value, str) and value in wanted.texts:
                continue
            # The first kind that fits defines what may be inside.
            chosen = next((one for one in wanted.shapes if _has_kind(value, one)), None)
            if chosen is None:
                yield TableProblem(
                    path, f"{_format_path(path)} is {_describe_shape(wanted)}, not {_describe_value(value)}"
                )
                continue
            wanted = chosen
        if not _has_kind(value, wanted):
            yield TableProblem(path, f"{_format_path(path)} is {_describe_shape(wanted)}, not {_describe_value(value)}")
        elif isinstance(wanted, Keys) and isinstance(value, Mapping):
            inner = [((*path, key), one, wanted.known[key]) for key, one in value.items() if key in wanted.known]
            yield from _check_keys(path, value, wanted, called)
        elif isinstance(wanted, NamedEntries) and isinstance(value, Mapping):
            inner = [((*path, key), one, wanted.each) for key, one in value.items()]
        elif isinstance(wanted, Items) and isinstance(value, Sequence):
            inner = [((*path, place), one, wanted.each) for place, one in enumerate(value)]
        todo += reversed(inner)


def _check_keys(path: TablePath, table: Mapping[str | int, object], keys: Keys, called: str) -> Iterator[TableProblem]:
    """The keys of a table that are unknown, and those that are missing."""
    where = f" in {_format_path(path)}" if path else f" {called}" if called else ""
    for key in table:
        if key not in keys.known:
            near = did_you_mean(str(key), keys.known)
            hint = f"did you mean {near}?" if near else None
            yield TableProblem((*path, key), f"unknown key{where}: {_shorten_text(key)}", tuple(keys.known), hint)
    for key in keys.needed:
        if key not in table:
            yield TableProblem(path, f"the key {key!r} is missing{where}")


# -- where something is in a text ---------------------------------------------------------------------------------

#: How many beginnings of a text are read to find a line; then a problem is reported without it.
_TRIES = 200


def line_of(text: str, path: TablePath) -> int | None:
    """The line, from 1, in which something is in a TOML text; None where that is not found out.

    The reader of TOML reports no places. But the beginning of a text up to the end of a statement is TOML as well, and
    the shortest one that holds what is looked for ends with it.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    # The first `before` lines do not hold it, the first `until` do; counts from `middles` to there end in a statement.
    before, middles, until = 0, len(lines), len(lines)
    tries = 0
    while path and middles - before > 1:
        start = count = (before + middles) // 2
        while count < middles and tries <= _TRIES and (found := _holds_path(lines[:count], path)) is None:
            count += 1
            tries += 1
        tries += 1
        if tries > _TRIES:
            return None
        if count == middles:
            middles = start
        elif found:
            middles, until = start, count
        else:
            before = count
    named = _compile_last_key(path)
    return next((at + 1 for at in range(before, until) if named.search(lines[at])), before + 1) if path else None


def _compile_last_key(path: TablePath) -> re.Pattern[str]:
    """Finds the last key of a path in a line."""
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])" if name else "")


def _holds_path(lines: Sequence[str], path: TablePath) -> bool | None:
    """Whether a beginning of a text holds what is looked for; None where it ends inside of a statement."""
    try:
        value: Any = tomllib.loads("\n".join(lines))
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


# -- the words of messages --------------------------------------------------------------------------------------------


def _has_kind(value: object, shape: Shape) -> bool:
    """Whether a value is of the kind that a shape asks for, whatever it holds."""
    match shape:
        case Keys() | NamedEntries():
            return isinstance(value, Mapping)
        case Items():
            return isinstance(value, Sequence) and not isinstance(value, str)
        case AlternativeShape():
            return any(_has_kind(value, one) for one in shape.shapes) or value in shape.texts
    if shape is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, shape) and (shape is not int or not isinstance(value, bool))


def _describe_shape(shape: Shape) -> str:
    match shape:
        case Keys() | NamedEntries():
            return "a table"
        case Items():
            return "a list"
        case AlternativeShape():
            return " or ".join(
                [*dict.fromkeys(map(_describe_shape, shape.shapes)), *(repr(text) for text in shape.texts)]
            )
    return _CALLED.get(shape, shape.__name__)


def _describe_value(value: object) -> str:
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    return _shorten_text(repr(value))


def _shorten_text(text: object) -> str:
    shown = str(text)
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def _format_path(path: TablePath) -> str:
    """A path as its author would write it, the items of lists counted from 1: ``groups 2, slots``."""
    if not path:
        return "the whole"
    shown = str(path[0])
    for part in path[1:]:
        shown += f" {part + 1}" if isinstance(part, int) else f", {part}"
    return shown
