"""The title block above a chart."""

from __future__ import annotations

import pytest

from formal_llm.automata.notation.mermaid_title import read_title
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("flowchart TD", ""),
        ("---\ntitle: A  plan\n---\nflowchart TD", "A plan"),
        ("---\ntitle: 'It''s'\nconfig:\n  theme: dark\n  anything: goes\n---\n", "It's"),
        ('---\ntitle: "a \\u00e9"\n---\n', "a é"),
        ('---\ntitle: "' + "[" * 9 + "\n---\n", "[" * 9),
        ("---\n---\n", ""),
    ],
)
def test_titles(text: str, title: str) -> None:
    found, end = read_title(SourceText(text, None))
    assert found == title
    assert text[end:].strip() in ("", "flowchart TD")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ntitel: x\n---\n", "<string>:2:1: unknown key in the title block: titel"),
        ("---\ntitle: x\nlimits:\n  a: 1\n---\n", "limits are written as comments: %% %limit 2 NAME"),
    ],
)
def test_unknown_keys(text: str, said: str) -> None:
    with pytest.raises(NotationError) as caught:
        read_title(SourceText(text, None))
    assert said in str(caught.value)
