"""The official evaluator, against what the published scripts answer: each check on a plan that fails it alone."""

from dataclasses import replace

import pytest

from benchmarks.travel_official import compare
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.official import (
    in_sequence,
    official,
)
from formal_llm.packs.travel.query import Constraints
from tests.packs.travel.given import FOLDER, needs_data
from tests.packs.travel.trips import trip

PLAN, QUERY, WORLD = trip("Lindhaven", "Port Serin")
LONG = trip("Lindhaven", "Port Serin", "Vallisto")


def failed(days, query=QUERY, world=WORLD):
    return {check for check, state in official(days, query, world).states.items() if state == "failed"}


def changed(number, days=PLAN, **fields):
    return tuple(replace(day, **fields) if day.days == number else day for day in days)


@pytest.mark.parametrize(
    ("days", "check"),
    [
        (changed(1, dinner="Nowhere, Port Serin"), "Within Sandbox"),
        (changed(2, attraction="Nowhere, Port Serin;"), "Within Sandbox"),
        (changed(2, lunch="-"), "Complete Information"),
        (changed(2, attraction="-"), "Complete Information"),
        (changed(2, accommodation="-"), "Complete Information"),
        (changed(1, lacking=("lunch",)), "Complete Information"),
        (changed(2, dinner=PLAN[1].lunch), "Diverse Restaurants"),
        (changed(2, attraction=2 * (PLAN[1].attraction.split(";")[0] + ";")), "Diverse Attractions"),
    ],
)
def test_a_check_fails_alone(days, check):
    assert failed(days) == {check}


@pytest.mark.parametrize(
    ("days", "checks"),
    [
        (changed(1, transportation="", lacking=("transportation",)),
         {"Within Sandbox", "Complete Information", "Non-conf. Transportation"}),
        (changed(1, accommodation="", nulls=("accommodation",)), {"Minimum Nights Stay"}),
        (changed(2, lunch="", nulls=("lunch",)), set()),
        (changed(2, current_city="You don't need to fill in the information for this or later days."),
         {"Complete Information", "Reasonable City Route"}),
        (changed(2, current_city="from nowhere"),
         {"Complete Information", "Reasonable City Route", "Within Current City"}),
        (changed(2, current_city="", nulls=("current_city",)),
         {"Complete Information", "Reasonable City Route", "Within Current City"}),
    ],
)  # fmt: skip
def test_where_the_published_scripts_break_off_the_check_fails(days, checks):
    assert failed(days) >= checks
    assert bool(failed(days)) == bool(checks)


def test_parties_count_since_the_misspelling_was_mended():
    names = [day.accommodation.rpartition(", ")[0] for day in PLAN if day.accommodation != "-"]
    (bed,) = {bed for bed in WORLD.accommodations("Port Serin") if bed.name in names}
    quiet = World(
        WORLD.all_flights(), WORLD.all_roads(), [replace(bed, house_rules=("No parties",))],
        WORLD.restaurants("Port Serin"), WORLD.attractions("Port Serin"),
        {state: WORLD.cities(state) for state in WORLD.states},
    )  # fmt: skip
    query = replace(QUERY, constraints=Constraints("parties"))
    assert failed(PLAN, query, quiet) == {"Room Rule"}
    before = official(PLAN, query, quiet, "before-ed379c4")
    assert (before.final, before.commit) == (True, "before-ed379c4")


def test_a_world_without_states_knows_no_wrong_one():
    days, query, world = LONG
    places = [
        [row for city in world.cities() for row in rows(city)]
        for rows in (world.accommodations, world.restaurants, world.attractions)
    ]
    assert failed(days, query, World(world.all_flights(), world.all_roads(), *places)) == set()


@needs_data
@pytest.mark.slow
def test_it_differs_from_the_published_scripts_in_nothing():
    """The originals themselves, on plans and queries that were changed at random."""
    pytest.importorskip("pandas")
    counts = compare(FOLDER / "official", FOLDER, 150, seed=5)
    assert counts["different"] == 0
    assert counts["checks"] > 1_300
    assert min(counts[f"failed, {check}"] for check in ("Budget", "Room Rule", "Minimum Nights Stay")) > 5


def test_days_that_are_missing():
    assert "Complete Information" in failed(PLAN[:2])


def test_wishes_are_not_judged_where_the_plan_is_not_complete():
    verdict = official(changed(2, lunch="-"), QUERY, WORLD)
    assert verdict.states["Budget"] == "not judged"
    assert verdict.cost is None
    assert not verdict.hard


@pytest.mark.parametrize(
    ("current_city", "problem"),
    [
        ("from Vallisto to Port Serin", "the trip should begin in Lindhaven"),
        ("from nowhere", "the published script breaks off here: it reads no 'from A to B'"),
    ],
)
def test_the_route(current_city, problem):
    found = official(changed(1, current_city=current_city), QUERY, WORLD).findings
    assert problem in [one.problem for one in found if one.check == "Reasonable City Route"]


def test_a_city_of_another_state_and_one_that_is_passed_through():
    days, query, world = LONG
    assert "Reasonable City Route" in failed(days, replace(query, dest="Arvenia"), world)
    through = changed(4, days, current_city="from Vallisto to Port Serin")
    assert "Reasonable City Route" in failed(through, query, world)


def test_a_script_that_breaks_off_is_a_failure():
    found = official(changed(1, transportation="flight number F1, from A to B"), QUERY, WORLD).findings
    assert any("breaks off" in one.problem for one in found)


@pytest.mark.parametrize(("mode", "kept", "broken"), [
    ("Self-driving", "no flight", "no self-driving"),
    ("Flight", "no self-driving", "no flight"),
])  # fmt: skip
def test_wishes_about_transportation(mode, kept, broken):
    days, query, world = trip("Lindhaven", "Port Serin", mode=mode)

    def wishing(wish):
        return replace(query, constraints=replace(query.constraints, transportation=wish))

    assert failed(days, wishing(kept), world) == set()
    assert failed(days, wishing(broken), world) == {"Transportation"}


@pytest.mark.parametrize(
    ("cities", "fine"),
    [
        ("ABBA", True), ("ABBCCA", True), ("AB", False), ("ABA", False), ("ABBCBBA", False), ("ABBABBA", False),
        ("ABBCA", False), ("AAA", True),
    ],
)  # fmt: skip
def test_the_order_of_cities(cities, fine):
    assert in_sequence(cities) is fine
