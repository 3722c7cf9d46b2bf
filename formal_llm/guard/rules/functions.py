"""The functions that conditions may use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import NamedTuple
from urllib.parse import urlsplit

from formal_llm.guard.rules.data import (
    Undetermined,
    Value,
    format_value,
    is_equal,
    is_less,
    is_number,
    make_comparable,
    to_clock_time,
    to_day,
    to_duration,
    to_moment,
    to_number,
    to_text,
    write_constant,
)
from formal_llm.guard.shell import inside, read_plain

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class ConditionFunction(NamedTuple):
    """A function of conditions: its implementation, and how many values it takes."""

    work: Callable[..., Value]
    least: int = 1
    most: int | None = 1


def _require_list(value: Value) -> list[Value]:
    if isinstance(value, list | tuple):
        return list(value)
    raise Undetermined(f"{format_value(value)} is no list")


def _measure_length(value: Value) -> int:
    if isinstance(value, str | list | tuple | Mapping):
        return len(value)
    raise Undetermined(f"{format_value(value)} has no length")


def _collect_values(given: tuple[Value, ...]) -> list[Value]:
    values = _require_list(given[0]) if len(given) == 1 else list(given)
    if not values:
        raise Undetermined("an empty list has no least and no greatest")
    return values


def _find_least(*given: Value) -> Value:
    least, *rest = _collect_values(given)
    for one in rest:
        least = one if is_less(one, least) else least
    return least


def _find_greatest(*given: Value) -> Value:
    greatest, *rest = _collect_values(given)
    for one in rest:
        greatest = one if is_less(greatest, one) else greatest
    return greatest


def _count_equal(values: Value, wanted: Value) -> int:
    return sum(1 for one in _require_list(values) if is_equal(one, wanted))


def _drop_duplicates(values: Value) -> list[Value]:
    distinct: list[Value] = []
    for one in _require_list(values):
        if not any(is_equal(one, other) for other in distinct):
            distinct.append(one)
    return distinct


def _extract_host(value: Value) -> str:
    address = to_text(value)
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname
    except ValueError:
        host = None
    if not host:
        raise Undetermined(f"{format_value(value)} is no address")
    return host.rstrip(".")


def _are_inside_folders(paths: Value, folders: Value) -> bool:
    """Return whether a path, or all paths of a list, are in a folder, or in one of a list."""
    return all(_do_reach_folders(path, folders) for path in _list_texts(paths))


def _do_reach_folders(paths: Value, folders: Value) -> bool:
    """Return whether a path, or one of a list, is in a folder, or in one of a list."""
    return any(inside(path, folder) for path in _list_texts(paths) for folder in _list_texts(folders))


def _list_texts(value: Value) -> list[str]:
    return [to_text(one) for one in value] if isinstance(value, list | tuple) else [to_text(value)]


def _has_command(commands: Value, wanted: Value) -> bool:
    """Return whether one of some commands begins with these words; ``*`` in a word stands for any characters.

    Words behind ``...`` may come anywhere behind those before it. The commands are lists of words, or a shell line;
    of one that is not plain it is not known.
    """
    words = to_text(wanted).split()
    return any(_begins_with(one, words) for one in _list_commands(commands))


def _keeps_to_commands(commands: Value, wanted: Value) -> bool:
    """Return whether each command begins with the words of one of a list."""
    allowed = [words.split() for words in _list_texts(wanted)]
    return all(any(_begins_with(one, words) for words in allowed) for one in _list_commands(commands))


def _list_commands(commands: Value) -> list[list[Value]]:
    if isinstance(commands, str):
        read = read_plain(commands)
        if read is None:
            raise Undetermined("the shell line is not plain")
        return [list(words) for words in read.commands]
    return [_require_list(one) for one in _require_list(commands)]


def _begins_with(actual: list[Value], words: list[str]) -> bool:
    first, *parts = (part.split() for part in " ".join(words).split("..."))
    if not _match_words(actual, first):
        return False
    at = len(first)
    for part in parts:
        while not _match_words(actual[at:], part):
            if at >= len(actual):
                return False
            at += 1
        at += len(part)
    return True


def _match_words(actual: list[Value], words: list[str]) -> bool:
    return len(actual) >= len(words) and all(
        fnmatchcase(to_text(one), word) for one, word in zip(actual, words, strict=False)
    )


def _select_matching(values: Value, pattern: Value) -> list[Value]:
    return [one for one in _require_list(values) if isinstance(one, str) and fnmatchcase(one, to_text(pattern))]


def _list_keys(value: Value) -> list[Value]:
    if isinstance(value, Mapping):
        return list(value)
    raise Undetermined(f"{format_value(value)} has no names")


def _is_subset(some: Value, others: Value) -> bool:
    return all(any(is_equal(one, other) for other in _require_list(others)) for one in _require_list(some))


def _do_overlap(some: Value, others: Value) -> bool:
    return any(is_equal(one, other) for one in _require_list(some) for other in _require_list(others))


def _change_texts(value: Value, change: Callable[[str], str]) -> Value:
    """Change a text, or each text of a list."""
    return [change(to_text(one)) for one in value] if isinstance(value, list | tuple) else change(to_text(value))


def _count_years(first: Value, last: Value) -> int:
    """Count the full years from one day to another, as ages are counted."""
    begin, end = to_day(first), to_day(last)
    return end.year - begin.year - ((end.month, end.day) < (begin.month, begin.day))


#: How many characters in a row a text has in common with another one that it stems from.
_COMMON = 12


def has_common_text(value: Value, other: Value) -> bool:
    """Return whether a text in a value has 12 characters in a row in common with a text in another one.

    A shorter text counts if the other contains it as whole words. Numbers are texts; case, spacing and invisible
    characters do not matter.
    """
    own = _list_all_texts(value)
    parts = {text[at : at + _COMMON] for text in own for at in range(len(text) - _COMMON + 1)}
    short = [re.compile(rf"(?<!\w){re.escape(text)}(?!\w)") for text in own if 0 < len(text) < _COMMON]
    return any(
        any(one.search(text) for one in short)
        or any(text[at : at + _COMMON] in parts for at in range(len(text) - _COMMON + 1))
        for text in _list_all_texts(other)
    )


def _list_all_texts(value: Value) -> list[str]:
    todo, texts = [value], []
    while todo:
        one = todo.pop()
        if isinstance(one, Mapping):
            todo += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            todo += one
        elif one is not None and not isinstance(one, bool):
            text = write_constant(Fraction(to_number(one))) if is_number(one) else str(one)
            seen = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
            texts.append(" ".join(unicodedata.normalize("NFKC", seen).casefold().split()))
    return texts


#: All functions by name. ``missing(x)`` and ``has(x)`` test whether their argument exists, ``holds(x)`` whether a
#: condition is known to hold.
FUNCTIONS: Mapping[str, ConditionFunction] = {
    "missing": ConditionFunction(lambda _: None),
    "has": ConditionFunction(lambda _: None),
    "holds": ConditionFunction(lambda _: None),
    "len": ConditionFunction(_measure_length),
    "sum": ConditionFunction(lambda values: sum(map(to_number, _require_list(values)))),
    "min": ConditionFunction(_find_least, 1, None),
    "max": ConditionFunction(_find_greatest, 1, None),
    "abs": ConditionFunction(lambda value: abs(to_number(value))),
    "count": ConditionFunction(_count_equal, 2, 2),
    "distinct": ConditionFunction(_drop_duplicates),
    "lower": ConditionFunction(lambda value: _change_texts(value, str.lower)),
    "upper": ConditionFunction(lambda value: _change_texts(value, str.upper)),
    "trim": ConditionFunction(lambda value: to_text(value).strip()),
    "number": ConditionFunction(to_number),
    "date": ConditionFunction(to_day),
    "time": ConditionFunction(to_clock_time),
    "weekday": ConditionFunction(lambda value: _DAYS[to_day(value).weekday()]),
    "host": ConditionFunction(_extract_host),
    "inside": ConditionFunction(_are_inside_folders, 2, 2),
    "reaches": ConditionFunction(_do_reach_folders, 2, 2),
    "runs": ConditionFunction(_has_command, 2, 2),
    "keeps_to": ConditionFunction(_keeps_to_commands, 2, 2),
    "matching": ConditionFunction(_select_matching, 2, 2),
    "keys": ConditionFunction(_list_keys),
    "within": ConditionFunction(_is_subset, 2, 2),
    "overlap": ConditionFunction(_do_overlap, 2, 2),
    "years": ConditionFunction(_count_years, 2, 2),
}


def _add_values(one: Value, other: Value) -> Value:
    return _add_signed(one, other, 1)


def _subtract_values(one: Value, other: Value) -> Value:
    return _add_signed(one, other, -1)


def _add_signed(one: Value, other: Value, sign: int) -> Value:
    """Return a sum or a difference of numbers or times."""
    kinds = {type(one).__name__, type(other).__name__}
    try:
        if "timedelta" in kinds and not kinds & {"datetime", "date", "str"}:
            return to_duration(one) + sign * to_duration(other)
        if kinds & {"datetime", "date", "timedelta"}:
            if type(other).__name__ == "timedelta":
                return to_moment(one) + sign * to_duration(other)
            if sign < 0:
                return to_moment(one) - to_moment(other)
            return to_moment(other) + to_duration(one)
    except OverflowError:
        raise Undetermined("a time out of range") from None
    try:
        return to_number(one) + sign * to_number(other)
    except Undetermined:
        if sign < 0 and isinstance(one, str) and isinstance(other, str):
            return to_moment(one) - to_moment(other)  # two texts that are dates
        raise


def _divide_numbers(one: Value, other: Value) -> Value:
    divisor = to_number(other)
    if not divisor:
        raise Undetermined("a division by zero")
    return Fraction(to_number(one)) / divisor


def _multiply_values(one: Value, other: Value) -> Value:
    if type(one).__name__ == "timedelta" or type(other).__name__ == "timedelta":
        length, factor = (one, other) if type(one).__name__ == "timedelta" else (other, one)
        return to_duration(float(to_number(factor) * Fraction(to_duration(length).total_seconds())))
    return to_number(one) * to_number(other)


def _is_among(value: Value, values: Value) -> bool:
    if not isinstance(values, list | tuple):
        raise Undetermined(f"{format_value(values)} is no list")
    undetermined = None
    for one in values:
        try:
            if is_equal(value, one):
                return True
        except Undetermined as error:
            undetermined = error
    # A value that is incomparable with all of them cannot be among them.
    if undetermined is not None and all(_is_incomparable(value, one) for one in values):
        raise undetermined
    return False


def _is_incomparable(one: Value, other: Value) -> bool:
    try:
        make_comparable(one, other)
    except Undetermined:
        return True
    return False


def _has_part(whole: Value, part: Value) -> bool:
    return _is_among(part, whole) if isinstance(whole, list | tuple) else to_text(part) in to_text(whole)


#: The binary operators in the order of their precedence: the precedence, and the implementation.
OPERATORS: Mapping[str, tuple[int, Callable[[Value, Value], Value]]] = {
    "==": (4, is_equal),
    "!=": (4, lambda one, other: not is_equal(one, other)),
    "<": (4, is_less),
    "<=": (4, lambda one, other: is_less(one, other) or is_equal(one, other)),
    ">": (4, lambda one, other: is_less(other, one)),
    ">=": (4, lambda one, other: is_less(other, one) or is_equal(one, other)),
    "in": (4, _is_among),
    "contains": (4, _has_part),
    "starts with": (4, lambda one, other: to_text(one).startswith(to_text(other))),
    "ends with": (4, lambda one, other: to_text(one).endswith(to_text(other))),
    "like": (4, lambda one, other: fnmatchcase(to_text(one), to_text(other))),
    "+": (5, _add_values),
    "-": (5, _subtract_values),
    "*": (6, _multiply_values),
    "/": (6, _divide_numbers),
}
