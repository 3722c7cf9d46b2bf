"""Loading 3.8 million flights: how long it takes, how much memory, and how quick a look-up is.

The published table of flights cannot be had from here, so one of its size and form is made (310 cities, 90 days; from
a seed).
Run: python benchmarks/travel_flights.py [--rows 3800000] [--folder DIR]; it needs about 1 GB of disk, and removes it.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path
from time import process_time

from formal_llm.packs.travel.folder import flight_file

HEADER = ",Flight Number,Price,DepTime,ArrTime,ActualElapsedTime,FlightDate,OriginCityName,DestCityName,Distance\n"


def make_table(path: Path, rows: int, seed: int = 17) -> None:
    """A table of the published form: flights sorted by their day."""
    rng = random.Random(seed)
    ways = [(f"City {a}", f"City {b}") for a in range(310) for b in rng.sample(range(310), 18) if a != b]
    with path.open("w", encoding="utf-8") as file:
        file.write(HEADER)
        for number in range(rows):
            origin, destination = ways[rng.randrange(len(ways))]
            day = date(2022, 1, 1) + timedelta(number * 90 // rows)
            minutes = rng.randrange(300, 1400)
            file.write(
                f"{number},F{3500000 + number},{rng.randrange(30, 900)},{minutes // 60:02}:{minutes % 60:02},23:10,"
                f"{rng.randrange(1, 6)} hours {rng.randrange(60)} minutes,{day},{origin},{destination},"
                f"{rng.randrange(90, 2600)}.0\n"
            )


def measure(table: Path, cache: Path, rows: int) -> None:
    """Load the table twice, look up, and print a line of the table each."""
    told = []
    begin = process_time()
    flights = flight_file(table, cache, lambda done, of: told.append(done / of))
    loaded = process_time() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert len(flights) == rows
    size = sum(path.stat().st_size for path in cache.iterdir())
    print(f"rows                             {rows:,}")
    print(f"size of the CSV file             {table.stat().st_size / 1e6:,.0f} MB")
    print(f"loading it once                  {loaded:,.1f} s of CPU, {len(told)} reports of progress")
    print(f"most memory of the whole process {memory:,.0f} MB")
    print(f"size of the database file        {size / 1e6:,.0f} MB")
    begin = process_time()
    again = flight_file(table, cache)
    print(f"opening it again                 {(process_time() - begin) * 1000:,.1f} ms of CPU")
    rng = random.Random(5)
    first = date(2022, 1, 1)
    cities = [(f"City {rng.randrange(310)}", f"City {rng.randrange(310)}") for _ in range(2000)]
    asked = [(*way, first + timedelta(rng.randrange(90))) for way in cities]
    begin = process_time()
    found = sum(len(again.find_between(*one)) for one in asked)
    print(f"a look-up of a way on a day      {(process_time() - begin) / len(asked) * 1e6:,.0f} µs ({found} flights)")
    some = again.find_between(*next(one for one in asked if again.find_between(*one)))[0]
    begin = process_time()
    for _ in range(500):
        again.find_numbered(some.number)
    print(f"a look-up of a number            {(process_time() - begin) / 500 * 1e6:,.0f} µs")
    begin = process_time()
    found = len(again.find_between(some.origin, some.destination, None))
    print(f"a way on all days                {(process_time() - begin) * 1000:,.1f} ms ({found} flights)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_800_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--measure", nargs=2, type=Path, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.measure:
        measure(told.measure[0], told.measure[1], told.rows)
        return
    with tempfile.TemporaryDirectory(dir=told.folder) as folder:
        table, cache = Path(folder) / "clean_Flights_2022.csv", Path(folder) / "cache"
        make_table(table, told.rows)
        # In a process of its own, so that its memory is that of loading alone.
        command = [sys.executable, __file__, "--rows", str(told.rows), "--measure", str(table), str(cache)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
