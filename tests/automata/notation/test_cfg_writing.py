"""Writing grammars; that what is written is read back is tested with the reader."""

from __future__ import annotations

from formal_llm import CFG


def test_repetitions_and_groups_are_written_as_they_were_read() -> None:
    text = '%start S\n%order forward\n\nS -> a* (b | c d){1,3} E? | ε\nE -> (a b)+ "text"\n\na "label" minutes=5\n'
    assert str(CFG.from_string(text)) == text


def test_they_are_written_in_one_way() -> None:
    text = "%order forward\nS -> a{0,} a{1,} a{,1} a{,2} ( a b )* b{1}"
    assert "S -> a* a+ a? a{0,2} (a b)* b" in str(CFG.from_string(text))
