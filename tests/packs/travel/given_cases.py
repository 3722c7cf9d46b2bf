"""A trip of the size that people ask for: two cities of three, some thirty houses each, all wishes at once."""

from __future__ import annotations

import random
from datetime import timedelta

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import Constraints, TravelQuery
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant, Road
from tests.packs.travel.small_worlds import START

CUISINES = ("Indian", "French", "Mexican", "Italian")


def large_world(seed: int = 0, *, cities: int = 3, houses: int = 30) -> World:
    """A state of cities with so many restaurants and beds each."""
    rng = random.Random(seed)
    names = ["Home", *(f"City {letter}" for letter in "ABCDEFGHIJ"[:cities])]
    roads, flights = [], []
    for origin in names:
        for destination in names:
            km = float(rng.randrange(100, 900))
            roads.append(Road(origin, destination, f"{km // 90:g} hours", f"{km:g} km", km))
            for day in range(7):
                for number in range(3):
                    name = f"F{len(flights)}"
                    when = f"{8 + 4 * number}:00", f"{10 + 4 * number}:30"
                    date = START + timedelta(day)
                    flights.append(Flight(name, origin, destination, date, *when, rng.randrange(50, 300)))
    beds, tables, sights = [], [], []
    for city in names[1:]:
        for number in range(houses):
            kind = rng.choice(["Entire home/apt", "Private room", "Shared room"])
            rules = tuple(f"No {rule}" for rule in ("pets", "smoking") if rng.random() < 0.4)
            price, rating = rng.randrange(40, 400), rng.randrange(10, 51) / 10
            nights, holds = rng.choice([1, 1, 2, 3]), rng.randrange(1, 5)
            beds.append(Accommodation(f"Bed {number}", city, price, kind, rules, nights, holds, rating))
            offers = tuple(one for one in (*CUISINES, "Tea", "Pizza") if rng.random() < 0.2)
            rating = rng.randrange(0, 50) / 10
            tables.append(Restaurant(f"Table {number}", city, rng.randrange(8, 100), offers, rating))
        sights += [Attraction(f"Sight {number}", city) for number in range(15)]
    return World(flights, roads, beds, tables, sights, {"Somewhere": names[1:], "Elsewhere": names[:1]})


def large_query(budget: int | None = 6_000, *, days: int = 7, cities: int = 3) -> TravelQuery:
    """Days in several cities for two people, with wishes of every kind but one for transport."""
    wishes = Constraints("pets", CUISINES, "not shared room", None)
    dates = tuple(START + timedelta(day) for day in range(days))
    return TravelQuery("Home", "Somewhere", days, cities, dates, 2, budget, wishes, "seven days with the dog")
