"""Drivers of generators that yield requests, receive answers, and return a result.

The generator itself never waits, so it is written once for synchronous and asynchronous answerers::

    def twice():
        first = yield "How many?"
        return first + (yield "And then?")

    driven(twice(), lambda question: 3)    # 6

An error raised instead of an answer is thrown into the generator, which may repeat the request or let it propagate.
Only subclasses of ``Exception`` are thrown in, not Ctrl-C or cancelled tasks. The generator is always closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from typing import TypeVar, cast

Asked = TypeVar("Asked")
Given = TypeVar("Given")
Result = TypeVar("Result")


def driven(steps: Generator[Asked, Given, Result], answer: Callable[[Asked], Given]) -> Result:
    """Answer the requests of a generator one after the other and return its result.

    Args:
        steps: the generator, not started yet.
        answer: answers one request; its errors are thrown into the generator.

    Raises:
        Exception: an error that the generator raises or lets propagate.
    """
    with closing(steps):
        try:
            request = next(steps)
            while True:
                try:
                    reply = answer(request)
                except Exception as error:
                    request = steps.throw(error)
                else:
                    request = steps.send(reply)
        except StopIteration as end:
            return cast("Result", end.value)


async def adriven(steps: Generator[Asked, Given, Result], answer: Callable[[Asked], Awaitable[Given]]) -> Result:
    """Like :func:`driven`, with an asynchronous ``answer``."""
    with closing(steps):
        try:
            request = next(steps)
            while True:
                try:
                    reply = await answer(request)
                except Exception as error:
                    request = steps.throw(error)
                else:
                    request = steps.send(reply)
        except StopIteration as end:
            return cast("Result", end.value)


def resumed(steps: Generator[Asked, Given, object], came: Given | Exception | None) -> Asked:
    """Resume a generator with an answer or an error and return its next request, for custom drivers.

    An answer that ``came`` is sent in, an error is thrown in; None starts the generator.

    Raises:
        StopIteration: the generator has ended; the value is its result.
        Exception: an error that the generator raises or lets propagate.
    """
    return steps.throw(came) if isinstance(came, Exception) else steps.send(cast("Given", came))
