"""What a front answers is worked out once."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Lookahead
from formal_llm.automata.languages.front import Allowed, ConfigurationSet
from formal_llm.automata.languages.fronts import ConfigurationSets


def test_answers_are_kept_until_they_are_forgotten() -> None:
    front = ConfigurationSets(Lookahead(CFG.from_string("%order forward\nS -> a S b | c"))).start
    assert front.allowed == {"a": Allowed(2), "c": Allowed(0)}
    assert front.allowed is front.allowed
    assert front.after("a") is front.after("a")
    before = front.after("a")
    front.forget()
    assert front.after("a") is before
    assert front.shortest == 1


def test_what_each_kind_of_front_says_itself() -> None:
    with pytest.raises(TypeError, match="abstract methods _find_shortest, _follow, may_stop, names, readable, viable"):
        ConfigurationSet()  # type: ignore[abstract]
