"""Scopes."""

from __future__ import annotations

from formal_llm.agents.guard.scope import Scope, read_json


def test_scope() -> None:
    assert read_json('{"a": 1}') == {"a": 1}
    assert read_json("{broken") == "{broken"
    assert Scope({"a": 1}, {}, {"a": 2}, True).look_up("a") == 2
