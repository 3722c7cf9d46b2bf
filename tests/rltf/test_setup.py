"""What a run is made of: its fingerprint changes with what it computes, and with nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm import Planner
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.setup import TrainingSetup, advise_threads, hash_values, slow_threads
from tests.rltf import training_runs as runs
from tests.rltf.training_runs import small_trainer


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


def test_the_advice() -> None:
    assert (
        advise_threads(1.0, 3.0, 2)
        == "one thread is 3.0 times as fast as 2 here: give --threads 1, or set OMP_NUM_THREADS=1"
    )
    assert advise_threads(1.0, 1.05, 2) == advise_threads(3.0, 1.0, 4) == ""


@pytest.fixture
def two_threads() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_what_is_measured_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_threads: None) -> None:
    setup = small_trainer(tmp_path).setup
    used: list[int] = []

    def seconds(policy: object, questions: list[object]) -> float:
        assert len(questions) == 3
        used.append(torch.get_num_threads())
        return 0.5 * torch.get_num_threads()

    monkeypatch.setattr("formal_llm.rltf.setup._time_policy", seconds)
    assert slow_threads(setup).startswith("one thread is 2.0 times as fast as 2 here")
    assert used == [2, *[1, 2] * 3]
    assert torch.get_num_threads() == 2
    used.clear()
    monkeypatch.setattr("formal_llm.rltf.setup._LONG", 0.9)  # a large model
    assert slow_threads(setup) == ""
    assert used == [2]
    torch.set_num_threads(1)
    used.clear()
    assert (slow_threads(setup), used) == ("", [])


def test_a_run_is_the_same_whether_it_was_measured(tmp_path: Path, two_threads: None) -> None:
    weights = []
    for name in ("one", "other"):
        trainer = small_trainer(tmp_path / name, updates=2, dropout=0.1)
        if name == "one":
            slow_threads(trainer.setup)
        torch.set_num_threads(1)
        trainer.run()
        torch.set_num_threads(2)
        weights.append([parameter.clone() for parameter in trainer.setup.policy.parameters])
    assert all(torch.equal(*pair) for pair in zip(*weights, strict=True))
