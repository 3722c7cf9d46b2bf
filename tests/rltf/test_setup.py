"""What a run is made of: its fingerprint changes with what it computes, and with nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from formal_llm import Planner
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.setup import TrainingSetup, hash_values
from tests.rltf import training_runs as runs


@pytest.fixture(scope="module")
def policy() -> Policy:
    return runs.tiny_policy()


def setup(policy: Policy, tasks: int = 3, **settings: Any) -> TrainingSetup:
    planner = Planner(runs.RULES, "test:first")
    return TrainingSetup(planner, policy, Reward(runs.wanted_tool), tuple(runs.TASKS[:tasks]), Settings.of(settings))


@pytest.mark.parametrize("change", [{"samples": 2}, {"seed": 1}, {"kl": 0.1}, {"advantage": "rloo"}])
def test_what_is_computed_is_in_the_fingerprint(policy: Policy, change: dict[str, Any]) -> None:
    assert setup(policy, **change).fingerprint != setup(policy).fingerprint
    assert setup(policy, tasks=2).fingerprint != setup(policy).fingerprint


@pytest.mark.parametrize("change", [{"updates": 9}, {"device": "cpu"}, {"keep_checkpoints": 5}, {"cache_bytes": 0}])
def test_how_it_is_computed_is_not(policy: Policy, change: dict[str, Any]) -> None:
    fingerprint = setup(policy, **change).fingerprint
    assert fingerprint == setup(policy).fingerprint
    assert json.loads(json.dumps(fingerprint))["weights"] == policy.trainable


def test_updates_are_counted(policy: Policy) -> None:
    assert setup(policy, epochs=2, warm_start=1).updates == 7
    assert setup(policy, updates=4).updates == 4


def test_a_digest_is_the_same_in_every_process() -> None:
    assert hash_values([0, 1, "a"]) == "23e32875dceb8805"
    assert hash_values(["a", "b"]) != hash_values(["ab"])
