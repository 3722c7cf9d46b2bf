"""Answers as JSON data, as caches and transcripts store them.

Reading trusts nothing: data of any other form raises ``ValueError``, never another exception.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from types import NoneType
from typing import Any

from formal_llm.llms.question import Answer, CallRequest
from formal_llm.llms.usage import TokenUsage

#: The number of an option as a key.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_COSTS = frozenset(part.name for part in fields(TokenUsage))


def answer_to_data(answer: Answer) -> dict[str, object]:
    """Return an answer as JSON data, with its usage."""
    data: dict[str, object] = {"numbers": [int(number) for number in answer.numbers]}
    if answer.probabilities is not None:
        # A model's own numbers may be of a type that JSON does not know, such as those of an array library.
        data["probabilities"] = {str(int(number)): float(p) for number, p in answer.probabilities.items()}
    ended = {} if answer.ended is None else {"ended": answer.ended}
    stopped = {"stopped": answer.stopped} if answer.stopped else {}
    calls = {"calls": [list(call) for call in answer.calls]} if answer.calls else {}
    usage = usage_to_data(answer.usage)
    return {**data, "text": answer.text, **ended, **stopped, **calls, "usage": usage}


def answer_from_data(data: object) -> Answer:
    """Read an answer from JSON data; raise ``ValueError`` if the data is not valid."""
    parts = _check_mapping(data, "an answer")
    numbers = parts.get("numbers")
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise ValueError("the numbers of the answer are missing")
    text = parts.get("text", "")
    if not isinstance(text, str):
        raise ValueError("the text of the answer is none")
    ended = parts.get("ended")
    if not isinstance(ended, (str, NoneType)):
        raise ValueError("what ended the answer is no text")
    stopped = parts.get("stopped", "")
    if not isinstance(stopped, str):
        raise ValueError("what stopped the answer is no text")
    likely, usage = _read_probabilities(parts.get("probabilities")), usage_from_data(parts.get("usage"))
    return Answer(tuple(numbers), likely, text, usage, ended, stopped, _read_calls(parts.get("calls", [])))


def _read_calls(data: object) -> tuple[CallRequest, ...]:
    if not isinstance(data, list):
        raise ValueError("the calls of the answer are no list")
    for call in data:
        if not (isinstance(call, list) and len(call) == 3 and all(isinstance(part, str) for part in call)):
            raise ValueError("a call of the answer has no id, name and arguments")
    return tuple(CallRequest(*call) for call in data)


def usage_to_data(usage: TokenUsage | None) -> dict[str, int]:
    """Return the usage of answers as JSON data, without zero counts."""
    return {} if usage is None else {name: int(count) for name, count in asdict(usage).items() if count}


def usage_from_data(data: object) -> TokenUsage:
    """Read the usage of answers from JSON data; None is no usage; raise ``ValueError`` for anything else."""
    counts = _check_mapping({} if data is None else data, "the usage")
    if not _COSTS.issuperset(counts) or not all(type(count) is int and count >= 0 for count in counts.values()):
        raise ValueError(f"the usage is not made of {', '.join(sorted(_COSTS))}")
    return TokenUsage(**counts)


def _read_probabilities(data: object) -> dict[int, float] | None:
    if data is None:
        return None
    likely = _check_mapping(data, "the probabilities")
    try:
        if all(type(p) in (int, float) for p in likely.values()) and all(map(_NUMBER.fullmatch, likely)):
            return {int(number): float(p) for number, p in likely.items()}
    except OverflowError:
        pass
    raise ValueError("a probability is no number")


def _check_mapping(data: object, what: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise ValueError(f"{what} is no JSON object")
    return data
