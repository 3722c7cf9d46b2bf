from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.travel_holes import HOLES, Trip
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.plan_days import FIELDS
from formal_llm.packs.travel.strict import strict
from tests.packs.travel.trips import trip


def mixed():
    """There by taxi, back by flight."""
    plan, query, world = trip("Lindhaven", "Port Serin", mode="Flight")
    taxi = trip("Lindhaven", "Port Serin", mode="Taxi")[0]
    return (taxi[0], *plan[1:]), query, world


TRIPS = [
    trip("Lindhaven", "Port Serin"),
    trip("Lindhaven", "Port Serin", mode="Flight"),
    mixed(),
    trip("Lindhaven", "Port Serin", "Vallisto"),
    trip("Port Serin", "Oriel", "Brackenridge", "Alder", mode="Taxi", people=5),
]


@pytest.mark.parametrize("plan", TRIPS)
def test_valid_trips_pass(plan):
    for verdict in (official(*plan), strict(*plan)):
        assert verdict.findings == ()
        assert verdict.final


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: hole.name)
def test_each_hole_is_closed(hole):
    """The official evaluator accepts some such plan, and the strict one none of them, by the right check."""
    accepted = 0
    for plan in TRIPS:
        for wrong in hole.tries(Trip(*plan)):
            accepted += official(*wrong).final
            found = strict(*wrong)
            assert hole.check in {finding.check for finding in found.findings}, wrong
            assert not found.final
    assert accepted


def test_a_finding_says_day_and_field():
    plan, query, world = trip("Lindhaven", "Port Serin")
    wrong = (plan[0], replace(plan[1], lunch="Nowhere, Atlantis"), plan[2])
    said = [str(finding) for finding in strict(wrong, query, world).findings]
    assert said == [
        "day 2, lunch: there is no restaurant 'Nowhere, Atlantis' (Within Sandbox)",
        "day 2, lunch: 'Nowhere, Atlantis' is in Atlantis, not in Port Serin (Within Current City)",
        "day 2, lunch: nobody knows what 'Nowhere, Atlantis' costs (Budget)",
    ]


def test_no_plan_is_not_delivered():
    _, query, world = trip("Lindhaven", "Port Serin")
    for evaluator in (official, strict):
        verdict = evaluator((), query, world)
        assert not verdict.delivered
        assert not verdict.final
        assert set(verdict.states.values()) == {"not judged", "not asked"}


def wishing(plan, **wishes):
    days, query, world = plan
    return days, replace(query, constraints=replace(query.constraints, **wishes)), world


@pytest.mark.parametrize(
    ("wishes", "check"),
    [
        ({"room_type": "entire room"}, "Room Type"),
        ({"cuisines": ("Martian",)}, "Cuisine"),
        ({"transportation": "no self-driving"}, "Transportation"),
    ],
)
def test_wishes_are_judged_by_both(wishes, check):
    for evaluator in (official, strict):
        verdict = evaluator(*wishing(TRIPS[0], **wishes))
        assert verdict.commonsense
        assert verdict.states[check] == "failed"
        assert not verdict.final


def test_the_rules_of_a_house():
    days, _, world = TRIPS[0]
    name, _, city = days[0].accommodation.rpartition(", ")
    bed = next(one for one in world.accommodations(city) if one.name == name)
    for rule in ("smoking", "children under 10", "visitors", "pets"):
        for evaluator in (official, strict):
            assert evaluator(*wishing(TRIPS[0], house_rule=rule)).final is bed.allows(rule)


def test_the_budget_is_the_last_dollar():
    days, query, world = TRIPS[0]
    cost = strict(days, query, world).cost
    assert cost == official(days, query, world).cost
    for evaluator in (official, strict):
        assert evaluator(days, replace(query, budget=cost), world).final
        assert evaluator(days, replace(query, budget=cost - 1), world).states["Budget"] == "failed"


def test_the_journeys_do_not_conflict():
    there = TRIPS[1][0][0]
    days, query, world = TRIPS[0]
    for evaluator in (official, strict):
        verdict = evaluator((there, *days[1:]), query, world)
        assert verdict.states["Non-conf. Transportation"] == "failed"


def test_a_night_too_few():
    days, query, world = TRIPS[0]
    bed = next(one for one in world.accommodations("Port Serin") if one.minimum_nights == 3)
    slept = f"{bed.name}, Port Serin"
    days = tuple(replace(day, accommodation=slept) if day.accommodation != "-" else day for day in days)
    for evaluator in (official, strict):
        assert evaluator(days, query, world).states["Minimum Nights Stay"] == "failed"


def test_names_with_commas_and_states_are_read():
    days, query, world = trip("Lindhaven", "Port Serin", "Vallisto")
    comma = next(one for one in world.restaurants("Vallisto") if "," in one.name)
    days = tuple(
        replace(
            day,
            current_city=day.current_city.replace("Port Serin", "Port Serin(Belloro)"),
            dinner=f"{comma.name}, Vallisto" if day.days == 4 else day.dinner,
        )
        for day in days
    )
    assert strict(days, query, world).final
    assert official(days, query, world).final


SOURCES = [replaced for plan, _, _ in TRIPS for replaced in plan]


@given(st.data())
def test_what_strict_accepts_official_accepts(data):
    """Fields of valid plans in wrong places: the strict evaluator is never laxer where names are whole."""
    plan, query, world = data.draw(st.sampled_from(TRIPS))
    changed = list(plan)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(plan) - 1))
        field = data.draw(st.sampled_from(FIELDS))
        value = getattr(data.draw(st.sampled_from(SOURCES)), field)
        changed[at] = replace(changed[at], **{field: value})
    if strict(changed, query, world).final:
        assert official(changed, query, world).final
