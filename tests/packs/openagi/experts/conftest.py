"""Tiny experts, built once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm.packs.openagi.experts.toolkit import ExpertToolkit, experts
from tests.packs.openagi.experts import tiny_experts
from tests.packs.openagi.experts.expert_cases import FASTER, TOOLS

TEXT_TOOLS = ["sentiment", "fill_mask", "question_answering", "text_generation", "summarization", "translation"]


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return tiny_experts.build_all(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(scope="session")
def faster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a user's own, in which no model needs working memory."""
    lines = [line for line in FASTER.splitlines() if line]
    told = {line[7:-1] for line in lines if line.startswith("[")}
    lines += [f"[tools.{name}]" for name in TOOLS if name not in told]
    text = "\n".join(line + ("\nworking_memory = 0" if line.startswith("[") else "") for line in lines)
    file = tmp_path_factory.mktemp("settings") / "mine.toml"
    file.write_text(text)
    return file


@pytest.fixture
def make(checkpoints: dict[str, str], faster: Path) -> Callable[..., ExpertToolkit]:
    def made(only: list[str] | None = None, **settings: Any) -> ExpertToolkit:
        others = settings.pop("checkpoints", {})
        given = {"settings": faster, "device": "cpu", "checkpoints": {**checkpoints, **others}, **settings}
        return experts(only, **given)

    return made


@pytest.fixture(scope="session")
def kit(checkpoints: dict[str, str], faster: Path) -> ExpertToolkit:
    """All of them, loaded once for all tests that change nothing."""
    return experts(settings=faster, device="cpu", checkpoints=checkpoints)


@pytest.fixture(scope="session")
def text_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("texts")
    for name in TEXT_TOOLS:
        torch.manual_seed(5)
        getattr(tiny_experts, name)(root / name)
    torch.manual_seed(5)
    tiny_experts.classification(root / "classification")
    return {name: str(root / name) for name in (*TEXT_TOOLS, "classification")}


@pytest.fixture(scope="session")
def text_kit(text_checkpoints: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> ExpertToolkit:
    """Tools for texts, and one for pictures, that go through little."""
    file = tmp_path_factory.mktemp("settings") / "mine.toml"
    file.write_text(
        "[tools.translation]\ngeneration = { max_new_tokens = 6 }\n[tools.question_answering]\noverlap = 8\n"
    )
    return experts([*TEXT_TOOLS, "classification"], checkpoints=text_checkpoints, settings=file, device="cpu")
