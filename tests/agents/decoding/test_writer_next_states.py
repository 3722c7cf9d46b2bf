"""What may come next, and how it is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Behaviour, Limits
from formal_llm.agents import Markers, Monitor
from formal_llm.agents.decoding.writer import find_common_prefix, find_next_states
from formal_llm.errors import AutomatonError, WritingError

REACT = Behaviour.load("react")
MARKERS = Markers.of(REACT)


def test_what_may_come_next() -> None:
    first = find_next_states(Monitor(REACT), MARKERS)
    assert (first.only_state, first.prefix, first.may_end, first.shortest) == (
        "Ques",
        "[Question]",
        False,
        "[Question]",
    )
    open_ = find_next_states(Monitor(REACT).after("Ques"), MARKERS)
    assert (open_.markers, open_.only_state, open_.prefix) == (("[Thought]", "[Final Thought]"), None, "[")
    assert open_.shortest == "[Final Thought]"
    due = find_next_states(Monitor(REACT).after_all(["Ques", "Tht", "Act", "Act-Inp"]), MARKERS, {"Obs"})
    assert due.world == ("Obs",)
    end = find_next_states(Monitor(REACT).after_all(["Ques", "Final-Tht", "Ans"]), MARKERS)
    assert (end.states, end.may_end, end.only_state, end.prefix) == ({}, True, None, "")


def test_of_states_that_share_a_marker_the_first_legal_one_is_meant() -> None:
    markers = Markers({"a": "[X]", "b": "[X]", "c": "[C]"})
    assert find_next_states(Monitor(CFG.from_string("S -> a | b | c")), markers).states == {"[X]": "a", "[C]": "c"}
    assert find_next_states(Monitor(CFG.from_string("S -> b | c")), markers).states == {"[X]": "b", "[C]": "c"}


def test_no_marker_and_no_way() -> None:
    with pytest.raises(AutomatonError, match="b has no marker"):
        find_next_states(Monitor(CFG.from_string("S -> a | b")), Markers({"a": "[A]"}))
    with pytest.raises(WritingError, match="nothing can come next"):
        find_next_states(Monitor(CFG.from_string("S -> a"), limits=Limits(at_most={"a": 0})), Markers({"a": "[A]"}))


@given(st.lists(st.text("ab", max_size=4), max_size=4))
def test_the_common_prefix(texts: list[str]) -> None:
    found = find_common_prefix(texts)
    assert all(text.startswith(found) for text in texts)
    longer = {text[: len(found) + 1] for text in texts}
    assert not texts or found in texts or len(longer) > 1
