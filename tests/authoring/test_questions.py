"""Which plans are shown."""

from __future__ import annotations

from formal_llm import CFG
from formal_llm.authoring.questions import find_differences, sample_plans

RULES = CFG.from_string('%order forward\nS -> wash Rest\nRest -> dry Rest | iron\n%limit 1 dry\nwash "Wash it"')


def test_allowed_plans_and_near_misses_in_turn() -> None:
    found = sample_plans(RULES, 6)
    assert [one.allowed for one in found[:3]] == [True, False, True]
    assert len({one.plan for one in found}) == len(found) == 6 - 1 - (len(found) < 5) or len(found) == 6
    assert found[0].plan == ("wash", "iron")
    assert found[0].labels == ("Wash it", "iron")
    assert found[0].why == "the shortest plan"
    for one in found:
        within = RULES.accepts(one.plan) and one.plan.count("dry") <= 1
        assert one.allowed == within
    assert sample_plans(RULES, 6) == found
    assert sample_plans(RULES, 2, [found[0].plan])[0] != found[0]


def test_a_near_miss_is_one_slip_away_from_an_allowed_plan() -> None:
    rules = CFG.from_string("%order forward\nS -> a b c")
    plan = ("a", "b", "c")
    misses = {(one.plan, one.why) for one in sample_plans(rules, 100) if not one.allowed}
    assert {slip for slip, _ in misses if len(slip) == 2} == {("b", "c"), ("a", "c"), ("a", "b")}
    assert {slip for slip, _ in misses if len(slip) == 3} == {("b", "a", "c"), ("a", "c", "b")}
    assert {slip for slip, why in misses if why == "a step is done again"} == {
        ("a", "a", "b", "c"), ("a", "b", "b", "c"), ("a", "b", "c", "c"),
    }  # fmt: skip
    put_in = {(*plan[:at], name, *plan[at:]) for name in plan for at in range(4)}
    assert {slip for slip, _ in misses if len(slip) == 4} == put_in
    assert all(len(slip) <= 4 for slip, _ in misses)


def test_differences_both_ways() -> None:
    other = CFG.from_string("S -> wash iron | wash")
    found = list(find_differences(RULES, other, "the old rules"))
    assert [(one.plan, one.allowed, one.why) for one in found] == [
        (("wash", "dry", "iron"), True, "the old rules refuse it"), (("wash",), False, "the old rules allow it"),
    ]  # fmt: skip
    assert list(find_differences(RULES, RULES, "the old rules")) == []
