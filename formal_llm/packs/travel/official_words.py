"""Plan texts as the published scripts of TravelPlanner read them, errors included (``utils``, ``evaluation``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TypeVar

from formal_llm.packs.travel.rows import Accommodation, Attraction, Mode, Restaurant

R = TypeVar("R", Accommodation, Restaurant, Attraction)
_FROM_TO = re.compile(r"from\s+(.+?)\s+to\s+([^,]+)(?=[,\s]|$)")
_PLACE = re.compile(r"(.*?),\s*([^,]+)(\(\w[\w\s]*\))?$")


def from_to(text: str) -> tuple[str, str] | None:
    """Return the cities of ``"from A to B"`` anywhere in a text."""
    found = _FROM_TO.search(text)
    return (found[1], found[2]) if found else None


def strip_parentheses(text: str) -> str:
    """Return a text up to its first closed parenthesis."""
    found = re.search(r"^(.*?)\([^)]*\)", text)
    return found[1] if found else text


def name_city(text: str) -> tuple[str, str]:
    """Return name and city of ``"Name, City"``; two dashes if there are none."""
    found = _PLACE.search(text)
    return (found[1].strip(), strip_parentheses(found[2].strip()).strip()) if found else ("-", "-")


def find_named(rows: Sequence[R], text: str) -> list[R]:
    """Return the rows of a city whose name contains the name in a text."""
    name = name_city(text)[0]
    return [row for row in rows if name in row.name]


def driven_mode(lower: str) -> Mode | None:
    """Return the mode that determines the cost of a way in lower case: self-driving has priority."""
    return "self-driving" if "self-driving" in lower else "taxi" if "taxi" in lower else None


def matched_mode(lower: str) -> str | None:
    """Return the mode that counts for conflicts of a way in lower case: taxi has priority."""
    return next((mode for mode in ("taxi", "self-driving", "flight") if mode in lower), None)


def in_sequence(cities: Sequence[str]) -> bool:
    """Return whether only the first city is repeated, at the end, and each city between occurs twice in a row."""
    runs = [(city, len(list(group))) for city, group in groupby(cities)]
    if len(cities) < 3:
        return False
    before: set[str] = set()
    place = 0
    for city, count in runs:
        if city in before and place not in (0, len(cities) - 1):
            return False
        last = place + count - 1
        if count == 1 and 0 < last < len(cities) - 1:
            return False
        before.add(city)
        place += count
    return True
