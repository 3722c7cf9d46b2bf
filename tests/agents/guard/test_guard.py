"""Guards: what they are made of."""

from __future__ import annotations

import pytest

from formal_llm.agents.guard import Call, Guard, GuardRules

RULES = GuardRules.from_string("tools a, b\nrule r: a before b\nrule e: at least 1 b\n")


def test_without_a_tool_there_is_no_way() -> None:
    assert Guard(RULES, ["b"]).start().check(Call("b")).way == ()
    assert Guard(RULES, ["a", "b"]).start().may_stop().way == ("a", "b")


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="some"):
        Guard(RULES, guarantee="strong")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="several names"):
        Guard(RULES, "ab")
