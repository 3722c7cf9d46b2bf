"""Valid trips in the shipped world, put together without any of the code that is under test."""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import Constraints, TravelQuery


@cache
def shipped() -> World:
    return World.shipped()


def trip(*cities: str, mode: str = "Self-driving", people: int = 2, state: str | None = None):
    """A plan from the first city through the others and back, with its query and world; two days for each city."""
    world = shipped()
    home, *stays = cities
    count = 2 * len(stays) + 1
    dates = tuple(date(2022, 3, 10) + timedelta(day) for day in range(count))
    dest = stays[0] if len(stays) == 1 else world.state_of(stays[0])
    query = TravelQuery(home, dest, count, len(stays), dates, people, 100_000, Constraints())
    days, at = [], home
    for city in stays:
        bed = min((one for one in world.accommodations(city) if one.minimum_nights <= 2), key=lambda one: one.price)
        tables = [f"{one.name}, {city}" for one in world.restaurants(city)]
        tables = [name for name in tables if sum(name.split(",")[0] in other for other in tables) == 1]
        sights = [f"{one.name}, {city}" for one in world.attractions(city)]
        sleep, number = f"{bed.name}, {city}", len(days) + 1
        way = _way(at, city, mode, dates[number - 1])
        days.append(Day(number, f"from {at} to {city}", way, dinner=tables[0], accommodation=sleep))
        days.append(Day(number + 1, city, "-", tables[1], tables[2], tables[3], sleep, f"{sights[0]};{sights[1]};"))
        at = city
    days.append(Day(count, f"from {at} to {home}", _way(at, home, mode, dates[-1])))
    return tuple(days), query, world


def _way(origin: str, destination: str, mode: str, day: date) -> str:
    if mode != "Flight":
        assert shipped().distance(origin, destination, mode.lower()) is not None, (origin, destination)
        return f"{mode}, from {origin} to {destination}"
    flight = shipped().flights(origin, destination, day)[0]
    return (
        f"Flight Number: {flight.number}, from {origin} to {destination}, "
        f"Departure Time: {flight.departure}, Arrival Time: {flight.arrival}"
    )
