"""Reading the text of an answer, and ending a text at its stops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.reading import named_options, read_numbers
from formal_llm.llms.stops import Cutter, cut, first_stop

OPTIONS = ['the output of "Colorization"', "the input image"]


@pytest.mark.parametrize(
    "text",
    ["2", " 2 ", "2.", "(2)", "[2]", "2)", "**2**", "`2`", '"2"', "Option 2", "option 2.", "Choice: 2",
     "The answer is 2",
     "2: the input image", "2. The input image.", "Option 2: the input image", "2 - the input image", "+2", "02",
     "**2**: the input image", "**Option 2**: the input image", "Answer: **2**", "**2.** the input image",
     "2: 'The input  image'", "2:\nthe input image", "**2: the input image**"],
)  # fmt: skip
def test_understood(text: str) -> None:
    assert read_numbers(text, OPTIONS) == (2,)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "two", "I choose 2", "2 or 1", "1 2", "1, 2", "2: the output of Colorization", "2 images", "3", "0",
     "-2",
     "2.5", "2e0", "Step 2 is done, so 1", "option", "2\n1", "9" * 5000, "1: the input image", "²", "２ or so",
     "2.the input image", "2 -", "2!", "2: the input image!", "**2: the input image", "2 2", "2: 1"],
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


# -- the text of an option ------------------------------------------------------------------------------------------

#: Options that differ in signs only, by pairs or more.
_SIGNS = [
    ("C", "C++", "C#", "C*"), ("x > 5", "x < 5", "x = 5", "x ≥ 5"), ("👍", "👎", "👍🏽"), ("+", "-", "*", "**"),
    ("a.", "a", "a!", "a?"),
    ("-5", "5", "+5"), ("a b", "a_b", "a-b", "ab"), ("a", "A"), ("é", "e"), ('"x"', "x", "'x'"), ("1.5", "15", "1,5"),
    ("x²", "x2"),
]  # fmt: skip


@pytest.mark.parametrize("options", _SIGNS, ids=str)
@pytest.mark.parametrize("form", ["{}: {}", "Option {}: {}", "**{}**: {}", "{}. {}"])
def test_the_text_beside_a_number_is_that_option_and_no_other(options: tuple[str, ...], form: str) -> None:
    for number in range(1, len(options) + 1):
        for said, text in enumerate(options, 1):
            given_ = form.format(number, text)
            if said == number and not (form == "{}. {}" and text.strip("+-").isdigit()):
                assert read_numbers(given_, options) == (number,), given_
            else:  # a bare "1. 5" may be two numbers
                with pytest.raises(ValueError):
                    read_numbers(given_, options)


def test_a_contradiction_is_called_one() -> None:
    with pytest.raises(ValueError, match=r"^'1: C\+\+' is the number of one option with the text of another$"):
        read_numbers("1: C++", ["C", "C++", "C#"])
    with pytest.raises(ValueError, match="more than a number"):
        read_numbers("1: D", ["C", "C++", "C#"])


def test_options_that_read_alike_are_told_apart_by_their_numbers() -> None:
    assert read_numbers("2: same", ["same", "same"]) == (2,)
    assert named_options("same", ["same", "same", "other"]) == (1, 2)
    assert named_options("Same.", ["same", "Same"]) == (1, 2)
    assert named_options("same", ["Same", "same"]) == (2,)
    assert named_options("none", ["same"]) == ()


_LETTERS = "ab C+#<>=-.*:'\"👍👎é\u0301_"
_TEXTS = st.lists(st.text(_LETTERS, min_size=1, max_size=5).filter(str.strip), min_size=2, max_size=4)


@given(_TEXTS, st.data())
def test_a_text_is_never_taken_for_that_of_an_option_that_another_option_reads_just_like(
    options: list[str], data: st.DataObject
) -> None:
    number = data.draw(st.integers(1, len(options)))
    text = data.draw(st.sampled_from(options))
    try:
        found = read_numbers(f"{number}: {text}", options)
    except ValueError:
        assert options[number - 1].strip() != text.strip()
    else:
        assert found == (number,)
        assert options[number - 1].strip() == text.strip() or f": {text}".strip() == options[number - 1].strip()


def test_marks_with_nothing_between_them_are_a_text() -> None:
    for said, options in (("``", ['""', "x"]), ("___", ["****", "x"]), ("***", ["**", "x"])):
        assert read_numbers(f"1: {options[0]}", options) == (1,)
        with pytest.raises(ValueError):
            read_numbers(f"1: {said}", options)


def test_numbers_of_more_than_nine_digits_are_not_converted() -> None:
    assert read_numbers("000000002", OPTIONS) == (2,)
    with pytest.raises(ValueError, match="'0000000002' is not one of the numbers from 1 to 2"):
        read_numbers("0000000002", OPTIONS)


def test_sixty_letters_are_shown_and_of_more_57() -> None:
    for length, shown in ((60, "x" * 60), (61, "x" * 57 + "...")):
        with pytest.raises(ValueError, match=f"^'{shown.replace('.', '[.]')}' is not a number"):
            read_numbers("x" * length, OPTIONS)


@given(st.text("ab;"), st.lists(st.text("ab;", max_size=2)))
def test_cut(text: str, stop: list[str]) -> None:
    short = cut(text, stop)
    assert text.startswith(short)
    assert all(one not in short for one in stop if one)
    assert short == text or any(text[len(short) :].startswith(one) for one in stop if one)


@given(st.text("ab;"), st.lists(st.text("ab;", max_size=3), max_size=3), st.integers(1, 4))
def test_a_text_in_pieces_ends_where_the_whole_does(text: str, stop: list[str], size: int) -> None:
    cutter = Cutter(stop)
    pieces = [cutter.feed(text[at : at + size]) for at in range(0, len(text), size)]
    pieces.append(cutter.close())
    assert "".join(pieces) == cutter.whole == cut(text, stop)
    found = first_stop(text, stop)
    assert (cutter.ended is None) == (found is None)
    assert cutter.ended is None or text[len(cutter.whole) :].startswith(cutter.ended)
