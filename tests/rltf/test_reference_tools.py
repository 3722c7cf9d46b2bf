"""Agreement with reference tools: F1 of sets, what counts as a tool, identities."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Task
from formal_llm.planning import Plan
from formal_llm.rltf.reference_tools import ReferenceTools, compute_f1, tools_of
from tests.rltf.merged_pictures import PLAN, TASK, plan_of

NAMES = st.frozensets(st.sampled_from("abcdefgh"))


@given(NAMES, NAMES)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(wanted: frozenset[str], used: frozenset[str]) -> None:
    shared = len(wanted & used)
    if not wanted and not used:
        expected = Fraction(1)
    elif not shared:
        expected = Fraction(0)
    else:
        precision, recall = Fraction(shared, len(used)), Fraction(shared, len(wanted))
        expected = 2 * precision * recall / (precision + recall)
    assert compute_f1(wanted, used) == pytest.approx(float(expected), abs=1e-15)
    assert compute_f1(wanted, used) == compute_f1(used, wanted)
    assert (compute_f1(wanted, used) == 1.0) == (wanted == used)


def test_inputs_are_not_tools() -> None:
    assert tools_of(PLAN) == {"merge", "sharpen"}
    assert tools_of(PLAN, ["picture", "merge"]) == {"sharpen"}
    assert tools_of(plan_of()) == set()
    listed = Plan(TASK.description, PLAN.tree, order="forward")
    assert tools_of(listed) == {"merge", "sharpen", "picture"}


@pytest.mark.parametrize(
    ("wanted", "score", "exact"),
    [({"merge", "sharpen"}, 1.0, 1.0), ({"merge"}, 2 / 3, 0.0), ({"colour"}, 0.0, 0.0), (set(), 0.0, 0.0)],
)
def test_agreement_with_reference_tools(wanted: set[str], score: float, exact: float) -> None:
    assert ReferenceTools(lambda task: wanted)(TASK, PLAN) == pytest.approx(score)
    assert ReferenceTools(lambda task: wanted, "exact")(TASK, PLAN) == exact


def wanted_tools(task: Task) -> set[str]:
    return {"sharpen"}


def test_identities_of_reference_rewards_differ() -> None:
    rewards = [
        ReferenceTools(wanted_tools), ReferenceTools(wanted_tools, "exact"), ReferenceTools(tuple),
        ReferenceTools(wanted_tools, inputs=["picture"]), ReferenceTools(wanted_tools, inputs=[]),
        ReferenceTools(wanted_tools, name="other"), ReferenceTools(wanted_tools, invalid=-1),
    ]  # fmt: skip
    identities = [reward.identity for reward in rewards]
    assert all(one != other for one, other in itertools.combinations(identities, 2))
    assert ReferenceTools(wanted_tools).identity == ReferenceTools(wanted_tools).identity
    assert ReferenceTools(lambda task: set()).identity is None
    assert ReferenceTools(lambda task: set()).name == "reference tools, f1"
    with pytest.raises(ValueError, match="kind"):
        ReferenceTools(wanted_tools, "f2")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_stated_reward_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        ReferenceTools(lambda task: set(), invalid=value)
