"""A generator that asks: answers go in, errors are thrown in, the result comes out, and it is closed in every case."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Generator
from typing import Any

import pytest

from formal_llm.llms.driven import adriven, driven, resumed

#: What drives, with an answerer that is called or awaited: both have to do the same.
Drive = Callable[[Generator[str, int, Any], Callable[[str], int]], Any]


def awaited(steps: Generator[str, int, Any], answer: Callable[[str], int]) -> Any:
    async def later(asked: str) -> int:
        await asyncio.sleep(0)
        return answer(asked)

    return asyncio.run(adriven(steps, later))


def stepwise(steps: Generator[str, int, Any], answer: Callable[[str], int]) -> Any:
    came: int | Exception | None = None
    while True:
        try:
            asked = resumed(steps, came)
        except StopIteration as end:
            return end.value
        try:
            came = answer(asked)
        except Exception as error:
            came = error


drives = pytest.mark.parametrize("drive", [driven, awaited, stepwise])
whole = pytest.mark.parametrize("drive", [driven, awaited])


class Steps:
    """Asks for so many numbers, bears so many errors, and sums up; tells whether it was closed, and of what."""

    def __init__(self, asks: int, bears: int = 0) -> None:
        self.asks, self.bears = asks, bears
        self.caught: list[Exception] = []
        self.ended: BaseException | str = "not yet"

    def run(self) -> Generator[str, int, list[int]]:
        came: list[int] = []
        try:
            while len(came) < self.asks:
                try:
                    came.append((yield f"number {len(came) + 1}?"))
                except ValueError as error:
                    self.caught.append(error)
                    if len(self.caught) > self.bears:
                        raise KeyError("enough") from error
        except BaseException as error:
            self.ended = error
            raise
        self.ended = "well"
        return came


def script(*answers: int | BaseException) -> Callable[[str], int]:
    left = iter(answers)

    def answer(_: str) -> int:
        given = next(left)
        if isinstance(given, BaseException):
            raise given
        return given

    return answer


@drives
def test_answers_go_in_and_the_result_comes_out(drive: Drive) -> None:
    asked: list[str] = []

    def answer(question: str) -> int:
        asked.append(question)
        return len(asked) * 10

    steps = Steps(3)
    assert drive(steps.run(), answer) == [10, 20, 30]
    assert asked == ["number 1?", "number 2?", "number 3?"]
    assert steps.ended == "well"


@drives
def test_where_nothing_is_asked_nobody_answers(drive: Drive) -> None:
    assert drive(Steps(0).run(), script()) == []


@drives
def test_an_error_is_thrown_in_where_the_answer_would_have_come(drive: Drive) -> None:
    steps, error = Steps(2, bears=1), ValueError("what?")
    assert drive(steps.run(), script(1, error, 2)) == [1, 2]
    assert steps.caught == [error]


@drives
def test_what_the_steps_raise_instead_keeps_its_cause_and_where_it_came_from(drive: Drive) -> None:
    error = ValueError("what?")
    with pytest.raises(KeyError, match="enough") as caught:
        drive(Steps(2).run(), script(error))
    assert caught.value.__cause__ is error
    assert "answer" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@drives
def test_an_error_that_the_steps_let_pass_is_raised_as_it_was(drive: Drive) -> None:
    steps, error = Steps(2), TypeError("gone")
    with pytest.raises(TypeError) as caught:
        drive(steps.run(), script(1, error))
    assert caught.value is error
    assert steps.ended is error
    assert error.__context__ is None
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert "answer" in names
    assert "run" in names


@drives
def test_an_answerer_that_runs_out_is_no_end_of_the_steps(drive: Drive) -> None:
    """A ``StopIteration`` of the answerer would otherwise pass for the end, and None for the result."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        drive(Steps(2).run(), script(1))


@whole
@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_what_is_no_exception_closes_the_steps_and_is_not_thrown_in(drive: Drive, stop: BaseException) -> None:
    steps = Steps(2)
    with pytest.raises(type(stop)) as caught:
        drive(steps.run(), script(1, stop))
    assert caught.value is stop
    assert type(steps.ended) is GeneratorExit
    assert steps.ended is not stop


def test_a_cancelled_drive_closes_the_steps() -> None:
    steps = Steps(2)

    async def never(_: str) -> int:
        asking.set()
        await asyncio.Event().wait()
        return 1

    async def cancelled() -> None:
        driving = asyncio.ensure_future(adriven(steps.run(), never))
        await asking.wait()
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        assert isinstance(steps.ended, GeneratorExit)

    asking = asyncio.Event()
    asyncio.run(cancelled())


def test_others_go_on_while_an_answer_is_awaited() -> None:
    async def together() -> list[list[int]]:
        here = asyncio.Barrier(3)

        async def answer(_: str) -> int:
            await asyncio.wait_for(here.wait(), 10)
            return 1

        return await asyncio.gather(*(adriven(Steps(2).run(), answer) for _ in range(3)))

    assert asyncio.run(together()) == [[1, 1]] * 3
