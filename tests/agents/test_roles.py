"""What states are for is told by their markers."""

from __future__ import annotations

import pytest

from formal_llm import Behaviour
from formal_llm.agents.acting import AgentRules
from formal_llm.agents.roles import Roles, RunSettings
from formal_llm.agents.worlds import WORLDS, observe
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


@pytest.mark.parametrize("form", ["{}:", "<{}>", "[{}]", "{}"])
def test_the_markers_of_other_papers_carry_roles(form: str) -> None:
    """Brackets, colons, hyphens and case make no difference; a state without a marker is known by its name."""
    names = ["Thought", "Action", "action-input", "ACTION LABEL", "Observation"]
    text = " ".join(f'(s{place} (:text "{form.format(name)}"){" (:flags :env-input)" * (place == 4)})'
                    for place, name in enumerate(names))  # fmt: skip
    read = Behaviour.from_string(f"(define v1 (:states {text}) (:behavior (until (next s0 s3 s1 s2 s4) s0)))")
    roles = Roles.from_markers(read, WORLDS)
    assert (roles.action, roles.input, roles.label, dict(roles.worlds)) == ("s1", "s2", "s3", {"s4": observe})
    named = "(:states Thought Action (Observation (:flags :env-input))) (:behavior (next Thought Action Observation))"
    assert Roles.from_markers(Behaviour.from_string(f"(define v1 {named})"), WORLDS).action == "Action"


@pytest.mark.parametrize(
    ("name", "asks", "calls"),
    [
        ("react", True, None),
        ("chat-bot", True, None),
        ("react-ablated", False, "Thought"),
        ("chat-bot-endless", False, None),
    ],
)
def test_a_run_that_begins_with_the_model_has_no_state_for_the_question(
    name: str, asks: bool, calls: str | None
) -> None:
    roles = Roles.from_markers(Behaviour.load(name), WORLDS)
    assert (roles.asks, roles.calls) == (asks, calls)


def test_what_nobody_says() -> None:
    behaviour = Behaviour.load("direct")
    made = RunSettings(AgentRules(behaviour), Roles.from_markers(behaviour, {}))
    assert made.calls.timeout == 60 and not made.budget.metered and not made.contents and made.max_tokens == 512
