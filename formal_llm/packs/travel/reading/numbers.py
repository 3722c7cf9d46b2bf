"""Read numbers in natural text: ``4``, ``four``, ``a``, ``1,700``, ``1.2k``, ``two thousand five hundred``."""

from __future__ import annotations

import re
from decimal import Decimal

_ONE_WORDS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_ONES = _ONE_WORDS.split()
_TEN_WORDS = """twenty thirty forty fifty sixty seventy eighty ninety"""
_TENS = _TEN_WORDS.split()
_DOZENS = {"half a dozen": 6, "a dozen": 12}
_SMALL = (
    {word: value for value, word in enumerate(_ONES)}
    | _DOZENS
    | {word: 10 * value for value, word in enumerate(_TENS, start=2)}
)
#: A count: digits, or a word up to nineteen or for a multiple of ten.
COUNT = rf"(?:\d{{1,4}}|{'|'.join([*_DOZENS, *reversed(_ONES), *_TENS])})"
#: An amount in digits: thousands with or without commas, optionally cents or a k.
DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d{1,2})?(?![\d])\s?k?\b"
_WORDS = rf"(?:{'|'.join([*reversed(_ONES), *_TENS])}|hundred|thousand|and|a)"
#: An amount in words.
_NUMBER = "|".join([*reversed(_ONES), *_TENS])
IN_WORDS = rf"(?:(?:{_NUMBER}|a)(?:[ -]+{_WORDS}){{0,4}}[ -]+(?:hundred|thousand)(?:[ -]+{_WORDS}){{0,5}})"

_HOUR = "|".join(reversed(_ONES[1:13]))
_LEAD = r"(?:half|(?:a\s+)?quarter)\s+(?:past|to)\s+"
#: A time of day.
CLOCK = (
    rf"(?:noon|midday|midnight|(?:{_LEAD}(?:\d{{1,2}}|{_HOUR})\b|"
    rf"\d{{1,2}}(?::\d\d)?(?![\d/])|(?:{_HOUR})(?=\s+(?:[ap]\.?m\b|o['’]clock|in the|at night)))"
    r"\s*(?:a\.?m\b\.?|p\.?m\b\.?|o['’]clock)?"
    r"(?:\s*(?:(?:in the|(?:on )?\w+day) (?:morning|afternoon|evening)|at night))?)"
)


def count_of(word: str) -> int:
    """Return the value of a count.

    Raises:
        KeyError: it is not a count.
    """
    plain = word.strip().casefold()
    return int(plain) if plain.isdigit() else _SMALL[plain]


def amount_of(text: str) -> int | Decimal:
    """Return the value of an amount in digits or in words."""
    plain = text.strip().casefold()
    if plain[0].isdigit():
        exact = Decimal(plain.rstrip("k ").replace(",", "")) * (1000 if plain.endswith("k") else 1)
        return int(exact) if exact == int(exact) else exact
    total, current = 0, 0
    for word in re.split(r"[ -]+", plain):
        if word == "hundred":
            current = max(current, 1) * 100
        elif word == "thousand":
            total, current = total + max(current, 1) * 1000, 0
        elif word not in ("and", "a"):
            current += _SMALL[word]
    return total + current


def minute_of(text: str) -> int | None:
    """Return the minute of the day that :data:`CLOCK` found; None for "at 6", which may be morning or evening."""
    found = re.match(rf"({_LEAD})?(\d+|{_HOUR})\b(?::(\d\d))?(.*)", text.casefold(), re.DOTALL)
    if found is None:
        return {"midnight": 1440}.get(text.casefold(), 720)
    lead, hour, minutes, part = found[1] or "", count_of(found[2]), int(found[3] or 0), found[4]
    shift = (30 if "half" in lead else 15 if lead else 0) * (-1 if "to" in lead else 1)
    night = "night" in part and not 5 < hour < 12
    late = not night and re.search(r"p\.?m|afternoon|evening|night", part)
    named = night or late or re.search(r"a\.?m|morning", part)
    if hour > (12 if named else 24) or minutes > 59 or not (named or found[3] or hour > 7):
        return None
    return (hour % 12 + (12 if late else 0) if named else hour) * 60 + minutes + shift
