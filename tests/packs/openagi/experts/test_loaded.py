"""What a loaded model takes and where it is; models work side by side, and none is loaded meanwhile."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import pytest
import torch

from formal_llm.errors import MissingDependency
from formal_llm.packs.openagi.experts.loaded import Gate, LoadedModel, pick_device


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
    loaded.move_model("meta")
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


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_nothing_works_while_a_model_is_loaded(often: None) -> None:
    gate, now, seen = Gate(), {"working": 0, "loading": 0}, []
    lock = Lock()

    def act(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(200):
            what = "loading" if rng.random() < 0.2 else "working"
            with gate.wait_to_load() if what == "loading" else gate.wait_to_work():
                with lock:
                    now[what] += 1
                    seen.append(dict(now))
                with lock:
                    now[what] -= 1

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(act, seed) for seed in range(6)]:
            done.result(60)
    assert len(seen) == 6 * 200
    assert all(each["loading"] <= 1 and not (each["loading"] and each["working"]) for each in seen)
