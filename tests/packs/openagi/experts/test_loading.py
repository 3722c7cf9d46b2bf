"""Checkpoints: from a hub (a local one, with the real client), from its cache, from folders; and broken ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm import CFG, Planner
from formal_llm.errors import CheckpointError, MissingDependency, NoPlanWorked
from formal_llm.packs.openagi.experts.loading import ModelSource
from formal_llm.packs.openagi.experts.toolkit import experts
from tests.packs.openagi.hub import Hub

COMMIT = "a" * 40


def test_downloaded_once_and_then_read_offline(hub: Hub) -> None:
    places = {"sentiment": "tiny/sentiment"}
    online = experts(["sentiment"], checkpoints=places, device="cpu")
    assert hub.asked == []  # nothing before it is used
    said = online["sentiment"]("the cat")
    assert f"/tiny/sentiment/resolve/{COMMIT}/model.safetensors" in hub.asked
    hub.asked.clear()
    offline = experts(["sentiment"], checkpoints=places, device="cpu", offline=True)
    assert offline["sentiment"]("the cat") == said
    assert hub.asked == []


def test_offline_leaves_out_what_is_not_here_and_planning_goes_around(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"sentiment": "tiny/sentiment", "fill_mask": "tiny/fill_mask"}
    experts(["sentiment"], checkpoints=places, device="cpu")["sentiment"]("red")
    hub.asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    kit = experts(checkpoints=places, device="cpu")
    assert [tool.name for tool in kit] == ["sentiment"]
    assert len(kit.left_out) == 14
    cfg = CFG.from_string("%order prefix\ntext -> fill_mask input_text | sentiment input_text")
    assert Planner(cfg, "test:first", limits=kit.limits(cfg)).plan("x").word == ("sentiment", "input_text")
    assert Planner(cfg, "test:first").solve("x", {"input_text": "red"}, kit).result.output
    with pytest.raises(
        CheckpointError, match="fill_mask: the checkpoint 'tiny/fill_mask' is not on this machine; download"
    ):
        experts(["fill_mask"], checkpoints=places, device="cpu")
    assert hub.asked == []


def test_a_pipeline_from_the_hub(hub: Hub) -> None:
    source = ModelSource("text_to_image", "tiny/text_to_image")
    assert type(source.load_pipeline("StableDiffusionPipeline")).__name__ == "StableDiffusionPipeline"
    hub.asked.clear()
    offline = ModelSource("text_to_image", "tiny/text_to_image", offline=True)
    assert offline.is_local()
    assert offline.load_pipeline("StableDiffusionPipeline").unet is not None
    assert hub.asked == []


def test_a_revision_and_a_single_file(hub: Hub) -> None:
    source = ModelSource("denoising", "tiny/sentiment", revision="v1")
    source.load_model("AutoModelForSequenceClassification")
    assert any(path.endswith("/revision/v1") for path in hub.asked)
    assert ModelSource("x", "tiny/sentiment", revision="v1", offline=True).is_local()
    assert not ModelSource("x", "tiny/sentiment", offline=True).is_local()  # another revision
    assert source.key != ModelSource("denoising", "tiny/sentiment").key


def test_a_name_that_the_hub_does_not_know(hub: Hub) -> None:
    kit = experts(checkpoints={"sentiment": "nobody/nothing"}, device="cpu")
    with pytest.raises(
        CheckpointError, match="sentiment: the checkpoint 'nobody/nothing' cannot be had from the hub"
    ) as caught:
        kit["sentiment"]("red")
    assert (caught.value.tool, caught.value.checkpoint) == ("sentiment", "nobody/nothing")
    assert "name another checkpoint" in caught.value.remedy
    with pytest.raises(NoPlanWorked, match="nobody/nothing"):
        Planner(CFG.from_string("%order prefix\nt -> sentiment input_text")).solve("x", {"input_text": "red"}, kit)


# -- broken ones -------------------------------------------------------------------------------------------------------


def test_not_here_and_the_hub_is_not_to_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    source = ModelSource("sentiment", "tiny/sentiment", offline=True)
    for read in (
        lambda: source.load_model("AutoModelForSequenceClassification"),
        lambda: source.load_tokenizer(),
        lambda: source.load_pipeline("StableDiffusionPipeline"),
    ):
        with pytest.raises(
            CheckpointError, match=r"cannot be had from the hub or its cache.*hf download tiny/sentiment"
        ):
            read()


@pytest.mark.parametrize("name", ["./nowhere", "/no/where", "~/nowhere", "one/two/three", "C:\\models\\x"])
def test_what_is_written_as_a_folder_and_is_none(name: str) -> None:
    with pytest.raises(CheckpointError, match="is no folder"):
        ModelSource("sentiment", name).is_local()


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"sentiment: the checkpoint .* (is not complete|cannot be read)"):
        ModelSource("sentiment", str(tmp_path)).load_model("AutoModelForSequenceClassification")


def test_another_architecture(built: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read as AutoModelForSeq2SeqLM"):
        ModelSource("summarization", str(built / "tiny" / "sentiment")).load_model("AutoModelForSeq2SeqLM")
    with pytest.raises(CheckpointError, match="is not complete"):
        ModelSource("text_to_image", str(built / "tiny" / "sentiment")).load_pipeline("StableDiffusionPipeline")


def test_weights_that_are_missing_are_not_drawn_at_random(built: Path) -> None:
    place = str(built / "tiny" / "fill_mask")
    with pytest.raises(CheckpointError, match=r"has no weights for classifier.bias, .* and 1 more: it was made for"):
        ModelSource("sentiment", place).load_model("AutoModelForSequenceClassification")
    lax = ModelSource("sentiment", place, may_lack=("classifier",))
    assert lax.load_model("AutoModelForSequenceClassification") is not None
    # The pooler of ViT is not used in captions, and the published checkpoint has none.
    assert (
        ModelSource("captioning", str(built / "tiny" / "captioning")).load_model("AutoModelForImageTextToText")
        is not None
    )


def test_files_of_pytorch_are_read_only_where_that_is_allowed(built: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    place = tmp_path / "old"
    shutil.copytree(built / "tiny" / "sentiment", place)
    torch.save(load_file(place / "model.safetensors"), place / "pytorch_model.bin")
    (place / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r'no weights as safetensors.*say weights = "any"'):
        ModelSource("sentiment", str(place)).load_model("AutoModelForSequenceClassification")
    allowed = ModelSource("sentiment", str(place), weights="any").load_model("AutoModelForSequenceClassification")
    model = ModelSource("sentiment", str(built / "tiny" / "sentiment")).load_model("AutoModelForSequenceClassification")
    assert all(torch.equal(one, other) for one, other in zip(allowed.parameters(), model.parameters(), strict=True))


class Evil:
    """A pickle that would run code."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("was_here"),))


def test_a_pickle_runs_no_code(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "evil"
    shutil.copytree(built / "tiny" / "sentiment", place)
    (place / "model.safetensors").unlink()
    torch.save({"x": Evil()}, place / "pytorch_model.bin")
    for weights in ("safetensors", "any"):
        with pytest.raises(CheckpointError):
            ModelSource("sentiment", str(place), weights=weights).load_model("AutoModelForSequenceClassification")  # type: ignore[arg-type]
    assert not (tmp_path / "was_here").exists()


def test_damaged_weights(built: Path, tmp_path: Path) -> None:
    place = tmp_path / "damaged"
    shutil.copytree(built / "tiny" / "sentiment", place)
    data = (place / "model.safetensors").read_bytes()
    (place / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="sentiment: the checkpoint"):
        ModelSource("sentiment", str(place)).load_model("AutoModelForSequenceClassification")
    config = json.loads((place / "config.json").read_text())
    (place / "model.safetensors").write_bytes(data)
    (place / "config.json").write_text(json.dumps({**config, "dim": 32}))
    with pytest.raises(CheckpointError, match="cannot be read as"):
        ModelSource("sentiment", str(place)).load_model("AutoModelForSequenceClassification")


def test_a_library_that_is_not_there(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    source = ModelSource("sentiment", str(built / "tiny" / "sentiment"))
    for name in ("transformers", "torch"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(
                MissingDependency, match=rf"sentiment needs {name}: pip install 'formal-llm\[experts\]'"
            ):
                source.load_model("AutoModelForSequenceClassification")
    with (
        pytest.raises(CheckpointError, match=r"needs a library that is not installed.*timm"),
        source.translate_errors("DETR"),
    ):
        raise ImportError("DETR requires timm")
