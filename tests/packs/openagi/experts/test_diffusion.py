"""Experts that draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from formal_llm.packs.openagi.experts.toolkit import ExpertToolkit, experts
from tests.packs.openagi.experts import tiny_experts
from tests.packs.openagi.experts.expert_cases import picture, plain


def test_a_coloured_picture_keeps_its_luminance(kit: ExpertToolkit) -> None:
    image = picture(0, 30, 20, "L")
    coloured = kit["colorization"](image)
    assert coloured.mode == "RGB"
    # Colours that a screen does not have are cut off; most are kept.
    difference = np.abs(np.asarray(coloured.convert("L"), dtype=int) - np.asarray(image, dtype=int))
    assert np.median(difference) <= 2


def test_the_size_of_a_drawn_picture(kit: ExpertToolkit, make: Callable[..., ExpertToolkit]) -> None:
    assert kit["text_to_image"]("A red cat.").size == (16, 16)
    first, second = (plain(kit["text_to_image"](text)) for text in ("A red cat.", "A blue sea."))
    assert first != second


def test_what_the_safety_checker_refuses_is_an_error(tmp_path: Path, faster: Path) -> None:
    torch.manual_seed(0)
    tiny_experts.text_to_image(tmp_path / "drawing")
    from safetensors.torch import load_file, save_file

    file = tmp_path / "drawing" / "safety_checker" / "model.safetensors"
    weights = load_file(file)
    weights["concept_embeds_weights"].fill_(-2.0)  # everything is similar enough
    save_file(weights, file, metadata={"format": "pt"})
    places = {"text_to_image": str(tmp_path / "drawing")}
    kit = experts(["text_to_image"], checkpoints=places, settings=faster, device="cpu")
    with pytest.raises(ValueError, match="safety checker"):
        kit["text_to_image"]("A cat.")
