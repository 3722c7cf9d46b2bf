"""Travel queries: origin, destination, dates, number of travellers, budget and wishes.

The fields are those of TravelPlanner (Xie et al. 2024, arXiv 2402.01622), so that its queries need no translation.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation

from formal_llm.errors import NotationError, did_you_mean
from formal_llm.packs.travel.rows import Money

#: What a house can forbid, in the terms of a query: a wish for one of these excludes beds that forbid it.
HOUSE_RULES = ("smoking", "parties", "children under 10", "visitors", "pets")
ROOM_TYPES = ("entire room", "private room", "shared room", "not shared room")
TRANSPORTATION = ("no flight", "no self-driving")
#: The cuisines that published queries ask for.
CUISINES = ("Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French")
_SOURCE = "fields of a query"


@dataclass(frozen=True)
class Constraints:
    """The wishes of a query, in the terms of the data set; None or empty without a wish.

    Attributes:
        house_rule: what the bed must allow: one of :data:`HOUSE_RULES`.
        cuisines: cuisines that at least one meal outside the city of departure must offer.
        room_type: one of :data:`ROOM_TYPES`.
        transportation: one of :data:`TRANSPORTATION`.
    """

    house_rule: str | None = None
    cuisines: tuple[str, ...] = ()
    room_type: str | None = None
    transportation: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the fields of the data set."""
        return {
            "house rule": self.house_rule,
            "cuisine": list(self.cuisines) or None,
            "room type": self.room_type,
            "transportation": self.transportation,
        }


@dataclass(frozen=True)
class TravelQuery:
    """A trip that a traveller wants.

    Attributes:
        org: the city where it begins and ends.
        dest: the destination: a city if one city is visited, else the state whose cities are visited.
        days: the number of days, including both journeys.
        visiting_city_number: the number of cities visited.
        dates: the date of each day, in order; ``len(dates) == days``.
        people: the number of travellers.
        budget: the maximum that they may spend together, in dollars; None for no bound.
        constraints: the wishes.
        text: the query as it was written.
        not_understood: the wishes in the text for which the data set has no field; not compared.
    """

    org: str
    dest: str
    days: int
    visiting_city_number: int
    dates: tuple[date, ...]
    people: int = 1
    budget: Money | None = None
    constraints: Constraints = field(default_factory=Constraints)
    text: str = ""
    not_understood: tuple[str, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, object]:
        """Return the fields of the data set; :func:`query_of` reads them back."""
        return {
            "org": self.org,
            "dest": self.dest,
            "days": self.days,
            "visiting_city_number": self.visiting_city_number,
            "date": [day.isoformat() for day in self.dates],
            "people_number": self.people,
            "budget": str(self.budget) if isinstance(self.budget, Decimal) else self.budget,
            "local_constraint": self.constraints.to_json(),
            "query": self.text,
        }


def query_of(fields: Mapping[str, object]) -> TravelQuery:
    """Read a query from the fields of the data set: ``org``, ``date``, ``people_number``, ``local_constraint`` ...

    Lists and objects may be texts, as in the CSV files of the data set.

    Raises:
        NotationError: a field is missing or has the wrong type; the error names it.
    """
    days = _read_whole(fields, "days")
    dates = tuple(_read_day(text) for text in _read_list(fields, "date"))
    if len(dates) != days:
        raise NotationError(f"there are {len(dates)} dates for {days} days", file=_SOURCE)
    budget = fields.get("budget")
    wishes = _read_value(fields, "local_constraint") or {}
    if not isinstance(wishes, Mapping):
        raise NotationError(f"'local_constraint' should be an object, not {wishes!r}", file=_SOURCE)
    return TravelQuery(
        _read_text(fields, "org"),
        _read_text(fields, "dest"),
        days,
        _read_whole(fields, "visiting_city_number")
        if fields.get("visiting_city_number") is not None
        else (days - 1) // 2,
        dates,
        _read_whole(fields, "people_number") if fields.get("people_number") is not None else 1,
        None if budget is None else dollars(budget),
        constraints_of(wishes),
        str(fields.get("query") or ""),
    )


def constraints_of(wishes: Mapping[str, object]) -> Constraints:
    """Read the wishes from the object ``local_constraint``.

    Raises:
        NotationError: a wish is unknown; the error lists the known ones.
    """
    cuisines = _read_list({"cuisine": wishes.get("cuisine") or ()}, "cuisine")
    house_rule = wishes.get("house rule")
    if house_rule == "parities":  # a misspelling in some of the published files
        house_rule = "parties"
    return Constraints(
        _one_of("house rule", house_rule, HOUSE_RULES),
        tuple(map(str, cuisines)),
        _one_of("room type", wishes.get("room type"), ROOM_TYPES),
        _one_of("transportation", wishes.get("transportation"), TRANSPORTATION),
    )


def dollars(amount: object) -> Money:
    """Read an amount of money, as an ``int`` if it is whole.

    Raises:
        NotationError: it is not an amount, or is negative.
    """
    try:
        exact = Decimal(str(amount).replace(",", "").removeprefix("$").strip())
    except InvalidOperation:
        exact = Decimal("NaN")
    if not exact.is_finite() or exact < 0 or isinstance(amount, bool):
        raise NotationError(f"this is no amount of money: {amount!r}", file=_SOURCE)
    return int(exact) if exact == int(exact) else exact


def _read_value(fields: Mapping[str, object], name: str) -> object:
    value = fields.get(name)
    if not isinstance(value, str):
        return value
    try:
        literal: object = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return literal


def _read_list(fields: Mapping[str, object], name: str) -> tuple[object, ...]:
    value = _read_value(fields, name)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(value)
    raise NotationError(f"{name!r} should be a list, not {value!r}", file=_SOURCE)


def _read_text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise NotationError(f"{name!r} should be a text, not {value!r}", file=_SOURCE)
    return value


def _read_whole(fields: Mapping[str, object], name: str) -> int:
    value = _read_value(fields, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise NotationError(f"{name!r} should be a whole number of at least 1, not {value!r}", file=_SOURCE)
    return value


def _read_day(text: object) -> date:
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        raise NotationError(f"'date' should have days such as 2022-03-16, not {text!r}", file=_SOURCE) from None


def _one_of(name: str, value: object, known: Sequence[str]) -> str | None:
    if value is None or value in ("-", ""):
        return None
    if value not in known:
        near = did_you_mean(str(value), known)
        raise NotationError(
            f"the {name} {value!r} is not known", file=_SOURCE, expected=known,
            suggestion=f"did you mean {near!r}?" if near else None,
        )  # fmt: skip
    return str(value)
