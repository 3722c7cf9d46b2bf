"""Errors of planning carry what was found so far."""

from __future__ import annotations

import math
import pickle

from formal_llm import CFG, Budget, Planner
from formal_llm.errors import BudgetExceeded, NoPlanWorked, NoValidPlan, QueryError, ToolError, TooManyPlans

PLAN = Planner(CFG.from_string("S -> wash S | dry"), "test:script=1,2").plan("x")


def test_a_budget_says_what_is_finished_and_how_to_go_on() -> None:
    partial = Planner(CFG.from_string("S -> wash S | dry"), "test:script=1,1,1", budget=Budget(questions=2)).start("x")
    while partial.usage.questions < 2 and partial.question is not None:
        partial.answer(partial.question.check(1))
    error = BudgetExceeded("questions", 2, partial.partial, needed=3)
    assert str(error) == (
        "the budget of 2 questions is used up with 2 terminals in the plan; at least 3 are needed; "
        "raise it (walk.budget, or Planner(budget=Budget(questions=...))) to go on"
    )
    shared = str(BudgetExceeded("cost", 0.5, PLAN, shared=True))
    assert "the shared budget of a cost of 0.5" in shared
    assert "a plan of 2 terminals is finished (error.plan)" in shared
    assert "plan_all(budget=Budget(cost=...))" in shared


def test_no_plan_worked_names_each_tool_once_with_its_last_failure() -> None:
    failures = [ToolError("wash", "failed: no water"), ToolError("dry", "failed"), ToolError("wash", "took too long")]
    error = NoPlanWorked(failures, replans=3)
    assert error.tools == ("wash", "dry")
    assert str(error) == (
        "no plan could be carried out, and the budget of 3 replans is used up: wash took too long; dry failed"
    )
    assert "no other plan is left" in str(NoPlanWorked(failures))


def test_too_many_plans() -> None:
    assert "has 12,345" in str(TooManyPlans("t", 10, 12345))
    assert "has infinitely many" in str(TooManyPlans("t", 10, math.inf))
    assert "has more than that" in str(TooManyPlans("t", 10))


def test_they_travel() -> None:
    error = NoValidPlan("these limits clash", limits=["%limit 0 a"], constraints=["c"], remedy=["c"])
    other = pickle.loads(pickle.dumps(error))
    assert (str(other), other.__dict__) == ("no valid plan: these limits clash", error.__dict__)


def test_a_query_lists_all_that_is_wrong_with_it() -> None:
    error = QueryError(
        "a trip", [("org", "no city 'Orial' is known", "did you mean Oriel?"), ("days", "no days", None)]
    )
    assert str(error) == ("this query cannot be used:\n  no city 'Orial' is known; did you mean Oriel?\n  no days")
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.text, copied.problems) == (error.text, error.problems)
