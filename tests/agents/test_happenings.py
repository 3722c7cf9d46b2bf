"""What happens, as values."""

from __future__ import annotations

import json

from formal_llm.agents.happenings import Began, Called, ToolCall, Wrote


def test_calls_are_json_data() -> None:
    call = ToolCall(3, "search", "Danube", "a river", False, "#E1")
    assert ToolCall(**json.loads(json.dumps(call.to_data()))) == call
    assert Called(call) == Called(ToolCall(**call.to_data())) != Called(call, "1")  # type: ignore[arg-type]


def test_each_tells_its_run() -> None:
    assert {one.run for one in (Began("Tht", run="1"), Wrote("Tht", "x", "1"))} == {"1"}
