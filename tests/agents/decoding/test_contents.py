import pytest

from formal_llm.agents.decoding.contents import (
    FreeText,
    Grammar,
    JsonSchema,
    OneOf,
    Regex,
    SegmentPattern,
    filter_matching_texts,
    find_problem,
)


class TestWritten:
    def test_something_follows_a_content(self):
        with pytest.raises(ValueError, match="nothing follows"):
            SegmentPattern(FreeText())
        with pytest.raises(ValueError, match="one character at least"):
            SegmentPattern(FreeText(), ("",))
        with pytest.raises(ValueError, match="may follow, or never: 'a'"):
            SegmentPattern(FreeText(), ("a",), never=("a",))
        with pytest.raises(ValueError, match="'Action' stands in 'Action Input'"):
            SegmentPattern(FreeText(), ("Action",), never=("Action Input",))

    def test_equal_contents_are_one(self):
        assert SegmentPattern(OneOf("a", "b"), ("x",)) == SegmentPattern(OneOf("a", "b"), ("x",))
        assert len({SegmentPattern(JsonSchema.from_schema({"type": "object"}), ("x",)) for _ in range(2)}) == 1


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
    with pytest.raises(ValueError, match="only masks hold a text to a Grammar"):
        find_problem(Grammar("root ::= x"), "")


def test_what_fits_what_is_begun() -> None:
    texts = OneOf("New", "New York", "Old")
    assert filter_matching_texts(texts, "") == ["New", "New York", "Old"]
    assert filter_matching_texts(texts, " New") == ["New", "New York"]
    assert filter_matching_texts(texts, "New Y") == ["New York"]
    assert filter_matching_texts(texts, "New\n") == ["New"]
    assert filter_matching_texts(texts, "Young") == []
