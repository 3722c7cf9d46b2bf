"""Experts that turn a text into another, beside the pipelines of transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from formal_llm.packs.openagi.experts.toolkit import ExpertToolkit


@pytest.mark.slow
def test_sentiments_classes_and_continuations_are_the_pipelines(
    text_kit: ExpertToolkit, text_checkpoints: dict[str, str]
) -> None:
    from PIL import Image
    from transformers import pipeline

    texts = ["the cat sat.", "a storm", "red blue sea", "the boat went under the river and it was bad"]
    ask = pipeline("text-classification", model=text_checkpoints["sentiment"], device="cpu")
    assert text_kit["sentiment"].batch(texts) == [row["label"].lower() for row in ask(texts)]
    pictures = [Image.new("RGB", (20, 30), colour) for colour in ("red", "navy", "white", "green")]
    look = pipeline("image-classification", model=text_checkpoints["classification"], device="cpu", top_k=1)
    assert text_kit["classification"].batch(pictures) == [row[0]["label"] for row in look(pictures)]
    write = pipeline("text-generation", model=text_checkpoints["text_generation"], device="cpu")
    settings = {"max_new_tokens": 40, "do_sample": False, "no_repeat_ngram_size": 3, "pad_token_id": 0}
    for text in texts:
        assert text_kit["text_generation"](text) == write(text, **settings)[0]["generated_text"].strip()


@pytest.mark.parametrize("name", ["sentiment", "summarization", "translation", "text_generation"])
@pytest.mark.parametrize("text", ["", " ", "x", "storm. " * 400, "\N{PILE OF POO} \x00 ﷽"])
def test_any_text(name: str, text: str, text_kit: ExpertToolkit) -> None:
    result = text_kit[name](text)
    assert isinstance(result, str)
    if name in ("summarization", "translation") and not text.strip():
        assert result == ""
    if name == "text_generation":
        assert result.startswith(text.strip())


def test_each_sentence_is_translated_by_itself(text_kit: ExpertToolkit) -> None:
    translated = text_kit["translation"].batch(["The cat sat. A storm came. Who saw it?", "A storm came."])
    assert text_kit["translation"]("A storm came.") == translated[1]
    assert translated[1] in translated[0]


def test_no_token_type_ids() -> None:
    from formal_llm.packs.openagi.experts.loaded import LoadedModel
    from formal_llm.packs.openagi.experts.text import get_token_limit, tokenize_texts

    class Tokenizer:
        model_max_length = 10**30

        def __call__(self, texts: list[str], **settings: Any) -> Any:
            assert settings["max_length"] == 500
            ids = torch.zeros(len(texts), 3, dtype=torch.long)
            return {"input_ids": ids, "attention_mask": ids, "token_type_ids": ids}

    class Model:
        config = None

    parts = LoadedModel(Model(), Tokenizer())
    assert get_token_limit(parts) == 512
    assert set(tokenize_texts(parts, ["a"], less=12)) == {"input_ids", "attention_mask"}


def test_of_a_long_text_the_end_is_gone_on_with(text_kit: ExpertToolkit) -> None:
    ending = "the cat sat on the mat. " * 20
    first, second = text_kit["text_generation"].batch(["storm " * 30 + ending, "boat " * 90 + ending])
    assert first.split(ending.strip())[-1] == second.split(ending.strip())[-1]
