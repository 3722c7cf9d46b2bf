"""Requests for text, and how they are answered: waiting, awaited, by who writes and by who does not."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from formal_llm.llms.texts import AsyncTexts, Texts

from formal_llm import Answer, Question
from formal_llm.errors import InvalidAnswer, WritesNoText
from formal_llm.llms import RandomLLM
from formal_llm.llms.doubles import TEXTS, FunctionLLM
from formal_llm.llms.question import Answer, Message
from formal_llm.llms.text_request import Messages, TextRequest, chat
from formal_llm.llms.usage import TokenUsage
from tests.agents.chats import Chats


def test_a_text_is_what_the_user_says() -> None:
    assert chat("a") == (Message("user", "a"),)
    assert chat([Message("system", "b")]) == (Message("system", "b"),)


class Echo:
    """Writes what it is told to."""

    name = "echo"

    def answer(self, question: Question) -> Answer:
        return Answer((1,))

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        return Answer(
            (), text=f"{chat(messages)[-1].content} {max_tokens} {stop} {temperature}", usage=TokenUsage(1, 2, 3)
        )


def test_a_request_for_text_is_a_question_without_options() -> None:
    asked = TextRequest([Message("system", "s"), Message("user", "u")], max_tokens=9, stop=["x"], walk="7")
    assert asked.options == () and asked.prompt == "u" and asked.walk == "7"
    assert [message.content for message in asked.messages] == ["s", "u"]
    answer = asked.written_by(Echo())
    assert answer.text == "u 9 ('x',) 0.0" and answer.usage == TokenUsage(1, 2, 3) and answer.numbers == ()
    assert asked.check(answer) is answer and asked.check("any text").text == "any text"
    with pytest.raises(InvalidAnswer, match="int is no text"):
        asked.check(3)
    with pytest.raises(ValueError, match="nothing to go on from"):
        TextRequest([])


def test_requests_for_text_are_values() -> None:
    asked = TextRequest("u", max_tokens=9)
    assert pickle.loads(pickle.dumps(asked)) == asked == TextRequest("u", max_tokens=9) != TextRequest("u")
    assert asked.content["writes"] == {"max_tokens": 9, "stop": [], "temperature": 0.0}
    assert asked.again("x") is asked


class Continues(Echo):
    def continue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        return Answer((), text=f"{prompt} and on", usage=TokenUsage(1), ended="")


def test_a_text_to_go_on_with_is_another_request() -> None:
    asked = TextRequest("u", continues=True)
    assert asked != TextRequest("u")
    assert asked.content["writes"]["continues"] is True  # type: ignore[index]
    assert pickle.loads(pickle.dumps(asked)) == asked
    assert asked.written_by(Continues()) == Answer((), text="u and on", usage=TokenUsage(1), ended="")
    assert asked.written_by(Echo()) is None
    assert TextRequest("u").written_by(object()) is None
    assert list(asked.streamed_by(Continues())) == [
        "u and on",
        Answer((), text="u and on", usage=TokenUsage(1), ended=""),
    ]
    with pytest.raises(WritesNoText):
        list(asked.streamed_by(Echo()))


SCHEMA: dict[str, object] = {
    "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False,
}  # fmt: skip


def test_texts_are_answers_to_requests() -> None:
    asked: list[Question] = []

    def choose(question: Question) -> Answer:
        asked.append(question)
        return Answer((), text="a", ended="x")

    texts = Texts(choose)
    assert (
        texts.ask(TextRequest("u", stop=["x"]))
        == texts.ask(TextRequest("u", continues=True, stop=["x"]))
        == Answer((), text="a", ended="x")
    )
    assert asked == [TextRequest("u", stop=["x"]), TextRequest("u", stop=["x"], continues=True)]


def test_awaited_they_are_the_same() -> None:
    asked: list[Question] = []

    def choose(question: Question) -> Answer:
        asked.append(question)
        return Answer((), text='{"a": 1}', ended="x")

    async def achoose(question: Question) -> Answer:
        return choose(question)

    async def awaited() -> list[object]:
        texts = AsyncTexts(achoose)
        return [
            await texts.aask(TextRequest("u")),
            await texts.aask(TextRequest("u", continues=True)),
            await texts.agenerate_object("u", SCHEMA),
        ]

    texts = Texts(choose)
    made = [
        texts.ask(TextRequest("u")),
        texts.ask(TextRequest("u", continues=True)),
        texts.generate_object("u", SCHEMA),
    ]
    assert asyncio.run(awaited()) == made
    assert asked[:3] == asked[3:]


class Awaited(Chats):
    """Chats; awaited, it writes in pieces of one sign."""

    def __init__(self) -> None:
        super().__init__(1, ["x"])
        self.closed = False

    async def agenerate(self, messages, *, max_tokens=512, stop=(), temperature=0.0):  # type: ignore[no-untyped-def]
        await asyncio.sleep(0)
        return Answer((), text="abc")

    async def astream(self, messages, *, max_tokens=512, stop=(), temperature=0.0):  # type: ignore[no-untyped-def]
        try:
            for sign in "abc":
                yield sign
            yield Answer((), text="abc")
        finally:
            self.closed = True


async def told(llm: object) -> list[object]:
    return [came async for came in astreamed_by(TextRequest("u"), llm)]  # type: ignore[arg-type]


def test_who_is_awaited() -> None:
    llm = Awaited()
    assert asyncio.run(aanswered(llm, TextRequest("u"))) == Answer((), text="abc")
    assert asyncio.run(told(llm)) == ["a", "b", "c", Answer((), text="abc")]


def test_who_is_not_is_asked_in_a_thread() -> None:
    llm = FunctionLLM(lambda _: "abcde", can=TEXTS, choose=lambda _: 1, piece=2)
    assert asyncio.run(aanswered(llm, TextRequest("u"))) == llm.ask(TextRequest("u"))
    assert asyncio.run(told(llm)) == ["ab", "cd", "e", llm.ask(TextRequest("u"))]
    chats = Chats(1, ["x"])  # neither awaited nor in pieces
    assert asyncio.run(told(chats))[-1].text in ("x" * n for n in range(9))  # type: ignore[attr-defined]
    with pytest.raises(WritesNoText):
        asyncio.run(told(type("Chooses", (), {"choose": RandomLLM().choose})()))


def test_whoever_has_enough_closes_it() -> None:
    llm = Awaited()

    async def first() -> object:
        async with aclosing(astreamed_by(TextRequest("u"), llm)) as coming:
            return await anext(coming)

    assert asyncio.run(first()) == "a"
    assert llm.closed
