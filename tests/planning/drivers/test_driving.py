"""Driving: the questions of a walk get their answers, and what is raised in their place goes in."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from formal_llm import Answer, Planner, Question, RandomLLM, Walk
from formal_llm.errors import InvalidAnswer
from formal_llm.llms import LLM
from formal_llm.llms.driven import adriven, driven
from formal_llm.planning.drivers.driving import Steps, WalkDriver, answer_while_pondering
from formal_llm.planning.drivers.search import greedy
from tests.planning.wandering import CHAIN, subset_sum


class Awaited:
    """A model that can be awaited, and must be."""

    def choose(self, question: Question) -> Answer:
        raise AssertionError("this one is awaited")

    async def achoose(self, question: Question) -> Answer:
        await asyncio.sleep(0)
        return Answer((3,))

    async def aclose(self) -> None:
        """Nothing is open."""


def stubborn(seen: list[object]) -> Steps:
    """Asks twice, whatever is raised."""
    question = Question("Which?", ["a", "b"])
    for _ in range(2):
        try:
            seen.append((yield question))
        except InvalidAnswer as error:
            seen.append(error.problem)


def test_answers_are_sent_and_errors_thrown_in() -> None:
    seen: list[object] = []
    answers = iter([InvalidAnswer("what?"), Answer((2,))])

    def choose(question: Question) -> Answer:
        given = next(answers)
        if isinstance(given, Exception):
            raise given
        return given

    driven(stubborn(seen), choose)
    assert seen == ["what?", Answer((2,))]


def test_what_the_steps_do_not_catch_is_raised() -> None:
    def choose(question: Question) -> Answer:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        driven(stubborn([]), choose)


def test_awaited_or_in_a_thread_it_is_the_same() -> None:
    walk = Walk(CHAIN)
    asyncio.run(adriven(greedy(walk), partial(answer_while_pondering, Awaited(), None)))
    assert walk.plan.word == ("c",)
    one, other = Walk(CHAIN), Walk(CHAIN)
    asyncio.run(adriven(greedy(one), partial(answer_while_pondering, RandomLLM(5), None)))
    driven(greedy(other), RandomLLM(5).choose)
    assert one.plan == other.plan


def test_errors_are_thrown_into_awaited_steps_as_well() -> None:
    class Silent(Awaited):
        async def achoose(self, question: Question) -> Answer:
            raise InvalidAnswer("nothing said")

    seen: list[object] = []
    asyncio.run(adriven(stubborn(seen), partial(answer_while_pondering, Silent(), None)))
    assert seen == ["nothing said", "nothing said"]


def test_nothing_to_ask_is_done_at_once() -> None:
    def nobody(question: Question) -> Answer:
        raise AssertionError("nobody is asked")

    walk = Walk(CHAIN)
    walk.answer(3)
    driven(greedy(walk), nobody)
    assert walk.done


def test_a_planner_is_a_driver() -> None:
    driver: WalkDriver = Planner(CHAIN, RandomLLM(5))
    assert driver.drive(driver.start("t")) == Planner(CHAIN, RandomLLM(5)).plan("t")
    assert (driver.seed, driver.prices, driver.source) == (0, None, CHAIN)


class TestPondering:
    """While the model thinks, what was offered undecided is looked at; that changes no question."""

    def planner(self, llm: LLM) -> Planner:
        return Planner(subset_sum(9, 3), llm, search_time=0.0005, solver=False)

    def test_while_a_model_that_is_awaited_thinks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looked = asyncio.Event()
        ponder = Walk.ponder

        def told(walk: Walk) -> bool:
            more = ponder(walk)
            if not more:
                looked.set()
            return more

        class Thinking(Awaited):
            async def achoose(self, question: Question) -> Answer:
                if patient:
                    await asyncio.wait_for(looked.wait(), 60)
                return Answer((len(question.options),))

        monkeypatch.setattr(Walk, "ponder", told)
        patient = True
        planner = self.planner(Thinking())
        walk = planner.start("t")
        assert walk.undecided
        plan = asyncio.run(planner.adrive(walk))
        assert looked.is_set()
        patient = False
        hasty = self.planner(lambda question: len(question.options)).plan("t")  # type: ignore[arg-type]
        assert (plan.word, plan.usage.questions, plan.usage.wasted) == (
            hasty.word, hasty.usage.questions, hasty.usage.wasted
        )  # fmt: skip

    def test_an_answer_ends_it_and_so_does_whoever_stops_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """There would always be more to look at: the answer, or a cancellation, has to end it."""
        thought = asyncio.Event()
        looks = 0

        def endless(_: Walk) -> bool:
            nonlocal looks
            looks += 1
            if looks == 5:
                thought.set()
            return True

        class Thinking(Awaited):
            async def achoose(self, question: Question) -> Answer:
                try:
                    await thought.wait()
                    if stops:
                        await asyncio.Event().wait()
                    return Answer((1,))
                finally:
                    ended.append(stops)

        async def stopped() -> None:
            planner = self.planner(Thinking())
            driving = asyncio.ensure_future(planner.adrive(planner.start("t")))
            await thought.wait()
            driving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await driving
            await asyncio.sleep(0)

        monkeypatch.setattr(Walk, "ponder", endless)
        stops, ended = False, list[bool]()
        planner = self.planner(Thinking())
        assert asyncio.run(planner.aplan("t")).complete
        looks, stops, thought = 0, True, asyncio.Event()
        ended.clear()
        asyncio.run(stopped())
        assert ended == [True]

    def test_nothing_is_pondered_where_all_is_decided(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Walk, "ponder", lambda _: pytest.fail("there is nothing to look at"))
        assert asyncio.run(Planner(CHAIN, Awaited()).aplan("t")).complete  # type: ignore[arg-type]
