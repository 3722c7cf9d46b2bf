"""How many queries the reader by rules reads right, field by field.

Three sets, none of which the reader was tuned on when it was first written:

- ``first``: every second of our own 60 sentences (``tasks/travel/queries.jsonl``, lines 1, 3, 5 ...): looked at since.
- ``held out``: the others. Only how many are right has been looked at, so nothing is tuned on them.
- ``training``: the 30 given training queries of TravelPlanner, where their folder is named: looked at since, and tuned
  on. What they mean was written down by hand (``tasks/travel/training_fields.jsonl``) and checked against the annotated
  plans: first and last city, number of cities, days of the flights that were looked up.

As first written, before anything was tuned: first 30/30, held out 25/30, training 25/30.
Run: python benchmarks/travel_reading.py [--data /path/to/travelplanner] [--show]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from time import process_time

from formal_llm import authored
from formal_llm.errors import QueryError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.generated import random_query
from formal_llm.packs.travel.query import TravelQuery, query_of
from formal_llm.packs.travel.reading import read_query

TODAY = date(2022, 1, 1)
FIELDS = (
    "org",
    "dest",
    "days",
    "cities",
    "dates",
    "people",
    "budget",
    "house rule",
    "cuisines",
    "room type",
    "transport",
)


def fields(query: TravelQuery) -> dict[str, object]:
    """What is compared; the order of cuisines does not count."""
    wishes = query.constraints
    values = (
        query.org, query.dest, query.days, query.visiting_city_number, query.dates, query.people, query.budget,
        wishes.house_rule, frozenset(wishes.cuisines), wishes.room_type, wishes.transportation,
    )  # fmt: skip
    return dict(zip(FIELDS, values, strict=True))


def measure(name: str, world: World, queries: Iterable[tuple[str, TravelQuery]], show: bool) -> None:
    right, refused, count, by_field = 0, 0, 0, Counter[str]()
    begin = process_time()
    for text, meant in queries:
        count += 1
        wanted = fields(meant)
        try:
            got = fields(read_query(text, world, TODAY).query)
        except QueryError as error:
            refused += 1
            if show:
                print(f"  {text}\n    {error}")
            continue
        wrong = [field for field in FIELDS if got[field] != wanted[field]]
        by_field.update(field for field in FIELDS if field not in wrong)
        right += not wrong
        if wrong and show:
            print(f"  {text}\n    {[(field, got[field], wanted[field]) for field in wrong]}")
    each = (process_time() - begin) / count * 1000
    lost = ", ".join(f"{field} {by_field[field]}" for field in FIELDS if by_field[field] < count) or "-"
    print(f"{name:<10} {right:>4}/{count:<4} {refused:>7} {count - right - refused:>8} {each:>6.1f}  {lost}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder with train.jsonl and database/")
    parser.add_argument("--show", action="store_true", help="show what is read wrong; not of the held out ones")
    told = parser.parse_args()
    pack, own = authored.find("tasks", "travel"), World.shipped()
    lines = (pack / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [(line["query"], query_of(line)) for line in map(json.loads, lines)]
    print(f"{'set':<10} {'right':>9} {'refused':>7} {'misread':>8} {'ms':>6}  right by field, where not all are")
    measure("first", own, queries[0::2], told.show)
    measure("held out", own, queries[1::2], False)
    if told.data:
        meant = {
            one["index"]: query_of(one)
            for one in map(json.loads, (pack / "training_fields.jsonl").read_text().splitlines())
        }
        cases = list(map(json.loads, (told.data / "train.jsonl").read_text(encoding="utf-8").strip().split("\n")))
        world = World.from_folder(told.data / "database")
        measure("training", world, [(one["query"], meant[one["index"]]) for one in cases], told.show)
    made = [random_query(own, seed) for seed in range(500)]
    measure("generated", own, [(query.text, query) for query in made], told.show)


if __name__ == "__main__":
    main()
