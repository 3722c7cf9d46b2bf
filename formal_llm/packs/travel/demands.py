"""What the wishes beyond the fields of the data set demand: of each bed, restaurant and way, and of each stay.

All of it enters the least cost of trips, so that no wish leads to a dead end. What cannot be decided exactly fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from itertools import product
from typing import NamedTuple

from formal_llm.errors import InputError, did_you_mean
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.meals import NEVER
from formal_llm.packs.travel.plan_days import MEALS, NOTHING
from formal_llm.packs.travel.query import TravelQuery, TripWish, WishKind
from formal_llm.packs.travel.rows import Accommodation, Drive, Flight, Restaurant
from formal_llm.packs.travel.slots import Shape, Slot, Stay

#: The sums that can be bounded: a part of the trip, and the unit of the bound.
SUMS = (
    ("bed", "night"), ("bed", "trip"), ("meals", "meal"), ("meals", "trip"), ("ways", "day"), ("ways", "trip"),
    ("trip", "trip"),
)  # fmt: skip
_MIDNIGHT, _EVENING = 24 * 60, 18 * 60
#: The maximum number of needs of a trip, since all their sets are considered; and of foods that each day must have.
_MOST_NEEDS, _MOST_FOODS = 8, 2


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


class Course(NamedTuple):
    """A way to satisfy the wishes for the remaining meals of a stay.

    Attributes:
        covers: the needs that it covers, besides the wanted cuisines.
        must: the number of meals at least.
        may: the number of further meals at most.
        special: what each of some of the required meals must offer.
    """

    covers: int
    must: int
    may: int
    special: tuple[int, ...] = ()


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
        InputError: a wish names an unknown place or day, lacks its number, or cannot be decided exactly.
    """

    def __init__(self, query: TravelQuery, world: World) -> None:
        self._query, self._world = query, world
        self.cuisines = tuple(dict.fromkeys(query.constraints.cuisines))
        self._bits = {("cuisine", name): 1 << bit for bit, name in enumerate(self.cuisines)}
        self._places = [self._find_place(wish, name) for wish in self._list(WishKind.visit) for name in wish.names]
        self._barred = {place.name for name in self._names_of(WishKind.never) for place in self._find_places(name)}
        self._stays = [
            ([self._find_places(name)[0].city for name in wish.names], self._number_of(wish))
            for wish in self._list(WishKind.stay)
        ]
        self.cities = {place.city for place in self._places} | {city for names, _ in self._stays for city in names}
        self.sights = max([1, *(int(self._number_of(wish)) for wish in self._list(WishKind.sights))])
        rated = sorted(self._list(WishKind.rating), key=self._number_of)  # of two the higher one counts
        self._ratings = {name: self._number_of(wish) for wish in rated for name in wish.names}
        if "sight" in self._ratings:
            raise InputError("sights have no ratings in these tables; ask for ratings of beds or restaurants")
        self._most: dict[tuple[str, ...], int] = {}
        for wish in self._list(WishKind.at_most):
            if wish.names not in SUMS:
                known = ", ".join(" a ".join(one) for one in SUMS)
                raise InputError(f"no sum can be kept for {' a '.join(wish.names)}; there are: {known}")
            cents = int((self._number_of(wish) * 100).to_integral_value(ROUND_FLOOR))
            self._most[wish.names] = min(cents, self._most.get(wish.names, NEVER))
        self._read_meals()

    def __bool__(self) -> bool:
        return bool(self._query.wishes)

    def _read_meals(self) -> None:
        """Give bits to what is needed in one city or another, then to what single meals must offer."""
        evenings = [self._day_of(wish) for wish in self._list(WishKind.free_evening)]
        self._evenings = {day for day in evenings if day is not None}
        dated = [wish for wish in self._list(WishKind.day_meal) if wish.numbers]
        own = [("evening", "")] * (None in evenings) + [("day", repr(wish)) for wish in dated]
        for key in own:
            self._bits.setdefault(key, 1 << len(self._bits))
        if len(self._bits) > _MOST_NEEDS:
            raise InputError(f"at most {_MOST_NEEDS} cuisines, meals on certain days and evenings can be wished for")
        self.wanted = (1 << len(self._bits)) - 1
        self.evening = self._bits.get(("evening", ""), 0)
        self._dated = [(self._bits["day", repr(wish)], self._read_meal(wish)) for wish in dated]
        self._daily = [self._read_meal(wish) for wish in self._list(WishKind.day_meal) if not wish.numbers]
        if len({one.offers for one in self._daily}) > _MOST_FOODS:
            raise InputError(f"at most {_MOST_FOODS} kinds of food can be wished for on each day")
        for place in self._places:
            if place.field == "meal":
                self._bits.setdefault(("place", place.name), 1 << len(self._bits))

    def _read_meal(self, wish: TripWish) -> MealWish:
        cuisine, *meal = wish.names
        return MealWish(
            self._bits.setdefault(("cuisine", cuisine), 1 << len(self._bits)),
            meal[0] if meal else None,
            self._day_of(wish) if wish.numbers else None,
        )

    def _list(self, *kinds: WishKind) -> list[TripWish]:
        return [wish for wish in self._query.wishes if wish.kind in kinds]

    def _names_of(self, kind: WishKind) -> set[str]:
        return {name for wish in self._list(kind) for name in wish.names}

    @staticmethod
    def _number_of(wish: TripWish) -> Decimal:
        if not wish.numbers or wish.numbers[0] < 0:
            raise InputError(f"the wish {format_wish(wish)!r} needs a number of at least 0")
        return Decimal(wish.numbers[0])

    def _day_of(self, wish: TripWish) -> int | None:
        """Return the day of a wish, from 0; None if it is for any."""
        if not wish.numbers:
            return None
        if not 1 <= wish.numbers[0] <= self._query.days:
            raise InputError(
                f"the wish {format_wish(wish)!r} is for day {wish.numbers[0]}; the trip has {self._query.days} days"
            )
        return int(wish.numbers[0]) - 1

    def _find_place(self, wish: TripWish, name: str) -> WishedPlace:
        """Return the only place with a name."""
        found = self._find_places(name)
        if len({place.city for place in found}) > 1:
            raise InputError(f"{name!r} means several places: {'; '.join(place.name for place in found)}")
        return found[0]._replace(day=self._day_of(wish))

    def _find_places(self, name: str) -> list[WishedPlace]:
        """Return the places with a name, those in the destination if there are any: sights first."""
        query, world, wanted = self._query, self._world, _plain(name)
        near = {query.dest, *world.cities(query.dest)} - {query.org}
        for cities in (near, set(world.cities()) - near):
            found = [place for city in sorted(cities) for place in _list_places(world, city) if wanted in _names(place)]
            if found:
                return sorted(found, key=lambda place: place.field != "sight")
        known = [place.name for city in near for place in _list_places(world, city)]
        like = did_you_mean(name, known)
        raise InputError(f"no place {name!r} is known{f'; did you mean {like!r}?' if like else ''}")

    # -- single choices -------------------------------------------------------------------------------------------

    def allows_place(self, name: str) -> bool:
        """Return whether a city or a place, ``"Name, City"``, may be visited."""
        return name not in self._barred

    def allows_bed(self, row: Accommodation) -> bool:
        """Return whether an accommodation satisfies the wishes."""
        rooms, rating = self._list(WishKind.rooms), self._ratings.get("bed")
        return (
            all(any(row.is_of(kind) for kind in wish.names) for wish in rooms)
            and all(map(row.allows, self._names_of(WishKind.allows)))
            and not any(map(row.allows, self._names_of(WishKind.forbids)))
            and (rating is None or (row.rating is not None and Decimal(str(row.rating)) >= rating))
        )

    def allows_restaurant(self, row: Restaurant) -> bool:
        """Return whether a restaurant satisfies the wishes for all meals."""
        rating, only = self._ratings.get("restaurant"), self._list(WishKind.every_meal)
        return (
            all(any(cuisine in row.cuisines for cuisine in wish.names) for wish in only)
            and not any(cuisine in row.cuisines for cuisine in self._names_of(WishKind.no_meal))
            and (rating is None or (row.rating is not None and Decimal(str(row.rating)) >= rating))
        )

    def allows_way(self, row: Flight | Drive, hours: float, day: int) -> bool:
        """Return whether a way on a day, from 0, satisfies the wishes. Who drives leaves at any time of that day."""
        mode = "flight" if isinstance(row, Flight) else row.mode
        if mode in self._names_of(WishKind.no_mode):
            return False
        if any(mode not in wish.names for wish in self._list(WishKind.only_modes)):
            return False
        if any(hours > self._number_of(wish) for wish in self._list(WishKind.travel_hours)):
            return False
        begin = max([0, *self._minutes(WishKind.leave_after)]) if day == 0 else 0
        ends = self._minutes(WishKind.arrive_by) if day == 0 else []
        ends += self._minutes(WishKind.home_by) if day == self._query.days - 1 else []
        if day in self._evenings:
            ends.append(_EVENING)
        leaving, arrival = float(begin), begin + hours * 60
        if isinstance(row, Flight):
            leaving, arrival = _read_minutes(row.departure), _read_minutes(row.arrival)
            arrival += _MIDNIGHT if arrival < leaving else 0
            if any(self._overlaps(wish, leaving, arrival) for wish in self._list(WishKind.no_flight)):
                return False
        return begin <= leaving and arrival <= min(ends, default=2 * _MIDNIGHT)

    def _minutes(self, kind: WishKind) -> list[int]:
        return [int(self._number_of(wish)) for wish in self._list(kind)]

    @staticmethod
    def _overlaps(wish: TripWish, leaving: float, arrival: float) -> bool:
        begin, end = wish.numbers
        end += _MIDNIGHT if end <= begin else 0
        return any(leaving < end + shift and arrival > begin + shift for shift in (-_MIDNIGHT, 0, _MIDNIGHT))

    def find_most(self, part: str, unit: str) -> int:
        """Return the maximum cost of a part, in cents; :data:`NEVER` without a bound."""
        return self._most.get((part, unit), NEVER)

    def find_beds(self, city: str) -> set[str]:
        """Return the names of the beds that must be slept in in a city."""
        return {place.name for place in self._places if place.city == city and place.field == "bed"}

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
        return offers | sum(bit for bit, wish in self._dated if _suits(wish, slot, offers))

    # -- stays ----------------------------------------------------------------------------------------------------

    def fits_shape(self, shape: Shape) -> bool:
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
        """Return whether the wanted sights of a city have been seen, or still fit into the remaining slots."""
        seen = {name: slot.day for slot, name in done if slot.kind == "sight"}
        free = Counter(slot.day for slot in left if slot.kind == "sight")
        wanted = [place for place in self._places if place.city == city and place.field == "sight"]
        missing = Counter(place.day for place in set(wanted) if place.name not in seen)
        dated = all(count <= free[day] for day, count in missing.items() if day is not None)
        on_time = all(place.day in (None, seen.get(place.name, place.day)) for place in wanted)
        known = all(place.name in sights for place in wanted)
        return known and on_time and dated and missing.total() <= free.total()

    def find_forced(self, city: str) -> set[str]:
        """Return the names of the restaurants that must be visited in a city."""
        return {place.name for place in self._places if place.city == city and place.field == "meal"}

    def is_closed(self, slot: Slot) -> bool:
        """Return whether a slot is left empty."""
        return slot.kind == "dinner" and slot.day in self._evenings

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
        wishes = [wish for wish in wishes if not any(_suits(wish, *one) for one in eaten)]
        dated = [(bit, wish) for bit, wish in self._dated if stay.arrival <= (wish.day or 0) <= stay.leaving]
        evenings = [one for one in meals if one.kind == "dinner" and one.must] if self.evening else []
        found: set[Course] = set()
        for kept, skipped in product(product((False, True), repeat=len(dated)), (None, *evenings)):
            more = [one for one, keep in zip(dated, kept, strict=True) if keep]
            covers = sum(bit for bit, _ in more) | (self.evening if skipped else 0)
            slots = [one for one in meals if one is not skipped]
            found |= _list_courses(slots, [*wishes, *(wish for _, wish in more)], covers)
        return found


def _list_courses(meals: Sequence[Slot], wishes: Sequence[MealWish], covers: int) -> set[Course]:
    """List the ways to distribute wishes over the meals of their days; several may share a meal."""
    must = sum(slot.must for slot in meals)
    found = {Course(covers, must, len(meals) - must)}
    for day in {wish.day for wish in wishes}:
        slots = [slot for slot in meals if slot.day == day]
        wanted = [wish for wish in wishes if wish.day == day]
        ways = set()
        for places in product(range(len(slots)), repeat=len(wanted)):
            offers = [0] * len(slots)
            for place, wish in zip(places, wanted, strict=True):
                offers[place] |= wish.offers
            if all(wish.meal in (None, slots[place].kind) for place, wish in zip(places, wanted, strict=True)):
                more = sum(not slot.must for slot, mask in zip(slots, offers, strict=True) if mask)
                ways.add((more, tuple(filter(None, offers))))
        found = {
            Course(covers, one.must + more, one.may - more, tuple(sorted(one.special + special)))
            for one in found
            for more, special in ways
        }
    return found


def _suits(wish: MealWish, slot: Slot, offers: int) -> bool:
    """Return whether a meal, with what its restaurant offers, satisfies a wish for a day."""
    return slot.day == wish.day and wish.meal in (None, slot.kind) and not wish.offers & ~offers


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


def _read_minutes(clock: str) -> float:
    hours, _, minutes = clock.partition(":")
    return int(hours) * 60 + int(minutes)


def format_wish(wish: TripWish) -> str:
    """Return the words of a wish."""
    return wish.text or " ".join(map(str, (wish.kind, *wish.names, *wish.numbers)))
