"""Driving a generator that asks: what it asks for comes out, answers go in, and what it returns is the result.

So the generator never waits, and it is written once for those who answer at once and for those
who are awaited::

    def twice():
        first = yield "How many?"
        return first + (yield "And then?")

    driven(twice(), lambda question: 3)    # 6

What is raised in the place of an answer is thrown in where the answer would have come: the generator may ask again, or
let it pass. What is no ``Exception`` (Ctrl-C, a cancelled task) is not thrown in. The generator is closed in any case.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from typing import TypeVar, cast

Asked = TypeVar("Asked")
Given = TypeVar("Given")
Result = TypeVar("Result")


def driven(steps: Generator[Asked, Given, Result], answer: Callable[[Asked], Given]) -> Result:
    """What comes of steps whose requests are answered one after the other.

    Args:
        steps: the generator, not yet begun.
        answer: answers one request; what it raises is thrown into the steps.

    Raises:
        Exception: what the steps raise, or let pass.
    """
    with closing(steps):
        try:
            asked = next(steps)
            while True:
                try:
                    given = answer(asked)
                except Exception as error:
                    asked = steps.throw(error)
                else:
                    asked = steps.send(given)
        except StopIteration as end:
            return cast("Result", end.value)


async def adriven(steps: Generator[Asked, Given, Result], answer: Callable[[Asked], Awaitable[Given]]) -> Result:
    """As :func:`driven`, without blocking the event loop while an answer is awaited."""
    with closing(steps):
        try:
            asked = next(steps)
            while True:
                try:
                    given = await answer(asked)
                except Exception as error:
                    asked = steps.throw(error)
                else:
                    asked = steps.send(given)
        except StopIteration as end:
            return cast("Result", end.value)


def resumed(steps: Generator[Asked, Given, object], came: Given | Exception | None) -> Asked:
    """One step of a drive, for those who do other things in between: what is asked for after an answer, or an error.

    Args:
        steps: the generator.
        came: the answer, which is sent in; or what was raised in its place, which is thrown in. None begins.

    Raises:
        StopIteration: the steps have ended; its value is the result.
        Exception: what the steps raise, or let pass.
    """
    return steps.throw(came) if isinstance(came, Exception) else steps.send(cast("Given", came))
