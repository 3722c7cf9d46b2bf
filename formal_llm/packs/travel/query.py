"""What a traveller wants: from where to where, when, with how many, for how much, and under which wishes.

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

#: What a house can forbid, in the words of a query: a wish for one of them leaves out beds that forbid it.
HOUSE_RULES = ("smoking", "parties", "children under 10", "visitors", "pets")
ROOM_TYPES = ("entire room", "private room", "shared room", "not shared room")
TRANSPORTATION = ("no flight", "no self-driving")
#: The cuisines that published queries ask for.
CUISINES = ("Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French")
_SOURCE = "fields of a query"


@dataclass(frozen=True)
class Constraints:
    """The wishes of a query, each in the words of the data set; what is None or empty is not wished for.

    Attributes:
        house_rule: what the bed must allow: one of :data:`HOUSE_RULES`.
        cuisines: cuisines to be eaten at least once, outside the city of departure.
        room_type: one of :data:`ROOM_TYPES`.
        transportation: one of :data:`TRANSPORTATION`.
    """

    house_rule: str | None = None
    cuisines: tuple[str, ...] = ()
    room_type: str | None = None
    transportation: str | None = None

    def to_json(self) -> dict[str, object]:
        """The keys of the data set."""
        return {
            "house rule": self.house_rule,
            "cuisine": list(self.cuisines) or None,
            "room type": self.room_type,
            "transportation": self.transportation,
        }


@dataclass(frozen=True)
class TravelQuery:
    """One trip that is wanted.

    Attributes:
        org: the city where it begins and ends.
        dest: where it goes: a city if one is visited, else the state whose cities are.
        days: how many days it takes, both journeys included.
        visiting_city_number: how many cities are visited.
        dates: the day of each day, in order; ``len(dates) == days``.
        people: how many travel.
        budget: the most that all of them may spend together, in dollars; None for no bound.
        constraints: the wishes.
        text: the query as it was written.
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

    def to_json(self) -> dict[str, object]:
        """The keys of the data set; :func:`query_of` reads them back."""
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
    """The query that the fields of the data set give: ``org``, ``date``, ``people_number``, ``local_constraint`` ...

    Lists and objects may stand there as texts, which is how the CSV files of the data set print them.

    Raises:
        NotationError: a field is missing or of the wrong kind; with its name.
    """
    days = _whole(fields, "days")
    dates = tuple(_day(text) for text in _list(fields, "date"))
    if len(dates) != days:
        raise NotationError(f"there are {len(dates)} dates for {days} days", file=_SOURCE)
    budget = fields.get("budget")
    wishes = _value(fields, "local_constraint") or {}
    if not isinstance(wishes, Mapping):
        raise NotationError(f"'local_constraint' should be an object, not {wishes!r}", file=_SOURCE)
    return TravelQuery(
        _text(fields, "org"),
        _text(fields, "dest"),
        days,
        _whole(fields, "visiting_city_number") if fields.get("visiting_city_number") is not None else (days - 1) // 2,
        dates,
        _whole(fields, "people_number") if fields.get("people_number") is not None else 1,
        None if budget is None else dollars(budget),
        constraints_of(wishes),
        str(fields.get("query") or ""),
    )


def constraints_of(wishes: Mapping[str, object]) -> Constraints:
    """The wishes that ``local_constraint`` gives.

    Raises:
        NotationError: a wish that is not known; with those that are.
    """
    cuisines = _list({"cuisine": wishes.get("cuisine") or ()}, "cuisine")
    house_rule = wishes.get("house rule")
    if house_rule == "parities":  # as some of the published files spell it
        house_rule = "parties"
    return Constraints(
        _one_of("house rule", house_rule, HOUSE_RULES),
        tuple(map(str, cuisines)),
        _one_of("room type", wishes.get("room type"), ROOM_TYPES),
        _one_of("transportation", wishes.get("transportation"), TRANSPORTATION),
    )


def dollars(amount: object) -> Money:
    """An amount of money: a whole number where it is one.

    Raises:
        NotationError: it is no amount, or below zero.
    """
    try:
        exact = Decimal(str(amount).replace(",", "").removeprefix("$").strip())
    except InvalidOperation:
        exact = Decimal("NaN")
    if not exact.is_finite() or exact < 0 or isinstance(amount, bool):
        raise NotationError(f"this is no amount of money: {amount!r}", file=_SOURCE)
    return int(exact) if exact == int(exact) else exact


def _value(fields: Mapping[str, object], name: str) -> object:
    value = fields.get(name)
    if not isinstance(value, str):
        return value
    try:
        found: object = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return found


def _list(fields: Mapping[str, object], name: str) -> tuple[object, ...]:
    value = _value(fields, name)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(value)
    raise NotationError(f"{name!r} should be a list, not {value!r}", file=_SOURCE)


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise NotationError(f"{name!r} should be a text, not {value!r}", file=_SOURCE)
    return value


def _whole(fields: Mapping[str, object], name: str) -> int:
    value = _value(fields, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise NotationError(f"{name!r} should be a whole number of at least 1, not {value!r}", file=_SOURCE)
    return value


def _day(text: object) -> date:
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
