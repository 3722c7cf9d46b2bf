"""LLMs in front of another one: the ways in which they can be asked, and their names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from formal_llm import Answer, AsyncLLM, BatchLLM, FunctionLLM, InvalidAnswer, LLMError, ProviderError, Question
from formal_llm.llms.wrapper import WrapperLLM, checked

QUESTION = Question("Which?", ["a", "b"])


class Passing(WrapperLLM):
    """Hands everything on."""

    closed = False

    def choose(self, question: Question) -> Answer:
        return self.llm.choose(question)

    async def _achoose(self, question: Question) -> Answer:
        return await self._awaited.achoose(question)

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        return self._batched.choose_many(questions)

    def close(self) -> None:
        self.closed = True


class Many:
    name = "many"
    identity = {"llm": "many"}  # noqa: RUF012  # as the protocol has it

    def choose(self, question: Question) -> Answer:
        return Answer((1,))

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        return [Answer((2,)) for _ in questions]


async def second(question: Question) -> int:
    return 2


def test_it_is_asked_in_the_ways_of_the_one_behind() -> None:
    alone, awaited, many = Passing(lambda question: 1), Passing(second), Passing(Many())
    assert [isinstance(llm, AsyncLLM) for llm in (alone, awaited, many)] == [False, True, False]
    assert [isinstance(llm, BatchLLM) for llm in (alone, awaited, many)] == [False, False, True]
    assert alone.choose(QUESTION).number == 1
    assert asyncio.run(awaited.achoose(QUESTION)).number == 2
    assert [answer.number for answer in many.choose_many([QUESTION] * 3)] == [2, 2, 2]


def test_names_and_identities() -> None:
    assert Passing("test:first").name == "test:first"
    assert Passing(Many()).name == "many" and Passing(Many()).identity == {"llm": "many"}
    assert Passing(FunctionLLM(lambda question: 1)).name == "FunctionLLM"
    assert Passing("test:first").identity is None
    assert repr(Passing("test:first")) == "<Passing test:first>"


def test_it_is_closed_behind_a_with() -> None:
    with Passing("test:first") as llm:
        assert not llm.closed
    assert llm.closed


def test_what_is_not_legal_in_a_batch_becomes_its_error() -> None:
    failed = ProviderError("no connection")
    assert checked(QUESTION, failed) is failed
    assert checked(QUESTION, Answer((2,))) == Answer((2,))
    wrong = checked(QUESTION, Answer((3,)))
    assert isinstance(wrong, InvalidAnswer) and "3 is not one of the numbers" in wrong.problem
    with pytest.raises(TypeError):
        Passing(3)  # type: ignore[arg-type]
