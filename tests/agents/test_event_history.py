"""Histories that share their beginnings, and the snapshots made of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.event_history import EventHistory, read_snapshot, write_snapshot
from formal_llm.authored.tables import Keys
from formal_llm.errors import SnapshotError


def make_history(events: list[str]) -> EventHistory[str] | None:
    history: EventHistory[str] | None = None
    for event in events:
        history = EventHistory(history, event)
    return history


@given(st.lists(st.sampled_from("ab"), max_size=6), st.lists(st.sampled_from("ab"), max_size=6))
def test_a_history_is_equal_to_another_one_with_the_same_events(one: list[str], other: list[str]) -> None:
    first, second = make_history(one), make_history(other)
    assert EventHistory.list_events(first) == one
    assert (first == second) == (one == other)
    if one == other:
        assert hash(first) == hash(second)


def test_forks_share_their_beginning_and_differ_in_their_hash() -> None:
    begin = make_history(["a"])
    assert begin is not None
    one, other = EventHistory(begin, "b"), EventHistory(begin, "c")
    assert one.before is other.before is begin
    assert one != other and hash(one) != hash(other) and one != "ab"
    assert (one.length, begin.length) == (2, 1)


def test_a_long_history_is_compared_without_recursion() -> None:
    one, other = make_history(["a"] * 50_000), make_history(["a"] * 50_000)
    assert one == other and hash(one) == hash(other)


def test_a_snapshot_is_read_only_as_what_it_is() -> None:
    event = Keys({"name": str}, needed=("name",))
    written = write_snapshot("test 1", "abc", [{"name": "pay"}])
    assert read_snapshot(json.dumps(written), "test 1", "abc", event) == [{"name": "pay"}]
    for bad in ("{", [], {**written, "format": "test 2"}, {**written, "events": [{}]}, {"format": "test 1"}):
        with pytest.raises(SnapshotError, match="damaged"):
            read_snapshot(bad, "test 1", "abc", event)  # type: ignore[arg-type]
    with pytest.raises(SnapshotError, match="under other rules or tools"):
        read_snapshot(written, "test 1", "abd", event, "rules or tools")
