"""What a model is told."""

from __future__ import annotations

from formal_llm.agents.guard import Call, Guard, GuardRules


def test_refusing() -> None:
    state = Guard(GuardRules.from_string('tools a, b\nrule r: a before b\n    "First a."\n')).start()
    assert state.check(Call("b")).reason == "b cannot be called now: First a."
