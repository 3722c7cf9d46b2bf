"""Models that write, as answerers: choices, identity and settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm.llms.generation import TextLLM
from formal_llm.llms.llm import LLM, BatchLLM
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.recorded.cache import CachedLLM
from tests.llms.local import token_by_token


@pytest.fixture
def llm(llama: Any, spoken: Callable[..., Any]) -> TransformersLLM:
    return TransformersLLM.of(llama, spoken(), name="tiny")


def test_an_answer(llm: TransformersLLM, llama: Any, spoken: Callable[..., Any]) -> None:
    assert isinstance(llm, LLM) and isinstance(llm, BatchLLM) and isinstance(llm, TextLLM)
    asked = token_by_token.question(12)
    answer = llm.choose(asked)
    with torch.no_grad():
        wanted = token_by_token.causal_probabilities(llama, spoken(), asked, "plain")
    assert list(answer.probabilities) == list(range(1, 13))
    assert list(answer.probabilities.values()) == pytest.approx(wanted, abs=1e-5)
    assert answer.number == 1 + max(range(12), key=wanted.__getitem__)
    assert (answer.usage.requests, answer.usage.output_tokens) == (1, 0)
    assert answer.usage.input_tokens == len(spoken()(token_by_token.texts(spoken(), asked, "plain")[0])["input_ids"])


def test_identity(llama: Any, spoken: Callable[..., Any], tmp_path: Path) -> None:
    named = [
        TransformersLLM.of(llama, spoken(chat=True), name="tiny", **settings)
        for settings in ({}, {"style": "plain"}, {"cue": "Choice:"}, {"template_settings": {"thinking": True}})
    ]
    identities = [llm.identity for llm in named]
    assert all(identities.count(identity) == 1 for identity in identities)
    assert identities[0] == TransformersLLM.of(llama, spoken(chat=True), name="tiny", row_tokens=9).identity
    assert repr(named[0]) == "<TransformersLLM tiny>"
    # Two models in memory cannot be told apart, so a cache wants a name.
    unnamed = TransformersLLM.of(llama, spoken())
    assert unnamed.identity is None and repr(unnamed) == "<TransformersLLM in memory>"
    with pytest.raises(ValueError, match="give the cache a name"):
        CachedLLM(unnamed, tmp_path / "cache")


def test_unknown_settings_are_told_before_anything_is_loaded() -> None:
    with pytest.raises(TypeError, match="unknown settings: cach_bytes"):
        TransformersLLM("/there/is/no/such/folder", cach_bytes=0)  # type: ignore[call-arg]
