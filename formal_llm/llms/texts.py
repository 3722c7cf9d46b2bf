"""Free text from LLMs that answer questions: a text is requested as a question without options, and is its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Unpack

from formal_llm.llms.generation import (
    Generated,
    GeneratedObject,
    Messages,
    TextOptions,
    ToolOffer,
    ToolTurn,
    TurnOptions,
    Writing,
    as_generated,
)
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.schemas import Schema


class ChatTexts:
    """Writes messages by answering :class:`Writing` requests, for an LLM that accepts them."""

    def __init__(self, choose: Callable[[Question], Answer]) -> None:
        self._choose = choose

    def generate(self, messages: Messages, **how: Unpack[TextOptions]) -> Generated:
        """Write the next message of a chat, see :meth:`TextLLM.generate`."""
        return as_generated(self._choose(Writing(messages, **how)))

    def take_turn(self, messages: Messages, tools: Sequence[ToolOffer], **how: Unpack[TurnOptions]) -> Generated:
        """Write the next message of a chat with tools, see :meth:`ToolCallingLLM.take_turn`."""
        return as_generated(self._choose(ToolTurn(messages, tools, **how)))

    def generate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """Write the next message of a chat as an object, see :meth:`ObjectLLM.generate_object`."""
        request = Writing(messages, max_tokens=max_tokens, temperature=temperature, schema=schema)
        answer = self._choose(request)
        return GeneratedObject.read(answer.text, schema, answer.usage, request.prompt)


class Texts(ChatTexts):
    """Writes messages and continues texts, likewise."""

    def continue_text(self, prompt: str, **how: Unpack[TextOptions]) -> Generated:
        """Write the continuation of a text, see :meth:`ContinuingLLM.continue_text`."""
        return as_generated(self._choose(Writing(prompt, continues=True, **how)))


class AsyncChatTexts:
    """Like :class:`ChatTexts`, asynchronously."""

    def __init__(self, achoose: Callable[[Question], Awaitable[Answer]]) -> None:
        self._achoose = achoose

    async def agenerate(self, messages: Messages, **how: Unpack[TextOptions]) -> Generated:
        """Write the next message of a chat."""
        return as_generated(await self._achoose(Writing(messages, **how)))

    async def atake_turn(self, messages: Messages, tools: Sequence[ToolOffer], **how: Unpack[TurnOptions]) -> Generated:
        """Write the next message of a chat with tools."""
        return as_generated(await self._achoose(ToolTurn(messages, tools, **how)))

    async def agenerate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """Write the next message of a chat as an object."""
        request = Writing(messages, max_tokens=max_tokens, temperature=temperature, schema=schema)
        answer = await self._achoose(request)
        return GeneratedObject.read(answer.text, schema, answer.usage, request.prompt)


class AsyncTexts(AsyncChatTexts):
    """Like :class:`Texts`, asynchronously."""

    async def acontinue_text(self, prompt: str, **how: Unpack[TextOptions]) -> Generated:
        """Write the continuation of a text."""
        return as_generated(await self._achoose(Writing(prompt, continues=True, **how)))
