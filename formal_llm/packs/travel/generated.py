"""Random queries, and English sentences for queries.

They serve tests and measurements, and show travellers how a query was understood.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, timedelta

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import (
    CUISINES,
    HOUSE_RULES,
    ROOM_TYPES,
    TRANSPORTATION,
    Constraints,
    TravelQuery,
)

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_HOUSE = {
    "smoking": ("Smoking must be allowed where we stay", "We need a place where we can smoke"),
    "parties": ("Parties must be allowed where we stay", "We want to throw a party where we stay"),
    "children under 10": ("The place must allow children under 10", "We bring children under the age of 10"),
    "visitors": ("Visitors must be allowed where we stay", "We require accommodations that allow visitors"),
    "pets": ("We bring our pets", "The place must be pet-friendly"),
}
_ROOM = {
    "entire room": ("We would like entire rooms", "We want the entire place to ourselves"),
    "private room": ("We would like private rooms", "A private room will do"),
    "shared room": ("We would like a shared room", "We would take shared rooms"),
    "not shared room": ("We do not want shared rooms", "No shared rooms, please"),
}
_TRANSPORT = {
    "no flight": ("We will not take any flights", "No flights, please"),
    "no self-driving": ("We do not plan on self-driving", "We would rather not drive ourselves"),
}
_FOOD = ("We would like to try {} food", "We want to taste {} cuisine", "In terms of food, we prefer {} dishes")


def random_query(
    world: World, seed: int, first_day: date = date(2022, 3, 8), last_day: date = date(2022, 3, 25)
) -> TravelQuery:
    """Generate a random query with its sentences; it may be unsatisfiable.

    Args:
        world: its cities and states.
        seed: the same seed gives the same query.
        first_day: the earliest first day of the trip.
        last_day: the latest last day of the trip.
    """
    rng = random.Random(seed)
    days = rng.choice((3, 5, 7))
    cities = (days - 1) // 2
    org = rng.choice(world.cities())
    if cities == 1:
        dest = rng.choice([city for city in world.cities() if city != org])
    else:
        dest = rng.choice([state for state in world.states if len(set(world.cities(state)) - {org}) >= cities])
    begin = first_day + timedelta(rng.randrange((last_day - first_day).days - days + 2))
    people = rng.randrange(1, 9)
    constraints = Constraints(
        rng.choice((None, *HOUSE_RULES)),
        tuple(rng.sample(CUISINES, rng.choice((0, 0, 1, 2, 3, 4)))),
        rng.choice((None, *ROOM_TYPES)),
        rng.choice((None, *TRANSPORTATION)),
    )
    budget = rng.choice((None, rng.randrange(1, 30) * 100 * people))
    dates = tuple(begin + timedelta(day) for day in range(days))
    query = TravelQuery(org, dest, days, cities, dates, people, budget, constraints)
    return TravelQuery(org, dest, days, cities, dates, people, budget, constraints, write_query(query, seed))


def write_query(query: TravelQuery, seed: int = 0) -> str:
    """Express a query in English sentences, which the reader can read back; the seed determines the wording."""
    rng = random.Random(seed)
    where = (
        f"to {query.dest}"
        if query.visiting_city_number == 1
        else f"to {_write_count(rng, query.visiting_city_number)} cities in {query.dest}"
    )
    begin = rng.choice(
        (
            f"Please plan a {_write_count(rng, query.days)}-day trip from {query.org} {where}",
            f"We want to travel from {query.org} {where} for {_write_count(rng, query.days)} days",
            f"Could you make a travel plan {where}, starting from {query.org}, "
            f"for {_write_count(rng, query.days)} days",
        )
    )
    sentences = [f"{begin}, {_write_dates(rng, query.dates)}, {_write_people(rng, query.people)}"]
    if query.budget is not None:
        sentences.append(
            rng.choice(("Our budget is ${:,}", "We can spend {:,} dollars", "Budget: ${}")).format(query.budget)
        )
    wishes = query.constraints
    wish_sentences = []
    if wishes.house_rule is not None:
        wish_sentences.append(rng.choice(_HOUSE[wishes.house_rule]))
    if wishes.room_type is not None:
        wish_sentences.append(rng.choice(_ROOM[wishes.room_type]))
    if wishes.transportation is not None:
        wish_sentences.append(rng.choice(_TRANSPORT[wishes.transportation]))
    if wishes.cuisines:
        wish_sentences.append(rng.choice(_FOOD).format(_join_names(wishes.cuisines)))
    rng.shuffle(wish_sentences)
    return ". ".join([*sentences, *wish_sentences]) + "."


def _write_count(rng: random.Random, number: int) -> str:
    return rng.choice((str(number), _WORDS[number])) if number < len(_WORDS) else str(number)


def _write_dates(rng: random.Random, dates: Sequence[date]) -> str:
    first, last = dates[0], dates[-1]
    long = f"from {first:%B} {_write_ordinal(first.day)} to {last:%B} {_write_ordinal(last.day)}, {last.year}"
    forms = [
        long,
        f"{first} to {last}",
        f"between {first:%B} {first.day}, {first.year} and {last:%B} {last.day}, {last.year}",
    ]
    if (first.year, first.month) == (last.year, last.month):
        forms.append(
            f"from the {_write_ordinal(first.day)} to the {_write_ordinal(last.day)} of {first:%B}, {first.year}"
        )
        forms.append(f"{first:%B} {first.day}-{last.day}, {first.year}")
    # A single year requires that both days are in it.
    return rng.choice(forms if first.year == last.year else forms[1:3])


def _write_people(rng: random.Random, people: int) -> str:
    if people == 1:
        return rng.choice(("for one person", "for a single traveller", "travelling alone"))
    return rng.choice((f"for {_write_count(rng, people)} people", f"for a group of {_write_count(rng, people)}"))


def _write_ordinal(day: int) -> str:
    ending = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
