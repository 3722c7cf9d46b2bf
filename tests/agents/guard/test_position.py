"""Positions."""

from __future__ import annotations

from formal_llm.agents.guard import Call, Guard, GuardRules, Result


def test_position() -> None:
    state = (
        Guard(GuardRules.from_string("a: t.result\nrule r: at least 1 a\n"))
        .start()
        .after(Call("t", {}, "1"))
        .after(Call("t", {}, "2"))
    )
    assert [name for name, _ in state.after(Result("t", {}, 1, "2")).position.calls] == ["1"]
