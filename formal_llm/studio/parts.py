"""What answers to the page are made of: parts, each plain data with its name under ``part``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formal_llm.planning.json_data import JSON

#: One part of an answer, and an answer: its parts as they are found.
Part = dict[str, JSON]
Parts = Iterator[Part]
#: What a page asks: plain data, its question under ``question``.
Asked = Mapping[str, object]


class BadQuestion(ValueError):
    """The page asked something that is no question; the message explains what is wrong."""


def text_of(asked: Asked, name: str, default: str | None = None) -> str:
    """A text of what is asked.

    Raises:
        BadQuestion: it is missing, or no text.
    """
    value = asked.get(name, default)
    if not isinstance(value, str):
        raise BadQuestion(f"{name} is a text")
    return value


def build_verdict(valid: bool, reason: str, word: Part | None) -> Part:
    """Build the verdict about what was made elsewhere, with nothing but what all verdicts have."""
    return {
        "part": "verdict", "valid": valid, "reason": reason, "word": word, "position": None, "line": None,
        "allowed": [], "may_stop": False, "nearest": None, "changes": [], "skipped": [], "answers": None, "events": [],
    }  # fmt: skip


def answers_of(asked: Asked) -> list[list[int]]:
    """The answers so far: for each the numbers that were chosen.

    Raises:
        BadQuestion: they are anything else.
    """
    value = asked.get("answers", [])
    if not isinstance(value, list) or not all(
        isinstance(one, list) and all(type(number) is int for number in one) for one in value
    ):
        raise BadQuestion("answers are lists of numbers")
    return value
