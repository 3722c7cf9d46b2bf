"""Checkpoints of tiny experts on a hub on this machine. Libraries are imported by the tests that need them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.packs.openagi.hub import Hub


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some checkpoints, as repositories of an owner "tiny"."""
    root = tmp_path_factory.mktemp("hub")
    import torch

    from tests.packs.openagi.experts import tiny_experts

    torch.manual_seed(0)
    for name in ("sentiment", "fill_mask", "detection", "text_to_image", "captioning"):
        getattr(tiny_experts, name)(root / "tiny" / name)
    return root


@pytest.fixture(scope="session")
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
