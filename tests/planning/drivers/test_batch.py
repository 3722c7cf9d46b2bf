"""Many walks at once: whichever way an LLM is asked, the plans are the ones that are made one by one."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Sequence

import pytest

from formal_llm import Answer, Budget, Limits, Planner, Question, Task
from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan
from formal_llm.llms import LLM, TokenUsage, WeightedLLM
from formal_llm.llms.usage import Prices
from formal_llm.planning.drivers.batch import Outcome
from formal_llm.planning.walks.events import Asked, Event, Failed, Finished, Started
from tests.planning.wandering import CHAIN

TASKS = [f"task {number}" for number in range(40)]
COST = TokenUsage(1, 100, 10, 40, 20)


class Awaited(LLM):
    """A model that is awaited; counts how many questions are in flight. One that ``hangs`` never answers."""

    def __init__(self, *, usage: TokenUsage = COST, hangs: bool = False) -> None:
        self.model = WeightedLLM(3)
        self.usage = usage
        self.hangs = hangs
        self.four = threading.Event()  # set when four questions are in flight
        self.now = self.most = self.asked = 0

    async def answer(self, question: Question) -> Answer:
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now == 4:
            self.four.set()
        try:
            # Others have their turn before the answer is there.
            await (asyncio.Event().wait() if self.hangs else asyncio.sleep(0.02))
        finally:
            self.now -= 1
        found = self.model.answer(question)
        return Answer(found.numbers, found.probabilities, usage=self.usage)


class Together(WeightedLLM):
    """A model that is asked many questions together."""

    at_once = 64

    def __init__(self) -> None:
        super().__init__(3)
        self.rounds: list[int] = []

    def answer_all(self, questions: Sequence[Question]) -> Sequence[Answer | Exception]:
        self.rounds.append(len(questions))
        return [self.answer(question) for question in questions]


def words(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    return [outcome.unwrap().word for outcome in outcomes]


EXPECTED = [Planner(CHAIN, WeightedLLM(3)).plan(task).word for task in TASKS]


def test_one_by_one() -> None:
    outcomes = Planner(CHAIN, WeightedLLM(3)).plan_all(iter(TASKS))
    assert words(outcomes) == EXPECTED
    assert [outcome.index for outcome in outcomes] == list(range(40))
    assert [outcome.task.description for outcome in outcomes] == TASKS
    assert all(outcome.error is None and outcome.usage.questions for outcome in outcomes)


@pytest.mark.parametrize("concurrency", [1, 7, 100])
def test_awaited(concurrency: int) -> None:
    llm = Awaited()
    seen: list[Outcome] = []
    outcomes = Planner(CHAIN, llm).plan_all(TASKS, concurrency=concurrency, on_outcome=seen.append)
    assert words(outcomes) == EXPECTED
    assert llm.most == min(concurrency, len(TASKS))
    assert sorted(outcome.index for outcome in seen) == list(range(40))


@pytest.mark.parametrize("concurrency", [2, 100])
def test_from_threads(concurrency: int) -> None:
    model = WeightedLLM(3)
    threads = set()
    calls, two = itertools.count(), threading.Barrier(2, timeout=60)

    def answer(question: Question) -> Answer:
        threads.add(threading.current_thread().name)
        if next(calls) < 2:
            two.wait()  # the first two questions are in flight together
        return model.ask(question)

    assert words(Planner(CHAIN, answer).plan_all(TASKS, concurrency=concurrency)) == EXPECTED
    assert 1 < len(threads) <= concurrency


@pytest.mark.parametrize("concurrency", [None, 6])
def test_together(concurrency: int | None) -> None:
    llm = Together()
    assert words(Planner(CHAIN, llm).plan_all(TASKS, concurrency=concurrency)) == EXPECTED
    assert max(llm.rounds) == (concurrency or len(TASKS))


@pytest.mark.parametrize("search", ["sample", "best-first"])
def test_searches_do_not_depend_on_who_is_answered_first(search: str) -> None:
    first = Planner(CHAIN, Awaited(), search=search, seed=5).plan_all(TASKS, concurrency=9)  # type: ignore[arg-type]
    again = Planner(CHAIN, Awaited(), search=search, seed=5).plan_all(TASKS)  # type: ignore[arg-type]
    other = Planner(CHAIN, Together(), search=search, seed=5).plan_all(TASKS)  # type: ignore[arg-type]
    assert words(first) == words(again) == words(other)


def test_from_a_coroutine() -> None:
    async def main() -> None:
        planner = Planner(CHAIN, Awaited())
        assert words(await planner.aplan_all(TASKS)) == EXPECTED
        plans = await asyncio.gather(*(planner.aplan(task) for task in TASKS))
        assert [plan.word for plan in plans] == EXPECTED
        waiting = Planner(CHAIN, WeightedLLM(3))
        assert (await waiting.aplan(TASKS[0])).word == EXPECTED[0]
        assert words(await waiting.aplan_all(TASKS)) == EXPECTED

    asyncio.run(main())


def test_a_task_fails_for_itself() -> None:
    model = WeightedLLM(3)

    def answer(question: Question) -> Answer | int:
        if question.task == "task 3":
            raise OSError("the cable is out")
        return 99 if question.task == "task 5" else model.ask(question)

    tasks: list[str | Task] = [*TASKS]
    tasks[7] = Task("task 7", limits=Limits({"c": 0}))
    for concurrency in (1, 4):
        outcomes = Planner(CHAIN, answer).plan_all(tasks, concurrency=concurrency)
        failed = {outcome.index: type(outcome.error) for outcome in outcomes if outcome.error}
        assert failed == {3: OSError, 5: InvalidAnswer, 7: NoValidPlan}
        with pytest.raises(OSError, match="cable"):
            outcomes[3].unwrap()
        kept = [number for number in range(40) if number not in failed]
        assert [outcomes[number].unwrap().word for number in kept] == [EXPECTED[number] for number in kept]


def test_when_asking_together_fails() -> None:
    class Broken(Together):
        def answer_all(self, questions: Sequence[Question]) -> Sequence[Answer | Exception]:
            raise MemoryError("no room")

    assert {type(outcome.error) for outcome in Planner(CHAIN, Broken()).plan_all(TASKS)} == {MemoryError}


def test_usage_and_cost() -> None:
    prices = Prices(input=2, output=10, cached=1, cache_write=4)
    planner = Planner(CHAIN, Awaited(), prices=prices)
    (outcome,) = planner.plan_all(TASKS[:1])
    usage = outcome.unwrap().usage
    count = usage.questions
    assert usage.token_usage == TokenUsage(count, 100 * count, 10 * count, 40 * count, 20 * count)
    assert usage.cost == pytest.approx(count * (40 * 2 + 40 * 1 + 20 * 4 + 10 * 10) / 1e6)
    assert Planner(CHAIN, Awaited()).plan(TASKS[0]).usage.cost is None
    with pytest.raises(ValueError, match="prices"):
        Planner(CHAIN, budget=Budget(cost=1))
    with pytest.raises(ValueError, match="price"):
        Prices(-1, 0)


@pytest.mark.parametrize(
    ("budget", "kind"),
    [(Budget(requests=2), "requests"), (Budget(tokens=220), "tokens"), (Budget(cost=0.0004), "cost")],
)
def test_a_plan_keeps_its_budget(budget: Budget, kind: str) -> None:
    planner = Planner(CHAIN, lambda question: Answer((1,), usage=COST), budget=budget, prices=Prices(1, 10))
    with pytest.raises(BudgetExceeded, match="used up") as caught:
        planner.plan("t")
    assert caught.value.kind == kind
    assert caught.value.plan.word == ("a", "a")
    assert caught.value.plan.usage.requests == 2
    assert not caught.value.shared


def test_tries_in_vain_are_paid_for_and_end_with_the_budget() -> None:
    planner = Planner(CHAIN, lambda question: Answer((9,), usage=COST), budget=Budget(requests=2), tries=5)
    with pytest.raises(BudgetExceeded) as caught:
        planner.plan("t")
    assert caught.value.kind == "requests"
    (outcome,) = planner.plan_all(["t"])
    assert outcome.usage.requests == 2
    (outcome,) = Planner(CHAIN, lambda question: Answer((9,), usage=COST), tries=4).plan_all(["t"])
    assert isinstance(outcome.error, InvalidAnswer)
    assert outcome.usage.requests == 4


@pytest.mark.parametrize("concurrency", [1, 8])
def test_all_plans_together_keep_a_budget(concurrency: int) -> None:
    llm = Awaited()
    planner = Planner(CHAIN, llm, prices=Prices(1, 1))
    outcomes = planner.plan_all(TASKS, concurrency=concurrency, budget=Budget(tokens=2_200))
    assert 20 <= llm.asked <= 20 + concurrency - 1
    broke = [outcome for outcome in outcomes if outcome.error]
    assert len(outcomes) == 40
    assert broke
    for outcome in broke:
        assert isinstance(outcome.error, BudgetExceeded)
        assert outcome.error.shared
        assert "plan_all(budget=Budget(tokens=...))" in str(outcome.error)
    assert sum(outcome.usage.requests for outcome in outcomes) == llm.asked
    asked = Awaited()
    Planner(CHAIN, asked).plan_all(TASKS, concurrency=concurrency, budget=Budget(questions=9))
    assert asked.asked == 9
    with pytest.raises(ValueError, match="each plan"):
        planner.plan_all(TASKS, budget=Budget(steps=3))
    with pytest.raises(ValueError, match="prices"):
        Planner(CHAIN, llm).plan_all(TASKS, budget=Budget(cost=3))
    with pytest.raises(ValueError, match="concurrency"):
        planner.plan_all(TASKS, concurrency=0)


def test_events_name_their_walk() -> None:
    events: list[Event] = []
    tasks: list[str | Task] = [*TASKS[:5], Task("none", limits=Limits({"c": 0}))]
    planner = Planner(CHAIN, Awaited(), on_event=events.append, budget=Budget(questions=3))
    outcomes = planner.plan_all(tasks, concurrency=3)
    for outcome in outcomes[:5]:
        mine = [event for event in events if event.walk == str(outcome.index)]
        assert isinstance(mine[0], Started)
        assert sum(isinstance(event, Asked) for event in mine) == outcome.usage.questions
        assert sum(isinstance(event, Failed) for event in mine) == (outcome.error is not None)
        assert sum(isinstance(event, Finished) for event in mine) == (outcome.error is None)


def test_an_awaited_run_can_be_stopped() -> None:
    llm = Awaited(hangs=True)
    seen: list[Outcome] = []

    async def main() -> None:
        planner = Planner(CHAIN, llm)
        running = asyncio.create_task(planner.aplan_all(TASKS, concurrency=4, on_outcome=seen.append))
        assert await asyncio.to_thread(llm.four.wait, 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    for _ in range(1_000):  # they are cancelled on the loop of the model
        if llm.now == 0:
            break
        time.sleep(0.01)
    assert (llm.now, llm.asked, seen) == (0, 4, [])
