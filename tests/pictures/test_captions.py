"""Texts for pictures."""

from formal_llm.pictures.captions import shorten


def test_shorten() -> None:
    assert shorten("a\nb\tc\x07") == "a b c␇"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"
