"""Random queries, and worlds written as folders."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.folder import FILES
from formal_llm.packs.travel.query import CUISINES, HOUSE_RULES, ROOM_TYPES, TRANSPORTATION, Constraints, TravelQuery
from formal_llm.packs.travel.tables import ACCOMMODATIONS, ATTRACTIONS, FLIGHTS, RESTAURANTS, ROADS, Table


def random_query(world: World, seed: int) -> TravelQuery:
    """A query in a world; the same seed gives the same one. Some have no trip."""
    rng = random.Random(seed)
    cities = rng.choice((1, 2, 3))
    days = 2 * cities + 1
    org = rng.choice(world.cities())
    if cities == 1:
        dest = rng.choice([city for city in world.cities() if city != org])
    else:
        dest = rng.choice([state for state in world.states if len(set(world.cities(state)) - {org}) >= cities])
    people = rng.randrange(1, 9)
    constraints = Constraints(
        rng.choice((None, *HOUSE_RULES)),
        tuple(rng.sample(CUISINES, rng.choice((0, 0, 1, 2, 3, 4)))),
        rng.choice((None, *ROOM_TYPES)),
        rng.choice((None, *TRANSPORTATION)),
    )
    begin = date(2022, 3, 8) + timedelta(rng.randrange(19 - days))
    dates = tuple(begin + timedelta(day) for day in range(days))
    budget = rng.choice((None, rng.randrange(1, 30) * 100 * people))
    return TravelQuery(org, dest, days, cities, dates, people, budget, constraints)


def write_folder(world: World, folder: Path) -> None:
    """Write all rows of a world; existing files are replaced.

    Raises:
        OSError: they cannot be written.
    """
    root = folder
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
