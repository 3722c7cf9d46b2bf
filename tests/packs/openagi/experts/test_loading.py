"""Checkpoints: from a hub (a local one, with the real client), from its cache, from folders; and broken ones."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest
import torch

from formal_llm import CFG, Planner
from formal_llm.errors import CheckpointError, MissingDependency, NoPlanWorked
from formal_llm.packs.openagi.experts.gate import Gate
from formal_llm.packs.openagi.experts.loading import LoadedModel, ModelSource, hub_answers, pick_device
from formal_llm.packs.openagi.experts.toolkit import experts
from tests.packs.openagi.experts import tiny_experts

COMMIT = "a" * 40


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some checkpoints, as repositories of an owner "tiny"."""
    root = tmp_path_factory.mktemp("hub")
    torch.manual_seed(0)
    for name in ("sentiment", "fill_mask", "detection", "text_to_image", "restormer", "captioning"):
        getattr(tiny_experts, name)(root / "tiny" / name)
    return root


class Hub(ThreadingHTTPServer):
    """As much of a hub as the client asks for: what a repository has, and its files."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.asked: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        self.server.asked.append(self.path)
        parts = self.path.split("?")[0].strip("/").split("/")
        about = parts[0] == "api"
        folder = self.server.root.joinpath(*(parts[2:4] if about else parts[:2]))
        if not folder.is_dir() or (about and len(parts) < 4):
            self.send(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif about:
            files = [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]
            named = {"id": "/".join(parts[2:4]), "sha": COMMIT, "siblings": [{"rfilename": file} for file in files]}
            listed = [{"type": "file", "path": file, "size": 1, "oid": "b" * 40} for file in files]
            self.send(
                200, json.dumps(listed if "tree" in parts else named).encode(), {"Content-Type": "application/json"}
            )
        elif (file := folder.joinpath(*parts[4:])).is_file():
            data = file.read_bytes()
            self.send(200, data, {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(data).hexdigest()}"'})
        else:
            self.send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})

    def send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server(built: Path) -> Iterator[Hub]:
    """One for all tests: the client keeps addresses here and there."""
    server = Hub(built)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def hub(server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A hub on this machine that the real client asks, and an empty cache."""
    import huggingface_hub.constants
    import huggingface_hub.hf_api

    server.asked.clear()
    address = f"http://127.0.0.1:{server.server_port}"
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.hf_api.api, "endpoint", address)
    monkeypatch.setattr("transformers.utils.hub._hf_api", None, raising=False)  # it has its own
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return server


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


def test_the_toolkit_at_hand_lacks_what_no_hub_can_give(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    from formal_llm.packs.openagi.toolkits import AT_HAND, TOOLKITS

    assert hub_answers()
    assert len(AT_HAND["experts"]()) == 15
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    assert not hub_answers()
    without = AT_HAND["experts"]()
    assert (len(without), len(without.left_out)) == (0, 15)
    assert "(hf download facebook/detr-resnet-101 --revision no_timm)" in without.left_out["detection"]
    # Where nobody reads what is left out, as in training, nothing is.
    assert len(TOOLKITS["experts"]()) == 15


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
    cfg = CFG.from_string("text -> fill_mask input_text | sentiment input_text")
    assert Planner(cfg, "test:first", limits=kit.limits(cfg)).plan("x").word == ("sentiment", "input_text")
    assert Planner(cfg, "test:first").solve("x", {"input_text": "red"}, kit).result.output
    with pytest.raises(
        CheckpointError, match="fill_mask: the checkpoint 'tiny/fill_mask' is not on this machine; download"
    ):
        experts(["fill_mask"], checkpoints=places, device="cpu")
    assert hub.asked == []


def test_a_pipeline_from_the_hub(hub: Hub) -> None:
    source = ModelSource("text_to_image", "tiny/text_to_image")
    assert type(source.pipeline("StableDiffusionPipeline")).__name__ == "StableDiffusionPipeline"
    hub.asked.clear()
    offline = ModelSource("text_to_image", "tiny/text_to_image", offline=True)
    assert offline.here()
    assert offline.pipeline("StableDiffusionPipeline").unet is not None
    assert hub.asked == []


def test_a_revision_and_a_single_file(hub: Hub) -> None:
    source = ModelSource("denoising", "tiny/restormer", revision="v1")
    assert source.file("model.safetensors").is_file()
    assert any("/resolve/v1/" in path for path in hub.asked)
    assert ModelSource("x", "tiny/restormer", revision="v1", offline=True).here()
    assert not ModelSource("x", "tiny/restormer", offline=True).here()  # another revision
    assert source.key != ModelSource("denoising", "tiny/restormer").key


def test_a_name_that_the_hub_does_not_know(hub: Hub) -> None:
    kit = experts(checkpoints={"sentiment": "nobody/nothing"}, device="cpu")
    with pytest.raises(
        CheckpointError, match="sentiment: the checkpoint 'nobody/nothing' cannot be had from the hub"
    ) as caught:
        kit["sentiment"]("red")
    assert (caught.value.tool, caught.value.checkpoint) == ("sentiment", "nobody/nothing")
    assert "name another checkpoint" in caught.value.remedy
    with pytest.raises(NoPlanWorked, match="nobody/nothing"):
        Planner(CFG.from_string("t -> sentiment input_text")).solve("x", {"input_text": "red"}, kit)


# -- broken ones -------------------------------------------------------------------------------------------------------


def test_not_here_and_the_hub_is_not_to_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    source = ModelSource("sentiment", "tiny/sentiment", offline=True)
    for read in (
        lambda: source.model("AutoModelForSequenceClassification"),
        lambda: source.processor("AutoTokenizer"),
        lambda: source.pipeline("StableDiffusionPipeline"),
        lambda: source.file("model.safetensors"),
    ):
        with pytest.raises(
            CheckpointError, match=r"cannot be had from the hub or its cache.*hf download tiny/sentiment"
        ):
            read()


@pytest.mark.parametrize("name", ["./nowhere", "/no/where", "~/nowhere", "one/two/three", "C:\\models\\x"])
def test_what_is_written_as_a_folder_and_is_none(name: str) -> None:
    with pytest.raises(CheckpointError, match="is no folder"):
        ModelSource("sentiment", name).here()


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"sentiment: the checkpoint .* (is not complete|cannot be read)"):
        ModelSource("sentiment", str(tmp_path)).model("AutoModelForSequenceClassification")
    with pytest.raises(CheckpointError, match=r"there is no file model.safetensors"):
        ModelSource("denoising", str(tmp_path)).file("model.safetensors")


def test_another_architecture(built: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read as AutoModelForSeq2SeqLM"):
        ModelSource("summarization", str(built / "tiny" / "sentiment")).model("AutoModelForSeq2SeqLM")
    with pytest.raises(CheckpointError, match="is not complete"):
        ModelSource("text_to_image", str(built / "tiny" / "sentiment")).pipeline("StableDiffusionPipeline")


def test_weights_that_are_missing_are_not_drawn_at_random(built: Path) -> None:
    place = str(built / "tiny" / "fill_mask")
    with pytest.raises(CheckpointError, match=r"has no weights for classifier.bias, .* and 1 more: it was made for"):
        ModelSource("sentiment", place).model("AutoModelForSequenceClassification")
    lax = ModelSource("sentiment", place, may_lack=("classifier",))
    assert lax.model("AutoModelForSequenceClassification") is not None
    # The pooler of ViT is not used in captions, and the published checkpoint has none.
    assert ModelSource("captioning", str(built / "tiny" / "captioning")).model("AutoModelForImageTextToText") is not None


def test_files_of_pytorch_are_read_only_where_that_is_allowed(built: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    place = tmp_path / "old"
    shutil.copytree(built / "tiny" / "sentiment", place)
    torch.save(load_file(place / "model.safetensors"), place / "pytorch_model.bin")
    (place / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r'no weights as safetensors.*say weights = "any"'):
        ModelSource("sentiment", str(place)).model("AutoModelForSequenceClassification")
    allowed = ModelSource("sentiment", str(place), weights="any").model("AutoModelForSequenceClassification")
    model = ModelSource("sentiment", str(built / "tiny" / "sentiment")).model("AutoModelForSequenceClassification")
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
            ModelSource("sentiment", str(place), weights=weights).model("AutoModelForSequenceClassification")  # type: ignore[arg-type]
    assert not (tmp_path / "was_here").exists()


def test_damaged_weights(built: Path, tmp_path: Path) -> None:
    place = tmp_path / "damaged"
    shutil.copytree(built / "tiny" / "sentiment", place)
    data = (place / "model.safetensors").read_bytes()
    (place / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="sentiment: the checkpoint"):
        ModelSource("sentiment", str(place)).model("AutoModelForSequenceClassification")
    config = json.loads((place / "config.json").read_text())
    (place / "model.safetensors").write_bytes(data)
    (place / "config.json").write_text(json.dumps({**config, "dim": 32}))
    with pytest.raises(CheckpointError, match="cannot be read as"):
        ModelSource("sentiment", str(place)).model("AutoModelForSequenceClassification")


def test_a_library_that_is_not_there(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    source = ModelSource("sentiment", str(built / "tiny" / "sentiment"))
    for name in ("transformers", "torch"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(
                MissingDependency, match=rf"sentiment needs {name}: pip install 'formal-llm\[experts\]'"
            ):
                source.model("AutoModelForSequenceClassification")
    with pytest.raises(CheckpointError, match=r"needs a library that is not installed.*timm"), source.telling("DETR"):
        raise ImportError("DETR requires timm")


def test_detr_needs_no_timm(built: Path) -> None:
    import importlib.util

    assert importlib.util.find_spec("timm") is None
    assert importlib.util.find_spec("torchvision") is None
    assert ModelSource("detection", str(built / "tiny" / "detection")).model("AutoModelForObjectDetection") is not None


# -- at once ----------------------------------------------------------------------------------------------------------


def test_nothing_works_while_a_model_is_loaded() -> None:
    gate, now, seen = Gate(), {"working": 0, "loading": 0}, []
    lock = Lock()

    def act(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(60):
            what = "loading" if rng.random() < 0.2 else "working"
            with getattr(gate, what)():
                with lock:
                    now[what] += 1
                    seen.append(dict(now))
                time.sleep(0.0002)
                with lock:
                    now[what] -= 1

    threads = [Thread(target=act, args=(seed,), daemon=True) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert all(each["loading"] <= 1 and not (each["loading"] and each["working"]) for each in seen)
    assert max(each["working"] for each in seen) > 1


# -- parts -------------------------------------------------------------------------------------------------------------


def test_what_a_model_takes() -> None:
    shared = torch.nn.Linear(4, 4, bias=False)
    assert LoadedModel(torch.nn.Sequential(shared, shared)).bytes == 64  # tied weights count once
    model = torch.nn.BatchNorm1d(3)
    assert LoadedModel(model).bytes == 4 * 12 + 8


def test_the_device() -> None:
    assert pick_device("cuda:3") == "cuda:3"
    assert pick_device(None) == ("cuda" if torch.cuda.is_available() else "cpu")
