"""Asking for objects: of any model that writes, with one more request where what came back cannot be used.

A model behind a provider of structured output is held to the schema by that (:class:`ObjectLLM`). A model that writes
text alone is shown the schema and asked for JSON. In both cases what comes back is checked here. Where it does not keep
the schema, the model is shown what is wrong and asked once more; then that is an error. Nothing is mended.
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

#: An LLM that can be asked for an object.
Writer: TypeAlias = ObjectLLM | TextLLM
#: Looks at an object beyond its schema: what is wrong with it, in words for the model, or None.
Check: TypeAlias = Callable[[Mapping[str, object]], "str | None"]

#: The text before the schema for a model that is not held to it.
INSTRUCTION = "Answer with one JSON object that keeps this JSON schema, and with nothing else:"
#: The text for a model whose object cannot be used.
REPAIR = "That cannot be used: {problem}. Write the whole JSON object again, with this put right, and nothing else."
#: How much of what was written a model is shown again.
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
    """The object that a model writes next; it keeps the schema.

    Args:
        llm: the model.
        messages: the chat; a text alone is what the user says.
        schema: what is asked for, see :mod:`formal_llm.llms.schemas`.
        max_tokens: as of :meth:`TextLLM.generate`.
        temperature: as there.
        tries: how often it may be asked. A response that cannot be read at all is no fault of the model: then the same
            is asked again.
        check: tests what the schema cannot express.
        before_again: called before it is asked again, with what was wrong; may raise to put an end to it.

    Returns:
        The object; its usage covers all tries.

    Raises:
        InvalidAnswer: after the last try, with the transcript of all and what they cost.
        WritesNoText: the model does not write.
        ProviderError: no answer came; its ``usage`` is that of the tries before.
        ValueError: the schema is none that is known.
    """
    steps = object_steps(
        messages, schema, held=isinstance(llm, ObjectLLM), max_tokens=max_tokens, temperature=temperature,
        tries=tries, check=check, before_again=before_again,
    )  # fmt: skip
    return driven(steps, partial(written, llm))


def written(llm: object, asked: Writing) -> Answer:
    """What a model writes.

    Raises:
        WritesNoText: the model does not write.
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
    """As :func:`generate_object`, sans I/O: requests come out, answers go in, and errors are thrown in.

    Where the model is ``held`` to the schema it goes with the request; else it is shown. All else is as there.
    """
    check_schema(schema)
    talk = chat(messages)
    asked, usage = talk, TokenUsage()
    transcript: list[tuple[str, str]] = []
    while True:
        tries -= 1
        try:
            told = asked if held else with_schema(asked, schema)
            how = schema if held else None
            answer = yield Writing(told, max_tokens=max_tokens, temperature=temperature, schema=how)
            # Every answer is checked.
            made = GeneratedObject.read(answer.text, schema, answer.usage, told[-1].content)
            problem = check(made.value) if check is not None else None
            if problem is None:
                return GeneratedObject(made.value, made.text, usage + made.usage)
            raise InvalidAnswer(problem, [(asked[-1].content, made.text)], made.usage)
        except InvalidAnswer as error:
            transcript += error.transcript
            usage += error.usage or TokenUsage()
            if tries < 1:
                raise InvalidAnswer(error.problem, transcript, usage) from None
            if before_again is not None:
                before_again(error)
            said = error.transcript[-1][1][:_SHOWN] if error.transcript else ""
            asked = (*talk, *([Message("assistant", said)] if said.strip() else []), _repair(error.problem))
        except LLMError as error:
            if tries < 1 or not isinstance(error, UnreadableResponse):
                error.usage = usage + (error.usage or TokenUsage())
                raise


def _repair(problem: str) -> Message:
    return Message("user", REPAIR.format(problem=problem[:_SHOWN]))


def with_schema(messages: tuple[Message, ...], schema: Schema) -> tuple[Message, ...]:
    """A chat for a model that is not held to a schema: the last message asks for JSON and shows it."""
    *earlier, last = messages
    shown = json.dumps(portable(schema, lists=True), ensure_ascii=False)
    return (*earlier, Message(last.role, f"{last.content}\n\n{INSTRUCTION}\n{shown}"))


def recorded_object(
    texts: Texts, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
) -> GeneratedObject:
    """The object that was recorded for a chat: of a model that was held to the schema, else of one that was shown it.

    Raises:
        InvalidAnswer: what was written did not keep the schema.
        NotRecorded: there is neither, or not that often.
    """
    try:
        return texts.generate_object(messages, schema, max_tokens=max_tokens, temperature=temperature)
    except NotRecorded as error:
        told = with_schema(chat(messages), schema)
        try:
            made = texts.generate(told, max_tokens=max_tokens, temperature=temperature)
        except NotRecorded:
            raise error from None
        return GeneratedObject.read(made.text, schema, made.usage, told[-1].content)


class ObjectFunction:
    """Writes what a function returns: a double for tests, examples and models of one's own.

    Args:
        function: called with the chat and the schema; returns an object, or the text of one. What it returns is checked
            as that of any model.
        name: what it is called.

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
        """Writes prepared objects in turn, then fails with ``InvalidAnswer``."""
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
        max_tokens: int = 2048,  # noqa: ARG002  # a function has no use for either
        temperature: float = 0.0,  # noqa: ARG002
    ) -> GeneratedObject:
        """What the function returns, checked; see :class:`~formal_llm.llms.generation.ObjectLLM`."""
        talk = chat(messages)
        self.asked.append(talk)
        given: object = self._function(talk, schema)
        if inspect.iscoroutine(given):
            given.close()
            raise TypeError("the function returns a coroutine, not an object")
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=repr)
        read = sum(len(message.content) for message in talk) // 4
        return GeneratedObject.read(text, schema, TokenUsage(1, read, len(text) // 4), talk[-1].content)
