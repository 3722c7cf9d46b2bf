"""Actions: the calls that the segments of a run request."""

from __future__ import annotations

from formal_llm.agents import Segment
from formal_llm.agents.actions import Action, actions_of
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
