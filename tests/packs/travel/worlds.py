"""Small worlds by chance, for hypothesis."""

from __future__ import annotations

from datetime import date

from hypothesis import strategies as st

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant, Road
from formal_llm.packs.travel.tables import MISSING

CITIES = ("Alpha", "St. Beta", "Gamma Falls")
#: Names with all that CSV files and printed tables trip over; none is a word for a missing value.
names = st.text("ab ,\"'é\n&.", min_size=1, max_size=8).filter(
    lambda name: name.strip() and name.strip() not in MISSING
)
cities = st.sampled_from(CITIES)
prices = st.one_of(st.integers(0, 2000), st.decimals(0, 999, places=2).map(lambda x: int(x) if x == int(x) else x))
ratings = st.integers(0, 50).map(lambda tenths: tenths / 10)
days = st.dates(date(2022, 3, 1), date(2022, 3, 9))
clocks = st.tuples(st.integers(0, 23), st.integers(0, 59)).map(lambda both: f"{both[0]:02}:{both[1]:02}")
rules = st.lists(st.sampled_from(["No pets", "No smoking", "No parties"]), min_size=1, max_size=3, unique=True).map(
    tuple
)
flights = st.builds(
    Flight, st.integers(1, 9).map(lambda n: f"F{n}"), cities, cities, days, clocks, clocks, prices,
    st.just("1 hours 5 minutes"), st.integers(1, 3000).map(float),
)  # fmt: skip
beds = st.builds(
    Accommodation, names, cities, prices, st.sampled_from(["Entire home/apt", "Private room", "Shared room"]), rules,
    st.integers(1, 30), st.integers(1, 9), ratings,
)  # fmt: skip
food = st.lists(st.sampled_from(["Tea", "French", "Fast Food"]), min_size=1, max_size=3, unique=True).map(tuple)
tables = st.builds(Restaurant, names, cities, prices, food, ratings)
degrees = st.integers(-1799, 1799).map(lambda tenths: tenths / 10)
sights = st.builds(Attraction, names, cities, degrees, degrees, names, st.just("Unknown"), names)


def _road(way: tuple[str, str], kilometres: int | None) -> Road:
    if kilometres is None:
        return Road(*way)
    return Road(*way, f"{kilometres // 90} hours 1 min", f"{kilometres:,} km", float(kilometres))


roads = st.builds(_road, st.tuples(cities, cities), st.one_of(st.none(), st.integers(1, 4000)))
states = st.just({"Nowhere": CITIES[:2], "Elsewhere": CITIES[2:]})
worlds = st.builds(
    World, st.lists(flights, max_size=4), st.lists(roads, max_size=4), st.lists(beds, max_size=4),
    st.lists(tables, max_size=4), st.lists(sights, max_size=4), states,
)  # fmt: skip


def rows_of(world: World) -> tuple[object, ...]:
    """All that a world holds, for comparison."""
    by_city = [
        (city, world.accommodations(city), world.restaurants(city), world.attractions(city)) for city in world.cities()
    ]
    states = [(state, world.cities(state)) for state in world.states]
    return sorted(by_city), tuple(world.all_flights()), world.all_roads(), states


__all__ = ["CITIES", "beds", "flights", "roads", "rows_of", "sights", "tables", "worlds"]
