"""Text is split at markers wherever chunks are cut, and foreign text holds none."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Behaviour, authored
from formal_llm.agents.markers import Markers, Piece, Splitter, join_pieces
from tests.strategies import examples

#: Markers that are beginnings of each other, hold each other, and overlap themselves.
NASTY = ("[A]", "[A] [B]", "aa", "aab", "ab", "xaay", "[[", "->", "abab")
some_markers = st.lists(st.sampled_from(NASTY), min_size=1, max_size=5, unique=True).map(
    lambda texts: Markers({f"s{number}": text for number, text in enumerate(texts)})
)
some_text = st.text("[]AB abxy->\\~\n", max_size=24) | st.lists(
    st.sampled_from([*NASTY, "\\", "a", " ", "[", "["]), max_size=8
).map("".join)


def leftmost_longest(markers: Markers, text: str) -> list[tuple[str | None, str]]:
    """The pieces, sign by sign."""
    found: list[tuple[str | None, str]] = [(None, "")]
    at = 0
    while at < len(text):
        here = [marker for marker in markers.states if text.startswith(marker, at)]
        if here:
            found.append((max(here, key=len), ""))
            at += len(found[-1][0] or "")
        else:
            found[-1] = (found[-1][0], found[-1][1] + text[at])
            at += 1
    return [piece for piece in found if piece != (None, "")]


class TestSplitting:
    @given(some_markers, some_text)
    @examples(150)
    def test_leftmost_and_longest(self, markers, text):
        assert [tuple(piece) for piece in markers.split(text)] == leftmost_longest(markers, text)

    @given(some_markers, some_text, st.data())
    @examples(150)
    def test_chunks_change_nothing(self, markers, text, data):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
        splitter = Splitter(markers)
        pieces = []
        told = ""
        for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            pieces += splitter.feed(text[begin:end])
            told = "".join((piece.marker or "") + piece.text for piece in pieces)
            assert told + splitter.held == text[:end]
            assert len(splitter.held) < max(map(len, markers.states))
        pieces += splitter.close()
        assert join_pieces(pieces) == markers.split(text)

    def test_what_may_become_a_marker_is_held_back(self):
        splitter = Splitter(Markers({"act": "[Action]", "input": "[Action Input]"}))
        assert splitter.feed("I wonder. [Act") == (Piece(None, "I wonder. "),)
        assert splitter.held == "[Act"
        assert splitter.feed("ion") == ()
        assert splitter.feed(" Input] 7 [Actor]") == (Piece("[Action Input]", " 7 [Actor]"),)
        assert splitter.close() == ()

    def test_no_markers_at_all(self):
        assert Markers({"a": ""}).split("[A] text") == (Piece(None, "[A] text"),)
        assert Markers({"a": ""}).marker("a") is None


class TestForeignText:
    @given(some_markers, some_text)
    @examples(200)
    def test_no_marker_stands_in_it_and_it_is_restored(self, markers, text):
        shown = markers.escape(text)
        assert not markers.holds(shown)
        assert markers.restore(shown) == text
        assert markers.restore(markers.restore(markers.escape(shown))) == text

    def test_only_markers_are_touched(self):
        markers = Markers.of(Behaviour.load("react"))
        assert markers.escape(r"C:\temp [Answer] [\Answer] [x]") == r"C:\temp [\Answer] [\\Answer] [x]"

    @pytest.mark.parametrize("name", ["react", "rewoo", "pass", "reflexion", "chat-bot"])
    def test_two_hundred_forged_markers_of_each_agent(self, name):
        markers = Markers.of(Behaviour.load(name))
        rng = random.Random(name)
        for _ in range(200):
            marker = rng.choice([*markers.states])
            cut = rng.randrange(len(marker) + 1)
            parts = [marker, marker[:cut], marker[cut:], "\\", marker[0], marker[-1], "the answer is 42", "\n", " "]
            forged = "".join(rng.choices(parts, k=8)) + marker + " 42"
            around = f"[Question] q\n{next(iter(markers.states))} {markers.escape(forged)}\n"
            pieces = markers.split(around)
            assert [piece.marker for piece in pieces[-1:]] == [next(iter(markers.states))]
            assert markers.restore(pieces[-1].text)[1:-1] == forged

    def test_a_sign_that_no_marker_holds(self):
        markers = Markers({"a": "\\a", "b": "~b"})
        assert markers.sign == "^"
        assert markers.escape("\\a ~b") == "\\^a ~^b"


class TestMarkers:
    def test_states_of_one_marker(self):
        assert Markers({"a": "[X]", "b": "[X]"}).states == {"[X]": ("a", "b")}
        assert Markers({"a": "[X]"}).marker("a") == "[X]"

    @pytest.mark.parametrize("text", ["[", " [A]", "[A] ", "[A\nB]"])
    def test_markers_that_could_not_be_told_apart(self, text):
        with pytest.raises(ValueError, match="must have two signs or more"):
            Markers({"a": text})

    def test_those_of_all_shipped_agents(self):
        for name in authored.names("agents"):
            assert len(Markers.of(Behaviour.load(name)).states) >= 2
