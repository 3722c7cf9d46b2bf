"""Passives, pronouns and what is left out: the same meaning, or the same sentence."""

from __future__ import annotations

import pytest

from formal_llm.authoring.rewriting import active, named, parted


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("the label may be printed only after the form was signed", "printed label may only after signed form"),
        ("no contract may be signed unless the file has been checked", "no signed contract unless checked file"),
        ("every lent book must be stamped", "every stamped lent book must"),
        ("a vote must be taken", "taken vote must"),
        ("wash is forbidden", "wash is forbidden"),
        ("the wash is forbidden", "the wash is forbidden"),  # how a sentence is built, and no step
        ("if the account is blocked, wash", "if the account is blocked, wash"),  # a question
    ],
)
def test_the_passive(text: str, same: str) -> None:
    assert active(text) == same


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("label the box before loading it", "label the box before loading the box"),
        ("no letter unless it was read", "no letter unless the letter was read"),
        ("never test the brakes between lifting the car and lowering it", None),  # the brakes, or the car
        ("wash it before dry", None),
        ("if the box is full, load it", None),
    ],
)
def test_pronouns(text: str, same: str | None) -> None:
    assert named(text) == (text if same is None else same)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("taste the soup at least 2 times, but never before salting",
         ["taste the soup at least 2 times", "never taste the soup before salting"]),
        ("sent mail may at most 1 times, and only after draft",
         ["sent mail may at most 1 times", "sent mail only after draft"]),
        ("never taste the soup more than 2 times and only after salting",
         ["never taste the soup more than 2 times", "taste the soup only after salting"]),
        ("the drill happens between 1 and 4 times", ["the drill happens between 1 and 4 times"]),
        ("begin with wash, and do so at most 1 times", ["begin with wash, and do so at most 1 times"]),
        ("wash and dry", ["wash and dry"]),
    ],
)  # fmt: skip
def test_what_is_left_out(text: str, parts: list[str]) -> None:
    assert list(parted(text)) == parts
