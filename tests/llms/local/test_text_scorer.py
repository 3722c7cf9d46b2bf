"""The scorer of a model that writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.seq2seq import Seq2SeqScorer
from formal_llm.llms.local.text_scorer import answered_by, text_scorer


def test_what_it_is_made_of(network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    assert isinstance(text_scorer(network("llama"), spoken(chat=True)), CausalScorer)
    assert text_scorer(network("llama"), spoken(chat=True)).renderer.style == "chat"
    assert text_scorer(network("llama"), spoken(chat=True), style="plain").renderer.style == "plain"
    other = text_scorer(network("t5"), spoken(end_after=True))
    assert isinstance(other, Seq2SeqScorer) and other.renderer.style == "seq2seq"


def test_what_answers_depend_on(llama: Any, spoken: Callable[..., Any]) -> None:
    plain = answered_by(text_scorer(llama, spoken()))
    assert plain == {"dtype": "torch.float32", "style": "plain", "cue": "Answer:"}
    assert answered_by(text_scorer(llama, spoken(), scoring="2*text+number")) == {**plain, "scoring": "2*text+number"}
    with pytest.raises(ValueError, match="did you mean text"):
        text_scorer(llama, spoken(), scoring="texts")
