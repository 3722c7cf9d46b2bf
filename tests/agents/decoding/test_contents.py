import pytest

from formal_llm import CFG, Production
from formal_llm.agents.decoding.contents import (
    FreeText,
    Grammar,
    JsonSchema,
    OneOf,
    Regex,
    Written,
    ebnf,
    fitting,
    problem,
)
from formal_llm.errors import AutomatonError


class TestWritten:
    def test_something_follows_a_content(self):
        with pytest.raises(ValueError, match="nothing follows"):
            Written(FreeText())
        with pytest.raises(ValueError, match="one character at least"):
            Written(FreeText(), ("",))
        with pytest.raises(ValueError, match="may follow, or never: 'a'"):
            Written(FreeText(), ("a",), never=("a",))
        with pytest.raises(ValueError, match="'Action' stands in 'Action Input'"):
            Written(FreeText(), ("Action",), never=("Action Input",))

    def test_equal_contents_are_one(self):
        assert Written(OneOf("a", "b"), ("x",)) == Written(OneOf("a", "b"), ("x",))
        assert len({Written(JsonSchema.of({"type": "object"}), ("x",)) for _ in range(2)}) == 1


class TestEbnf:
    """What such a grammar means is compared with our own masks in test_xgrammar_masks.py."""

    def test_separators_stand_between_terminals(self):
        cfg = CFG.from_string('%order forward\nS -> A b\nA -> a A | ε\na "say \\"a\\""')
        assert ebnf(cfg, ", ").splitlines() == [
            "root ::= h0",
            'h0 ::= h1 ", b" | "b"',
            't0 ::= t1 ", b"',
            'h1 ::= "say \\"a\\"" t1',
            't1 ::= ", say \\"a\\"" t1 | ""',
        ]

    def test_what_cannot_be_completed_is_left_out(self):
        rules = (
            Production("S", ("a",)),
            Production("S", ("L",)),
            Production("L", ("loop", "L")),
        )
        assert "loop" not in ebnf(CFG(rules))
        with pytest.raises(AutomatonError, match="no word: S cannot be completed"):
            ebnf(CFG([Production("S", ("a", "S"))]))

    def test_limits_do_not_fit(self):
        with pytest.raises(AutomatonError, match="AutomatonMasks"):
            ebnf(CFG.from_string("S -> a S | b\n%limit 1 a"))


def test_what_is_wrong_with_a_text() -> None:
    assert problem(FreeText(), "anything") == problem(OneOf("a", "b"), "b") == problem(Regex("[0-9]+"), "12") == ""
    assert problem(OneOf("a", "b"), "c") == "it is none of 'a', 'b'"
    assert problem(Regex("[0-9]+"), "12 ") == "it does not match [0-9]+"
    with pytest.raises(ValueError, match="no regular expression"):
        problem(Regex("["), "")
    with pytest.raises(ValueError, match="only masks hold a text to a Grammar"):
        problem(Grammar("root ::= x"), "")


def test_what_fits_what_is_begun() -> None:
    texts = OneOf("New", "New York", "Old")
    assert fitting(texts, "") == ["New", "New York", "Old"]
    assert fitting(texts, " New") == ["New", "New York"]
    assert fitting(texts, "New Y") == ["New York"]
    assert fitting(texts, "New\n") == ["New"]
    assert fitting(texts, "Young") == []
