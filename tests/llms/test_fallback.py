"""Wrappers that ask another LLM: where a provider fails, and where the first one is not sure."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from io import StringIO
from typing import ClassVar

import pytest

from formal_llm import CFG, Answer, Planner, Question, WeightedLLM
from formal_llm.errors import InvalidAnswer, LLMError, ProviderError, UnknownProvider
from formal_llm.llms import FunctionLLM, ScriptedLLM, resolve
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.doubles import Person
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage
from formal_llm.llms.wrappers import LEFT_ALONE, FallbackLLM, SureLLM

ASKED = Question("1: a\n2: b", ["a", "b"])


class Failing:
    """Answers with its number unless it fails."""

    def __init__(self, number: int, error: Exception | None = None) -> None:
        self.number, self.error, self.asked = number, error, 0
        self.name = f"llm{number}"

    def answer(self, question: Question) -> Answer:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return Answer((self.number,))


class Awaited(Failing):
    closed = False

    async def achoose(self, question: Question) -> Answer:
        return self.ask(question)

    async def aclose(self) -> None:
        self.closed = True


class Together(Failing):
    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        self.asked += 1
        if isinstance(self.error, LLMError):
            return (
                [self.ask(questions[0]) if number else self.error for number in range(len(questions))]
                if not (isinstance(self.error, ProviderError))
                else [self.error] * len(questions)
            )
        return [Answer((self.number,))] * len(questions)


def test_the_next_one_answers_where_a_provider_fails_and_is_preferred_for_a_while() -> None:
    now = 0.0
    first, second = Failing(1, ProviderError("down")), Failing(2)
    llm = FallbackLLM([first, second], clock=lambda: now)
    assert llm.ask(ASKED).numbers == (2,)
    first.error = None
    assert llm.ask(ASKED).numbers == (2,) and first.asked == 1
    now = LEFT_ALONE
    assert llm.ask(ASKED).numbers == (1,)


def test_where_all_fail_the_last_error_is_raised() -> None:
    llm = FallbackLLM([Failing(1, ProviderError("first")), Failing(2, ProviderError("second"))])
    with pytest.raises(ProviderError, match="second"):
        llm.ask(ASKED)


def test_an_illegal_answer_is_an_answer() -> None:
    second = Failing(2)
    with pytest.raises(InvalidAnswer):
        FallbackLLM([Failing(1, InvalidAnswer("no number")), second]).ask(ASKED)
    assert second.asked == 0


def test_awaited() -> None:
    first, second = Awaited(1, ProviderError("down")), Awaited(2)
    llm = FallbackLLM([first, second])

    async def ask() -> Answer:
        answer: Answer = await llm.aask(ASKED)  # type: ignore[attr-defined]
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


QUESTION = Question("Which?", ["a", "b", "c"])
UNSURE = Answer((2,), {1: 0.3, 2: 0.5, 3: 0.2}, usage=TokenUsage(1, 7))


class Batch:
    """Answers many at once."""

    def __init__(self, *answers: Answer | LLMError) -> None:
        self.answers = answers

    def answer(self, question: Question) -> Answer:
        (answer,) = self.choose_many([question])
        assert isinstance(answer, Answer)
        return answer

    def choose_many(self, questions: list[Question]) -> list[Answer | LLMError]:
        return list(self.answers[: len(questions)])


def test_awaited_sure() -> None:
    async def later(_: Question) -> Answer:
        return UNSURE

    unsure = SureLLM(FunctionLLM(later), 0.6, "test:first")
    assert asyncio.run(unsure.aask(QUESTION)).number == 1  # type: ignore[attr-defined]


def test_a_person_is_asked_where_it_is_not_sure() -> None:
    writes = StringIO()
    person = Person(StringIO("3\n"), writes)
    found = SureLLM(ScriptedLLM([UNSURE, UNSURE]), 0.6, person)
    answer = found.ask(QUESTION)
    assert answer.number == 3 and answer.usage == UNSURE.usage and (found.asked, found.unsure) == (1, 1)
    assert "ScriptedLLM would choose 2 (probability 0.50)." in writes.getvalue()
    found.least = 0.5
    assert found.ask(QUESTION) == UNSURE and (found.asked, found.unsure) == (2, 1)


def test_an_answer_without_probabilities_is_not_sure() -> None:
    assert SureLLM("test:script=3", 0.0, "test:first").ask(QUESTION).number == 1
    several = Question("Which?", ["a", "b", "c"], several=True)
    assert SureLLM("test:script=1+2", 0.0, "test:script=3").ask(several).number == 3


def test_of_many_the_unsure_ones_go_on() -> None:
    found = SureLLM(Batch(UNSURE, Answer((1,), {1: 1.0}), LLMError("no")), 0.6, "test:script=3")
    outcomes = found.choose_many([QUESTION] * 3)  # type: ignore[attr-defined]
    assert [one.number for one in outcomes[:2]] == [3, 1] and isinstance(outcomes[2], LLMError)
    found = SureLLM(Batch(UNSURE, UNSURE), 0.6, "test:script=3")
    outcomes = found.choose_many([QUESTION] * 2)  # type: ignore[attr-defined]
    assert outcomes[0].number == 3 and isinstance(outcomes[1], LLMError)  # the script has ended


def test_what_was_wrong_before_stays_told() -> None:
    heard: list[Question] = []
    other = FunctionLLM(lambda question: heard.append(question) or 1)  # type: ignore[func-returns-value]
    SureLLM(ScriptedLLM([UNSURE]), 0.6, other).ask(QUESTION.again("it was blank"))
    assert "it was blank" in heard[0].prompt and "would choose 2" in heard[0].prompt


def test_texts_pass_through() -> None:
    class Writer:
        def answer(self, question: Question) -> Answer:
            return Answer((1,))

        def generate(self, messages: object, **_: object) -> object:

            return Answer((), text="a text")

    found = SureLLM(Writer(), 0.9, "test:first")
    assert found.ask(TextRequest("Write.")).text == "a text" and found.asked == 0  # type: ignore[attr-defined]


def test_identities() -> None:
    class Known:
        identity: ClassVar[dict[str, object]] = {"llm": "known"}

        def answer(self, question: Question) -> Answer:
            return UNSURE

    assert SureLLM(Known(), 0.6, Known()).identity == {"llm": "known", "least": 0.6, "other": {"llm": "known"}}
    assert SureLLM(Known(), 0.6).identity is None


def test_provider_strings() -> None:
    found = resolve("sure:0.6:builtin")
    assert isinstance(found, SureLLM) and isinstance(found.other, Person)
    assert found.least == 0.6 and isinstance(found.llm, BuiltinLLM)
    for name in ("sure", "sure:", "sure:0.6", "sure:0.6:", "sure:2:builtin", "sure:nan:builtin", "sure:x:builtin"):
        with pytest.raises(UnknownProvider):
            resolve(name)
    with pytest.raises(ValueError, match="from 0 to 1"):
        SureLLM("builtin", 2.0)


def test_plans_go_on_with_the_other_one() -> None:
    rules = CFG.from_string("%limit 1\nA -> t A | end\nt -> x | y | z")
    model = WeightedLLM(3)
    found = SureLLM(model, 0.6, "test:first")
    plan = Planner(rules, found).plan("anything")
    assert found.asked == plan.usage.questions and found.unsure > 0
