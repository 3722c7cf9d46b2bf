import pytest

from formal_llm.agents.decoding.contents import (
    FreeText,
    OneOf,
    Regex,
    filter_matching_texts,
    find_problem,
)


def test_what_is_wrong_with_a_text() -> None:
    assert (
        find_problem(FreeText(), "anything")
        == find_problem(OneOf("a", "b"), "b")
        == find_problem(Regex("[0-9]+"), "12")
        == ""
    )
    assert find_problem(OneOf("a", "b"), "c") == "it is none of 'a', 'b'"
    assert find_problem(Regex("[0-9]+"), "12 ") == "it does not match [0-9]+"
    with pytest.raises(ValueError, match="no regular expression"):
        find_problem(Regex("["), "")


def test_what_fits_what_is_begun() -> None:
    texts = OneOf("New", "New York", "Old")
    assert filter_matching_texts(texts, "") == ["New", "New York", "Old"]
    assert filter_matching_texts(texts, " New") == ["New", "New York"]
    assert filter_matching_texts(texts, "New Y") == ["New York"]
    assert filter_matching_texts(texts, "New\n") == ["New"]
    assert filter_matching_texts(texts, "Young") == []
