"""CLIP score and ViT similarity, through their real loading code, on tiny models built here."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.packs.openagi.any_images import photograph

if not all(importlib.util.find_spec(name) for name in ("torch", "transformers")):
    pytest.skip("torch and transformers are not installed", allow_module_level=True)

from formal_llm.errors import CheckpointError, ResourceNotFound
from formal_llm.packs.openagi.scores.neural import CLIPScore, NeuralScore, ViTSimilarity


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLIP of a few thousand random weights, with a tokenizer of single letters."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

    folder = tmp_path_factory.mktemp("clip")
    letters = [*"abcdefghijklmnopqrstuvwxyz", *(f"{letter}</w>" for letter in "abcdefghijklmnopqrstuvwxyz")]
    vocabulary = {text: number for number, text in enumerate([*letters, "<|startoftext|>", "<|endoftext|>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt")).save_pretrained(folder)
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"bos_token_id": len(letters), "eos_token_id": len(letters) + 1}
    torch.manual_seed(0)
    config = CLIPConfig(
        text_config={**small, **ends, "vocab_size": len(vocabulary), "max_position_embeddings": 12},
        vision_config={**small, "image_size": 32, "patch_size": 8},
        projection_dim=8,
    )
    CLIPModel(config).save_pretrained(folder)
    square = {"height": 32, "width": 32}
    CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=square).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def vit_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vision transformer of a few thousand random weights."""
    import torch
    from transformers import ViTConfig, ViTImageProcessorPil, ViTModel

    folder = tmp_path_factory.mktemp("vit")
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=8
    )
    ViTModel(config).save_pretrained(folder)
    ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


PICTURES = [
    photograph("astronaut"),
    Image.new("RGB", (40, 20), "red"),
    Image.new("L", (20, 40), 90),
    Image.new("RGBA", (30, 30)),
]
TEXTS = ["a cat", "a red wall", "", "x" * 100]


def test_clip_is_the_clamped_cosine_of_the_model(clip_folder: Path) -> None:
    import torch
    from transformers import CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

    model = CLIPModel.from_pretrained(clip_folder).eval()
    tokens = CLIPTokenizer.from_pretrained(clip_folder)("a cat", return_tensors="pt")
    pixels = CLIPImageProcessorPil.from_pretrained(clip_folder)(images=PICTURES[1], return_tensors="pt")
    with torch.inference_mode():
        logit = model(**tokens, **pixels).logits_per_image[0, 0]
        cosine = float(logit / model.logit_scale.exp())
    assert CLIPScore(str(clip_folder))(PICTURES[1], "a cat") == pytest.approx(max(cosine, 0), abs=1e-5)


def test_the_same_picture_is_most_similar(vit_folder: Path) -> None:
    vit = ViTSimilarity(str(vit_folder))
    assert vit(PICTURES[0], PICTURES[0].copy()) == pytest.approx(1, abs=1e-5)
    assert vit(PICTURES[0], PICTURES[1]) == pytest.approx(vit(PICTURES[1], PICTURES[0]), abs=1e-5)
    assert vit(PICTURES[0], PICTURES[1]) < 1
    # What is transparent is seen on white.
    assert vit(PICTURES[3], Image.new("RGB", (30, 30), "white")) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_many_are_the_same_as_one_by_one(batch_size: int, clip_folder: Path, vit_folder: Path) -> None:
    expected: dict[type[NeuralScore], list[tuple[Any, Any]]] = {
        CLIPScore: [(picture, text) for picture in PICTURES for text in TEXTS],
        ViTSimilarity: [(one, other) for one in PICTURES for other in PICTURES],
    }
    for kind, folder in ((CLIPScore, clip_folder), (ViTSimilarity, vit_folder)):
        together = kind(str(folder), batch_size=batch_size).score_pairs(expected[kind])
        single = kind(str(folder))
        assert together == pytest.approx([single(*pair) for pair in expected[kind]], abs=1e-5)
        assert all(0 <= value <= 1 for value in together)
        assert single.score_pairs([]) == []


def test_what_is_not_there(tmp_path: Path, clip_folder: Path) -> None:
    with pytest.raises(ResourceNotFound, match="checkpoint for vit"):
        ViTSimilarity(str(tmp_path / "none"))(PICTURES[0], PICTURES[1])
    with pytest.raises(CheckpointError, match=r"^clip: the checkpoint '.*' cannot be had"):
        CLIPScore(str(tmp_path))(PICTURES[0], "a cat")
    with pytest.raises(CheckpointError, match="no-such/model") as caught:
        CLIPScore("no-such/model", local_files_only=True).prepare()
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="batch_size"):
        CLIPScore(batch_size=0)


def test_weights_that_are_a_pickle_are_refused(tmp_path: Path, vit_folder: Path) -> None:
    import torch
    from transformers import ViTModel

    for file in vit_folder.iterdir():
        if file.suffix == ".json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    torch.save(ViTModel.from_pretrained(vit_folder).state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="safetensors"):
        ViTSimilarity(str(tmp_path))(PICTURES[0], PICTURES[0])
