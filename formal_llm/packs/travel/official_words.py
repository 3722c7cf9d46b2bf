"""How the published scripts of TravelPlanner read the words of a plan, slips and all (``utils``, ``evaluation``)."""

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
    """The cities of ``"from A to B"``, wherever that stands."""
    found = _FROM_TO.search(text)
    return (found[1], found[2]) if found else None


def bare(text: str) -> str:
    """A text up to the first parenthesis that is closed."""
    found = re.search(r"^(.*?)\([^)]*\)", text)
    return found[1] if found else text


def name_city(text: str) -> tuple[str, str]:
    """Name and city of ``"Name, City"``; two dashes where there are none."""
    found = _PLACE.search(text)
    return (found[1].strip(), bare(found[2].strip()).strip()) if found else ("-", "-")


def named(rows: Sequence[R], text: str) -> list[R]:
    """The rows of a city whose name contains the one that a text gives."""
    name = name_city(text)[0]
    return [row for row in rows if name in row.name]


def driven_mode(lower: str) -> Mode | None:
    """As what a way in small letters is paid: self-driving goes first."""
    return "self-driving" if "self-driving" in lower else "taxi" if "taxi" in lower else None


def matched_mode(lower: str) -> str | None:
    """As what a way in small letters counts where ways exclude each other: taxi goes first."""
    return next((mode for mode in ("taxi", "self-driving", "flight") if mode in lower), None)


def in_sequence(cities: Sequence[str]) -> bool:
    """Whether no city comes again but the first, at the end, and each in between comes twice in a row."""
    runs = [(city, len(list(group))) for city, group in groupby(cities)]
    if len(cities) < 3:
        return False
    before: set[str] = set()
    at = 0
    for city, count in runs:
        if city in before and at not in (0, len(cities) - 1):
            return False
        last = at + count - 1
        if count == 1 and 0 < last < len(cities) - 1:
            return False
        before.add(city)
        at += count
    return True
