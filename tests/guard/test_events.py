"""Events and decisions as values."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formal_llm.guard.events import Call, Decision, Result, Said, as_row, from_row


@pytest.mark.parametrize(
    "event",
    [
        Call("a", {"x": [1]}, "7", approved=True, at=datetime(2026, 1, 1, tzinfo=UTC)),
        Result("a", {"x": 1}, {"ok": True}, "7", error=True),
        Said("user", "hello"),
    ],
)
def test_rows(event: Call | Result | Said) -> None:
    again = from_row(as_row(event))
    assert again == event
    assert as_row(again) == as_row(event)


def test_the_message_is_short() -> None:
    said = Decision("block", "r", "No.", tuple(f"t{number}" for number in range(20)), ("a", "b")).message
    assert said.endswith("t11 and 8 more. The shortest way on: a, then b.")
    assert Decision("log", "r", "No.").message == ""


def test_events_with_any_arguments_have_a_hash() -> None:
    nested = {"x": [1, {"y": []}]}
    assert hash(Call("a", nested, "7")) == hash(Call("a", {}, "7"))
    assert hash(Result("a", nested, nested, "7")) == hash(Result("a", {}, None, "7"))
    assert Call("a", nested) != Call("a", {})
