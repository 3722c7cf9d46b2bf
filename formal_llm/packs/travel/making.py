"""The small world that ships with the pack: invented states and cities, generated from a seed.

``python -m formal_llm.packs.travel.making tasks/travel/world`` writes it. All names are invented; any resemblance to
real places is accidental. The rows have the variety of the published database: roads without a length or of more than
a day, accommodations with various rules and sizes, one city with the name of its state, names with a comma.
"""

from __future__ import annotations

import csv
import os
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TypeVar

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.folder import FILES
from formal_llm.packs.travel.query import CUISINES, HOUSE_RULES
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant, Road, measure_arc
from formal_llm.packs.travel.tables import ACCOMMODATIONS, ATTRACTIONS, FLIGHTS, RESTAURANTS, ROADS, Table


def write_folder(world: World, folder: str | os.PathLike[str]) -> None:
    """Write all rows of a world; existing files are replaced.

    Raises:
        OSError: they cannot be written.
    """
    root = Path(folder)
    cities = world.cities()
    beds = (bed for city in cities for bed in world.accommodations(city))
    tables = (table for city in cities for table in world.restaurants(city))
    sights = (sight for city in cities for sight in world.attractions(city))
    _write_table(root, "flights", FLIGHTS, (
        (one.number, one.price, one.departure, one.arrival, one.duration, one.day, one.origin, one.destination,
         one.distance)
        for one in world.all_flights()
    ))  # fmt: skip
    _write_table(root, "distances", ROADS, (
        (one.origin, one.destination, None, one.duration, one.distance) for one in world.all_roads()
    ))  # fmt: skip
    _write_table(root, "accommodations", ACCOMMODATIONS, (
        (one.name, one.price, one.room_type, " & ".join(one.house_rules), one.minimum_nights, one.maximum_occupancy,
         one.rating, one.city)
        for one in beds
    ))  # fmt: skip
    _write_table(root, "restaurants", RESTAURANTS, (
        (one.name, one.cost, ", ".join(one.cuisines), one.rating, one.city) for one in tables
    ))  # fmt: skip
    _write_table(root, "attractions", ATTRACTIONS, (
        (one.name, one.latitude, one.longitude, one.address, one.phone, one.website, one.city) for one in sights
    ))  # fmt: skip
    lines = (f"{city}\t{state}" for state in world.states for city in world.cities(state))
    place = root / FILES["cities"]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_table(root: Path, name: str, table: Table[object], lines: Iterable[Sequence[object]]) -> None:
    """Write a table without its empty columns, since an empty cell would exclude its row when read back."""
    found = [["" if cell is None else str(cell) for cell in line] for line in lines]
    needed = set(table.needed)
    kept = [at for at, column in enumerate(table.columns) if column in needed or any(line[at] for line in found)]
    place = root / FILES[name]
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([table.columns[at] for at in kept])
        out.writerows([line[at] for at in kept] for line in found)


T = TypeVar("T")
SEED = 17
#: The days on which flights leave.
FIRST_DAY, DAYS = date(2022, 3, 8), 18
#: The cities of each state: latitude and longitude, out in the ocean.
PLACES: dict[str, dict[str, tuple[float, float]]] = {
    "Arvenia": {
        "Lindhaven": (41.2, -38.6), "Marrowick": (42.9, -37.1), "St. Alder": (40.1, -36.4), "Thornquay": (43.8, -39.3),
    },
    "Belloro": {"Port Serin": (33.4, -29.8), "Vallisto": (35.2, -28.3), "Casa Rima": (34.1, -31.5)},
    "North Corvale": {
        "Oriel": (46.3, -24.7), "Oriel Falls": (47.6, -23.2), "Brackenridge": (45.1, -22.4), "Alder": (48.2, -25.6),
    },
    "Dunmere": {"Dunmere": (30.2, -50.9), "Kestrel Bay": (31.7, -52.3), "Sable Point": (29.1, -53.4)},
}  # fmt: skip
#: The cities with an airport.
HUBS = ("Lindhaven", "Port Serin", "Oriel", "Dunmere")
_OTHER_FOOD = ("Tea", "Cafe", "Bakery", "BBQ", "Seafood", "Pizza", "Desserts", "Fast Food")
_ROOMS = ("Entire home/apt", "Private room", "Entire home/apt", "Private room", "Entire home/apt", "Shared room")
_FIRST = (
    "Amber", "Blue", "Copper", "Drift", "Elm", "Fern", "Gull", "Harbour", "Iron", "Juniper", "Kiln", "Lantern", "Mill",
    "North", "Olive", "Pebble", "Quarry", "Raven", "Salt", "Tide",
)  # fmt: skip
_MEALS = (
    "Kitchen",
    "Table",
    "Spoon",
    "Oven",
    "Tavern",
    "Terrace",
    "Canteen",
    "Counter, The Old Mill",
    "Pantry",
    "Grill",
)
_BEDS = ("Loft", "Cottage", "Rooms", "Hideaway", "House", "Studio")
_SIGHTS = ("Museum", "Lighthouse", "Gardens", "Market Hall", "Observatory", "Cliff Walk", "Old Town", "Aquarium")
_NIGHTS = (1, 2, 1, 3, 2, 1)
_PEOPLE = (4, 2, 2, 1, 6, 3)
#: A mile in kilometres, and the speeds of a car and a plane in kilometres per hour.
_MILE, _CAR, _PLANE = 1.609344, 92, 700


class _Dice:
    """Random numbers that are the same in every version of Python, which only ``random()`` guarantees."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def draw_whole(self, least: int, most: int) -> int:
        return least + int(self._random.random() * (most - least + 1))

    def one_of(self, things: Sequence[T]) -> T:
        return things[self.draw_whole(0, len(things) - 1)]

    def some_of(self, things: Sequence[T], count: int) -> list[T]:
        remaining = list(things)
        return [remaining.pop(self.draw_whole(0, len(remaining) - 1)) for _ in range(count)]

    def draw_chance(self, share: float) -> bool:
        return self._random.random() < share


def make_world(seed: int = SEED) -> World:
    """Create a world of 14 cities in 4 states; the same seed gives the same world on every machine.

    Each city has six accommodations, ten restaurants and six attractions. Every state offers every cuisine, and in
    every city some accommodation allows each of the house rules.
    """
    dice = _Dice(seed)
    where = {city: place for cities in PLACES.values() for city, place in cities.items()}
    beds, tables, sights = [], [], []
    for city, place in where.items():
        beds += list(_make_beds(dice, city))
        tables += list(_make_restaurants(dice, city))
        sights += list(_make_sights(dice, city, place))
    roads = list(_make_roads(dice, where))
    flights = list(_make_flights(dice, where))
    return World(flights, roads, beds, tables, sights, {state: tuple(cities) for state, cities in PLACES.items()})


def _make_beds(dice: _Dice, city: str) -> Iterator[Accommodation]:
    names = dice.some_of(_FIRST, len(_BEDS))
    for number, (first, last) in enumerate(zip(names, _BEDS, strict=True)):
        # Of two neighbours one allows what the other forbids; so every wish can be satisfied.
        rules = [rule for at, rule in enumerate(HOUSE_RULES) if (at + number) % 2 == 0]
        forbidden = tuple(f"No {rule}" for rule in dice.some_of(rules, dice.draw_whole(1, min(2, len(rules)))))
        price = dice.draw_whole(30, 90) * (1 + _PEOPLE[number] // 2)
        rating = float(dice.draw_whole(2, 5))
        yield Accommodation(
            f"{first} {last}", city, price, _ROOMS[number], forbidden, _NIGHTS[number], _PEOPLE[number], rating
        )


def _make_restaurants(dice: _Dice, city: str) -> Iterator[Restaurant]:
    names = dice.some_of(_FIRST, len(_MEALS))
    for number, (first, last) in enumerate(zip(names, _MEALS, strict=True)):
        # One of the seven cuisines in turn, so that none is missing; the others at random.
        cuisines = [CUISINES[number % len(CUISINES)], *dice.some_of(_OTHER_FOOD, dice.draw_whole(1, 3))]
        if dice.draw_chance(0.3):
            cuisines.append(dice.one_of([one for one in CUISINES if one not in cuisines]))
        yield Restaurant(f"{first} {last}", city, dice.draw_whole(9, 70), tuple(cuisines), dice.draw_whole(20, 49) / 10)


def _make_sights(dice: _Dice, city: str, place: tuple[float, float]) -> Iterator[Attraction]:
    names = dice.some_of(_SIGHTS, 6)
    for number, (first, last) in enumerate(zip(dice.some_of(_FIRST, 6), names, strict=True), 1):
        latitude = round(place[0] + dice.draw_whole(-400, 400) / 10_000, 4)
        longitude = round(place[1] + dice.draw_whole(-400, 400) / 10_000, 4)
        street = f"{dice.draw_whole(1, 99)} {dice.one_of(_FIRST)} Street, {city}"
        yield Attraction(
            f"{first} {last}", city, latitude, longitude, street, "Unknown", f"https://example.org/{number}"
        )


def _make_roads(dice: _Dice, where: dict[str, tuple[float, float]]) -> Iterator[Road]:
    for origin, start in where.items():
        for destination, end in where.items():
            if origin == destination:
                continue
            if dice.draw_chance(0.06):
                yield Road(origin, destination)  # the published table has such rows, too
                continue
            kilometres = measure_arc(start, end) * 1.22 + dice.draw_whole(-4, 4)
            length = round(kilometres, 1) if kilometres < 100 else round(kilometres)
            yield Road(origin, destination, _format_duration(kilometres / _CAR), f"{length:,} km", float(length))


def _make_flights(dice: _Dice, where: dict[str, tuple[float, float]]) -> Iterator[Flight]:
    number = 1_000_000
    ways = [(a, b) for a in where for b in where if a != b and (a in HUBS and (b in HUBS or dice.draw_chance(0.35)))]
    ways += [(b, a) for a, b in ways if b not in HUBS]
    for origin, destination in ways:
        kilometres = measure_arc(where[origin], where[destination])
        minutes = round(30 + 60 * kilometres / _PLANE)
        usual = round(25 + kilometres * 0.11)
        for day in range(DAYS):
            for _ in range(1 if dice.draw_chance(0.75) else 0):
                number += dice.draw_whole(1, 900)
                begin = dice.draw_whole(6 * 12, 19 * 12) * 5
                price = usual + dice.draw_whole(-15, 45)
                yield Flight(
                    f"F{number}", origin, destination, FIRST_DAY + timedelta(day), _format_clock(begin),
                    _format_clock(begin + minutes), price, f"{minutes // 60} hours {minutes % 60} minutes",
                    float(round(kilometres / _MILE)),
                )  # fmt: skip


def _format_duration(hours: float) -> str:
    """Format a duration as in the published table: days and hours, or hours and minutes."""
    whole, minutes = divmod(round(hours * 60), 60)
    if whole >= 24:
        return f"{_format_count(whole // 24, 'day')} {_format_count(whole % 24, 'hour')}"
    return f"{_format_count(whole, 'hour')} {_format_count(minutes, 'min')}" if whole else _format_count(minutes, "min")


def _format_count(number: int, unit: str) -> str:
    return f"{number} {unit}" + ("" if number == 1 else "s")


def _format_clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


if __name__ == "__main__":
    write_folder(make_world(), sys.argv[1])
