import re
from decimal import Decimal

import pytest

from formal_llm.packs.travel.reading.numbers import DIGITS, IN_WORDS, amount_of, count_of


@pytest.mark.parametrize(("word", "number"), [("4", 4), ("four", 4), ("Twelve", 12), ("thirty", 30)])
def test_counts(word: str, number: int) -> None:
    assert count_of(word) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,700", 1700), ("1.5k", 1500), ("2k", 2000), ("12.50", Decimal("12.5")), ("two thousand five hundred", 2500),
        ("nine hundred and fifty", 950), ("a thousand", 1000), ("twelve hundred", 1200),
    ],
)  # fmt: skip
def test_amounts(text: str, number: int | Decimal) -> None:
    assert re.fullmatch(rf"{DIGITS}|{IN_WORDS}", text)
    assert amount_of(text) == number
