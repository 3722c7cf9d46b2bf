"""Chats and stops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.generation import chat, cut
from formal_llm.llms.question import Message


def test_a_text_is_what_the_user_says() -> None:
    assert chat("a") == (Message("user", "a"),)
    assert chat([Message("system", "b")]) == (Message("system", "b"),)


@given(st.text("ab;"), st.lists(st.text("ab;", max_size=2)))
def test_cut(text: str, stop: list[str]) -> None:
    short = cut(text, stop)
    assert text.startswith(short)
    assert all(one not in short for one in stop if one)
    assert short == text or any(text[len(short) :].startswith(one) for one in stop if one)
