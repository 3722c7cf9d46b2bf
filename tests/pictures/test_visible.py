"""What a terminal would obey is made visible."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.pictures.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\u001b[31mred\u001b[0m"),
        ("\x1b]0;title\x07", r"\u001b]0;title\u0007"),
        ("\x9b2J", r"\u009b2J"),
        ("safe\rrm -rf", r"safe\u000drm -rf"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("half \ud83d", r"half \ud83d"),
        ("ein\tTab\nund 日本語, שלום, 👩\u200d🍳", "ein\tTab\nund 日本語, שלום, 👩\u200d🍳"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_signs(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_nothing_that_is_obeyed_is_left_and_twice_is_once(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert not [sign for sign in shown if unicodedata.category(sign) in ("Cc", "Cs") and sign not in "\n\t"]
    assert not [sign for sign in shown if unicodedata.bidirectional(sign) in ("LRO", "RLO", "LRE", "RLE", "PDF")]
    shown.encode()


@given(
    st.recursive(
        st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\x1b"), inner),
    )
)
def test_json_means_the_same(data: object) -> None:
    assert json.loads(visible(json.dumps(data, ensure_ascii=False, indent=2))) == data
