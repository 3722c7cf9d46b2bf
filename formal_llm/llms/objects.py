"""Requests for objects to any model that writes, with one more request if the answer cannot be used.

A provider of structured output enforces the schema for its models (:class:`ObjectLLM`). A model that only writes text
sees the schema and is asked for JSON. In both cases the answer is checked here. If it does not satisfy the schema, the
model gets the reason and is asked once more; a second failure is an error. Nothing is repaired.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import TypeAlias

from formal_llm.errors import InvalidAnswer, LLMError, NotRecorded, UnreadableResponse, WritesNoText
from formal_llm.llms.driven import driven
from formal_llm.llms.generation import GeneratedObject, Messages, ObjectLLM, TextLLM, Writing, chat
from formal_llm.llms.question import Answer, Message
from formal_llm.llms.schemas import Schema, check_schema, portable
from formal_llm.llms.texts import Texts
from formal_llm.llms.usage import TokenUsage

#: A model that can write objects.
Writer: TypeAlias = ObjectLLM | TextLLM
#: Checks more than the schema: returns what is wrong with an object, in words for the model, or None.
Check: TypeAlias = Callable[[Mapping[str, object]], "str | None"]

#: The instruction before the schema, for models whose provider does not enforce it.
INSTRUCTION = "Answer with one JSON object that keeps this JSON schema, and with nothing else:"
#: The message to a model whose object cannot be used.
REPAIR = "That cannot be used: {problem}. Write the whole JSON object again, with this put right, and nothing else."
#: The maximum number of characters of its answer that a model sees again.
_SHOWN = 4_000


def generate_object(
    llm: Writer,
    messages: Messages,
    schema: Schema,
    *,
    max_tokens: int = 2048,
    temperature: float = 0.0,
    tries: int = 2,
    check: Check | None = None,
    before_again: Callable[[InvalidAnswer], None] | None = None,
) -> GeneratedObject:
    """Return the object that a model writes next; it satisfies the schema.

    Args:
        llm: the model.
        messages: the chat; a single text stands for a message of the user.
        schema: the schema of the object, see :mod:`formal_llm.llms.schemas`.
        max_tokens: see :meth:`TextLLM.generate`.
        temperature: see :meth:`TextLLM.generate`.
        tries: the maximum number of requests. A response that cannot be read at all is not the model's fault: the same
            request is then repeated.
        check: checks what the schema cannot express.
        before_again: called before each repetition with the error; may raise an error to stop.

    Returns:
        The object; its usage covers all tries.

    Raises:
        InvalidAnswer: the last answer cannot be used; has the transcript and the usage of all tries.
        WritesNoText: the model writes no text.
        ProviderError: the server gave no answer; the ``usage`` of the error covers the earlier tries.
        ValueError: the schema is not supported.
    """
    steps = object_steps(
        messages, schema, held=isinstance(llm, ObjectLLM), max_tokens=max_tokens, temperature=temperature,
        tries=tries, check=check, before_again=before_again,
    )  # fmt: skip
    return driven(steps, partial(written, llm))


def written(llm: object, asked: Writing) -> Answer:
    """Return the text that a model writes.

    Raises:
        WritesNoText: the model writes no text.
    """
    answer = asked.written_by(llm)
    if answer is None:
        raise WritesNoText(llm, "write an object")
    return answer


def object_steps(
    messages: Messages,
    schema: Schema,
    *,
    held: bool,
    max_tokens: int = 2048,
    temperature: float = 0.0,
    tries: int = 2,
    check: Check | None = None,
    before_again: Callable[[InvalidAnswer], None] | None = None,
) -> Generator[Writing, Answer, GeneratedObject]:
    """Like :func:`generate_object`, as a generator that yields requests and receives answers or errors.

    If the answering model is ``held`` to the schema, it is sent with the request; otherwise it is shown in the chat.
    """
    check_schema(schema)
    opening = chat(messages)
    current, usage = opening, TokenUsage()
    transcript: list[tuple[str, str]] = []
    while True:
        tries -= 1
        try:
            prompt = current if held else with_schema(current, schema)
            enforced = schema if held else None
            answer = yield Writing(prompt, max_tokens=max_tokens, temperature=temperature, schema=enforced)
            # The answer is checked, whichever model wrote it.
            generated = GeneratedObject.read(answer.text, schema, answer.usage, prompt[-1].content)
            problem = check(generated.value) if check is not None else None
            if problem is None:
                return GeneratedObject(generated.value, generated.text, usage + generated.usage)
            raise InvalidAnswer(problem, [(current[-1].content, generated.text)], generated.usage)
        except InvalidAnswer as error:
            transcript += error.transcript
            usage += error.usage or TokenUsage()
            if tries < 1:
                raise InvalidAnswer(error.problem, transcript, usage) from None
            if before_again is not None:
                before_again(error)
            text = error.transcript[-1][1][:_SHOWN] if error.transcript else ""
            repair = Message("user", REPAIR.format(problem=error.problem[:_SHOWN]))
            current = (*opening, *([Message("assistant", text)] if text.strip() else []), repair)
        except LLMError as error:
            if tries < 1 or not isinstance(error, UnreadableResponse):
                error.usage = usage + (error.usage or TokenUsage())
                raise


def with_schema(messages: tuple[Message, ...], schema: Schema) -> tuple[Message, ...]:
    """Add the schema and a request for JSON to the last message, for a model whose provider does not enforce it."""
    *earlier, last = messages
    schema_text = json.dumps(portable(schema, lists=True), ensure_ascii=False)
    return (*earlier, Message(last.role, f"{last.content}\n\n{INSTRUCTION}\n{schema_text}"))


def recorded_object(
    texts: Texts, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
) -> GeneratedObject:
    """Return the object that was recorded for a chat, with or without a provider that enforced the schema.

    Raises:
        InvalidAnswer: the recorded text does not satisfy the schema.
        NotRecorded: there is no such recording, or too few of them.
    """
    try:
        return texts.generate_object(messages, schema, max_tokens=max_tokens, temperature=temperature)
    except NotRecorded as error:
        with_request = with_schema(chat(messages), schema)
        try:
            generated = texts.generate(with_request, max_tokens=max_tokens, temperature=temperature)
        except NotRecorded:
            raise error from None
        return GeneratedObject.read(generated.text, schema, generated.usage, with_request[-1].content)


class ObjectFunction:
    """Writes the objects that a function returns: a double for tests, examples and custom models.

    Args:
        function: called with the chat and the schema; returns an object or its text, which is checked like that of any
            model.

    Attributes:
        asked: the chats so far.
    """

    def __init__(
        self, function: Callable[[tuple[Message, ...], Schema], Mapping[str, object] | str], name: str = "function"
    ) -> None:
        self._function = function
        self.name = name
        self.asked: list[tuple[Message, ...]] = []

    @classmethod
    def scripted(cls, *objects: Mapping[str, object] | str) -> ObjectFunction:
        """Create a model that writes prepared objects in turn, then fails with ``InvalidAnswer``."""
        left = iter(objects)

        def next_one(messages: tuple[Message, ...], _: Schema) -> Mapping[str, object] | str:
            for one in left:
                return one
            raise InvalidAnswer("the script has no more objects", [(messages[-1].content, "")], TokenUsage())

        return cls(next_one, "script")

    def generate_object(
        self,
        messages: Messages,
        schema: Schema,
        *,
        max_tokens: int = 2048,  # noqa: ARG002  # the function uses neither
        temperature: float = 0.0,  # noqa: ARG002
    ) -> GeneratedObject:
        """Return the function's object, checked; see :class:`~formal_llm.llms.generation.ObjectLLM`."""
        chat_messages = chat(messages)
        self.asked.append(chat_messages)
        returned: object = self._function(chat_messages, schema)
        if inspect.iscoroutine(returned):
            returned.close()
            raise TypeError("the function returns a coroutine, not an object")
        text = returned if isinstance(returned, str) else json.dumps(returned, ensure_ascii=False, default=repr)
        size = sum(len(message.content) for message in chat_messages) // 4
        return GeneratedObject.read(text, schema, TokenUsage(1, size, len(text) // 4), chat_messages[-1].content)
