"""A choice as structured output: the JSON schema that a model is held to, and the strict reading of what it wrote.

The schema has one field, an enum of the option numbers, so a provider that keeps to it cannot answer with anything
else. What comes back is still read strictly: no provider is trusted to keep to it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.hosted.adapter import invalid
from formal_llm.llms.hosted.logprobs import option_probabilities, read_tokens
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage


class Reply(NamedTuple):
    """What a provider sent back: what the model wrote, and what it cost.

    Attributes:
        stopped: what kept the model from finishing its answer; empty if nothing did.
        logprobs: the token probabilities in the form of OpenAI's chat completions, as plain data.
    """

    text: str
    usage: TokenUsage
    stopped: str = ""
    logprobs: object = None


def choice_schema(question: Question, *, bounded: bool = False) -> dict[str, object]:
    """The JSON schema of an answer: ``{"choice": n}``, or ``{"choices": [n, ...]}`` where several may be chosen.

    Args:
        question: the question.
        bounded: whether a list is also bounded in its length. Local servers need that, a small model may write on for
            ever; hosted ones stop by themselves, and not all of them know the keyword.
    """
    last = len(question.options)
    number: dict[str, object] = {"type": "integer", "enum": list(range(1, last + 1))}
    key = _key(question)
    value: dict[str, object] = number
    if question.several:
        value = {"type": "array", "items": number}
        if bounded:
            value |= {"minItems": 1, "maxItems": last}
    # Strict output, at all providers, wants every field required and no other field allowed.
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


def read_reply(question: Question, reply: Reply) -> Answer:
    """The answer that ``reply`` gives: JSON of the schema, or else what :meth:`Question.read` understands.

    Raises:
        InvalidAnswer: it gives none; with what it cost.
    """
    if reply.stopped:
        raise invalid(question, reply.stopped, _short(reply.text), reply.usage)
    # No legal answer is longer than all numbers with room for white space; reading a flood would take long.
    if len(reply.text) > 10_000 + 20 * len(question.options):
        raise invalid(question, "it was far longer than an answer", _short(reply.text), reply.usage)
    try:
        numbers = _numbers(question, reply.text)
        answer = question.check(reply.text if numbers is None else Answer(numbers, text=reply.text))
    except InvalidAnswer as error:
        raise InvalidAnswer(error.problem, error.transcript, reply.usage) from None
    tokens = None if question.several else read_tokens(reply.logprobs)
    found = option_probabilities(tokens, len(question.options), reply.text) if tokens else None
    return Answer(answer.numbers, found, reply.text, reply.usage)


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


def _short(text: str) -> str:
    return text if len(text) <= 1000 else f"{text[:1000]}..."
