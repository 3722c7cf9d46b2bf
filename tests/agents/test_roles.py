"""What states are for is told by their markers."""

from __future__ import annotations

import pytest

from formal_llm import Behaviour
from formal_llm.agents.agent import WORLDS, observe
from formal_llm.agents.roles import Roles
from formal_llm.errors import ResourceNotFound


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("direct", (None, None, None, [])),
        ("react", ("Act", "Act-Inp", None, ["Obs"])),
        ("rewoo", ("Act", "Act-Inp", "Act-Lbl", ["Solver"])),
        ("reflexion", ("Act", "Act-Inp", None, ["Obs", "Eval"])),
        ("pass", ("Act", "Act-Inp", None, ["Sum"])),
        ("chat-bot", ("action", "action-input", None, ["observation"])),
    ],
)
def test_markers_tell_the_roles(name: str, expected: tuple[object, ...]) -> None:
    roles = Roles.from_markers(Behaviour.load(name), WORLDS)
    assert (roles.action, roles.input, roles.label, [*roles.worlds]) == expected


def test_a_world_by_the_name_of_its_state_comes_first() -> None:
    behaviour = Behaviour.load("react")
    assert Roles.from_markers(behaviour, {**WORLDS, "Obs": str}).worlds == {"Obs": str}  # type: ignore[dict-item]
    assert Roles.from_markers(behaviour, {"[Observation]": observe}).worlds == {"Obs": observe}
    with pytest.raises(ResourceNotFound, match=r"world for the state Obs \(\[Observation\]\) of react"):
        Roles.from_markers(behaviour, {})
