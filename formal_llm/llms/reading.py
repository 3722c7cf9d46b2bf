"""Reading an answer that came as text, strictly.

Understood are a number with little around it (``2``, ``2.``, ``(2)``, ``Option 2``) and a number with the text of its
option (``2: the output of ...``). Anything else is an error: the first digit of a longer text is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_FRAME = re.compile(
    r"^(?:(?:the\s+)?(?:answer|choice|option)s?(?:\s+is)?\s*:?\s*)?(?P<rest>.*)$", re.IGNORECASE | re.DOTALL
)
_NUMBER = re.compile(r"^[(\[]?(?P<number>[+-]?\d+)[)\]]?[.)]?\s*(?::\s*|[-–]\s+)?(?P<text>.*)$", re.DOTALL)
_SEVERAL = re.compile(r"\s*(?:,|;|\band\b|\s)\s*(?:and\s+)?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+")


def read_numbers(text: str, options: Sequence[str], *, several: bool = False) -> tuple[int, ...]:
    """The option numbers, counted from 1, that ``text`` names.

    Args:
        text: what was answered.
        options: the texts of the options.
        several: whether more than one number may be given.

    Raises:
        ValueError: the text names no option; the message says why, for the one who answered.
    """
    shown = text.strip().strip("*`\"'").strip()
    if not shown:
        raise ValueError("it was empty")
    rest = _FRAME.fullmatch(shown)["rest"].strip()  # type: ignore[index]  # the pattern matches every text
    parts = [part for part in _SEVERAL.split(rest.rstrip(".").strip("[]()")) if part] if several else []
    if parts and all(_WHOLE.fullmatch(part) for part in parts):
        return tuple(_in_range(part, options) for part in parts)
    match = _NUMBER.fullmatch(rest)
    if match is None:
        raise ValueError(f"{_short(text)} is not a number")
    number = _in_range(match["number"], options)
    said = _plain(match["text"])
    if said and said != _plain(options[number - 1]):
        raise ValueError(f"{_short(text)} is more than a number, and not the number with the text of that option")
    return (number,)


def _in_range(digits: str, options: Sequence[str]) -> int:
    # A number with more digits than any option has is not converted: it may be millions of digits long.
    number = int(digits) if len(digits) <= 9 else 0
    if not 1 <= number <= len(options):
        raise ValueError(f"{_short(digits)} is not one of the numbers from 1 to {len(options)}")
    return number


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", text).casefold().split())


def _short(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 60 else text[:57] + "...")
