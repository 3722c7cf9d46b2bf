"""What the wishes beyond the fields of the data set demand: of each bed, restaurant and way, and of each stay.

All of it enters the least cost of trips, so that no wish leads to a dead end. What cannot be decided exactly fails.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

from formal_llm.errors import InputError, did_you_mean
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.hours import find_times, parse_hours
from formal_llm.packs.travel.meals import NEVER
from formal_llm.packs.travel.plan_days import MEALS, NOTHING
from formal_llm.packs.travel.query import HOUSE_RULES, ROOM_TYPES, SUMS, TravelQuery, TripWish, WishKind, can_keep
from formal_llm.packs.travel.rows import Accommodation, Drive, Flight, Restaurant
from formal_llm.packs.travel.slots import Slot, Stay

_EVENING, _DAY = 18 * 60, 24 * 60
#: The maximum number of needs of a trip, since all their sets are considered; of foods that each day must
#: have; and of meals that are wished for on one day.
_MOST_NEEDS, _MOST_FOODS, _MOST_A_DAY = 8, 2, 3
#: For wishes of each kind: how many names and how many numbers they may have, and the greatest number.
_FORMS = {
    WishKind.no_flight: ((0,), (2,), 1440),
    WishKind.leave_after: ((0,), (1,), 1440),
    WishKind.arrive_by: ((0,), (1,), 1440),
    WishKind.home_by: ((0,), (1,), 1440),
    WishKind.travel_hours: ((0,), (1,), 24),
    WishKind.visit: ((1,), (0, 1), math.inf),
    WishKind.sights: ((0,), (1,), 10),
    WishKind.day_meal: ((1, 2), (0, 1), math.inf),
    WishKind.rating: (range(1, 3), (1,), 5),
    WishKind.at_most: ((2,), (1,), math.inf),
    WishKind.stay: ((0, 1), (1,), math.inf),
    WishKind.free_evening: ((0,), (0, 1), math.inf),
}
_NAMES_ONLY = (range(1, 100), (0,), 0)
_FRACTIONS = (WishKind.rating, WishKind.at_most, WishKind.travel_hours)
_DATED = (WishKind.visit, WishKind.day_meal, WishKind.free_evening)


class WishedPlace(NamedTuple):
    """A place that a wish names.

    Attributes:
        field: ``"sight"``, ``"city"``, ``"meal"`` or ``"bed"``.
        city: its city.
        name: its name in plans, ``"Name, City"``; of a city its name.
        day: the day on which it is wanted, from 0; None for any.
    """

    field: str
    city: str
    name: str
    day: int | None = None


class MealWish(NamedTuple):
    """A meal that is wanted.

    Attributes:
        offers: the bits that its restaurant must offer.
        meal: which meal; None for any.
        day: the day, from 0; None for each whole day.
    """

    offers: int
    meal: str | None
    day: int | None

    def suits(self, slot: Slot, offers: int) -> bool:
        """Return whether a meal, with what its restaurant offers, satisfies the wish for its day."""
        return slot.day == self.day and self.meal in (None, slot.kind) and not self.offers & ~offers


class Course(NamedTuple):
    """A way to satisfy the wishes for the remaining meals of a stay.

    Attributes:
        covers: the needs that it covers, besides the wanted cuisines.
        must: the number of meals at least.
        may: the number of further meals at most.
        special: what each of some of the required meals must offer; where there are several offers, one meal may have
            all of them, or there are two.
    """

    covers: int
    must: int
    may: int
    special: tuple[tuple[int, ...], ...] = ()


class Demands:
    """What the wishes of a query demand.

    Args:
        query: the query.
        world: the database.

    Attributes:
        cuisines: the wanted cuisines, in the order of their bits.
        wanted: the bits of all needs of the trip: the cuisines, a free evening, and meals on certain days.
        cities: the cities that must be visited.
        sights: the number of sights on each whole day.

    Raises:
        InputError: a wish names an unknown place or day, has too few or wrong numbers, or cannot be decided exactly.
    """

    def __init__(self, query: TravelQuery, world: World) -> None:
        self._query, self._world = query, world
        for wish in query.wishes:
            _check_wish(wish, query.days)
        self.cuisines = tuple(dict.fromkeys([*query.constraints.cuisines, *self._names_of(WishKind.some_meal)]))
        self._bits = {("cuisine", name): 1 << bit for bit, name in enumerate(self.cuisines)}
        self._places = [self._find_place(wish) for wish in self._list(WishKind.visit)]
        self._barred = {place.name for name in self._names_of(WishKind.never) for place in self._find_places(name)}
        self._stays = [(list(map(self._find_city, wish.names)), wish.numbers[0]) for wish in self._list(WishKind.stay)]
        self.cities = {place.city for place in self._places} | {city for names, _ in self._stays for city in names}
        self.sights = int(max([Decimal(1), *self._numbers_of(WishKind.sights)]))
        rated = sorted(self._list(WishKind.rating), key=lambda wish: wish.numbers[0])  # of two the higher one counts
        self._ratings = {name: Decimal(wish.numbers[0]) for wish in rated for name in wish.names}
        self._most: dict[tuple[str, ...], int] = {}
        for wish in self._list(WishKind.at_most):
            cents = int((Decimal(wish.numbers[0]) * 100).to_integral_value(ROUND_FLOOR))
            names = ("bed", "night") if wish.names == ("bed", "day") else wish.names
            self._most[names] = min(cents, self._most.get(names, NEVER))
        self._read_meals()

    def __bool__(self) -> bool:
        return bool(self._query.wishes)

    @cached_property
    def joint(self) -> list[TripWish]:
        """The wishes that are not about single beds, restaurants and ways, nor about the sum of the whole trip."""
        kinds = (*_DATED, WishKind.sights, WishKind.stay, WishKind.at_most)
        single = (*(one for one in SUMS if one[1] != "trip"), ("trip", "trip"))
        return [wish for wish in self._list(*kinds) if wish.names not in single]

    def _read_meals(self) -> None:
        """Give bits to what is needed in one city or another, then to what single meals must offer."""
        evenings = self._list(WishKind.free_evening)
        self._evenings = {day for wish in evenings if (day := _day_of(wish)) is not None}
        dated = [wish for wish in dict.fromkeys(self._list(WishKind.day_meal)) if wish.numbers]
        own = [("evening", "")] * bool(evenings and not self._evenings) + [("day", repr(wish)) for wish in dated]
        for key in own:
            self._bits.setdefault(key, 1 << len(self._bits))
        if self and len(self._bits) > _MOST_NEEDS:
            raise InputError(f"at most {_MOST_NEEDS} cuisines, meals on certain days and evenings can be wished for")
        self.wanted = (1 << len(self._bits)) - 1
        self.evening = self._bits.get(("evening", ""), 0)
        self._dated = [(self._bits["day", repr(wish)], self._read_meal(wish)) for wish in dated]
        daily = [wish for wish in self._list(WishKind.day_meal) if not wish.numbers]
        self._daily = list(dict.fromkeys(map(self._read_meal, daily)))
        if len(self._daily) > _MOST_FOODS:
            raise InputError(f"at most {_MOST_FOODS} kinds of food can be wished for on each day")
        days = Counter([wish.day for _, wish in self._dated] + [one.day for one in self._places if one.field == "meal"])
        if any(count > _MOST_A_DAY for day, count in days.items() if day is not None):
            raise InputError(f"at most {_MOST_A_DAY} meals can be wished for on one day")
        for place in self._places:
            if place.field == "meal":
                self._bits.setdefault(("place", place.name), 1 << len(self._bits))

    def _read_meal(self, wish: TripWish) -> MealWish:
        cuisine, *meal = wish.names
        offers = self._bits.setdefault(("cuisine", cuisine), 1 << len(self._bits))
        return MealWish(offers, meal[0] if meal else None, _day_of(wish))

    def _list(self, *kinds: WishKind) -> list[TripWish]:
        return [wish for wish in self._query.wishes if wish.kind in kinds]

    def _names_of(self, kind: WishKind) -> list[str]:
        return [name for wish in self._list(kind) for name in wish.names]

    def _numbers_of(self, kind: WishKind) -> list[Decimal]:
        return [Decimal(wish.numbers[0]) for wish in self._list(kind)]

    def _find_place(self, wish: TripWish) -> WishedPlace:
        """Return the only place with the name in a wish."""
        found = self._find_places(wish.names[0])
        if len({place.city for place in found}) > 1:
            listed = "; ".join(dict.fromkeys(place.name for place in found))
            raise InputError(f"{wish.names[0]!r} means several places: {listed}; write one of these")
        return found[0]._replace(day=_day_of(wish))

    def _find_city(self, name: str) -> str:
        """Return the city with a name."""
        found = [place.city for place in self._find_places(name) if place.field == "city"]
        if not found:
            raise InputError(f"{name!r} is no city; a wish for nights names the city")
        return found[0]

    def _find_places(self, name: str) -> list[WishedPlace]:
        """Return the places with a name, those in the destination if there are any: sights first."""
        query, world, wanted = self._query, self._world, _plain(name)
        near = {query.dest, *world.cities(query.dest)} - {query.org}
        for cities in (near, set(world.cities()) - near):
            found = [place for city in sorted(cities) for place in _list_places(world, city) if wanted in _names(place)]
            if found:
                return sorted(found, key=lambda place: place.field != "sight")
        like = did_you_mean(name, [place.name for city in near for place in _list_places(world, city)])
        raise InputError(f"no place {name!r} is known{f'; did you mean {like!r}?' if like else ''}")

    # -- single choices -------------------------------------------------------------------------------------------

    def allows_place(self, name: str) -> bool:
        """Return whether a city or a place, ``"Name, City"``, may be visited."""
        return name not in self._barred

    def allows_bed(self, row: Accommodation, cost: int) -> bool:
        """Return whether an accommodation satisfies the wishes, with the cost of a night in cents."""
        return (
            all(any(row.is_of(kind) for kind in wish.names) for wish in self._list(WishKind.rooms))
            and all(map(row.allows, self._names_of(WishKind.allows)))
            and not any(map(row.allows, self._names_of(WishKind.forbids)))
            and self._is_rated("bed", row.rating)
            and cost <= self.find_most("bed", "night")
        )

    def allows_restaurant(self, row: Restaurant, cost: int) -> bool:
        """Return whether a restaurant satisfies the wishes for all meals, with the cost of a meal in cents."""
        return (
            all(any(cuisine in row.cuisines for cuisine in wish.names) for wish in self._list(WishKind.every_meal))
            and not any(cuisine in row.cuisines for cuisine in self._names_of(WishKind.no_meal))
            and self._is_rated("restaurant", row.rating)
            and cost <= self.find_most("meals", "meal")
        )

    def _is_rated(self, what: str, rating: float | None) -> bool:
        least = self._ratings.get(what)
        return least is None or (rating is not None and Decimal(str(rating)) >= least)

    def allows_way(self, row: Flight | Drive, cost: int, day: int) -> bool:
        """Return whether a way on a day, from 0, satisfies the wishes, with its cost in cents."""
        mode = "flight" if isinstance(row, Flight) else row.mode
        leaving, arrival = (round(60 * hour) for hour in self.find_times(row, 0, day))
        begin, end = self._find_window(day)
        hours = parse_hours(row.duration) or (arrival - leaving) / 60
        barred = self._list(WishKind.no_flight) if mode == "flight" else ()
        return (
            cost <= self.find_most("ways", "day")
            and mode not in self._names_of(WishKind.no_mode)
            and all(mode in wish.names for wish in self._list(WishKind.only_modes))
            and all(hours <= most for most in self._numbers_of(WishKind.travel_hours))
            and begin <= leaving
            and arrival <= end
            and not any(_overlaps(wish, leaving, arrival) for wish in barred)
        )

    def find_times(self, row: Flight | Drive, meals: int | None, day: int) -> tuple[float, float]:
        """Return the departure and the arrival: who drives leaves earlier or later than usual if wishes demand it."""
        leaving, arrival = find_times(row, meals)
        if isinstance(row, Drive):
            begin, end = self._find_window(day)
            hours = arrival - leaving
            leaving = min(max(leaving, begin / 60), end / 60 - hours)
            arrival = leaving + hours
        return leaving, arrival

    def _find_window(self, day: int) -> tuple[int, int]:
        """Return when a way on a day may leave and when it must have arrived, in minutes."""
        begin, ends = [Decimal(0)], [Decimal(_EVENING if day in self._evenings else 10**6)]
        if day == 0:
            begin += self._numbers_of(WishKind.leave_after)
            ends += self._numbers_of(WishKind.arrive_by)
        if day == self._query.days - 1:
            ends += self._numbers_of(WishKind.home_by)
        return int(max(begin)), int(min(ends))

    def find_most(self, part: str, unit: str) -> int:
        """Return the maximum cost of a part, in cents; :data:`NEVER` without a bound."""
        return self._most.get((part, unit), NEVER)

    def find_wanted(self, field: str, city: str) -> set[str]:
        """Return the names of the beds, ``"bed"``, or of the restaurants, ``"meal"``, that are wanted in a city."""
        return {place.name for place in self._places if place.city == city and place.field == field}

    def find_offers(self, name: str, rows: Sequence[Restaurant]) -> int:
        """Return what a restaurant offers of what is wished for, one bit each."""
        return sum(
            bit
            for (kind, what), bit in self._bits.items()
            if (what == name if kind == "place" else kind == "cuisine" and all(what in row.cuisines for row in rows))
        )

    def find_covered(self, slot: Slot, offers: int | None) -> int:
        """Return the needs that a meal covers, with what its restaurant offers; None for no meal."""
        if offers is None:
            return self.evening if slot.kind == "dinner" and slot.must else 0
        return offers | sum(bit for bit, wish in self._dated if wish.suits(slot, offers))

    # -- stays ----------------------------------------------------------------------------------------------------

    def fits_shape(self, shape: Sequence[Stay]) -> bool:
        """Return whether a distribution of the days satisfies the wishes for nights in any city."""
        return all(names or any(stay.nights == nights for stay in shape) for names, nights in self._stays)

    def fits_stay(self, city: str, stay: Stay) -> bool:
        """Return whether the days of a stay satisfy the wishes for its city."""
        return all(nights == stay.nights for names, nights in self._stays if city in names) and all(
            stay.arrival <= place.day <= stay.leaving - (place.field == "bed")
            for place in self._places
            if place.city == city and place.day is not None
        )

    def fits_sights(
        self, city: str, sights: Collection[str], done: Sequence[tuple[Slot, str]], left: Sequence[Slot]
    ) -> bool:
        """Return whether the wanted sights of a city have been seen, or still fit into the remaining slots.

        The fewest further sights are needed if wanted ones take required slots first.
        """
        seen = {name: slot.day for slot, name in done if slot.kind == "sight" and name != NOTHING}
        free = Counter(slot.day for slot in left if slot.kind == "sight" and slot.open)
        must = Counter(slot.day for slot in left if slot.kind == "sight" and slot.must)
        wanted = [place for place in self._places if place.city == city and place.field == "sight"]
        days = {place.name: place.day for place in wanted if place.day is not None} | seen
        if not all(place.name in sights and place.day in (None, days.get(place.name)) for place in wanted):
            return False
        dated = Counter(day for name, day in days.items() if name not in seen)
        loose = len({place.name for place in wanted} - days.keys())
        if any(count > free[day] for day, count in dated.items()) or dated.total() + loose > free.total():
            return False
        needed = (must | dated).total() + max(0, loose - (must - dated).total())
        return needed <= len(sights) - len(seen)

    def is_closed(self, slot: Slot) -> bool:
        """Return whether a slot is left empty."""
        return not slot.open or (slot.kind == "dinner" and slot.day in self._evenings)

    def list_courses(
        self, city: str, stay: Stay, done: Sequence[tuple[Slot, str]], left: Sequence[Slot], offers: Mapping[str, int]
    ) -> set[Course]:
        """List the ways to satisfy the wishes for the remaining meals of a stay.

        Args:
            city: the city.
            stay: the stay.
            done: its slots so far, with the chosen names.
            left: its remaining slots.
            offers: what the restaurants of the city offer.
        """
        meals = [slot for slot in left if slot.kind in MEALS and not self.is_closed(slot)]
        wishes = [
            wish._replace(day=day) for wish in self._daily for day in range(stay.arrival + 1, stay.leaving)
        ] + [
            MealWish(self._bits["place", place.name], None, place.day)
            for place in self._places
            if place.city == city and place.field == "meal" and place.day is not None
        ]  # fmt: skip
        eaten = [(slot, offers[name]) for slot, name in done if slot.kind in MEALS and name != NOTHING]
        wishes = [wish for wish in wishes if not any(wish.suits(*one) for one in eaten)]
        dated = [(bit, wish) for bit, wish in self._dated if any(slot.day == wish.day for slot in meals)]
        evenings = [one for one in meals if one.kind == "dinner" and one.must] if self.evening else []
        found: set[Course] = set()
        for kept, skipped in product(product((False, True), repeat=len(dated)), (None, *evenings)):
            more = [one for one, keep in zip(dated, kept, strict=True) if keep]
            covers = sum(bit for bit, _ in more) | (self.evening if skipped else 0)
            slots = [one for one in meals if one is not skipped]
            found |= _list_courses(slots, [*wishes, *(wish for _, wish in more)], covers)
        return found


def _list_courses(meals: Sequence[Slot], wishes: Sequence[MealWish], covers: int) -> set[Course]:
    """List the ways to distribute wishes over the meals of their days; several may share a meal.

    Two wishes that may share a meal or not are one special meal with two offers, so that days alike do not multiply.
    """
    must = sum(slot.must for slot in meals)
    found = {Course(covers, must, len(meals) - must)}
    for day in {wish.day for wish in wishes}:
        slots = tuple((slot.kind, slot.must) for slot in meals if slot.day == day)
        ways = _list_day_ways(slots, tuple((wish.offers, wish.meal) for wish in wishes if wish.day == day))
        found = {
            Course(covers, one.must + more, one.may - more, tuple(sorted(one.special + special)))
            for one in found
            for more, special in ways
        }
    return found


@lru_cache(maxsize=1024)
def _list_day_ways(
    slots: tuple[tuple[str, bool], ...], wishes: tuple[tuple[int, str | None], ...]
) -> set[tuple[int, tuple[tuple[int, ...], ...]]]:
    """List the ways to distribute wishes over the meals of a day: the optional meals taken, and the special ones."""
    ways: set[tuple[int, tuple[tuple[int, ...], ...]]] = set()
    for places in product(range(len(slots)), repeat=len(wishes)):
        masks = [0] * len(slots)
        for place, (offers, _) in zip(places, wishes, strict=True):
            masks[place] |= offers
        if all(meal in (None, slots[place][0]) for place, (_, meal) in zip(places, wishes, strict=True)):
            more = sum(not must for (_, must), mask in zip(slots, masks, strict=True) if mask)
            ways.add((more, tuple(sorted((mask,) for mask in masks if mask))))
    both = tuple(sorted(offers for offers, _ in wishes))
    free = {(0, ((both[0] | both[-1],),)), (0, tuple((mask,) for mask in both))}
    return {(0, (both,))} if ways == free else ways


def _check_wish(wish: TripWish, days: int) -> None:
    """Raise an error if a wish is incomplete, or cannot be decided exactly."""
    names, numbers, greatest = _FORMS.get(wish.kind, _NAMES_ONLY)
    described = f"the wish {wish.text or ' '.join(map(str, (wish.kind, *wish.names, *wish.numbers)))!r}"
    if len(wish.names) not in names or len(wish.numbers) not in numbers:
        raise InputError(f"{described} has too few or too many names or numbers; WishKind lists what it takes")
    for number in map(Decimal, wish.numbers):
        if not number.is_finite() or not 0 <= number <= greatest or (number % 1 and wish.kind not in _FRACTIONS):
            whole = "a number" if wish.kind in _FRACTIONS else "a whole number"
            raise InputError(f"{described} needs {whole} from 0{f' to {greatest}' if greatest < math.inf else ''}")
        if wish.kind in _DATED and not 1 <= number <= days:
            raise InputError(f"{described} is for day {number}; the trip has {days} days")
    known = {
        WishKind.rooms: ROOM_TYPES, WishKind.allows: HOUSE_RULES, WishKind.forbids: HOUSE_RULES,
        WishKind.rating: ("bed", "restaurant", "sight"),
    }.get(wish.kind, wish.names)  # fmt: skip
    known = (wish.names[0], *MEALS) if wish.kind == WishKind.day_meal else known
    for name in wish.names:
        if name not in known:
            raise InputError(f"{described}: {name!r} is not known; there are: {', '.join(known)}")
    if not can_keep(wish):
        listed = ", ".join(" a ".join(one) for one in sorted(SUMS))
        why = "sights have no ratings" if wish.kind == WishKind.rating else f"sums can be kept for: {listed}"
        raise InputError(f"{described} cannot be kept: {why}; leave it out")


def _day_of(wish: TripWish) -> int | None:
    """Return the day of a wish, from 0; None if it is for any."""
    return int(wish.numbers[0]) - 1 if wish.numbers else None


def _overlaps(wish: TripWish, leaving: int, arrival: int) -> bool:
    """Return whether a flight is in the air in the hours of a wish, which may be around midnight."""
    begin, end = wish.numbers
    end += _DAY if end <= begin else 0
    return any(leaving < end + shift and arrival > begin + shift for shift in (-_DAY, 0, _DAY))


def _list_places(world: World, city: str) -> Iterator[WishedPlace]:
    """List all places of a city, and itself."""
    yield WishedPlace("city", city, city)
    tables = ("sight", world.attractions(city)), ("meal", world.restaurants(city)), ("bed", world.accommodations(city))
    for field, rows in tables:
        for row in rows:
            yield WishedPlace(field, city, f"{row.name.strip()}, {city}")


def _names(place: WishedPlace) -> tuple[str, ...]:
    return _plain(place.name), _plain(place.name.removesuffix(f", {place.city}"))


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
