"""Events are values; pasts share what they have in common."""

from __future__ import annotations

import pickle

import pytest

from formal_llm.agents import Event
from formal_llm.agents.events import EventChain


def test_data_of_an_event_does_not_change() -> None:
    event = Event("pay", {"amount": 20})
    with pytest.raises(TypeError):
        event.data["amount"] = 30  # type: ignore[index]
    assert pickle.loads(pickle.dumps(event)) == event


def test_pasts_share_their_beginnings() -> None:
    begin = EventChain(None, Event("a"), "a")
    one, other = EventChain(begin, Event("b"), "b"), EventChain(begin, Event("c"), None)
    assert [past.event.name for past in one.iter_back()] == ["b", "a"]
    assert (one.before, other.before) == (begin, begin)
    assert (one.length, one.hash) != (other.length, other.hash)
