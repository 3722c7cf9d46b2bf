"""Choosing by structured output: what the adapters to hosted models share.

A model is asked for a JSON object whose one field is an enum of the option numbers, so a provider that keeps to the
schema cannot answer with anything else. What comes back is still read strictly: no provider is trusted to keep to it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from formal_llm.errors import InvalidAnswer, ProviderError
from formal_llm.llms.question import Answer, Question, TokenUsage

#: Why an answer is none, in the words that the model reads when it is asked again.
REFUSED = "it was refused"
CUT_OFF = "it was cut off at the limit of tokens"
FILTERED = "it was stopped by the content filter"


class Reply(NamedTuple):
    """What a provider sent back.

    Attributes:
        text: what the model wrote.
        usage: what it cost.
        stopped: what kept the model from finishing its answer; empty if nothing did.
    """

    text: str
    usage: TokenUsage
    stopped: str = ""


class SchemaLLM(ABC):
    """A hosted model that chooses by structured output; a subclass knows how its provider is spoken to.

    Args:
        name: the provider string, ``provider:MODEL``.
        sdk_error: the base of the exceptions of the provider's SDK.
    """

    def __init__(self, name: str, sdk_error: type[Exception]) -> None:
        self.name = name
        self._sdk_error = sdk_error

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def choose(self, question: Question) -> Answer:
        """Answer ``question`` with one request (the SDK repeats it by itself after passing failures).

        Raises:
            InvalidAnswer: the model answered something else, refused, or did not finish; with what it cost.
            ProviderError: no answer came: no connection, a refused key, an unknown model, a rate limit.
        """
        try:
            response = self._send(question, choice_schema(question))
        except (self._sdk_error, json.JSONDecodeError, UnicodeError) as error:
            raise provider_error(self.name, error) from error
        try:
            reply = self._reply(response)
        except (AttributeError, IndexError, TypeError) as error:
            # The SDKs do not check a response: a page of HTML comes through as a string, missing fields stay missing.
            raise provider_error(self.name, error) from error
        return read_reply(question, reply)

    @abstractmethod
    def _send(self, question: Question, schema: dict[str, object]) -> Any:
        """Make the request; the SDK's response."""

    @abstractmethod
    def _reply(self, response: Any) -> Reply:
        """What the SDK's response says."""


def choice_schema(question: Question) -> dict[str, object]:
    """The JSON schema of an answer: ``{"choice": n}``, or ``{"choices": [n, ...]}`` where several may be chosen."""
    number: dict[str, object] = {"type": "integer", "enum": list(range(1, len(question.options) + 1))}
    key = _key(question)
    value = {"type": "array", "items": number} if question.several else number
    # Strict output, at both providers, wants every field required and no other field allowed.
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


def read_reply(question: Question, reply: Reply) -> Answer:
    """The answer that ``reply`` gives: JSON of the schema, or else what :meth:`Question.read` understands.

    Raises:
        InvalidAnswer: it gives none; with what it cost.
    """
    try:
        if reply.stopped:
            raise InvalidAnswer(reply.stopped, [(question.prompt, reply.text)])
        numbers = _numbers(question, reply.text)
        if numbers is None:
            return question.read(reply.text, usage=reply.usage)
        return question.check(Answer(numbers, text=reply.text, usage=reply.usage))
    except InvalidAnswer as error:
        raise InvalidAnswer(error.problem, error.transcript, reply.usage) from None


def _key(question: Question) -> str:
    return "choices" if question.several else "choice"


def _numbers(question: Question, text: str) -> tuple[int, ...] | None:
    """The numbers in ``text`` if it is JSON of the right shape; whether they are options is not looked at."""
    try:
        # Objects are read as tuples of pairs, so that a field given twice is seen.
        pairs = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    if not (isinstance(pairs, tuple) and len(pairs) == 1 and pairs[0][0] == _key(question)):
        return None
    value = pairs[0][1]
    numbers = value if question.several else [value]
    # ``type`` and not ``isinstance``: true and false are no numbers.
    if not (isinstance(numbers, list) and all(type(number) is int for number in numbers)):
        return None
    return tuple(numbers)


def provider_error(name: str, error: Exception) -> ProviderError:
    """The ``ProviderError`` for an exception of an SDK: what failed and what to do about it.

    Args:
        name: the provider string.
        error: an exception of the SDK (both SDKs name theirs alike), or one from reading what came back.
    """
    prefix = name.partition(":")[0].upper()
    key, url = f"{prefix}_API_KEY", f"{prefix}_BASE_URL"
    status = getattr(error, "status_code", None)
    # A connection error's own words are left out: they may quote the request's headers, and the key with them.
    kind = type(error).__name__
    if kind == "APITimeoutError":
        what = "no answer came in time; try again, or give a client with a longer timeout"
    elif kind == "APIConnectionError":
        what = f"the server cannot be reached, or it hung up; check the network and {url}"
    elif not isinstance(status, int) or status < 400:
        what = f"the request could not be made, or what came back cannot be read ({kind}); check {url} and {key}"
    elif status in (401, 403):
        what = f"the key was refused for this model; check {key}"
    elif status == 404:
        what = f"there is no such model or no such address; check the name of the model and {url}"
    elif status == 429:
        what = "too many requests, or the quota is used up; wait, or give a client with more max_retries"
    elif status >= 500:
        what = "the server failed, again and again; try again later"
    else:
        what = "the request was refused; the model must know structured output (a JSON schema with an enum)"
    said = "" if status is None else f" (status {status}: {_said(error)})"
    return ProviderError(f"{name}: {what}{said}", error)


def _said(error: Exception) -> str:
    """The provider's own words: one SDK has them as an attribute, the other in the body."""
    body = getattr(error, "body", None)
    said = getattr(error, "api_message", None) or (body.get("message") if isinstance(body, dict) else None)
    return " ".join(str(said or error).split())[:300]
