"""Adapters of a run put into the model that they were trained on."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.errors import ModelError, ResourceNotFound
from formal_llm.llms.local.adapted import fingerprint, with_adapter
from formal_llm.rltf.policy import LoRA, Policy
from tests import tiny_models


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
