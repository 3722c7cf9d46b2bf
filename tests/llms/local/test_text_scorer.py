"""Which scorer a model that writes gets, and how much it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.seq2seq import Seq2SeqScorer
from formal_llm.llms.local.text_scorer import answered_by, text_scorer
from tests import tiny_models


@pytest.mark.parametrize(("chat", "style"), [(False, "plain"), (True, "chat")])
def test_a_decoder_has_its_chat_template_where_there_is_one(chat: bool, style: str) -> None:
    network = tiny_models.causal("gpt2", tiny_models.VOCABULARY)
    made = text_scorer(network, tiny_models.tokenizer(chat=chat), cue="So:")
    assert isinstance(made, CausalScorer) and made.renderer.style == style
    assert made.renderer.longest == network.config.n_positions


def test_an_encoder_decoder_has_two_parts() -> None:
    made = text_scorer(tiny_models.seq2seq(), tiny_models.sentence_pieces())
    assert isinstance(made, Seq2SeqScorer) and made.renderer.style == "seq2seq"


def test_what_answers_depend_on(llama: Any, spoken: Callable[..., Any]) -> None:
    plain = answered_by(text_scorer(llama, spoken()))
    assert plain == {"dtype": "torch.float32", "style": "plain", "cue": "Answer:"}
    assert answered_by(text_scorer(llama, spoken(), scoring="2*text+number")) == {**plain, "scoring": "2*text+number"}
    with pytest.raises(ValueError, match="did you mean text"):
        text_scorer(llama, spoken(), scoring="texts")


@pytest.mark.parametrize(
    ("limit", "positions", "longest"),
    [(7, 48, 7), (0, 48, 48), (10**9, 48, 48), (10**9 - 1, 0, 10**9 - 1), (10**30, 0, None), (1, 0, 1)],
)
def test_how_many_tokens_can_be_read(limit: int, positions: int, longest: int | None) -> None:
    """The least of what the network and the tokenizer declare; a number that only means "any" does not count."""
    network, tokenizer = tiny_models.causal("gpt2", tiny_models.VOCABULARY), tiny_models.tokenizer()
    network.config.n_positions, tokenizer.model_max_length = positions, limit
    assert text_scorer(network, tokenizer).renderer.longest == longest
