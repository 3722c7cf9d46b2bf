import math
import re

from formal_llm.packs.travel.database import Attraction, World
from formal_llm.packs.travel.resolved import resolve_plan
from formal_llm.packs.travel.trip_map import city_map, find_middle, trip_map
from tests.packs.travel.trips import shipped, trip


def dots(svg):
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)"', svg)]


def test_the_middle_is_not_moved_by_one_wrong_place():
    rows = [Attraction(str(place), "Ham", place, 1.0) for place in (50.0, 50.2, 50.4, -170.0)]
    assert find_middle(rows) == (50.1, 1.0)
    assert find_middle([Attraction("x", "Ham"), Attraction("y", "Ham", math.nan, 1.0)]) is None


def test_cities_that_lie_close_together_are_drawn_apart():
    plan, query, world = trip("Port Serin", "Oriel", "Brackenridge", "Alder", mode="Taxi")
    drawn = trip_map(resolve_plan(plan, query, world), world)
    places = dots(drawn)
    assert len(places) == 4
    assert min(math.dist(one, other) for one in places for other in places if one != other) > 100
    assert "drawn apart" in drawn


def test_two_cities_in_one_place_are_on_a_ring():
    plan, query, world = trip("Lindhaven", "Port Serin")
    same = [Attraction("x", city, 1.0, 1.0) for city in ("Lindhaven", "Port Serin")]
    drawn = trip_map(resolve_plan(plan, query, world), World(attractions=same))
    assert len(set(dots(drawn))) == 2
    assert "is not known" in drawn


def test_no_cities_no_map():
    assert trip_map((), shipped()) == ""


def test_sights_that_lie_on_each_other_can_be_told_apart():
    plan, query, _ = trip("Lindhaven", "Port Serin")
    rows = [Attraction(name, "Port Serin", 1.0, 1.0) for name in "abc"]
    days = resolve_plan(
        [plan[1].__class__(1, "Port Serin", attraction="a, Port Serin;b, Port Serin;c, Port Serin;")], query,
        World(attractions=rows),
    )  # fmt: skip
    places = dots(city_map("Port Serin", list(enumerate(days[0].sights, 1))))
    assert len(places) == 3
    assert min(math.dist(one, other) for one in places for other in places if one != other) > 20
    assert city_map("Port Serin", [(1, days[0].sights[0])]) == ""
