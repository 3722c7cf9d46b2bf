"""Sentences in fewer words."""

from __future__ import annotations

import pytest

from formal_llm.authoring.simplifying import simplify


@pytest.mark.parametrize(
    ("sentences", "simple"),
    [
        (
            ("Never do it.", "Under no circumstances do it!", "Do not do it.", "Don’t do it, no matter what.",
             "It is forbidden to do it."), "never do it",
        ),
        (("You must not go.", "You can't go.", "You are not allowed to go."), "you NOT go"),
        (
            ("Go prior to lunch.", "Go ahead of lunch.", "Go in advance of lunch.", "Go before lunch."),
            "go BEFORE lunch",
        ),
        (("Make sure to go.", "Remember to go.", "Don't forget to go.", "Be sure to go."), "MUST go"),
        (("Go no more than once.", "Go at most once.", "Go a maximum of one time."), "go at most 1 times"),
        (("Go only once.", "Go once.", "Go once, and only once."), "go exactly 1 times"),
        (("Go only once lunch is over.", "Go only after lunch is over."), "go ONLYAFTER lunch is over"),
        (("Once it rang, go.", "After it rang, go."), "AFTER it rang, go"),
        (("It's to be sent.", "It has to be sent.", "It is required to be sent."), "it MUST be sent"),
        (("A visa of its own is needed.", "Its own visa is needed."), "OWN visa REQUIRED"),
    ],
)  # fmt: skip
def test_other_words_for_the_same(sentences: tuple[str, ...], simple: str) -> None:
    assert {simplify(sentence) for sentence in sentences} == {simple}
