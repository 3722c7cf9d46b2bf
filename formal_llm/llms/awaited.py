"""Protocols of models that write text asynchronously: those of :mod:`formal_llm.llms.generation`, prefixed with ``a``.

A model that waits for a network or a server has these methods beside the synchronous ones. For a model without them an
agent calls the synchronous ones in a thread, so asynchronous callers work with any model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol, TypeAlias, Unpack, runtime_checkable

from formal_llm.llms.generation import STREAMS, Generated, GeneratedObject, Messages, TextOptions, Writing, in_one_piece
from formal_llm.llms.llm import LLM, aanswered
from formal_llm.llms.schemas import Schema

#: An asynchronously streamed text: its pieces, and finally the whole text with its usage.
AsyncStream: TypeAlias = AsyncGenerator[str | Generated]


@runtime_checkable
class AsyncTextLLM(Protocol):
    """A ``TextLLM`` with an asynchronous method, which raises the same errors; so do those below."""

    async def agenerate(self, messages: Messages, **how: Unpack[TextOptions]) -> Generated:
        """Like ``generate``, asynchronously."""
        ...


@runtime_checkable
class AsyncContinuingLLM(Protocol):
    """A ``ContinuingLLM`` with an asynchronous method."""

    async def acontinue_text(self, prompt: str, **how: Unpack[TextOptions]) -> Generated:
        """Like ``continue_text``, asynchronously."""
        ...


@runtime_checkable
class AsyncObjectLLM(Protocol):
    """An ``ObjectLLM`` with an asynchronous method."""

    async def agenerate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """Like ``generate_object``, asynchronously."""
        ...


@runtime_checkable
class AsyncStreamingLLM(Protocol):
    """A ``StreamingLLM`` with an asynchronous method."""

    def astream(self, messages: Messages, **how: Unpack[TextOptions]) -> AsyncStream:
        """Like ``stream``, asynchronously; close the stream with ``aclose`` to stop early."""
        ...


@runtime_checkable
class AsyncStreamingContinuingLLM(Protocol):
    """A ``StreamingContinuingLLM`` with an asynchronous method."""

    def astream_continuation(self, prompt: str, **how: Unpack[TextOptions]) -> AsyncStream:
        """Like ``stream_continuation``, asynchronously; close the stream with ``aclose`` to stop early."""
        ...


async def astreamed_by(asked: Writing, llm: LLM) -> AsyncStream:
    """Like :meth:`Writing.streamed_by`: with the model's asynchronous methods if it has them, else in threads.

    Raises:
        WritesNoText: the model cannot write texts of this kind.
    """
    import asyncio  # imported here: it takes half of this library's import time, and is rarely needed

    way = asked.way(llm)
    name = STREAMS.get(way[0], "") if way is not None else ""
    if way is not None and (method := getattr(llm, f"a{name}", None)) is not None:
        async with aclosing(method(*way[1], **way[2])) as stream:
            async for part in stream:
                yield part
    elif way is not None and hasattr(llm, name):
        waiting = asked.streamed_by(llm)
        try:
            while (part := await asyncio.to_thread(next, waiting, None)) is not None:
                yield part
        finally:
            await asyncio.to_thread(waiting.close)
    else:
        for part in in_one_piece(await aanswered(llm, asked)):
            yield part
