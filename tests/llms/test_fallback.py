"""Several LLMs, the next one where the first does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from formal_llm import Answer, Question
from formal_llm.errors import InvalidAnswer, LLMError, ProviderError
from formal_llm.llms import resolve
from formal_llm.llms.fallback import LEFT_ALONE, FallbackLLM

ASKED = Question("1: a\n2: b", ["a", "b"])


class Failing:
    """Answers with its number unless it fails."""

    def __init__(self, number: int, error: Exception | None = None) -> None:
        self.number, self.error, self.asked = number, error, 0
        self.name = f"llm{number}"

    def choose(self, question: Question) -> Answer:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return Answer((self.number,))


class Awaited(Failing):
    closed = False

    async def achoose(self, question: Question) -> Answer:
        return self.choose(question)

    async def aclose(self) -> None:
        self.closed = True


class Together(Failing):
    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        self.asked += 1
        if isinstance(self.error, LLMError):
            return (
                [self.choose(questions[0]) if number else self.error for number in range(len(questions))]
                if not (isinstance(self.error, ProviderError))
                else [self.error] * len(questions)
            )
        return [Answer((self.number,))] * len(questions)


def test_the_next_one_answers_where_a_provider_fails_and_is_preferred_for_a_while() -> None:
    now = 0.0
    first, second = Failing(1, ProviderError("down")), Failing(2)
    llm = FallbackLLM([first, second], clock=lambda: now)
    assert llm.choose(ASKED).numbers == (2,)
    first.error = None
    assert llm.choose(ASKED).numbers == (2,) and first.asked == 1
    now = LEFT_ALONE
    assert llm.choose(ASKED).numbers == (1,)


def test_where_all_fail_the_last_error_is_raised() -> None:
    llm = FallbackLLM([Failing(1, ProviderError("first")), Failing(2, ProviderError("second"))])
    with pytest.raises(ProviderError, match="second"):
        llm.choose(ASKED)


def test_an_illegal_answer_is_an_answer() -> None:
    second = Failing(2)
    with pytest.raises(InvalidAnswer):
        FallbackLLM([Failing(1, InvalidAnswer("no number")), second]).choose(ASKED)
    assert second.asked == 0


def test_awaited() -> None:
    first, second = Awaited(1, ProviderError("down")), Awaited(2)
    llm = FallbackLLM([first, second])

    async def ask() -> Answer:
        answer: Answer = await llm.achoose(ASKED)  # type: ignore[attr-defined]
        await llm.aclose()  # type: ignore[attr-defined]
        return answer

    assert asyncio.run(ask()).numbers == (2,)
    assert first.closed and second.closed


def test_many_together() -> None:
    llm = FallbackLLM([Together(1, ProviderError("down")), Together(2)])
    assert [answer.numbers for answer in llm.choose_many([ASKED] * 3)] == [(2,)] * 3  # type: ignore[attr-defined]


def test_names_and_identities() -> None:
    llm = resolve("test:first,test:random=3")
    assert isinstance(llm, FallbackLLM)
    assert llm.identity is None or llm.identity["llm"] == llm.name
    assert not isinstance(resolve("test:script=1,2"), FallbackLLM)
    with pytest.raises(LLMError, match="two LLMs at least"):
        FallbackLLM(["test:first"])
    with pytest.raises(LLMError, match="cannot take each other's place"):
        FallbackLLM([Awaited(1), Failing(2)])
