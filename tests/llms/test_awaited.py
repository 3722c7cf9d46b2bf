"""Texts that are awaited: of models that can be, and of those that cannot."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from formal_llm.errors import WritesNoText
from formal_llm.llms import RandomLLM
from formal_llm.llms.awaited import astreamed_by
from formal_llm.llms.generation import Generated, Writing
from formal_llm.llms.llm import aanswered
from formal_llm.llms.question import Answer
from formal_llm.llms.text_doubles import FunctionTextLLM
from tests.agents.chats import Chats


class Awaited(Chats):
    """Chats; awaited, it writes in pieces of one sign."""

    def __init__(self) -> None:
        super().__init__(1, ["x"])
        self.closed = False

    async def agenerate(self, messages, *, max_tokens=512, stop=(), temperature=0.0):  # type: ignore[no-untyped-def]
        await asyncio.sleep(0)
        return Generated("abc")

    async def astream(self, messages, *, max_tokens=512, stop=(), temperature=0.0):  # type: ignore[no-untyped-def]
        try:
            for sign in "abc":
                yield sign
            yield Generated("abc")
        finally:
            self.closed = True


async def told(llm: object) -> list[object]:
    return [came async for came in astreamed_by(Writing("u"), llm)]  # type: ignore[arg-type]


def test_who_is_awaited() -> None:
    llm = Awaited()
    assert asyncio.run(aanswered(llm, Writing("u"))) == Answer((), text="abc")
    assert asyncio.run(told(llm)) == ["a", "b", "c", Generated("abc")]


def test_who_is_not_is_asked_in_a_thread() -> None:
    llm = FunctionTextLLM(lambda _: "abcde", piece=2)
    assert asyncio.run(aanswered(llm, Writing("u"))) == llm.choose(Writing("u"))
    assert asyncio.run(told(llm)) == ["ab", "cd", "e", llm.generate("u")]
    chats = Chats(1, ["x"])  # neither awaited nor in pieces
    assert asyncio.run(told(chats))[-1].text in ("x" * n for n in range(9))  # type: ignore[attr-defined]
    with pytest.raises(WritesNoText):
        asyncio.run(told(type("Chooses", (), {"choose": RandomLLM().choose})()))


def test_whoever_has_enough_closes_it() -> None:
    llm = Awaited()

    async def first() -> object:
        async with aclosing(astreamed_by(Writing("u"), llm)) as coming:
            return await anext(coming)

    assert asyncio.run(first()) == "a"
    assert llm.closed
