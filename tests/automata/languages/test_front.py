"""What a front answers is worked out once."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Lookahead
from formal_llm.automata.languages.front import Allowed, ConfigurationSet
from formal_llm.automata.languages.fronts import ConfigurationSets


def test_answers_are_kept_until_they_are_forgotten() -> None:
    front = ConfigurationSets(Lookahead(CFG.from_string("%order forward\nS -> a S b | c"))).start
    assert front.allowed_terminals == {"a": Allowed(2), "c": Allowed(0)}
    assert front.allowed_terminals is front.allowed_terminals
    assert front.after_terminal("a") is front.after_terminal("a")
    before = front.after_terminal("a")
    front.forget_followers()
    assert front.after_terminal("a") is before
    assert front.shortest_length == 1


def test_what_each_kind_of_front_says_itself() -> None:
    missing = "_find_shortest, _follow_terminal, is_viable, may_stop, next_terminals, readable_terminals"
    with pytest.raises(TypeError, match=f"abstract methods {missing}"):
        ConfigurationSet()  # type: ignore[abstract]
