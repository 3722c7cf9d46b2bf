"""Where sentences end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.tools.sentences import sentences


@pytest.mark.parametrize(
    "parts",
    [
        ["One.", "Two."],
        ["Dr. Smith met Mr. Jones in St. Louis.", "They talked."],
        ["J. R. R. Tolkien wrote it in the U.S. in 1950.", "It was long."],
        ["He lived in the U.S.", "The army came."],
        ["The U.S. Army came."],
        ["Fruits, e.g. Apples, and i.e. Pears, cost $3.50 vs. 4.", "No more."],
        ["King Jr. was there.", "He spoke."],
        ["They sold pens, ink, etc.", "Nobody bought."],
        ["It is 3.5 m high.", "It is No. 5 of all."],
        ["Is it?", "Yes!", 'He said "No."', "Then he left..."],
        ["It needs vitamin C.", "It is found in lemons."],
        ["See fig. 3 on p. 12.", "Go on."],
        ["A line without a point", "Another line."],
        ["Élan vital is a term.", "Über is a word."],
        ["It ended in 1945.", "1946 was better."],
        ["He worked for NATO.", "Brussels was his town."],
    ],
)
def test_sentences(parts: list[str]) -> None:
    joined = " ".join(parts) if parts[0].endswith((".", "?", "!")) else "\n".join(parts)
    assert sentences(joined) == parts


@given(st.text('ab AB.!?\n"()1', max_size=80))
def test_nothing_is_lost(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_long_texts_take_little_work() -> None:
    for text in ("." * 200_000, "A." * 100_000, "(" * 100_000 + ".", ". " * 100_000, "Mr. " * 50_000):
        assert "".join("".join(sentences(text)).split()) == "".join(text.split())
