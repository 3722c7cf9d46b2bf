"""What a loaded model takes, and where it is."""

from __future__ import annotations

import sys

import pytest
import torch

from formal_llm.errors import MissingDependency
from formal_llm.packs.openagi.experts.loaded import LoadedModel, pick_device


def test_what_a_model_takes() -> None:
    shared = torch.nn.Linear(4, 4, bias=False)
    assert LoadedModel(torch.nn.Sequential(shared, shared)).bytes == 64  # tied weights count once
    model = torch.nn.BatchNorm1d(3)
    assert LoadedModel(model).bytes == 4 * 12 + 8


def test_the_device() -> None:
    assert pick_device("cuda:3") == "cuda:3"
    assert pick_device(None) == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_model_is_moved_with_its_numbers() -> None:
    loaded = LoadedModel(torch.nn.Linear(2, 2))
    loaded.move("meta")
    assert (loaded.device, loaded.model.weight.device.type) == ("meta", "meta")


def test_a_pipeline_takes_what_its_parts_take() -> None:
    class Pipeline:
        def __init__(self) -> None:
            self.components = {
                "unet": torch.nn.Linear(4, 4, bias=False),
                "vae": torch.nn.Linear(2, 1),
                "scheduler": object(),
            }

    assert LoadedModel(Pipeline()).bytes == 64 + 12


def test_without_torch_the_device_cannot_be_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match=r"formal-llm\[experts\]"):
        pick_device(None)
