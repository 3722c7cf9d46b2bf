"""Requests for objects to any model that writes, with one more request if the answer cannot be used.

A provider of structured output enforces the schema for its models. A model that only writes text is shown the schema
and asked for JSON. In both cases the answer is checked here. If it does not satisfy the schema, the model gets the
reason and is asked once more; a second failure is an error. Nothing is repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from formal_llm.errors import InvalidAnswer, LLMError, UnreadableResponse
from formal_llm.llms.driven import driven
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Message
from formal_llm.llms.schemas import Schema, check_schema, read_object
from formal_llm.llms.text_request import Messages, TextRequest, chat
from formal_llm.llms.usage import NO_TOKENS, TokenUsage

#: Checks more than the schema: returns what is wrong with an object, in words for the model, or None.
Check: TypeAlias = Callable[[Mapping[str, object]], "str | None"]

#: The message to a model whose object cannot be used.
REPAIR = "That cannot be used: {problem}. Write the whole JSON object again, with this put right, and nothing else."
#: The maximum number of characters of its answer that a model sees again.
_SHOWN = 4_000


@dataclass(frozen=True, slots=True)
class WrittenObject:
    """An object that a model wrote and that satisfies its schema, the text from which it was read, and its usage."""

    value: dict[str, object]
    text: str
    usage: TokenUsage = NO_TOKENS


def ask_object(
    llm: LLM,
    messages: Messages,
    schema: Schema,
    *,
    max_tokens: int = 2048,
    temperature: float = 0.0,
    tries: int = 2,
    check: Check | None = None,
    before_again: Callable[[InvalidAnswer], None] | None = None,
) -> WrittenObject:
    """Return the object that a model writes next; it satisfies the schema.

    Args:
        llm: the model.
        messages: the chat; a single text stands for a message of the user.
        schema: the schema of the object, see :mod:`formal_llm.llms.schemas`.
        max_tokens: see :class:`~formal_llm.llms.TextRequest`.
        temperature: see there, too.
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
    request = TextRequest(messages, max_tokens=max_tokens, temperature=temperature, schema=schema)
    return driven(object_steps(request, tries=tries, check=check, before_again=before_again), llm.ask)


def object_steps(
    request: TextRequest,
    *,
    tries: int = 2,
    check: Check | None = None,
    before_again: Callable[[InvalidAnswer], None] | None = None,
) -> Generator[TextRequest, Answer, WrittenObject]:
    """Like :func:`ask_object`, as a generator that yields requests and receives answers or errors.

    The request is one by a schema.
    """
    assert request.schema is not None
    schema = request.schema
    check_schema(schema)
    opening = chat(request.messages)
    current, usage = request, TokenUsage()
    transcript: list[tuple[str, str]] = []
    while True:
        tries -= 1
        try:
            answer = yield current
            try:
                value = read_object(answer.text, schema)
            except ValueError as error:
                raise InvalidAnswer(str(error), [(current.prompt, answer.text)], answer.usage) from None
            problem = check(value) if check is not None else None
            if problem is None:
                return WrittenObject(value, answer.text, usage + answer.usage)
            raise InvalidAnswer(problem, [(current.prompt, answer.text)], answer.usage)
        except InvalidAnswer as error:
            transcript += error.transcript
            usage += error.usage or TokenUsage()
            if tries < 1:
                raise InvalidAnswer(error.problem, transcript, usage) from None
            if before_again is not None:
                before_again(error)
            text = error.transcript[-1][1][:_SHOWN] if error.transcript else ""
            repair = Message("user", REPAIR.format(problem=error.problem[:_SHOWN]))
            repeated = (*opening, *([Message("assistant", text)] if text.strip() else []), repair)
            current = request.replace(messages=repeated)
        except LLMError as error:
            if tries < 1 or not isinstance(error, UnreadableResponse):
                error.usage = usage + (error.usage or TokenUsage())
                raise
