"""Sentences and their plain form."""

from __future__ import annotations

import pytest

from formal_llm.authoring.sentences import normalize_text, split_sentences


def test_where_sentences_end() -> None:
    text = "Wash the 2.5 kg load. Dry it!\n# a comment. Not read.\n\nIron; fold\n1. Pack\n2) Ship.\n- Never smoke\n"
    found = list(split_sentences(text))
    assert [(one.text, one.listed) for one in found] == [
        ("Wash the 2.5 kg load", False), ("Dry it", False), ("Iron", False), ("fold", False), ("Pack", True),
        ("Ship", True),
        ("Never smoke", False),
    ]  # fmt: skip
    assert all(text[one.at :].startswith(one.text) for one in found)


def test_a_full_stop_between_quotes_ends_nothing() -> None:
    assert [one.plain for one in split_sentences('Never "rm. all" twice.')] == ['never "rm. all" 2 times']


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("Wash no more than three times", "wash at most 3 times"),
        ("Wash once or twice", "wash 1 or 2 times"),
        ("Wash one or more times", "wash at least 1 times"),
        ("A must not come right after B", "a never come directly after b"),
        ("A mustn't happen", "a never happen"),
        ("Do A, if not, do B", "do a, otherwise, do b"),
        ("Up to   five\ntimes", "at most 5 times"),
        ("If hot, wash. Otherwise dry", "if hot, wash, otherwise dry"),
        ("Once the order is in, never change", "after the order is in, never change"),
        ("Once a day, wash", "1 times a day, wash"),
        ("Secondly, dry", "then, dry"),
        ("There must be no payment unless there was an invoice", "no payment unless an invoice"),
        ("A and then B", "a then b"),
        ('"Not Once" happens', '"Not Once" happens'),
    ],
)
def test_one_way_to_say_it(written: str, same: str) -> None:
    assert normalize_text(written) == same
