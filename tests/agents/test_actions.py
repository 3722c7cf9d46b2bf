"""Actions: the calls that the segments of a run request."""

from __future__ import annotations

import pytest

from formal_llm.agents import Segment
from formal_llm.agents.actions import Action, actions_of, find_calls
from formal_llm.agents.roles import Roles

ROLES = Roles("Act", "Inp", "Lab", {"Obs": str})


def test_actions_since_the_world_wrote_last() -> None:
    told = [("Act", "old"), ("Inp", "x"), ("Obs", "o"), ("Lab", " #E1 "), ("Act", "search\n"), ("Inp", " Danube "),
            ("Act", "serch"), ("Inp", "Rhine"), ("Inp", "alone"), ("Act", "no input yet")]  # fmt: skip
    found = actions_of([Segment(*one) for one in told], ROLES, {6: "there is no serch"}, ["search", "lookup"])
    assert found == [
        Action("search", "Danube", "#E1"),
        Action("serch", "Rhine", "", "there is no serch"),
        Action("", "alone", "", "no action stands before this input; name one of search, lookup"),
    ]
    assert actions_of([], ROLES, {}, []) == []


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("I look. [Action] search [Action Input] Danube", [("search", "Danube")]),
        ("[Action]search\n[Action Input] a[1]\nb\n[Observation] no", [("search", "a[1]\nb")]),
        ("[Action] a [Action Input] 1 [Action] b [Action Input] 2", [("a", "1"), ("b", "2")]),
        ("[Action] search", []),
        ("[Action Input] search [Action]", []),
        ("", []),
    ],
)
def test_calls_in_a_text(text: str, calls: list[tuple[str, str]]) -> None:
    found = find_calls(text, ["search", "a", "b"])
    assert [(one.tool, one.input) for one in found] == calls and not any(one.refused for one in found)


def test_a_call_in_a_text_of_no_tool_is_refused() -> None:
    (found,) = find_calls("[Action] serch [Action Input] x", ["search"])
    assert found.refused == "there is no tool 'serch' (did you mean search?); the tools are search"
