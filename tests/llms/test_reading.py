"""Reading answers: strictly, never the first digit in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.reading import read_numbers

OPTIONS = ['the output of "Colorization"', "the input image"]


@pytest.mark.parametrize(
    "text",
    ["2", " 2 ", "2.", "(2)", "[2]", "2)", "**2**", "`2`", '"2"', "Option 2", "option 2.", "Choice: 2",
     "The answer is 2",
     "2: the input image", "2. The input image.", "Option 2: the input image", "2 - the input image", "+2", "02"],
)  # fmt: skip
def test_understood(text: str) -> None:
    assert read_numbers(text, OPTIONS) == (2,)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "two", "I choose 2", "2 or 1", "1 2", "1, 2", "2: the output of Colorization", "2 images", "3", "0",
     "-2",
     "2.5", "2e0", "Step 2 is done, so 1", "option", "2\n1", "9" * 5000, "1: the input image", "²", "２ or so"],
)  # fmt: skip
def test_not_understood(text: str) -> None:
    with pytest.raises(ValueError):
        read_numbers(text, OPTIONS)


def test_the_message_is_for_the_one_who_answered() -> None:
    with pytest.raises(ValueError, match=r"^'first' is not a number$"):
        read_numbers("first", OPTIONS)
    with pytest.raises(ValueError, match=r"\.\.\.' is not a number"):
        read_numbers("word " * 100, OPTIONS)


@pytest.mark.parametrize(
    "text", ["1,2", "1, 2", "1 2", "1 and 2", "1, and 2", "[1, 2]", "Options 1, 2", "1; 2", "1,2."]
)
def test_several(text: str) -> None:
    assert read_numbers(text, OPTIONS, several=True) == (1, 2)


@given(st.text(max_size=30) | st.text("12, .:()-and", max_size=6), st.booleans())
def test_any_text_gives_numbers_in_range_or_a_value_error(text: str, several: bool) -> None:
    try:
        numbers = read_numbers(text, OPTIONS, several=several)
    except ValueError:
        return
    assert numbers
    assert all(number in (1, 2) for number in numbers)
    assert several or len(numbers) == 1
    # Nothing was guessed: the digits stand in the text.
    assert all(str(number) in "".join(str(int(c)) if c.isdecimal() else c for c in text) for number in numbers)


@given(st.integers(1, 400), st.sampled_from(["{}", "{}.", "({})", "Option {}", "Answer: {}", "{}: x{}"]))
def test_numbers_of_any_size(number: int, form: str) -> None:
    options = [f"x{n}" for n in range(1, 401)]
    assert read_numbers(form.format(number, number), options) == (number,)
