"""Steps are driven alike by one who waits and one who awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.agents.decoding.steps import (
    ENOUGH,
    MORE,
    Do,
    IncomingText,
    Steps,
    Telling,
    adriven,
    driven,
    relay_steps,
)
from formal_llm.errors import LLMError
from formal_llm.llms.doubles import TEXTS, FunctionLLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage

ASKED = TextRequest("u")


async def _listed(steps: Any, llm: object) -> list[Any]:
    return [told async for told in adriven(steps, llm)]


DRIVERS = pytest.mark.parametrize(
    "drive", [lambda s, llm: list(driven(s, llm)), lambda s, llm: asyncio.run(_listed(s, llm))], ids=["waits", "awaits"]
)
Drive = Callable[[Any, object], list[Any]]


@DRIVERS
def test_what_is_asked_for_is_sent_in(drive: Drive) -> None:
    def steps() -> Steps[str]:
        yield f"chose {(yield Question('?', ['a', 'b'])).number}"
        yield f"wrote {(yield ASKED).text}"
        yield f"first {(yield Telling(ASKED))}, then {(yield MORE)}, then {(yield MORE).text}"
        yield f"did {(yield Do(lambda: 7))}"

    llm = FunctionLLM(lambda _: "abc", can=TEXTS, choose=lambda _: 2, piece=2)
    assert drive(steps(), llm) == ["chose 2", "wrote abc", "first ab, then c, then abc", "did 7"]


def test_work_is_awaited_by_who_awaits() -> None:
    async def wait() -> str:
        await asyncio.sleep(0)
        return f"on {id(asyncio.get_running_loop())}"

    async def fail() -> object:
        raise LLMError("no")

    def steps() -> Steps[str]:
        yield f"done {(yield Do(lambda: 'at once', wait))}"
        try:
            yield Do(lambda: "no error", fail)
        except LLMError as error:
            yield f"caught {error}"

    async def follow() -> list[str]:
        return [
            *await _listed(steps(), FunctionLLM(str, can=TEXTS, choose=lambda _: 1)),
            f"done on {id(asyncio.get_running_loop())}",
        ]

    first, caught, expected = asyncio.run(follow())
    assert first == expected and caught == "caught no"
    assert list(driven(steps(), FunctionLLM(str, can=TEXTS, choose=lambda _: 1))) == ["done at once"]


@DRIVERS
def test_errors_are_thrown_in(drive: Drive) -> None:
    def fail(*_: object) -> Any:
        raise LLMError("no")

    def steps() -> Steps[str]:
        for step in (Question("?", ["a", "b"]), ASKED, Telling(ASKED), Do(fail)):
            try:
                yield step
            except LLMError as error:
                yield str(error)
        yield ASKED

    told = []
    with pytest.raises(LLMError):
        told += drive(steps(), FunctionLLM(fail, can=TEXTS, choose=fail))
    caught = steps()
    assert (
        drive(relay_steps(caught, lambda step: step is not ASKED), FunctionLLM(fail, can=TEXTS, choose=fail))
        == ["no"] * 3
    )


@DRIVERS
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("pieces", [1, 9])
def test_a_text_as_it_comes(drive: Drive, streaming: bool, pieces: int) -> None:
    closed: list[bool] = []

    class Writes(FunctionLLM):
        def stream(self, request: Any) -> Any:
            try:
                yield from super().stream(request)
            finally:
                closed.append(True)

    def steps() -> Steps[object]:
        coming = IncomingText(ASKED, streaming=streaming)
        for _ in range(pieces):
            if coming.made is None:
                yield (yield from coming.read_next())
        yield (yield from coming.close())

    whole = Answer((), text="abcde", usage=TokenUsage(1, 0, 2), ended="")
    expected: list[object] = ["abcde", whole]
    if streaming and pieces == 1:
        expected = ["ab", Answer((), text="ab", usage=TokenUsage(1, 1, 1, estimated=1))]
    elif streaming:
        expected = ["ab", "cd", "e", "", whole]
    assert drive(steps(), Writes(lambda _: "abcde", can=TEXTS, piece=2)) == expected
    assert closed == [True] * streaming


def test_who_leaves_closes_all() -> None:
    closed: list[str] = []

    class Writes(FunctionLLM):
        def stream(self, request: Any) -> Any:
            try:
                yield from super().stream(request)
            finally:
                closed.append("stream")

    def steps() -> Steps[object]:
        try:
            yield (yield Telling(ASKED))
            yield ENOUGH
        finally:
            closed.append("steps")

    going = driven(steps(), Writes(lambda _: "abc", can=TEXTS))
    assert next(going) == "abc"
    going.close()

    async def first() -> object:
        awaited = adriven(steps(), Writes(lambda _: "abc", can=TEXTS))
        came = await anext(awaited)
        await awaited.aclose()
        return came

    assert asyncio.run(first()) == "abc"
    assert sorted(closed) == ["steps", "steps", "stream", "stream"]
