"""TextRequest sans I/O: requests go out, answers come in, and one driver waits while another awaits.

The *steps* of a writer, or of a whole run, are a generator. Events come out, and so do requests::

    a question          its answer is sent in; a text as a whole is one, too
    Telling(writing)    a text that is to come piece by piece: its first piece is sent in
    MORE                the next piece, and last of all the whole
    ENOUGH              what is left of it is not wanted
    Do(work)            what a function returns: a tool, which may take its time; it may have to be awaited

An error that comes in the place of an answer is thrown in. So what planning does with walks holds here, too: no input,
no output, and everything written once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, ExitStack, aclosing, closing
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from formal_llm.llms.driven import resumed
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import CUT_OFF, Stream, TextRequest, estimate_usage
from formal_llm.llms.usage import TokenUsage

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Telling:
    """A text that is to come piece by piece."""

    asked: TextRequest


@dataclass(frozen=True, slots=True)
class Do:
    """Something to be done that may take its time.

    Attributes:
        work: does it.
        awaited: does the same without blocking the event loop; default: ``work`` in a thread.
    """

    work: Callable[[], object]
    awaited: Callable[[], Awaitable[object]] | None = None


class Wish(Enum):
    """What is wanted of a text that comes piece by piece."""

    MORE = "more"
    ENOUGH = "enough"


MORE, ENOUGH = Wish.MORE, Wish.ENOUGH
Step: TypeAlias = Question | Telling | Wish | Do
#: What comes out of a generator, and what it returns. What goes in depends on what came out, so it has no type.
Going: TypeAlias = Generator[T, Any, R]
#: Events and requests.
Steps: TypeAlias = Going[T | Step, None]
#: What is asked for on the way to a result.
Asks: TypeAlias = Going[Step, R]


class IncomingText:
    """A text that was asked for, as it comes: in one piece, or in many.

    Args:
        streaming: whether it is to come in many.

    Attributes:
        text: what has come.
        made: the whole; None before.
    """

    def __init__(self, asked: TextRequest, *, streaming: bool) -> None:
        self._asked, self._streaming, self._begun = asked, streaming, False
        self.text = ""
        self.made: Answer | None = None

    @property
    def stopped(self) -> str:
        """Why the whole is not whole, see :class:`~formal_llm.llms.Answer`; empty before it has come."""
        return "" if self.made is None else self.made.stopped

    def read_next(self) -> Asks[str]:
        """The next piece; at the end an empty one."""
        if self.made is not None:
            return ""
        if not self._streaming:
            answer: Answer = yield self._asked
            self.made = answer
            self.text = answer.text
            return self.text
        came = yield MORE if self._begun else Telling(self._asked)
        self._begun = True
        if came is None or isinstance(came, Answer):
            self.made = came or Answer((), text=self.text, usage=TokenUsage(1))
            return ""
        self.text += came
        return str(came)

    def close(self) -> Asks[Answer]:
        """The whole; what is streamed is closed where it is not read to its end, and its usage is estimated."""
        if self.made is None:
            yield ENOUGH
            self.made = Answer((), text=self.text, usage=estimate_usage(self._asked, self.text))
        return self.made

    def give_up(self) -> Answer:
        """What has come of a stream that broke off, with its usage estimated."""
        usage = estimate_usage(self._asked, self.text)
        self.made = Answer((), text=self.text, usage=usage, stopped=CUT_OFF)
        return self.made


def relay_steps(steps: Going[T, R], take: Callable[[T], bool]) -> Going[T, R]:
    """Steps of which ``take`` sees what comes out, and decides whether to continue; its errors are thrown in."""
    came: object = None
    with closing(steps):
        while True:
            try:
                step = resumed(steps, came)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # the value of a generator's return
            came = None
            try:
                if take(step):
                    came = yield step
            except Exception as error:
                came = error


def driven(steps: Steps[T], llm: LLM) -> Generator[T]:
    """The events of steps, while a model answers."""
    came: object = None
    coming: Stream | None = None
    with closing(steps), ExitStack() as streams:
        while True:
            try:
                step = resumed(steps, came)
            except StopIteration:
                return
            came = None
            try:
                match step:
                    case Question():
                        came = llm.ask(step)
                    case Telling(asked):
                        coming = streams.enter_context(closing(llm.stream(asked)))
                        came = next(coming, None)
                    case Wish.MORE:
                        assert coming is not None
                        came = next(coming, None)
                    case Wish.ENOUGH:
                        assert coming is not None
                        coming.close()
                    case Do(work):
                        came = work()
            except Exception as error:
                came = error
            if not isinstance(step, Step):
                yield step


async def adriven(steps: Steps[T], llm: LLM) -> AsyncGenerator[T]:
    """As :func:`driven`, without blocking the event loop: a model is awaited where it can be, else in threads."""
    import asyncio  # half of what importing this library would take, and most never need it

    came: object = None
    coming: AsyncGenerator[str | Answer] | None = None
    async with AsyncExitStack() as streams:
        streams.enter_context(closing(steps))
        while True:
            try:
                step = resumed(steps, came)
            except StopIteration:
                return
            came = None
            try:
                match step:
                    case Question():
                        came = await llm.aask(step)
                    case Telling(asked):
                        coming = await streams.enter_async_context(aclosing(llm.astream(asked)))
                        came = await anext(coming, None)
                    case Wish.MORE:
                        assert coming is not None
                        came = await anext(coming, None)
                    case Wish.ENOUGH:
                        assert coming is not None
                        await coming.aclose()
                    case Do(work, awaited):
                        came = await (asyncio.to_thread(work) if awaited is None else awaited())
            except Exception as error:
                came = error
            if not isinstance(step, Step):
                yield step
