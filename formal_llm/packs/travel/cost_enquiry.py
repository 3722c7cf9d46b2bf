"""The cost of one day of a plan, with the exact answers of the published ``CostEnquiry``, including misspellings.

It is for agents that know those answers; the evaluators compute the cost of a whole plan.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from formal_llm.authored.files import parse_json
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.rows import Accommodation, Mode, Money, Restaurant

R = TypeVar("R", Accommodation, Restaurant)
MOST_CHARACTERS = 20_000
_NO_JSON = "The sub plan can not be parsed into json format, please check."
_ONE_DAY = f"{_NO_JSON} Only one day plan is supported."
_NO_WAY = "The transporation information is not valid, please check."
_WAY = re.compile(r"from\s+(.+?)\s+to\s+([^,]+)(?=[,\s]|$)")
_PLACE = re.compile(r"(.*?),\s*([^,]+)(\(\w[\w\s]*\))?$")
_MEALS = {"breakfast": "breakfase", "lunch": "lunch", "dinner": "dinner"}


def cost_enquiry(world: World, sub_plan: str) -> str:
    """Return the answer of ``CostEnquiry`` for a day of a plan.

    Args:
        world: the database.
        sub_plan: a JSON object, or a Python dictionary, with ``people_number`` and the keys of a day.
    """
    day = _parse_day(sub_plan)
    if day is None:
        return _NO_JSON
    people = day.get("people_number") if isinstance(day, Mapping) else None
    if not isinstance(day, Mapping) or isinstance(people, bool) or not isinstance(people, int) or people < 1:
        return _ONE_DAY if not isinstance(day, Mapping) else "The sub plan has no people_number, please check."
    total, problems = _compute_cost(world, {str(key): value for key, value in day.items()}, people)
    if not problems:
        return f"The cost of your plan is {total} dollars."
    reasons = "".join(f"{number}. {one} \t" for number, one in enumerate(problems, 1))
    return f"Sorry, the cost of your plan is not available because of the following reasons:{reasons}"


def _parse_day(text: str) -> object:
    if len(text) > MOST_CHARACTERS:
        return None
    try:
        return parse_json(text)
    except ValueError:
        pass
    try:
        value: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value


def _compute_cost(world: World, day: Mapping[str, object], people: int) -> tuple[Money, list[str]]:
    total: Money = 0
    problems: list[str] = []
    if way := _read_field(day, "transportation"):
        cost = _way_cost(world, way, str(day.get("current_city", "")), people)
        if isinstance(cost, str):
            problems.append(cost)
        else:
            total += cost
    for meal, called in _MEALS.items():
        if found := _read_place(_read_field(day, meal)):
            table = _find_row(world.restaurants(found[1]), found[0])
            if table is None:
                problems.append(f"The {called} information is not valid, please check.")
            else:
                total += table.cost * people
    if found := _read_place(_read_field(day, "accommodation")):
        bed = _find_row(world.accommodations(found[1]), found[0])
        if bed is None:
            problems.append("The accommodation information is not valid, please check.")
        else:
            total += bed.cost_for(people)
    return total, problems


def _read_field(day: Mapping[str, object], key: str) -> str:
    value = day.get(key)
    return value if isinstance(value, str) and value != "-" else ""


def _way_cost(world: World, way: str, current_city: str, people: int) -> Money | str:
    """Return the cost of a way or an error; unknown modes of transport cost nothing, as published."""
    lower = way.lower()
    if "flight number" in lower:
        _, found, rest = way.partition("Flight Number: ")
        flights = world.flights_numbered(rest.split(",")[0]) if found else ()
        return flights[0].price * people if flights else "The filght information is not valid"
    mode: Mode | None = "self-driving" if "self-driving" in lower else "taxi" if "taxi" in lower else None
    if mode is None:
        return 0
    cities = _WAY.search(way) or _WAY.search(current_city)
    if cities is None:
        return f"{_NO_WAY} You have to make sure there are two cities (from A to B) in your transportation plan."
    drive = world.distance(bare_city(cities[1]), bare_city(cities[2]), mode)
    return drive.cost_for(people) if drive is not None else _NO_WAY


def _read_place(text: str) -> tuple[str, str] | None:
    """Return name and city of ``"Name, City"``; None if the text is empty or has no city."""
    found = _PLACE.search(text) if text else None
    return (found[1].strip(), bare_city(found[2].strip()).strip()) if found else None


def _find_row(rows: Sequence[R], name: str) -> R | None:
    return next((row for row in rows if row.name == name), None)


def bare_city(text: str) -> str:
    """Return a city without the text in parentheses after it."""
    found = re.match(r"(.*?)\([^)]*\)", text)
    return found[1] if found else text
