"""Driving: the questions of a walk get their answers, and what is raised in their place goes in."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from formal_llm import Answer, Planner, Question, RandomLLM, Walk
from formal_llm.errors import InvalidAnswer
from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.llm import aanswered
from formal_llm.planning.drivers.driving import Steps, WalkDriver
from formal_llm.planning.drivers.search import greedy
from tests.planning.wandering import CHAIN


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
    asyncio.run(adriven(greedy(walk), partial(aanswered, Awaited())))
    assert walk.plan.word == ("c",)
    one, other = Walk(CHAIN), Walk(CHAIN)
    asyncio.run(adriven(greedy(one), partial(aanswered, RandomLLM(5))))
    driven(greedy(other), RandomLLM(5).choose)
    assert one.plan == other.plan


def test_errors_are_thrown_into_awaited_steps_as_well() -> None:
    class Silent(Awaited):
        async def achoose(self, question: Question) -> Answer:
            raise InvalidAnswer("nothing said")

    seen: list[object] = []
    asyncio.run(adriven(stubborn(seen), partial(aanswered, Silent())))
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
