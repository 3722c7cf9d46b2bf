"""How many queries the reader by rules reads right, field by field.

Sets of queries, none of which the reader was tuned on when it was first written:

- ``first``: every second of our own 60 sentences (``tasks/travel/queries.jsonl``, lines 1, 3, 5 ...): looked at since.
- ``held out``: the others. Only how many are right has been looked at, so nothing is tuned on them.
- ``training``: the 30 given training queries of TravelPlanner, where their folder is named: looked at since, and tuned
  on. What they mean was written down by hand (``tasks/travel/training_fields.jsonl``) and checked against the annotated
  plans: first and last city, number of cities, days of the flights that were looked up.

- ``validation``: 90 published validation queries, where ``validation_queries_90.jsonl`` is in that folder. What they
  mean was written down by hand from reading each, before the reader was changed with them.
- ``travel_traps``: 60 wishes of our own that are easy to turn round, written before anybody looked at the reader: half
  of them for tuning, half held out. Counted: read right, asked about, inverted, lost, read otherwise.
- ``travel_traps_fresh``: 60 more by somebody who had seen neither the reader nor the first ones, halved, too.

"noted" is how many queries had a part that was reported as not understood.

As first written, before anything was tuned: first 30/30, held out 25/30, training 25/30.
Run: python benchmarks/travel_reading.py [--data /path/to/travelplanner] [--show]
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from time import process_time
from typing import Any

from formal_llm import authored
from formal_llm.errors import QueryError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.generated import random_query
from formal_llm.packs.travel.query import Constraints, TravelQuery, query_of
from formal_llm.packs.travel.reading import QueryReading, read_query
from formal_llm.packs.travel.rows import Attraction, Restaurant

HERE = Path(__file__).parent
TODAY = date(2022, 1, 1)
#: The places that the traps name.
TRAP_WORLD = World(
    restaurants=[
        Restaurant(name=f"{food} House", cost=20, cuisines=(food,), rating=4.0, city="Vienna")
        for food in ("Italian", "Chinese", "Indian", "Mexican", "French", "Thai", "Vegetarian")
    ],
    attractions=[
        Attraction(name=name, city="Vienna") for name in ("Belvedere", "Zoo", "Prater", "Naschmarkt", "Sisi Museum")
    ],
    cities={
        "Styria": ("Graz",),
        "Austria": ("Vienna",),
        "Europe": (
            "Berlin", "Bergen", "Bristol", "Brno", "Dublin", "Florence", "Galway", "Hamburg", "Lisbon", "Lyon", "Nice",
            "Oslo", "Porto", "Prague", "Rome", "York",
        ),
    },
)  # fmt: skip
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


def measure(name: str, world: World, queries: Iterable[tuple[str, TravelQuery | None]], show: bool) -> None:
    right, refused, count, by_field = 0, 0, 0, Counter[str]()
    noisy = 0
    begin = process_time()
    for text, meant in queries:
        count += 1
        try:
            reading = read_query(text, world, TODAY)
        except QueryError as error:
            refused += 1
            if meant is None:
                right, refused = right + 1, refused - 1
                by_field.update(FIELDS)
                continue
            if show:
                print(f"  {text}\n    {error}")
            continue
        got, wanted = fields(reading.query), fields(meant) if meant else {}
        noisy += bool(reading.not_understood)
        wrong = [field for field in FIELDS if field not in wanted or got[field] != wanted[field]]
        by_field.update(field for field in FIELDS if field not in wrong)
        right += not wrong
        if wrong and show:
            print(f"  {text}\n    {[(field, got[field], wanted.get(field)) for field in wrong]}")
    each = (process_time() - begin) / count * 1000
    lost = ", ".join(f"{field} {by_field[field]}" for field in FIELDS if by_field[field] < count) or "-"
    print(f"{name:<10} {right:>4}/{count:<4} {refused:>7} {count - right - refused:>8} {noisy:>6} {each:>6.1f}  {lost}")


def measure_traps(name: str, world: World, show: bool) -> None:
    """Sentences that are easy to turn round: right, asked about (an error or not understood), inverted, lost."""
    traps = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
    today = date.fromisoformat(traps["today"])
    base = meaning(read_query(traps["base"], world, today))
    print(f"\n{name}\n{'':<10} {'right':>9} {'asked':>7} {'inverted':>9} {'lost':>5} {'other':>6}")
    for half in ("tuning", "held_out"):
        counts = Counter[str]()
        for case in traps[half]:
            text = case.get("whole") or f"{traps['base']} {case['adds']}"
            verdict, got = judge_trap(case, text, world, today, {} if "whole" in case else base)
            counts[verdict] += 1
            if show and half == "tuning" and verdict != "right":
                print(f"  {verdict}: {case.get('whole') or case['adds']}\n    {got}, meant {case['means']}")
        print(
            f"{half:<10} {counts['right']:>4}/{len(traps[half]):<4} {counts['asked']:>7} {counts['inverted']:>9} "
            f"{counts['lost']:>5} {counts['other']:>6}"
        )


def judge_trap(
    case: dict[str, Any], text: str, world: World, today: date, base: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """How a trap was read, and what was read beyond the base."""
    try:
        reading = read_query(text, world, today)
    except QueryError as error:
        return ("right" if case.get("unclear") else "asked"), {"error": str(error)}
    got = {name: value for name, value in meaning(reading).items() if value != base.get(name)}
    for name, value in case.get("inverts", {}).items():
        held = got.get(name)
        if held == value or (isinstance(held, frozenset) and value.casefold() in held):
            return "inverted", got
    meant = {
        name: frozenset(map(str.casefold, value)) if isinstance(value, list) else value
        for name, value in case["means"].items()
    }
    if got == meant and not case.get("unclear"):
        return ("asked" if reading.not_understood else "right"), got
    if reading.not_understood:
        return "asked", got
    return ("lost" if set(got) < set(meant) or case.get("unclear") else "other"), got


def meaning(reading: QueryReading) -> dict[str, Any]:
    """What a reading means, in the terms of the file of traps; empty parts are left out."""
    query = reading.query
    found: dict[str, list[str]] = {}
    for wish in [*query.constraints.to_wishes(), *query.wishes]:
        field, template = TERMS.get(wish.kind, ("wishes", "{kind}: {names} {numbers}"))
        minutes = [f"{int(one) // 60:02}:{int(one) % 60:02}" for one in wish.numbers]
        hours = (
            f"before: {minutes[1]}"
            if minutes[:1] == ["00:00"]
            else f"after: {minutes[0]}"
            if minutes[1:] == ["24:00"]
            else ""
        )
        if wish.kind == "no flight between":
            template = f"no flight {hours or 'between: ' + ' '.join(minutes)}"
        numbers = " ".join(map(str, wish.numbers))
        words = template.format(
            kind=wish.kind, names=" ".join(wish.names), numbers=numbers, minute=minutes[0] if minutes else "",
            first="room" if wish.names[:1] == ("bed",) else "".join(wish.names[:1]), last="".join(wish.names[-1:]),
        )  # fmt: skip
        found.setdefault(field, []).extend(wish.names if template == "" else [words.strip()])
    values: dict[str, Any] = {name: frozenset(map(str.casefold, value)) for name, value in found.items()}
    return values | {
        "origin": query.org, "destination": query.dest, "days": query.days, "start": query.dates[0].isoformat(),
        "people": query.people, **({} if query.budget is None else {"budget": query.budget}),
    }  # fmt: skip


#: The field of the file of traps for each kind of wish, and its words there.
TERMS = {
    "no mode": ("forbid", ""), "only modes": ("only", ""), "rooms": ("room", ""), "allows": ("house", ""),
    "some meal": ("cuisines", ""), "forbids": ("wishes", "no house that allows: {names}"),
    "leave after": ("wishes", "leave after: {minute}"), "home by": ("wishes", "back by: {minute}"),
    "arrive by": ("wishes", "arrive by: {minute}"),
    "travel hours": ("wishes", "hours of travel a day: {numbers}"), "sights": ("wishes", "sights a day: {numbers}"),
    "rating": ("wishes", "rating of {names}: {numbers}"), "at most": ("wishes", "{first} at most a {last}: {numbers}"),
}  # fmt: skip


def read_validation(lines: Iterable[dict[str, Any]]) -> list[tuple[str, TravelQuery | None]]:
    """The validation queries with what they mean, as written down in ``travel_validation_fields.txt``."""
    texts = {line["idx"]: line["query"] for line in lines}
    found: list[tuple[str, TravelQuery | None]] = []
    for line in (HERE / "travel_validation_fields.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        idx, org, dest, days, cities, first, people, budget, house, cuisines, room, transport = line.split("|")
        dates = tuple(date(2022, 3, int(first)) + timedelta(day) for day in range(int(days)))
        wishes = Constraints(house or None, tuple(filter(None, cuisines.split(","))), room or None, transport or None)
        known = people != "?"  # one text does not tell
        query = TravelQuery(org, dest, int(days), int(cities), dates, int(people) if known else 0, int(budget), wishes)
        found.append((texts[int(idx)], query if known else None))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder with train.jsonl and database/")
    parser.add_argument("--show", action="store_true", help="show what is read wrong; not of the held out ones")
    told = parser.parse_args()
    pack, own = authored.find("tasks", "travel"), World.shipped()
    lines = (pack / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [(line["query"], query_of(line)) for line in map(json.loads, lines)]
    heads = f"{'set':<10} {'right':>9} {'refused':>7} {'misread':>8} {'noted':>6} {'ms':>6}"
    print(f"{heads}  right by field, where not all are")
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
        if (validation := told.data / "validation_queries_90.jsonl").exists():
            lines = validation.read_text(encoding="utf-8").splitlines()
            measure("validation", world, read_validation(map(json.loads, lines)), told.show)
    made = [random_query(own, seed) for seed in range(500)]
    measure("generated", own, [(query.text, query) for query in made], told.show)
    for name in ("travel_traps", "travel_traps_fresh"):
        measure_traps(name, TRAP_WORLD, told.show)


if __name__ == "__main__":
    main()
