"""Provider strings."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import Question, RandomLLM, ScriptedLLM
from formal_llm.errors import UnknownProvider
from formal_llm.llms import PROVIDERS, resolve
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.doubles import Person
from formal_llm.llms.llm import MAKERS
from formal_llm.llms.recorded.transcript import RecordingLLM, ReplayLLM
from formal_llm.llms.sure import SureLLM

QUESTION = Question("Which?", ["a", "b", "c"])


def test_provider_strings() -> None:
    assert isinstance(resolve("builtin"), BuiltinLLM)
    assert isinstance(resolve("person"), Person)
    assert isinstance(resolve("test:random"), RandomLLM)
    assert isinstance(resolve("test:script=1,2+3"), ScriptedLLM)
    assert resolve("test:first").choose(QUESTION).number == 1
    assert isinstance(resolve("sure:1:test:first"), SureLLM) and isinstance(resolve("sure:0:builtin"), SureLLM)
    draws = [[resolve(f"test:random={seed}").choose(QUESTION).number for _ in range(3)] for seed in (1, 1)]
    assert draws[0] == draws[1]


@pytest.mark.parametrize(
    "name",
    ["", "bultin", "openai", "openai:", "anthropic:", "test:", "test:randm", "test:random=x", "test:script=", "x:y",
     "test:first=2", "test:script=a,b", "BUILTIN",
     "sure:1.5:builtin", "sure:-0.1:builtin", "sure:0.5", "sure:0.5:", "sure:x:builtin"],
)  # fmt: skip
def test_other_strings_are_told_with_the_forms_there_are(name: str) -> None:
    with pytest.raises(UnknownProvider) as caught:
        resolve(name)
    assert caught.value.known == tuple(PROVIDERS)
    assert "openai:MODEL" in str(caught.value)


def test_the_nearest_provider_is_suggested() -> None:
    with pytest.raises(UnknownProvider, match="Did you mean 'builtin'"):
        resolve("bultin")
    with pytest.raises(UnknownProvider, match="Did you mean 'anthropic:x'"):
        resolve("antropic:x")


def test_every_form_has_its_maker_and_every_maker_its_form() -> None:
    assert {form.split(":")[0] for form in PROVIDERS} == set(MAKERS)


@pytest.mark.parametrize("name", ["builtin:", "builtin:x", "person:", "minilm:", "replay:", "transformers:"])
def test_nothing_is_overlooked_behind_a_colon(name: str) -> None:
    with pytest.raises(UnknownProvider):
        resolve(name)


def test_a_class_is_found_by_its_provider(tmp_path: Path) -> None:
    RecordingLLM("test:first", tmp_path / "answers").choose(QUESTION)
    assert isinstance(resolve(f"replay:{tmp_path / 'answers'}"), ReplayLLM)
    vllm = resolve("vllm:a/b:c")  # a name may have colons of its own
    assert vllm.name == "vllm:a/b:c" and vllm.model == "a/b:c"
    vllm.client.close()
