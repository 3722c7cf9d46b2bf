import re
from decimal import Decimal

import pytest

from formal_llm.packs.travel.reading.numbers import CLOCK, DIGITS, IN_WORDS, amount_of, count_of, minute_of


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


@pytest.mark.parametrize(
    ("text", "minute"),
    [
        ("9 am", 540), ("9 a.m.", 540), ("12 am", 0), ("12 pm", 720), ("8 pm", 1200), ("8:30 pm", 1230), ("10:45", 645),
        ("10 in the morning", 600), ("half past six", None), ("half past nine", 570),
        ("quarter to four in the afternoon", 945),
        ("a quarter past 8 pm", 1215), ("ten at night", 1320), ("7 in the evening", 1140), ("9 at night", 1260),
        ("2 at night", 120),
        ("noon", 720), ("midnight", 1440), ("18 o'clock", 1080), ("6", None), ("6:15", 375),
        ("25:00", None), ("10:75", None),
        ("13 pm", None),
    ],
)  # fmt: skip
def test_a_time_of_day(text: str, minute: int | None) -> None:
    assert re.fullmatch(CLOCK, text)
    assert minute_of(text) == minute
