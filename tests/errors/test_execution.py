"""Errors of carrying a plan out name the tool, the step and the way out."""

from __future__ import annotations

import pickle

from formal_llm import CFG, Planner
from formal_llm.errors import Cancelled, CheckpointError, ToolError, ToolkitError

STEP = Planner(CFG.from_string('S "clothes" -> wash T\nT -> clothes'), "test:first").plan("x").steps[0]


def test_a_tool_error_gets_its_place_later() -> None:
    cause = ValueError("no water")
    error = ToolError("wash", "failed: no water", cause=cause)
    placed = error.at(4, STEP)
    assert str(error) == "wash failed: no water"
    assert str(placed) == f"wash (step {STEP.number}) failed: no water"
    assert (placed.position, placed.step, placed.cause, placed.reason) == (4, STEP, cause, "failed")


def test_a_toolkit_error_lists_all_problems() -> None:
    assert str(ToolkitError(["two tools are called a"])) == "the tools do not fit: two tools are called a"
    assert str(ToolkitError(["one", "two"])) == "the tools do not fit:\n  one\n  two"


def test_checkpoints_and_cancelling() -> None:
    error = CheckpointError("a, b", "org/model", "is not there", "give a folder")
    assert str(error) == "a, b: the checkpoint 'org/model' is not there; give a folder"
    assert Cancelled("partly").result == "partly"


def test_they_travel() -> None:
    other = pickle.loads(pickle.dumps(ToolError("wash", "took too long", reason="timeout", position=2)))
    assert (str(other), other.reason, other.position) == ("wash took too long", "timeout", 2)
