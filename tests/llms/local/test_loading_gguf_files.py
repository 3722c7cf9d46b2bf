"""Models in one file: written out once, and what is wrong with such files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formal_llm.errors import ModelError, ResourceNotFound
from formal_llm.llms.local.loading import load, written_out
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.question import Question

pytest.importorskip("gguf", reason="the package gguf is not installed")
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from benchmarks import tiny_gguf

    made = tmp_path_factory.mktemp("models") / "tiny.gguf"
    tiny_gguf.write(str(made))
    return made


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "formal-llm" / "gguf"


def test_it_is_written_out_once(file: Path, cache: Path, caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    folder = written_out(file, torch.float32)
    assert folder.parent == cache and [one.name for one in cache.iterdir()] == [folder.name]
    assert "tiny.gguf is written out once" in caplog.text
    caplog.clear()
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", None)  # not asked again
    assert written_out(file, torch.float32) == folder
    assert not caplog.text


def test_the_weights_are_those_of_the_file(file: Path) -> None:
    import transformers

    model, tokenizer = load(str(file))
    direct = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, local_files_only=True
    )
    mine, its = model.state_dict(), direct.state_dict()
    assert mine.keys() == its.keys() and all(torch.equal(mine[name], its[name]) for name in mine)
    assert model.name_or_path == str(file)  # what adapters will name
    assert tokenizer.chat_template


def test_it_answers(file: Path) -> None:
    llm = TransformersLLM(str(file))
    answer = llm.choose(Question("Which?", ["a", "b", "c"]))
    assert answer.probabilities is not None and sum(answer.probabilities.values()) == pytest.approx(1)


@pytest.mark.parametrize("text", [b"", b"PK\x03\x04", b"GGUF", b"GGUF" + b"\x03" + b"\0" * 200])
def test_what_is_no_such_file(tmp_path: Path, cache: Path, text: bytes) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(text)
    with pytest.raises(ModelError, match=r"broken\.gguf"):
        load(str(broken))
    assert not cache.exists() or not list(cache.iterdir())  # nothing half made is left


def test_a_cache_that_cannot_be_written(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with pytest.raises(ModelError, match="XDG_CACHE_HOME"):
        written_out(file, torch.float32)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match=r"gone\.gguf"):
        load(str(tmp_path / "gone.gguf"))
