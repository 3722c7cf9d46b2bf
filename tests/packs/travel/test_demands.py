import random
from dataclasses import replace

import pytest
from benchmarks.travel_wishes import found_wrong, made_query, made_world
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Limits, Planner
from formal_llm.errors import AutomatonError, InputError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.fronts import find_front
from formal_llm.packs.travel.meals import NEVER
from formal_llm.packs.travel.planning import NoTrip, days_of, plan_trip, trip_planner, trips_of
from formal_llm.packs.travel.query import Constraints, TravelQuery, TripWish, WishKind
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant, Road
from formal_llm.packs.travel.trip import Trip
from tests.packs.travel.small_worlds import START
from tests.strategies import examples

WORLD = made_world(random.Random(5))


def query(*wishes, days=4, cities=1):
    made = made_query(random.Random(0))
    dates = tuple(START.fromordinal(START.toordinal() + day) for day in range(days))
    return TravelQuery(made.org, made.dest, days, cities, dates, wishes=wishes)


def test_the_least_costs_are_those_of_an_integer_program_and_nothing_ends_dead():
    verdicts = [verdict for _, verdict, _ in found_wrong(range(1000, 1012))]
    assert {"planned", "no trip"} == set(verdicts)


@given(st.integers(0, 10**6))
@examples(60)
def test_the_least_cost_is_that_of_the_best_next_choice(seed):
    rng = random.Random(seed)
    world, wanted = made_world(rng), made_query(rng)
    trip = Trip(wanted, world, every_meal=bool(seed % 2), sensible=bool(seed % 3))
    now = trip.start()
    while moves := trip.moves(now):
        nexts = [trip.step(now, move) for move in moves]
        costs = [trip.find_least_cost(one) for one in nexts]
        assert trip.find_least_cost(now) == min(costs)
        good = [one for one, cost in zip(nexts, costs, strict=True) if cost < NEVER]
        now = rng.choice(good if good and rng.random() < 0.97 else nexts)


def test_a_flight_that_lands_late_closes_the_dinner_that_a_wish_needs():
    roads = [Road("Home", "C0", "5 hours", "300 km", 300.0), Road("C0", "Home", "5 hours", "300 km", 300.0)]
    flights = [
        Flight("F1", "Home", "C0", START, "20:00", "22:00", 5, "2 hours"),
        Flight("F2", "Home", "C0", START, "12:00", "14:00", 50, "2 hours"),
    ]
    beds = [Accommodation("bed", "C0", 10, "Private room", (), 1, 2)]
    tables = [Restaurant(f"Inn {number}", "C0", 2, ("Tea",)) for number in range(9)]
    world = World(flights, roads, beds, tables, [Attraction("sight", "C0")], {"Somewhere": ["C0"], "X": ["Home"]})
    dinner = TripWish(WishKind.day_meal, ("Tea", "dinner"), (1,))
    for wishes, cost in (((), 31 + 300), ((dinner,), 78 + 300)):
        wished = replace(query(*wishes, days=3), constraints=Constraints(transportation="no self-driving"))
        trip = trips_of(wished, world)
        assert trip.routes.sensible and trip.find_least_cost(trip.start()) == 100 * cost


def test_the_front_keeps_wishes_about_single_choices_and_refuses_others():
    rated = TripWish(WishKind.rating, ("bed",), (4,))
    for one in find_front(trips_of(query(rated), WORLD)):
        assert WORLD.accommodations(one.word[0])[int(one.word[4].split()[1])].rating >= 4
    for wish in (TripWish(WishKind.visit, ("C1",)), TripWish(WishKind.at_most, ("ways", "trip"), (900,))):
        with pytest.raises(InputError, match="leave it out"):
            find_front(trips_of(query(wish), WORLD))


def test_a_place_is_visited_on_its_day_and_an_evening_is_free():
    wanted = (
        TripWish(WishKind.visit, ("sight 1 C1",), (2,)),
        TripWish(WishKind.sights, (), (2,)),
        TripWish(WishKind.free_evening, (), (3,)),
    )
    for seed in range(5):
        days = plan_trip(query(*wanted), WORLD, f"test:random={seed}").days
        assert "sight 1 C1, C1;" in days[1].attraction
        assert days[1].attraction.count(";") >= 2
        assert days[2].dinner == "-"


def test_limits_become_wishes():
    limits = Limits(at_least={"sight 1 C1, C1": 1}, at_most={"Self-driving": 0, "sight 0 C1, C1": 0})
    for seed in range(5):
        days = plan_trip(query(), WORLD, f"test:random={seed}", limits=limits).days
        seen = "".join(day.attraction for day in days)
        assert "sight 1 C1, C1" in seen
        assert "Self-driving" not in days[0].transportation
        assert "sight 0 C1, C1" not in seen
    two_beds = Limits(at_least={"bed 0 C1, C1": 1, "bed 1 C1, C1": 1})
    with pytest.raises(NoTrip) as caught:
        plan_trip(query(), WORLD, limits=two_beds)
    assert {len(remedy.dropped) for remedy in caught.value.remedies} == {1}


def test_limits_keep_to_the_cities_of_a_restricted_trip():
    trip = trips_of(query(), WORLD).restrict_to(("C1",))
    limits = Limits(at_least={"sight 1 C1, C1": 1})
    assert trip_planner(trip, limits=limits).source.routes.cities == ("C1",)
    with pytest.raises(NoTrip, match="no trip through C2 keeps the limits"):
        trip_planner(trip.restrict_to(("C2",)), limits=limits)


def test_a_planner_without_wishes_refuses_limits_on_trips():
    planner = Planner(trips_of(query(), WORLD), limits=Limits(at_least={"sight 1 C1, C1": 1}))
    with pytest.raises(AutomatonError, match="plan_trip"):
        planner.plan("a trip")


@pytest.mark.parametrize("settings", [{"limits": Limits(default=1)}, {"limits": Limits({"C1": 2})}])
def test_what_is_not_decided_exactly_is_refused(settings):
    with pytest.raises(InputError, match="wishes"):
        trip_planner(trips_of(query(), WORLD), **settings)


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        (TripWish(WishKind.visit, ("sight 1 C9",)), "no place 'sight 1 C9' is known"),
        (TripWish(WishKind.visit, ("C1",), (9,)), "the trip has 4 days"),
        (TripWish(WishKind.sights), "too few or too many names or numbers"),
        (TripWish(WishKind.rating, ("sight",), (4,)), "sights have no ratings"),
        (TripWish(WishKind.stay, ("sight 1 C1",), (2,)), "is no city"),
        (TripWish(WishKind.no_flight, (), (540,)), "too few or too many names or numbers"),
        (TripWish(WishKind.rating, ("bed",), (6,)), "a number from 0 to 5"),
        (TripWish(WishKind.allows, ("cows",)), "'cows' is not known; there are: smoking"),
        (TripWish(WishKind.at_most, ("meals", "day"), (50,)), "sums can be kept for"),
    ],
)
def test_a_wish_that_cannot_be_decided_is_refused(wish, problem):
    with pytest.raises(InputError, match=problem):
        Trip(query(wish), WORLD)


def test_the_smallest_sets_of_wishes_to_drop_have_their_price():
    wishes = TripWish(WishKind.visit, ("C1",)), TripWish(WishKind.never, ("C1",))
    with pytest.raises(NoTrip, match="without the wish “a visit to C1” there is a trip for") as caught:
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
