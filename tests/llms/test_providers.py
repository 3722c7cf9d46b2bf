"""Provider strings."""

from __future__ import annotations

import pytest

from formal_llm import Question, RandomLLM, ScriptedLLM, UnknownProvider
from formal_llm.llms import PROVIDERS, resolve
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.person import Person

QUESTION = Question("Which?", ["a", "b", "c"])


def test_provider_strings() -> None:
    assert isinstance(resolve("builtin"), BuiltinLLM)
    assert isinstance(resolve("person"), Person)
    assert isinstance(resolve("test:random"), RandomLLM)
    assert isinstance(resolve("test:script=1,2+3"), ScriptedLLM)
    assert resolve("test:first").choose(QUESTION).number == 1
    draws = [[resolve(f"test:random={seed}").choose(QUESTION).number for _ in range(3)] for seed in (1, 1)]
    assert draws[0] == draws[1]


@pytest.mark.parametrize(
    "name",
    ["", "bultin", "openai", "openai:", "anthropic:", "test:", "test:randm", "test:random=x", "test:script=", "x:y",
     "test:first=2", "test:script=a,b", "BUILTIN"],
)  # fmt: skip
def test_other_strings_are_told_with_the_forms_there_are(name: str) -> None:
    with pytest.raises(UnknownProvider) as caught:
        resolve(name)
    assert caught.value.known == tuple(PROVIDERS)
    assert "openai:MODEL" in str(caught.value)


def test_the_nearest_provider_is_suggested() -> None:
    with pytest.raises(UnknownProvider, match="Did you mean 'builtin'"):
        resolve("bultin")
    with pytest.raises(UnknownProvider, match="Did you mean 'anthropic'"):
        resolve("antropic:x")
