"""Write a world as CSV files with the layout of the published database, which ``World.from_folder`` reads back."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.folder import FILES
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
