"""Writing for those who answer questions: a text is asked for as a question without options, and is its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from formal_llm.llms.generation import Generated, GeneratedObject, Messages, Writing
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.schemas import Schema


class Texts:
    """Writes by answering :class:`Writing` requests, for an LLM that takes them.

    Args:
        choose: answers them.
    """

    def __init__(self, choose: Callable[[Question], Answer]) -> None:
        self._choose = choose

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes next in a chat, see :meth:`TextLLM.generate`."""
        made = self._choose(Writing(messages, max_tokens=max_tokens, stop=stop, temperature=temperature))
        return Generated(made.text, made.usage, made.ended)

    def continue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes after a text, see :meth:`ContinuingLLM.continue_text`."""
        asked = Writing(prompt, max_tokens=max_tokens, stop=stop, temperature=temperature, continues=True)
        made = self._choose(asked)
        return Generated(made.text, made.usage, made.ended)

    def generate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """The object that comes next in a chat, see :meth:`ObjectLLM.generate_object`."""
        asked = Writing(messages, max_tokens=max_tokens, temperature=temperature, schema=schema)
        made = self._choose(asked)
        return GeneratedObject.read(made.text, schema, made.usage, asked.prompt)


class AsyncTexts:
    """Writes by answering :class:`Writing` requests, for an LLM that is awaited and takes them; see ``Texts``.

    Args:
        choose: answers them.
    """

    def __init__(self, choose: Callable[[Question], Awaitable[Answer]]) -> None:
        self._choose = choose

    async def agenerate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes next in a chat."""
        made = await self._choose(Writing(messages, max_tokens=max_tokens, stop=stop, temperature=temperature))
        return Generated(made.text, made.usage, made.ended)

    async def acontinue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes after a text."""
        asked = Writing(prompt, max_tokens=max_tokens, stop=stop, temperature=temperature, continues=True)
        made = await self._choose(asked)
        return Generated(made.text, made.usage, made.ended)

    async def agenerate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """The object that comes next in a chat."""
        asked = Writing(messages, max_tokens=max_tokens, temperature=temperature, schema=schema)
        made = await self._choose(asked)
        return GeneratedObject.read(made.text, schema, made.usage, asked.prompt)
