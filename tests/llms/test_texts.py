"""Writing for those who answer questions."""

from __future__ import annotations

import asyncio

from formal_llm.llms.generation import Generated, Writing
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.texts import AsyncTexts, Texts

SCHEMA: dict[str, object] = {
    "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False,
}  # fmt: skip


def test_texts_are_answers_to_requests() -> None:
    asked: list[Question] = []

    def choose(question: Question) -> Answer:
        asked.append(question)
        return Answer((), text="a", ended="x")

    texts = Texts(choose)
    assert texts.generate("u", stop=["x"]) == texts.continue_text("u", stop=["x"]) == Generated("a", ended="x")
    assert asked == [Writing("u", stop=["x"]), Writing("u", stop=["x"], continues=True)]


def test_awaited_they_are_the_same() -> None:
    asked: list[Question] = []

    def choose(question: Question) -> Answer:
        asked.append(question)
        return Answer((), text='{"a": 1}', ended="x")

    async def achoose(question: Question) -> Answer:
        return choose(question)

    async def awaited() -> list[object]:
        texts = AsyncTexts(achoose)
        return [await texts.agenerate("u"), await texts.acontinue_text("u"), await texts.agenerate_object("u", SCHEMA)]

    texts = Texts(choose)
    made = [texts.generate("u"), texts.continue_text("u"), texts.generate_object("u", SCHEMA)]
    assert asyncio.run(awaited()) == made
    assert asked[:3] == asked[3:]
