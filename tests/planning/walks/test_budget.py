"""Budgets: what is spent first, and how a walk stops and goes on."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Budget, Limits, Lookahead, Prices, Usage, Walk
from formal_llm.errors import BudgetExceeded, Undecided
from formal_llm.llms import TokenUsage
from formal_llm.planning.walks.budget import Meter
from tests.planning.wandering import TOOLS


def test_a_question_budget_stops_with_the_partial_plan_and_can_be_raised() -> None:
    walk = Walk(TOOLS, budget=Budget(questions=1))
    walk.answer(3)
    with pytest.raises(BudgetExceeded) as caught:
        _ = walk.question
    assert caught.value.kind == "questions"
    assert caught.value.plan.word == ("translate",)
    walk.budget = Budget()
    walk.answer(1)
    assert walk.word == ("translate", "classify")


@pytest.mark.parametrize("lookahead", ["on", "off"])
def test_a_step_budget_bounds_the_plan_whatever_is_answered(lookahead: str) -> None:
    cfg = CFG.from_string("S -> S S | a | ε")
    walk = Walk(cfg, lookahead=lookahead, budget=Budget(steps=30))
    while walk.question is not None:
        walk.answer(1)  # always the branch that grows
    assert walk.done
    assert walk.left >= 0


def test_a_step_budget_that_is_too_small_can_be_raised() -> None:
    walk = Walk(CFG.from_string("S -> a a a a a | b b b b b"), budget=Budget(steps=4))
    with pytest.raises(BudgetExceeded) as caught:
        _ = walk.question
    assert caught.value.kind == "steps"
    assert caught.value.needed == 8
    assert "at least 8 are needed" in str(caught.value)
    walk.budget = Budget(steps=8)
    walk.answer(2)
    assert walk.plan.word == ("b",) * 5


def test_a_backtrack_budget_can_be_raised() -> None:
    cfg = CFG.from_string("%limit 0 x\nS -> A A A | b\nA -> a | x")
    walk = Walk(cfg, lookahead="off", limits=Limits({"a": 2}), budget=Budget(backtracks=0))
    with pytest.raises(BudgetExceeded) as caught:
        walk.answer(1)
    assert caught.value.kind == "backtracks"
    assert caught.value.plan.word == ("a", "a")
    with pytest.raises(BudgetExceeded):
        _ = walk.question
    walk.budget = Budget()
    assert walk.plan.word == ("b",)


def test_the_first_bound_that_is_reached_is_told() -> None:
    budget = Budget(questions=5, requests=4, tokens=30, cost=0.5)
    assert budget.spent(Usage(questions=4, requests=3, input_tokens=20, output_tokens=9, cost=0.4)) is None
    assert budget.spent(Usage(questions=5, requests=9)) == ("questions", 5)
    assert budget.spent(Usage(input_tokens=20, output_tokens=10)) == ("tokens", 30)
    assert budget.spent(Usage(cost=0.5)) == ("cost", 0.5)
    assert Budget().spent(Usage(questions=10**9)) is None
    assert (Budget().metered, Budget(steps=1, backtracks=1).metered, Budget(cost=0).metered) == (False, False, True)


def test_a_meter_counts_and_its_copy_goes_on_by_itself() -> None:
    meter = Meter(Prices(input=1_000_000, output=2_000_000))
    meter.questions, meter.tokens = 3, TokenUsage(1, 10, 5)
    twin = meter.copy()
    twin.questions += 1
    usage = meter.count_usage(2, TokenUsage(1, 1, 1))
    assert (usage.questions, usage.wasted, usage.requests, usage.cost) == (3, 1, 2, 11 + 12)
    assert twin.count_usage(2).questions == 4
    meter.stop_clock()
    assert meter.count_usage(0).seconds == meter.count_usage(0).seconds
    meter.restore_usage(Usage(questions=7, backtracks=2, seconds=4.0))
    assert (meter.questions, meter.backtracks, meter.count_usage(0).seconds) == (7, 2, 4.0)


def test_what_the_questions_tell_alone_is_what_the_whole_usage_tells() -> None:
    for budget in (Budget(), Budget(questions=2), Budget(questions=2, tokens=10), Budget(requests=3), Budget(cost=1.0)):
        for questions in range(4):
            usage = Usage(questions=questions)
            assert not (budget.allows_question(questions) and budget.spent(usage) is not None)
            if not (budget.requests or budget.tokens or budget.cost):
                assert budget.allows_question(questions) == (budget.spent(usage) is None)


def test_how_many_steps_are_needed_is_looked_for_within_the_search_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def undecided(_: object, __: object, *, search_time: float | None) -> int:
        assert search_time == 1.0
        raise Undecided("not found")

    monkeypatch.setattr(Lookahead, "fewest_moves", undecided)
    walk = Walk(CFG.from_string("S -> a a a a a | b b b b b"), budget=Budget(steps=4))
    with pytest.raises(BudgetExceeded, match="how many are needed was not found within the search time") as caught:
        _ = walk.question
    assert (caught.value.needed, caught.value.decided) == (None, False)
