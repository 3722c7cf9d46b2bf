"""Outcomes as they come: whichever way an LLM is asked, few walks are held, and whoever stops early stops the run."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any

import pytest

from formal_llm import CFG, Answer, Limits, Planner, Question, Task
from formal_llm.llms import LLM, WeightedLLM
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.walks.walk import Walk
from tests.planning.drivers.test_batch import Awaited, Together

WAYS: dict[str, tuple[Any, int | None]] = {
    "one by one": (lambda: WeightedLLM(3), None), "threads": (lambda: WeightedLLM(3), 3),
    "together": (Together, 3), "awaited": (Awaited, 3),
}  # fmt: skip


def forever(taken: list[int]) -> Iterator[Task]:
    """Tasks without end; every fifth has no plan, which is known before the first question."""
    for number in count():
        taken.append(number)
        yield Task(
            f"task {number}", limits=Limits(at_least={"a": 1}, at_most={"a": 0}) if number % 5 == 4 else Limits()
        )


def held() -> int:
    """How many plans and walks there are in memory."""
    gc.collect()
    return sum(type(one) in (Plan, Walk) for one in gc.get_objects())  # not isinstance: proxies would warn


def planner_of(way: str, **settings: Any) -> tuple[Planner, int | None]:
    llm, many = WAYS[way]
    return Planner(CFG.from_string("S -> a T | b T\nT -> c | d"), llm(), **settings), many


@pytest.mark.parametrize("way", WAYS)
def test_tasks_without_end_are_taken_as_outcomes_are(way: str) -> None:
    planner, many = planner_of(way)
    taken: list[int] = []
    outcomes = planner.plan_each(forever(taken), concurrency=many)
    found = list(islice(outcomes, 20))
    assert len({outcome.index for outcome in found}) == 20
    assert all((outcome.plan is None) == (outcome.index % 5 == 4) for outcome in found)
    assert len(taken) <= 20 + 2 * (many or 1)
    outcomes.close()
    known = len(taken)
    assert next(outcomes, None) is None and len(taken) == known


@pytest.mark.parametrize("way", WAYS)
def test_plans_that_were_handed_out_are_not_held(way: str) -> None:
    planner, many = planner_of(way)
    before, most = held(), 0
    for outcome in planner.plan_each((f"task {number}" for number in range(60)), concurrency=many):
        assert outcome.plan is not None
        if outcome.index % 20 == 19:
            most = max(most, held() - before)
    assert most <= 4 * ((many or 1) + 2)


@pytest.mark.parametrize("way", WAYS)
def test_the_outcomes_are_those_of_plan_all(way: str) -> None:
    tasks = [f"task {number}" for number in range(12)]
    planner, many = planner_of(way)
    streamed = {outcome.index: outcome.unwrap() for outcome in planner.plan_each(tasks, concurrency=many, skip={3})}
    listed = {outcome.index: outcome.unwrap() for outcome in planner.plan_all(tasks, concurrency=many, skip={3})}
    assert streamed == listed and set(listed) == set(range(12)) - {3}


@pytest.mark.parametrize("way", WAYS)
def test_in_a_coroutine_they_are_awaited(way: str) -> None:
    planner, many = planner_of(way)
    taken: list[int] = []

    async def some() -> list[int]:
        outcomes = planner.aplan_each(forever(taken), concurrency=many)
        found = []
        async for outcome in outcomes:
            found.append(outcome.index)
            if len(found) == 10:
                break
        await outcomes.aclose()
        return found

    assert len(set(asyncio.run(some()))) == 10
    assert len(taken) <= 10 + 2 * (many or 1)


def test_an_error_of_the_tasks_ends_an_awaited_run() -> None:
    planner, _ = planner_of("awaited")

    def tasks() -> Iterator[str]:
        yield "one"
        raise OSError("the file is gone")

    with pytest.raises(OSError, match="the file is gone"):
        list(planner.plan_each(tasks(), concurrency=2))


class Blocked(LLM):
    """A model that blocks, and answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.go = threading.Event()

    def answer(self, question: Question) -> Answer:
        self.asked += 1
        assert self.go.wait(10)
        return Answer((1,))


class BlockedTogether(Blocked):
    at_once = 3

    def answer_all(self, questions: Sequence[Question]) -> list[Answer]:
        return [self.answer(questions[0])] * len(questions)


@pytest.mark.parametrize(("model", "many"), [(Blocked, None), (Blocked, 3), (BlockedTogether, 3)])
@pytest.mark.parametrize("each", [False, True])
def test_a_model_that_cannot_be_awaited_keeps_neither_the_loop_nor_who_stops_waiting(
    model: type[Blocked], many: int | None, each: bool
) -> None:
    llm = model()
    planner = Planner(CFG.from_string("S -> A A A\nA -> a | b"), llm)  # type: ignore[arg-type]
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    async def plan() -> None:
        tasks = [f"task {number}" for number in range(6)]
        if each:
            async for _ in planner.aplan_each(tasks, concurrency=many):
                pass
        else:
            await planner.aplan_all(tasks, concurrency=many)

    async def cancelled() -> None:
        ticking, begin = asyncio.create_task(tick()), time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(plan(), 0.1)
        ticking.cancel()
        assert ticks > 5 and time.monotonic() - begin < 5  # nobody has answered yet

    try:
        asyncio.run(cancelled())
    finally:
        llm.go.set()
    asked = llm.asked
    for thread in [one for one in threading.enumerate() if one.name.startswith("formal-llm")]:
        thread.join(20)
    assert llm.asked == asked <= (many or 1)  # after that nothing is asked any more
