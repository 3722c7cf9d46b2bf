"""Checkpoints: whole or not there, and what does not belong together is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from formal_llm.errors import ModelError, TrainingError
from formal_llm.rltf.checkpoint import Checkpoints, RunState
from formal_llm.rltf.policy import LoRA, Policy
from tests.rltf import training_runs as runs


def stepped(policy: Policy) -> torch.optim.Optimizer:
    optimizer = torch.optim.AdamW(policy.parameters, lr=1e-2)
    for parameter in policy.parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    policy = runs.tiny_policy()
    optimizer = stepped(policy)
    checkpoints = Checkpoints(tmp_path, fingerprint={"rank": 8, "names": ("a",)})
    checkpoints.save(policy, optimizer, RunState(3, {"memory": {"x": [1, 0.1]}}))
    other = runs.tiny_policy(seed=5)
    fresh = torch.optim.AdamW(other.parameters, lr=1e-2)
    state = Checkpoints(tmp_path, fingerprint={"rank": 8, "names": ("a",)}).load(other, fresh)
    assert state == RunState(3, {"memory": {"x": [1, 0.1]}})
    assert all(torch.equal(one, two) for one, two in zip(policy.parameters, other.parameters, strict=True))
    ours, theirs = optimizer.state_dict()["state"], fresh.state_dict()["state"]
    assert all(torch.equal(ours[key]["exp_avg"], theirs[key]["exp_avg"]) for key in ours)


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    policy = runs.tiny_policy()
    optimizer = stepped(policy)
    checkpoints = Checkpoints(tmp_path, keep=2)
    assert checkpoints.steps() == []
    assert checkpoints.load(policy, optimizer) is None
    for step in (1, 2, 10, 9):
        checkpoints.save(policy, optimizer, RunState(step, {}))
    assert checkpoints.steps() == [9, 10]
    half = checkpoints.folder / "step-000011.new"
    half.mkdir()
    (half / "state.json").write_text("{}")
    assert checkpoints.steps() == [9, 10]
    loaded = checkpoints.load(policy, optimizer)
    assert loaded is not None
    assert loaded.step == 10
    first = checkpoints.load(policy, optimizer, 9)
    assert first is not None
    assert first.step == 9


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "other"}', '{"format": "formal_llm.rltf.checkpoint/1"}'])
def test_a_damaged_state_is_told(tmp_path: Path, text: str) -> None:
    policy = runs.tiny_policy()
    optimizer = stepped(policy)
    checkpoints = Checkpoints(tmp_path)
    place = checkpoints.save(policy, optimizer, RunState(1, {}))
    (place / "state.json").write_text(text)
    before = [parameter.detach().clone() for parameter in policy.parameters]
    with pytest.raises(TrainingError, match="step-000001"):
        checkpoints.load(policy, optimizer)
    assert all(torch.equal(one, two) for one, two in zip(before, policy.parameters, strict=True))


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "optimizer.pt"])
@pytest.mark.parametrize("how", ["a flipped bit", "cut off", "of another step", "missing"])
def test_a_file_that_is_another_is_refused(tmp_path: Path, name: str, how: str) -> None:
    policy = runs.tiny_policy()
    optimizer = stepped(policy)
    checkpoints = Checkpoints(tmp_path)
    place = checkpoints.save(policy, optimizer, RunState(1, {}))
    file = place / name
    content = file.read_bytes()
    if how == "a flipped bit":
        file.write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])
    elif how == "cut off":
        file.write_bytes(content[:-10])
    elif how == "missing":
        file.unlink()
    else:
        optimizer.step()
        with torch.no_grad():
            for parameter in policy.parameters:
                parameter.add_(1)
        later = checkpoints.save(policy, optimizer, RunState(2, {}))
        file.write_bytes((later / name).read_bytes())
    before = [parameter.detach().clone() for parameter in policy.parameters]
    with pytest.raises(TrainingError, match=f"step-000001 is damaged .*{name}.*remove it to go on from the one before"):
        checkpoints.load(policy, optimizer, 1)
    assert all(torch.equal(one, two) for one, two in zip(before, policy.parameters, strict=True))


def test_another_run_is_refused(tmp_path: Path) -> None:
    policy = runs.tiny_policy()
    optimizer = stepped(policy)
    Checkpoints(tmp_path, fingerprint={"samples": 4}).save(policy, optimizer, RunState(1, {}))
    with pytest.raises(TrainingError, match="samples was 4, now 8"):
        Checkpoints(tmp_path, fingerprint={"samples": 8}).load(policy, optimizer)
    small = runs.tiny_policy(lora=LoRA(rank=2))
    with pytest.raises(ModelError, match="do not fit"):
        Checkpoints(tmp_path, fingerprint={"samples": 4}).load(small, torch.optim.AdamW(small.parameters))


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    policy = runs.tiny_policy()
    optimizer = stepped(policy)
    (tmp_path / "checkpoints").write_text("a file in the way")
    with pytest.raises(TrainingError, match="cannot be written"):
        Checkpoints(tmp_path).save(policy, optimizer, RunState(1, {}))


def test_a_state_of_a_gpu_comes_back_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = runs.tiny_policy()
    optimizer = stepped(policy)
    checkpoints = Checkpoints(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(torch.serialization, "location_tag", lambda _: "cuda:0")  # as a GPU's tensors are marked
        checkpoints.save(policy, optimizer, RunState(1, {}))
    fresh = torch.optim.AdamW(policy.parameters, lr=1e-2)
    assert checkpoints.load(policy, fresh) == RunState(1, {})
    assert all(state["exp_avg"].device.type == "cpu" for state in fresh.state_dict()["state"].values())
