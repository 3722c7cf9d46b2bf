import random

import pytest

from benchmarks.travel_wishes import found_wrong, made_query, made_world
from formal_llm import Limits
from formal_llm.errors import InputError
from formal_llm.packs.travel.planning import NoTrip, days_of, plan_trip, trip_planner, trips_of
from formal_llm.packs.travel.query import TravelQuery, TripWish, WishKind
from formal_llm.packs.travel.trip import Trip
from tests.packs.travel.small_worlds import START

WORLD = made_world(random.Random(5))


def query(*wishes, days=4, cities=1):
    made = made_query(random.Random(0))
    dates = tuple(START.fromordinal(START.toordinal() + day) for day in range(days))
    return TravelQuery(made.org, made.dest, days, cities, dates, wishes=wishes)


def test_the_least_costs_are_those_of_an_integer_program_and_nothing_ends_dead():
    pytest.importorskip("ortools")
    verdicts = [verdict for _, verdict, _ in found_wrong(range(1000, 1040))]
    assert [one for one in verdicts if one.startswith("wrong")] == []
    assert {"planned", "no trip"} == set(verdicts)


def test_a_place_is_visited_on_its_day_and_an_evening_is_free():
    wanted = (
        TripWish(WishKind.visit, ("sight 1 C1",), (2,)),
        TripWish(WishKind.sights, (), (2,)),
        TripWish(WishKind.free_evening, (), (3,)),
    )
    for seed in range(5):
        days = plan_trip(query(*wanted), WORLD, f"test:random={seed}").days
        assert "sight 1 C1, C1;" in days[1].attraction
        assert days[1].attraction.count(";") == 2
        assert days[2].dinner == "-"


def test_limits_become_wishes():
    limits = Limits(at_least={"sight 1 C1, C1": 1}, at_most={"Self-driving": None, "sight 0 C1, C1": 0})
    for seed in range(5):
        days = plan_trip(query(), WORLD, f"test:random={seed}", limits=limits).days
        seen = "".join(day.attraction for day in days)
        assert "sight 1 C1, C1" in seen
        assert "sight 0 C1, C1" not in seen
    two_beds = Limits(at_least={"bed 0 C1, C1": 1, "bed 1 C1, C1": 1})
    with pytest.raises(NoTrip) as caught:
        plan_trip(query(), WORLD, limits=two_beds)
    assert {len(remedy.dropped) for remedy in caught.value.remedies} == {1}


@pytest.mark.parametrize("settings", [{"limits": Limits(default=1)}, {"limits": Limits({"C1": 2})}])
def test_what_is_not_decided_exactly_is_refused(settings):
    with pytest.raises(InputError, match="wishes"):
        trip_planner(trips_of(query(), WORLD), **settings)


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        (TripWish(WishKind.visit, ("sight 1 C9",)), "no place 'sight 1 C9' is known"),
        (TripWish(WishKind.visit, ("C1",), (9,)), "the trip has 4 days"),
        (TripWish(WishKind.sights), "should have"),
        (TripWish(WishKind.rating, ("sight",), (4,)), "sights have no ratings"),
        (TripWish(WishKind.at_most, ("meals", "day"), (50,)), "sums can be kept for"),
    ],
)
def test_a_wish_that_cannot_be_decided_is_refused(wish, problem):
    with pytest.raises(InputError, match=problem):
        Trip(query(wish), WORLD)


def test_the_smallest_sets_of_wishes_to_drop_have_their_price():
    wishes = TripWish(WishKind.visit, ("C1",), text="We must see C1"), TripWish(WishKind.never, ("C1",))
    with pytest.raises(NoTrip, match="without a visit to C1 there is a trip for") as caught:
        trips_of(query(*wishes), WORLD)
    assert len(caught.value.remedies) == 2


def test_a_sum_for_hotels_is_kept():
    word = Trip(query(), WORLD).find_cheapest() or ()
    assert days_of(Trip(query(), WORLD), word)
    for seed in range(5):
        wish = TripWish(WishKind.at_most, ("bed", "trip"), (120,))
        days = plan_trip(query(wish), WORLD, f"test:random={seed}").days
        prices = {f"{bed.name}, {bed.city}": bed.price for c in ("C0", "C1", "C2") for bed in WORLD.accommodations(c)}
        assert sum(prices[day.accommodation] for day in days[:-1]) <= 120
