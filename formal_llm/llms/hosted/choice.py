"""A choice as structured output: its JSON schema, and the strict reader of what the model wrote.

The schema has one field, an enum of the option numbers, so a provider that enforces it cannot answer anything else.
The answer is still read strictly, since no provider is trusted to enforce it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.hosted.probabilities import option_probabilities, read_tokens
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage


class Reply(NamedTuple):
    """A provider's response: what the model wrote, and its usage.

    Attributes:
        stopped: what prevented the model from finishing its answer; empty if nothing did.
        logprobs: the token probabilities in the form of OpenAI's chat completions, as plain data.
    """

    text: str
    usage: TokenUsage
    stopped: str = ""
    logprobs: object = None


def choice_schema(question: Question, *, bounded: bool = False) -> dict[str, object]:
    """Return the JSON schema of an answer: ``{"choice": n}``, or ``{"choices": [n, ...]}`` for several.

    Args:
        question: the question.
        bounded: whether to bound the length of a list. Local servers need that, since a small model may never stop
            writing; hosted models stop by themselves, and not all of them support the keyword.
    """
    last = len(question.options)
    number: dict[str, object] = {"type": "integer", "enum": list(range(1, last + 1))}
    key = _choose_key(question)
    value: dict[str, object] = number
    if question.several:
        value = {"type": "array", "items": number}
        if bounded:
            value |= {"minItems": 1, "maxItems": last}
    # For strict output all providers require every field and forbid others.
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


def read_reply(question: Question, reply: Reply) -> Answer:
    """Read the answer in ``reply``: JSON of the schema, or else whatever :meth:`Question.read` accepts.

    Raises:
        InvalidAnswer: there is no answer; has the usage.
    """
    if reply.stopped:
        raise InvalidAnswer(reply.stopped, [(question.prompt, _shorten_text(reply.text))], reply.usage)
    # No legal answer is longer than all numbers with white space; reading a huge text would take long.
    if len(reply.text) > 10_000 + 20 * len(question.options):
        problem = "it was far longer than an answer"
        raise InvalidAnswer(problem, [(question.prompt, _shorten_text(reply.text))], reply.usage)
    try:
        numbers = _read_numbers(question, reply.text)
        answer = question.check(reply.text if numbers is None else Answer(numbers, text=reply.text))
    except InvalidAnswer as error:
        raise InvalidAnswer(error.problem, error.transcript, reply.usage) from None
    tokens = None if question.several else read_tokens(reply.logprobs)
    found = option_probabilities(tokens, len(question.options), reply.text) if tokens else None
    return Answer(answer.numbers, found, reply.text, reply.usage)


def _choose_key(question: Question) -> str:
    return "choices" if question.several else "choice"


def _read_numbers(question: Question, text: str) -> tuple[int, ...] | None:
    """Read the numbers in ``text`` if it is JSON of the right shape; they need not be options."""
    try:
        # Objects are read as tuples of pairs, so that a duplicate field is noticed.
        pairs = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    if not (isinstance(pairs, tuple) and len(pairs) == 1 and pairs[0][0] == _choose_key(question)):
        return None
    value = pairs[0][1]
    numbers = value if question.several else [value]
    # ``type`` instead of ``isinstance``, since true and false are not numbers.
    if not (isinstance(numbers, list) and all(type(number) is int for number in numbers)):
        return None
    return tuple(numbers)


def _shorten_text(text: str) -> str:
    return text if len(text) <= 1000 else f"{text[:1000]}..."
