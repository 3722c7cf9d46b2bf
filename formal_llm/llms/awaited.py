"""Texts that are streamed asynchronously.

A model that waits for a network or a server has the methods of :mod:`formal_llm.llms.generation` again, prefixed
with ``a``. For a model without them the synchronous ones are called in a thread, so asynchronous callers work with any
model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeAlias

from formal_llm.llms.generation import STREAMS, Generated, Writing, in_one_piece
from formal_llm.llms.llm import LLM, aanswered

#: An asynchronously streamed text: its pieces, and finally the whole text with its usage.
AsyncStream: TypeAlias = AsyncGenerator[str | Generated]


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
