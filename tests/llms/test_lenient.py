"""Answers that are sentences."""

import asyncio

import pytest

from formal_llm import Question
from formal_llm.errors import InvalidAnswer
from formal_llm.llms import resolve
from formal_llm.llms.doubles import FunctionLLM
from formal_llm.llms.lenient import LenientLLM
from formal_llm.llms.llm import BatchLLM, ask

QUESTION = Question("Which?", [f"place {number}" for number in range(1, 7)])
SENTENCE = "I think option 5 would be nice."


def test_a_sentence_that_names_one_option_is_read_and_marked():
    answer = LenientLLM(lambda _: SENTENCE).choose(QUESTION)
    assert (answer.numbers, answer.text, answer.lenient) == ((5,), SENTENCE, True)
    with pytest.raises(InvalidAnswer):
        ask(FunctionLLM(lambda _: SENTENCE), QUESTION)


def test_what_is_legal_is_read_as_ever():
    answer = LenientLLM(lambda _: "2").choose(QUESTION)
    assert (answer.numbers, answer.lenient) == ((2,), False)


def test_a_sentence_in_doubt_is_no_answer():
    with pytest.raises(InvalidAnswer, match="is more than a number"):
        LenientLLM(lambda _: "Option 5 or 6.").choose(QUESTION)


def test_it_waits_and_answers_together_as_the_model_it_wraps():
    async def answer(_):
        return SENTENCE

    awaited = LenientLLM(answer)
    assert asyncio.run(awaited.achoose(QUESTION)).number == 5

    class Together(FunctionLLM):
        def choose_many(self, questions):
            texts = iter([SENTENCE, "no idea", "3"])
            return [self._read(question, next(texts)) for question in questions]

        def _read(self, question, text):
            try:
                return question.read(text)
            except InvalidAnswer as error:
                return error

    many = LenientLLM(Together(lambda _: 1))
    assert isinstance(many, BatchLLM)
    one, other, last = many.choose_many([QUESTION] * 3)
    assert (one.number, one.lenient, last.number, last.lenient) == (5, True, 3, False)
    assert isinstance(other, InvalidAnswer)


def test_a_provider_string_says_so():
    llm = resolve("lenient:test:first")
    assert isinstance(llm, LenientLLM)
    assert llm.choose(QUESTION).number == 1
    assert llm.identity is None
