"""Whether one thread is faster is told, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from formal_llm.rltf import threads
from formal_llm.rltf.threads import advise_threads, slow_threads
from tests.rltf.training_runs import small_trainer


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

    monkeypatch.setattr(threads, "_time_policy", seconds)
    assert slow_threads(setup).startswith("one thread is 2.0 times as fast as 2 here")
    assert used == [2, *[1, 2] * 3]
    assert torch.get_num_threads() == 2
    used.clear()
    monkeypatch.setattr(threads, "_LONG", 0.9)  # a large model
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
