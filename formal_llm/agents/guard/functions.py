"""The functions that conditions may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import urlsplit

from formal_llm.agents.guard.data import Unsaid, Value, clock, day, equal, less, number, shown, text
from formal_llm.agents.guard.shell.commands import shell_data

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Function(NamedTuple):
    """A function of conditions: what it does, and how many values it takes."""

    work: Callable[..., Value]
    least: int = 1
    most: int | None = 1


def _list(value: Value) -> list[Value]:
    if isinstance(value, list | tuple):
        return list(value)
    raise Unsaid(f"{shown(value)} is no list")


def _len(value: Value) -> int:
    if isinstance(value, str | list | tuple | Mapping):
        return len(value)
    raise Unsaid(f"{shown(value)} has no length")


def _values(given: tuple[Value, ...]) -> list[Value]:
    found = _list(given[0]) if len(given) == 1 else list(given)
    if not found:
        raise Unsaid("an empty list has no least and no greatest")
    return found


def _least(*given: Value) -> Value:
    first, *rest = _values(given)
    for one in rest:
        first = one if less(one, first) else first
    return first


def _greatest(*given: Value) -> Value:
    first, *rest = _values(given)
    for one in rest:
        first = one if less(first, one) else first
    return first


def _count(values: Value, wanted: Value) -> int:
    return sum(1 for one in _list(values) if equal(one, wanted))


def _distinct(values: Value) -> list[Value]:
    found: list[Value] = []
    for one in _list(values):
        if not any(equal(one, other) for other in found):
            found.append(one)
    return found


def _host(value: Value) -> str:
    written = text(value)
    try:
        found = urlsplit(written if "//" in written else f"//{written}").hostname
    except ValueError:
        found = None
    if not found:
        raise Unsaid(f"{shown(value)} is no address")
    return found.rstrip(".")


def _inside(path: Value, folder: Value) -> bool:
    """Whether a path lies in a folder, ``..`` worked out; a relative path is one from where the folder is told."""
    inner, outer = normpath(text(path)), normpath(text(folder))
    if outer == ".":
        return not inner.startswith(("/", "../")) and inner != ".."
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def _runs(commands: Value, wanted: Value) -> bool:
    """Whether one of some commands begins with these words; ``*`` in a word stands for any characters.

    The commands are lists of words, or a shell line, which is read into them.
    """
    words = text(wanted).split()
    if isinstance(commands, str):
        commands = shell_data(commands)["commands"]
    return any(
        isinstance(one, list | tuple)
        and len(one) >= len(words)
        and all(fnmatchcase(text(given), word) for given, word in zip(one, words, strict=False))
        for one in _list(commands)
    )


def _matching(values: Value, pattern: Value) -> list[Value]:
    return [one for one in _list(values) if isinstance(one, str) and fnmatchcase(one, text(pattern))]


def _keys(value: Value) -> list[Value]:
    if isinstance(value, Mapping):
        return list(value)
    raise Unsaid(f"{shown(value)} has no names")


def _within(some: Value, others: Value) -> bool:
    return all(any(equal(one, other) for other in _list(others)) for one in _list(some))


#: All functions by name. ``missing(x)`` and ``has(x)`` look at whether their argument is there.
FUNCTIONS: Mapping[str, Function] = {
    "missing": Function(lambda _: None),
    "has": Function(lambda _: None),
    "len": Function(_len),
    "sum": Function(lambda values: sum(map(number, _list(values)))),
    "min": Function(_least, 1, None),
    "max": Function(_greatest, 1, None),
    "abs": Function(lambda value: abs(number(value))),
    "count": Function(_count, 2, 2),
    "distinct": Function(_distinct),
    "lower": Function(lambda value: text(value).lower()),
    "upper": Function(lambda value: text(value).upper()),
    "trim": Function(lambda value: text(value).strip()),
    "number": Function(number),
    "date": Function(day),
    "time": Function(clock),
    "weekday": Function(lambda value: _DAYS[day(value).weekday()]),
    "host": Function(_host),
    "inside": Function(_inside, 2, 2),
    "runs": Function(_runs, 2, 2),
    "matching": Function(_matching, 2, 2),
    "keys": Function(_keys),
    "within": Function(_within, 2, 2),
}
