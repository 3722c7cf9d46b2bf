"""Plans in the published format: a list of days with city, transportation, meals, attractions and accommodation.

::

    [{"days": 1, "current_city": "from St. Petersburg to Rockford",
      "transportation": "Flight Number: F3573659, from St. Petersburg to Rockford, Departure Time: 15:40, ...",
      "breakfast": "-", "attraction": "-", "lunch": "-", "dinner": "Coco Bambu, Rockford",
      "accommodation": "Pure luxury one bdrm + sofa bed on Central Park, Rockford"}, ...]

The fields are those of TravelPlanner (Xie et al. 2024, arXiv 2402.01622). Their texts are kept as they are; other
modules judge them (:mod:`~formal_llm.packs.travel.official`, :mod:`~formal_llm.packs.travel.strict`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from formal_llm.authored.files import lines_of, parse_json
from formal_llm.errors import InputError

#: An empty field: no meal, no accommodation, no journey.
NOTHING = "-"
#: The text fields of a day, in the order in which they are printed.
FIELDS = (
    "current_city", "transportation", "breakfast", "attraction", "lunch", "dinner", "accommodation",
)  # fmt: skip
MEALS = ("breakfast", "lunch", "dinner")


@dataclass(frozen=True, slots=True)
class Day:
    """A day of a plan. An empty field is ``"-"``.

    Attributes:
        days: the number of the day, from 1.
        current_city: ``"Rockford"``, or ``"from St. Petersburg to Rockford"`` on a day of travel.
        transportation: ``"Flight Number: F3573659, from A to B, ..."``, ``"Self-driving, from A to B, ..."``,
            ``"Taxi, from A to B, ..."``.
        breakfast, lunch, dinner: ``"Coco Bambu, Rockford"``.
        accommodation: the place for the night, ``"Name, City"``.
        attraction: ``"Name, City;Name, City;"``; the last semicolon is part of it.
        lacking: the fields that were missing in the JSON, even as ``"-"``; all of them for an empty day (``{}``).
        nulls: the fields that were null in the JSON, which are read as ``""``.
    """

    days: int
    current_city: str
    transportation: str = NOTHING
    breakfast: str = NOTHING
    lunch: str = NOTHING
    dinner: str = NOTHING
    accommodation: str = NOTHING
    attraction: str = NOTHING
    lacking: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()

    @property
    def meals(self) -> tuple[tuple[str, str], ...]:
        """The names of the three meals with their texts."""
        return (("breakfast", self.breakfast), ("lunch", self.lunch), ("dinner", self.dinner))

    def to_json(self) -> dict[str, object]:
        """Return the day in the published format."""
        return {"days": self.days, **{name: getattr(self, name) for name in FIELDS}}


@dataclass(frozen=True, slots=True)
class Submission:
    """A line of a file of submissions.

    Attributes:
        index: the number of the query, from 0; None if the line has neither ``index`` nor ``idx``.
        query: the text of the query; empty if the line does not contain it.
        days: the plan; empty if none was delivered.
    """

    index: int | None
    query: str
    days: tuple[Day, ...]


def has_content(text: str) -> bool:
    """Return whether a field has content."""
    return text not in ("", NOTHING)


def to_json(plan: Iterable[Day]) -> list[dict[str, object]]:
    """Convert a plan to the published format."""
    return [day.to_json() for day in plan]


def to_text(plan: Iterable[Day]) -> str:
    """Write a plan as JSON text in the published format, one field per line."""
    return json.dumps(to_json(plan), ensure_ascii=False, indent=2) + "\n"


def read_plan(plan: object, where: str = "the plan") -> tuple[Day, ...]:
    """Read the days of a plan from any source.

    Args:
        plan: the list of days, an object that contains it under ``plan``, or the text of either. Null, an empty list
            and only empty days (``{}``) mean that no plan was delivered.
        where: the name for the plan in messages, such as ``"plan.json"``.

    Raises:
        InputError: it is not a list of days; the error names the day and the field.
    """
    if isinstance(plan, str):
        plan = _parse_text(plan, where)
    if isinstance(plan, Mapping):
        if "plan" not in plan:
            raise InputError(
                f"{where}: this is one object, not a list of days; a plan is [{{'days': 1, ...}}, ...], or an object "
                f"with the list under 'plan'; this one has {_list_keys(plan)}"
            )
        plan = plan["plan"]
    if plan is None:
        return ()
    if isinstance(plan, str) or not isinstance(plan, Sequence):
        raise InputError(f"{where}: a plan is a list of days, not {type(plan).__name__}: {_shorten_value(plan)}")
    return tuple(_read_day(number, day, where) for number, day in enumerate(plan, 1)) if any(plan) else ()


def read_submissions(text: str, where: str = "the file") -> tuple[Submission, ...]:
    """Read the plans of a file: one plan, a list of submissions, or JSON Lines with one submission per line.

    A submission is ``{"idx": 1, "query": "...", "plan": [...]}``, as on the leaderboard. ``idx`` counts from 1;
    ``index``, which counts from 0, has precedence.

    Raises:
        InputError: it is none of these; the error names the line.
    """
    lines = [(number, line) for number, line in enumerate(lines_of(text), 1) if line.strip()]
    if not lines:
        raise InputError(f"{where}: the file is empty; it should hold a plan as JSON, or a submission a line")
    parsed = _parsed_or_none(text)
    if parsed is not None:
        value = parsed[0]
        if isinstance(value, list) and value and all(isinstance(one, dict) and "plan" in one for one in value):
            return tuple(_read_submission(one, f"{where}, entry {number}") for number, one in enumerate(value, 1))
        return (_read_submission(value, where),)
    if len(lines) == 1:
        return (_read_submission(_parse_text(text, where), where),)
    if not text.lstrip().startswith("{"):
        _parse_text(text, where)  # raises: one incomplete JSON value
    return tuple(
        _read_submission(_parse_text(line, f"{where}, line {number}"), f"{where}, line {number}")
        for number, line in lines
    )


def _read_submission(value: object, where: str) -> Submission:
    if not isinstance(value, Mapping):
        return Submission(None, "", read_plan(value, where))
    query = value.get("query")
    return Submission(read_number(value), query if isinstance(query, str) else "", read_plan(value, where))


def read_number(fields: Mapping[str, object]) -> int | None:
    """Return the number of a query, from 0: its ``index``, or else its ``idx``, which counts from 1."""
    numbers = fields.get("index"), fields.get("idx")
    return next((value - less for less, value in enumerate(numbers) if isinstance(value, int)), None)


def _read_day(number: int, day: object, where: str) -> Day:
    place = f"{where}, day {number}"
    if not isinstance(day, Mapping):
        raise InputError(f"{place}: a day is an object with {', '.join(FIELDS)}, not {_shorten_value(day)}")
    if day and not set(FIELDS) & set(day):
        raise InputError(f"{place}: this is no day of a trip: it has {_list_keys(day)} and none of {', '.join(FIELDS)}")
    texts = {name: _read_text(day.get(name), f"{place}, {name}") for name in FIELDS}
    days = day.get("days", day.get("day", number))
    digits = re.search(r"\d{1,9}", str(days))
    lacking = tuple(name for name in FIELDS if name not in day)
    nulls = tuple(name for name in FIELDS if day.get(name, NOTHING) is None)
    return Day(int(digits[0]) if digits else number, **texts, lacking=lacking, nulls=nulls)


def _read_text(value: object, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{place}: this should be a text, or '-' for nothing, not {_shorten_value(value)}")
    return value


def _parse_text(text: str, where: str) -> object:
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: this is no JSON: {error}") from None


def _parsed_or_none(text: str) -> tuple[object] | None:
    try:
        return (parse_json(text),)
    except (ValueError, RecursionError):
        return None


def _list_keys(value: Mapping[object, object]) -> str:
    return ", ".join(repr(str(key)) for key in list(value)[:8]) or "nothing"


def _shorten_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
