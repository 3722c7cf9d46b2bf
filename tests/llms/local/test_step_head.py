"""Heads that score steps by the states of tokens: their formula, their files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from formal_llm.errors import ModelError, ResourceNotFound
from formal_llm.llms.local.step_head import StepHead

pytest.importorskip("safetensors")


def make_head(steps: tuple[str, ...] = ("a", "b"), width: int = 3, hidden: int = 4) -> StepHead:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float16).astype(np.float32)

    count = len(steps)
    return StepHead(
        steps, ("in",), 2.0, draw(hidden, width), draw(hidden), draw(count, hidden), draw(count, width), draw(count)
    )


def test_the_formula() -> None:
    head = make_head()
    states = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    scores = head.score(states)
    for place, step in enumerate(head.steps):
        parts = [2.0 * float(np.tanh(head.inner @ x + head.inner_bias) @ head.outer[place]) for x in states]
        expected = np.log(np.sum(np.exp(parts))) / 2.0 + head.mean[place] @ states.mean(axis=0) + head.bias[place]
        assert scores[step] == pytest.approx(float(expected), abs=1e-4)
    assert scores["in"] == 0.0


def test_scores_far_apart_do_not_overflow() -> None:
    head = replace(make_head(), outer=np.full((2, 4), 1e4, np.float32))
    assert all(np.isfinite(list(head.score(np.ones((3, 3), np.float32)).values())))


def test_a_file_has_the_same_head(tmp_path: Path) -> None:
    head = make_head()
    head.save(tmp_path / "h.safetensors")
    again = StepHead.load(tmp_path / "h.safetensors")
    assert (again.steps, again.neutral, again.heat) == (head.steps, head.neutral, head.heat)
    assert all(np.array_equal(again.arrays[name], head.arrays[name]) for name in head.arrays)
    assert again.fingerprint == head.fingerprint != replace(head, bias=head.bias + 1).fingerprint


def test_a_head_that_knows_nothing() -> None:
    assert make_head().without_steps().score(np.ones((2, 3), np.float32)) == {}


def test_files_that_are_none(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    with pytest.raises(ResourceNotFound):
        StepHead.load(tmp_path / "missing")
    file = tmp_path / "h.safetensors"
    file.write_bytes(b"not at all")
    with pytest.raises(ModelError, match="is no planner"):
        StepHead.load(file)
    head = make_head()
    texts = {"steps": json.dumps(["a", "b"]), "neutral": "[]", "heat": "2.0"}
    for arrays, problem in (
        ({**head.arrays, "bias": head.bias[:1]}, "bias has the shape"),
        ({**head.arrays, "bias": head.bias * np.float32(np.nan)}, "no number"),
        ({name: array for name, array in head.arrays.items() if name != "mean"}, "mean"),
    ):
        save_file(arrays, file, texts)
        with pytest.raises(ModelError, match=problem):
            StepHead.load(file)
    save_file(head.arrays, file, {})
    with pytest.raises(ModelError, match="steps"):
        StepHead.load(file)
