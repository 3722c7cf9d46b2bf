"""Free text from models that are awaited: the protocols of :mod:`formal_llm.llms.generation` with an ``a`` in front.

A model that waits for others (a network, a server) has them beside those that wait. What an agent needs of a model that
has none of them is done in a thread, so callers need not distinguish.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol, TypeAlias, runtime_checkable

from formal_llm.llms.generation import STREAMS, Generated, GeneratedObject, Messages, Writing, in_one_piece
from formal_llm.llms.llm import LLM, aanswered
from formal_llm.llms.schemas import Schema

#: A text as it comes, awaited: its pieces, and last of all the whole, with what it cost.
AsyncStream: TypeAlias = AsyncGenerator[str | Generated]


@runtime_checkable
class AsyncTextLLM(Protocol):
    """A ``TextLLM`` that can also be awaited. What it raises is the same, here and below."""

    async def agenerate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """As ``generate``, without blocking the event loop."""
        ...


@runtime_checkable
class AsyncContinuingLLM(Protocol):
    """A ``ContinuingLLM`` that can also be awaited."""

    async def acontinue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """As ``continue_text``, without blocking the event loop."""
        ...


@runtime_checkable
class AsyncObjectLLM(Protocol):
    """An ``ObjectLLM`` that can also be awaited."""

    async def agenerate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """As ``generate_object``, without blocking the event loop."""
        ...


@runtime_checkable
class AsyncStreamingLLM(Protocol):
    """A ``StreamingLLM`` that can also be awaited."""

    def astream(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> AsyncStream:
        """As ``stream``, without blocking the event loop; close it (``aclose``) to stop early."""
        ...


@runtime_checkable
class AsyncStreamingContinuingLLM(Protocol):
    """A ``StreamingContinuingLLM`` that can also be awaited."""

    def astream_continuation(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> AsyncStream:
        """As ``stream_continuation``, without blocking the event loop; close it to stop early."""
        ...


async def atold_by(asked: Writing, llm: LLM) -> AsyncStream:
    """As :meth:`Writing.told_by`: awaited where the model can be, else in threads.

    Raises:
        WritesNoText: it writes nothing of this kind.
    """
    import asyncio  # half of what importing this library would take, and most never need it

    way = asked.way(llm)
    name = STREAMS.get(way[0], "") if way is not None else ""
    if way is not None and (awaited := getattr(llm, f"a{name}", None)) is not None:
        async with aclosing(awaited(*way[1], **way[2])) as coming:
            async for came in coming:
                yield came
    elif way is not None and hasattr(llm, name):
        waiting = asked.told_by(llm)
        try:
            while (came := await asyncio.to_thread(next, waiting, None)) is not None:
                yield came
        finally:
            await asyncio.to_thread(waiting.close)
    else:
        for came in in_one_piece(await aanswered(llm, asked)):
            yield came
