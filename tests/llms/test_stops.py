"""Where a text ends, as a whole and in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.stops import Cutter, cut, first_stop


@given(st.text("ab;"), st.lists(st.text("ab;", max_size=2)))
def test_cut(text: str, stop: list[str]) -> None:
    short = cut(text, stop)
    assert text.startswith(short)
    assert all(one not in short for one in stop if one)
    assert short == text or any(text[len(short) :].startswith(one) for one in stop if one)


@given(st.text("ab;"), st.lists(st.text("ab;", max_size=3), max_size=3), st.integers(1, 4))
def test_a_text_in_pieces_ends_where_the_whole_does(text: str, stop: list[str], size: int) -> None:
    cutter = Cutter(stop)
    pieces = [cutter.feed(text[at : at + size]) for at in range(0, len(text), size)]
    pieces.append(cutter.close())
    assert "".join(pieces) == cutter.whole == cut(text, stop)
    found = first_stop(text, stop)
    assert (cutter.ended is None) == (found is None)
    assert cutter.ended is None or text[len(cutter.whole) :].startswith(cutter.ended)
