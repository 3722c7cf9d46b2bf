"""Travel queries: origin, destination, dates, number of travellers, budget and wishes.

The fields are those of TravelPlanner (Xie et al. 2024, arXiv 2402.01622), so that its queries need no translation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import cast

from formal_llm.errors import NotationError, did_you_mean
from formal_llm.packs.travel.rows import Money

#: What a house can forbid, in the terms of a query: a wish for one of these excludes beds that forbid it.
HOUSE_RULES = ("smoking", "parties", "children under 10", "visitors", "pets")
ROOM_TYPES = ("entire room", "private room", "shared room", "not shared room")
TRANSPORTATION = ("no flight", "no self-driving")
#: The cuisines that published queries ask for.
CUISINES = ("Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French")
_SOURCE = "fields of a query"


class WishKind(StrEnum):
    """The kinds of wishes; in comments, what their names and their numbers are."""

    some_meal = "some meal"  # names: a cuisine that a meal offers
    no_mode = "no mode"  # names: modes that are not used
    only_modes = "only modes"  # names: the only modes that may be used, as "train" and "bus"
    rooms = "rooms"  # names: the kinds of room that are accepted, as "private room" and "shared room"
    allows = "allows"  # names: what the bed must allow, of HOUSE_RULES
    forbids = "forbids"  # names: what the bed must forbid
    no_flight = "no flight between"  # numbers: from, to, in minutes of the day; over midnight if to < from
    leave_after = "leave after"  # numbers: the minute of the first day
    arrive_by = "arrive by"  # numbers: the minute of the first day
    home_by = "home by"  # numbers: the minute of the last day
    travel_hours = "travel hours"  # numbers: the hours of travel a day, at most
    visit = "visit"  # names: sights, cities, restaurants or beds, as "Park" or "Park, Oriel"; numbers: the day, or none
    never = "never"  # names: sights, cities, restaurants or beds
    sights = "sights"  # numbers: sights a day, at least
    every_meal = "every meal"  # names: cuisines, of which every meal offers one
    day_meal = "meal a day"  # names: a cuisine, and its meal, or none; numbers: the day, or none for each whole day
    no_meal = "no meal"  # names: cuisines that no meal offers
    rating = "rating"  # names: bed, restaurant or sight; numbers: at least
    at_most = "at most"  # names: bed, meals, ways or trip, then night, meal, day or trip; numbers: dollars for all
    stay = "stay"  # names: a city, or none for any; numbers: nights
    free_evening = "free evening"  # numbers: the day, or none


@dataclass(frozen=True, slots=True)
class TripWish:
    """A wish: one for which the data set has no field, or the content of one of its fields.

    Attributes:
        kind: its kind, which says what names and numbers mean.
        names, numbers: what it is about.
        text: the words of the traveller; not compared.
    """

    kind: WishKind
    names: tuple[str, ...] = ()
    numbers: tuple[Money, ...] = ()
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Describe the wish in a few words, as in "no flight between 22:00 and 06:00"."""
        number = f"{self.numbers[0]:,}" if self.numbers else ""
        begin, end = [*(f"{int(one) // 60:02}:{int(one) % 60:02}" for one in self.numbers), "", ""][:2]
        first, per = [*self.names, "", ""][:2]
        each = " each day" if self.kind == WishKind.day_meal else ""
        return _WORDS[self.kind].format(
            names=" or ".join(self.names) or "one city", number=number, begin=begin, end=end, first=first,
            day=f" on day {number}" if number else each, each=f" each {per}" if per not in ("", "trip") else "",
            meal=f" for {per}" if per else "",
        )  # fmt: skip


#: The words for each kind of wish.
_WORDS = {
    WishKind.some_meal: "{names} food", WishKind.no_mode: "no {names}", WishKind.only_modes: "only {names}",
    WishKind.rooms: "a bed in: {names}", WishKind.allows: "a bed that allows {names}",
    WishKind.forbids: "a bed that forbids {names}",
    WishKind.no_flight: "no flight between {begin} and {end}",
    WishKind.leave_after: "leaving after {begin}", WishKind.arrive_by: "arriving by {begin}",
    WishKind.home_by: "home by {begin}", WishKind.travel_hours: "at most {number} hours of travel a day",
    WishKind.visit: "a visit to {names}{day}", WishKind.never: "no visit to {names}",
    WishKind.sights: "at least {number} sights a day", WishKind.every_meal: "{names} food at every meal",
    WishKind.day_meal: "{first} food{meal}{day}", WishKind.no_meal: "no {names} food",
    WishKind.rating: "a rating of at least {number} for each {names}",
    WishKind.at_most: "at most ${number}{each} for the {first}", WishKind.stay: "{number} nights in {names}",
    WishKind.free_evening: "a free evening{day}",
}  # fmt: skip
#: The rooms that a field of a query accepts; another set of them is a wish for which there is no field.
_ACCEPTED = {name: (name,) for name in ROOM_TYPES[:3]} | {"not shared room": ROOM_TYPES[:2]}
#: The sums that plans keep: of a part of the trip, and for what each time.
SUMS = frozenset({
    ("bed", "night"), ("bed", "day"), ("bed", "trip"), ("meals", "meal"), ("meals", "trip"), ("ways", "day"),
    ("ways", "trip"), ("trip", "trip"),
})  # fmt: skip


def can_keep(wish: TripWish) -> bool:
    """Return whether plans keep wishes like this: not other sums than :data:`SUMS`, and no ratings of sights."""
    return (
        wish.names in SUMS
        if wish.kind == WishKind.at_most
        else wish.kind != WishKind.rating or "sight" not in wish.names
    )


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

    def to_wishes(self) -> tuple[TripWish, ...]:
        """Return the content of the fields as wishes; :func:`arrange_wishes` puts them back."""
        kinds = WishKind.allows, WishKind.rooms, WishKind.no_mode
        names = (
            self.house_rule and (self.house_rule,),
            self.room_type and _ACCEPTED[self.room_type],
            self.transportation and (self.transportation.removeprefix("no "),),
        )
        found = [TripWish(kind, one) for kind, one in zip(kinds, names, strict=True) if one]
        return (*found, *(TripWish(WishKind.some_meal, (cuisine,)) for cuisine in self.cuisines))

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
        wishes: the wishes for which the data set has no field.
        not_understood: the parts of the text that were not understood; not compared.
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
    wishes: tuple[TripWish, ...] = ()
    not_understood: tuple[str, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, object]:
        """Return the fields of the data set; :func:`query_of` reads them back."""
        wishes = [[wish.kind, wish.names, list(map(str, wish.numbers))] for wish in self.wishes]
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
            **({"wishes": wishes} if wishes else {}),
        }


def arrange_wishes(wishes: Iterable[TripWish]) -> tuple[Constraints, tuple[TripWish, ...]]:
    """Return the fields that hold wishes, the first of a kind where a field holds one, and the wishes that are left."""
    fields: dict[str, str] = {}
    cuisines: list[str] = []
    left: list[TripWish] = []
    for wish in dict.fromkeys(wishes):
        room = next((name for name, accepted in _ACCEPTED.items() if set(accepted) == set(wish.names)), None)
        match wish.kind:
            case WishKind.some_meal:
                cuisines += wish.names
            case WishKind.allows if "house_rule" not in fields:
                fields["house_rule"] = wish.names[0]
            case WishKind.rooms if room and "room_type" not in fields:
                fields["room_type"] = room
            case WishKind.no_mode if f"no {wish.names[0]}" in TRANSPORTATION and "transportation" not in fields:
                fields["transportation"] = f"no {wish.names[0]}"
            case _:
                left.append(wish)
    return Constraints(cuisines=tuple(dict.fromkeys(cuisines)), **fields), tuple(left)


#: The wishes that a field can hold, with the cuisines of published queries.
FIELD_WISHES = (
    *(TripWish(WishKind.allows, (name,)) for name in HOUSE_RULES),
    *(TripWish(WishKind.rooms, accepted) for accepted in _ACCEPTED.values()),
    *(TripWish(WishKind.no_mode, (name.removeprefix("no "),)) for name in TRANSPORTATION),
    *(TripWish(WishKind.some_meal, (name,)) for name in CUISINES),
)


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
        tuple(map(_read_wish, _read_list({"wishes": fields.get("wishes") or ()}, "wishes"))),
    )


def _read_wish(value: object) -> TripWish:
    try:
        kind, names, numbers = cast("tuple[str, Sequence[object], Sequence[object]]", value)
        return TripWish(WishKind(kind), tuple(map(str, names)), tuple(map(dollars, numbers)))
    except (TypeError, ValueError):
        raise NotationError(
            f"a wish should be a kind, a list of names and a list of numbers, not {value!r}", file=_SOURCE,
            expected=list(WishKind),
        ) from None  # fmt: skip


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
