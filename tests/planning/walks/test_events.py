"""Events: which ones come, in which order, and which walk they tell of."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Budget, Limits, Planner, Task
from formal_llm.errors import BudgetExceeded
from formal_llm.planning.walks.events import Answered, Asked, Backtracked, Event, Failed, Finished, Forced, Started

CFG_OF_TEA = CFG.from_string(
    "Tea -> boil Rest\nRest -> green cup | black cup | Deep\nDeep -> hot Leaf\nLeaf -> mint | sage"
)


def test_a_plan_from_its_start_to_its_end() -> None:
    seen: list[Event] = []
    planner = Planner(CFG_OF_TEA, "test:script=2,1", limits=Limits({"green": 0}), on_event=seen.append)
    plan = planner.drive(planner.start(Task("tea"), name="7"))
    kinds = [type(event) for event in seen]
    assert kinds == [Started, Asked, Answered, Asked, Answered, Finished]
    assert {event.walk for event in seen} == {"7"}
    assert isinstance(seen[0], Started)
    assert seen[0].task == Task("tea")
    assert isinstance(seen[-1], Finished)
    assert seen[-1].plan == plan
    answered = [event for event in seen if isinstance(event, Answered)]
    assert [event.answer.number for event in answered] == [2, 1]
    assert answered[0].question is next(event.question for event in seen if isinstance(event, Asked))


def test_what_is_forced_and_what_goes_back() -> None:
    seen: list[Event] = []
    cfg = CFG.from_string("S -> a Y | b Z\nY -> a | a a\nZ -> c | d")
    planner = Planner(cfg, "test:first", limits=Limits({"a": 1, "d": 0}), lookahead="off", on_event=seen.append)
    assert planner.plan("t").word == ("b", "c")
    backtracked = [event for event in seen if isinstance(event, Backtracked)]
    assert [(event.text, event.word) for event in backtracked] == [('the output of "a"', ())]
    seen.clear()
    planner = Planner(cfg, "test:first", limits=Limits({"a": 1, "d": 0}), on_event=seen.append)
    assert planner.plan("t").word == ("b", "c")
    forced = [event for event in seen if isinstance(event, Forced)]
    assert [(event.text, event.left_out) for event in forced] == [('the output of "b"', 1), ("c", 1)]


def test_a_plan_that_fails_ends_with_why() -> None:
    seen: list[Event] = []
    planner = Planner(CFG_OF_TEA, "test:first", budget=Budget(questions=0), on_event=seen.append)
    with pytest.raises(BudgetExceeded) as caught:
        planner.plan("t")
    assert seen == [Started(Task("t")), Failed(caught.value, seen[-1].usage)]  # type: ignore[union-attr]
