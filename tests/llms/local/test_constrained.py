"""Texts of a local model, held to a grammar or a schema token by token."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import assume, given

from formal_llm import CFG
from formal_llm.automata.notation.text_grammars import cfg_to_lark
from formal_llm.errors import GrammarError, InvalidAnswer, LLMError, ModelError, WritesNoText
from formal_llm.llms.llm import outcome_of
from formal_llm.llms.local.constrained import TokenGrammars
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.objects import ask_object
from formal_llm.llms.question import Question
from formal_llm.llms.schemas import closed
from formal_llm.llms.text_request import TextGrammar, TextRequest
from tests import oracles, strategies, tiny_models

END = 2
SPELLED = {
    "bytes": lambda: tiny_models.tokenizer(chat=True),
    "pieces": tiny_models.sentence_pieces,
    "likely pieces": lambda: tiny_models.sentence_pieces(unigram=True),
}
CHOICE = closed({
    "tool": {"enum": ["search", "respond"]},
    "sure": {"type": "boolean"},
    "why": {"type": "string", "minLength": 1, "maxLength": 6},
})  # fmt: skip


@cache
def spoken(how: str) -> Any:
    return SPELLED[how]()


@cache
def grammars(how: str) -> TokenGrammars:
    return TokenGrammars(spoken(how), tiny_models.VOCABULARY, [END])


def is_allowed(mask: Any, tokens: list[int]) -> bool:
    """Whether a mask lets a model write some tokens, one after the other."""
    for length in range(len(tokens)):
        scores = mask(torch.tensor([[1, *tokens[:length]]]), torch.zeros(1, tiny_models.VOCABULARY))
        if not torch.isfinite(scores[0, tokens[length]]):
            return False
    return True


@pytest.mark.parametrize("how", ["bytes", "likely pieces"])
@given(strategies.grammars())
@strategies.examples(25)
def test_a_mask_allows_the_words_and_no_others(how: str, cfg: CFG) -> None:
    try:
        written = cfg_to_lark(cfg)
    except GrammarError:
        assume(False)
    for word in oracles.all_words(oracles.alphabet(cfg), 3):
        text = "".join(f"{step}\n" for step in word)
        # A blank is a part of the first piece of SentencePiece; the pieces of single letters write any text.
        ids = [spoken(how).convert_tokens_to_ids("\u010a" if one == "\n" and how == "bytes" else one) for one in text]
        assert is_allowed(grammars(how).hold_to_lark(written), [*ids, END]) == cfg.accepts(word)


@pytest.fixture(scope="module", params=["llama", "t5"])
def llm(request: pytest.FixtureRequest) -> TransformersLLM:
    if request.param == "t5":
        return TransformersLLM.of(tiny_models.seq2seq("t5"), spoken("likely pieces"))
    return TransformersLLM.of(tiny_models.causal("llama"), spoken("bytes"))


@given(strategies.grammars())
@strategies.examples(8)
def test_a_model_of_noise_writes_words(llm: TransformersLLM, cfg: CFG) -> None:
    written = ""
    with suppress(GrammarError):
        written = cfg_to_lark(cfg)
    assume(written)
    for temperature in (0.0, 5.0):
        asked = TextRequest("Plan.", grammar=TextGrammar(written, ""), max_tokens=40, temperature=temperature)
        answer = llm.ask(asked)
        if answer.ended is not None:
            assert cfg.accepts(answer.text.split())
            assert answer.text == "".join(f"{step}\n" for step in answer.text.split())


def test_a_model_of_noise_is_held_to_a_schema(llm: TransformersLLM) -> None:
    for temperature in (0.0, 1.0, 5.0):
        made = ask_object(llm, "Which tool?", CHOICE, max_tokens=200, temperature=temperature)
        assert 1 <= len(str(made.value["why"])) <= 6 and json.loads(made.text) == made.value
        assert made.value["tool"] in ("search", "respond") and isinstance(made.value["sure"], bool)
        assert made.usage.requests == 1 and made.usage.output_tokens > 0
    with pytest.raises(InvalidAnswer, match="no whole JSON object"):
        ask_object(llm, "Which tool?", CHOICE, max_tokens=3, tries=1)


def test_texts_and_choices_together(llm: TransformersLLM) -> None:
    asked = [TextRequest("go", max_tokens=2), Question("Which?", ["a", "b"], task="t"), TextRequest("go", tools=[])]
    text, choice, turn = map(outcome_of, llm.submit(asked))
    assert not isinstance(text, Exception) and not isinstance(choice, Exception)
    assert text.usage.output_tokens and not text.numbers and choice.numbers
    assert isinstance(turn, WritesNoText)


@pytest.mark.parametrize("snow", ['"\u2603"', "/[\u2603\u2604]/"])
def test_what_the_vocabulary_cannot_spell(llm: TransformersLLM, snow: str) -> None:
    asked = TextRequest("go", grammar=TextGrammar(f"start: {snow}", ""))
    if llm.renderer.style == "seq2seq":
        with pytest.raises(LLMError, match="cannot be held to its grammar"):
            llm.ask(asked)
    else:  # which spells it in bytes
        assert llm.ask(asked).text in ("\u2603", "\u2604")


def test_what_cannot_be_read() -> None:
    with pytest.raises(ValueError, match=r"the grammar cannot be read: .*unknown name"):
        grammars("bytes").hold_to_lark("start: a b\n")
    with pytest.raises(ValueError, match="the grammar cannot be read"):
        grammars("bytes").hold_to_schema({"type": "shape"})
    with pytest.raises(ModelError, match="no token of this model ends a text"):
        TokenGrammars(spoken("bytes"), tiny_models.VOCABULARY, [])
    with pytest.raises(ModelError, match="what the tokens of this model stand for is not known"):
        TokenGrammars(object(), tiny_models.VOCABULARY, [END])  # type: ignore[arg-type]
