"""Each expert against the model itself, and with any input."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from formal_llm.packs.openagi.classical.ngrams import GAP
from formal_llm.packs.openagi.experts.loading import ModelSource
from formal_llm.packs.openagi.experts.reading import ExtractiveAnswer
from formal_llm.packs.openagi.experts.toolkit import ExpertToolkit, experts
from formal_llm.packs.openagi.experts.vision import AnswerInWords
from tests.packs.openagi.experts import tiny_experts
from tests.packs.openagi.experts.expert_cases import PICTURES, picture, plain


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


def test_of_a_long_text_the_end_is_gone_on_with(text_kit: ExpertToolkit) -> None:
    ending = "the cat sat on the mat. " * 20
    first, second = text_kit["text_generation"].batch(["storm " * 30 + ending, "boat " * 90 + ending])
    assert first.split(ending.strip())[-1] == second.split(ending.strip())[-1]


def test_of_a_long_question_a_writer_reads_the_end(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tiny_experts.git(tmp_path)
    expert = AnswerInWords(ModelSource("vqa", str(tmp_path)), generation={"max_new_tokens": 4})
    loaded = expert.load_model()
    room = loaded.model.config.max_position_embeddings - 4
    first, second = (
        expert.tokenize_question(loaded, f"{word} " * 200 + "what is it " * 30)["input_ids"] for word in ("red", "blue")
    )
    assert first.shape == (1, room)
    assert torch.equal(first, second)
    with torch.inference_mode():
        long, end = expert.run_batch(loaded, PICTURES[:1] * 2, ["red " * 200 + "what is it " * 30, "what is it " * 30])
    assert long == end


def test_a_coloured_picture_keeps_its_luminance(kit: ExpertToolkit) -> None:
    image = picture(0, 30, 20, "L")
    coloured = kit["colorization"](image)
    assert coloured.mode == "RGB"
    # Colours that a screen does not have are cut off; most are kept.
    difference = np.abs(np.asarray(coloured.convert("L"), dtype=int) - np.asarray(image, dtype=int))
    assert np.median(difference) <= 2


def test_the_size_of_a_drawn_picture(kit: ExpertToolkit, make: Callable[..., ExpertToolkit]) -> None:
    assert kit["text_to_image"]("A red cat.").size == (16, 16)
    first, second = (plain(kit["text_to_image"](text)) for text in ("A red cat.", "A blue sea."))
    assert first != second


def test_what_the_safety_checker_refuses_is_an_error(tmp_path: Path, faster: Path) -> None:
    torch.manual_seed(0)
    tiny_experts.text_to_image(tmp_path / "drawing")
    from safetensors.torch import load_file, save_file

    file = tmp_path / "drawing" / "safety_checker" / "model.safetensors"
    weights = load_file(file)
    weights["concept_embeds_weights"].fill_(-2.0)  # everything is similar enough
    save_file(weights, file, metadata={"format": "pt"})
    places = {"text_to_image": str(tmp_path / "drawing")}
    kit = experts(["text_to_image"], checkpoints=places, settings=faster, device="cpu")
    with pytest.raises(ValueError, match="safety checker"):
        kit["text_to_image"]("A cat.")


# -- gaps --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "[MASK]",
        "[mask] sat on the mat. ____ was old, and the [MASK]",
        "the cat <mask> on _____ mat.",
        "[MASK][MASK][MASK]",
        "storm " * 500 + "[MASK]" + " boat" * 500 + "[MASK]",
        "no gap here",
        "",
    ],
)
def test_every_gap_gets_a_word(text: str, text_kit: ExpertToolkit) -> None:
    filled = text_kit["fill_mask"](text)
    parts = GAP.split(text)
    assert GAP.search(filled) is None
    rest = filled
    for number, part in enumerate(parts):
        before, found, rest = rest.partition(part) if part else ("", "", rest)
        assert part == found
        assert number == 0 or not part or (before.isalnum() and before.lower() in tiny_experts.WORDS)


def test_a_word_begins_a_sentence_with_a_capital_letter(text_kit: ExpertToolkit) -> None:
    first, inside, second = text_kit["fill_mask"].batch(["[MASK] sat.", "the [MASK] sat.", "the cat sat. [MASK] went."])
    assert first[0].isupper()
    assert inside[4].islower() or inside[4].isdigit()
    assert second[13].isupper() or second[13].isdigit()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["the [MASK] sat on the mat.", "a [MASK]", "who saw [MASK] lighthouse near the sea?"])
def test_the_word_is_the_pipelines(text: str, text_kit: ExpertToolkit, text_checkpoints: dict[str, str]) -> None:
    from transformers import pipeline

    best = pipeline("fill-mask", model=text_checkpoints["fill_mask"], device="cpu", top_k=60)(text)
    word = next(row["token_str"] for row in best if row["token_str"] in tiny_experts.WORDS)
    assert text_kit["fill_mask"](text) == text.replace("[MASK]", word)


# -- answers -----------------------------------------------------------------------------------------------------------

WORDS = st.lists(st.sampled_from([*tiny_experts.WORDS, ".", ","]), min_size=1, max_size=120).map(" ".join)


@example(document=" ".join(random.Random(1).choices(tiny_experts.WORDS, k=150)), question="who saw it?")
@example(document=" ".join(random.Random(2).choices(tiny_experts.WORDS, k=150)), question="who saw it?")
@given(document=WORDS, question=st.sampled_from(["who saw it?", "when", "", "what is the " * 40 + "?"]))
def test_an_answer_is_the_best_passage_of_all_windows(document: str, question: str, text_kit: ExpertToolkit) -> None:
    """Against loops over windows that are cut by hand."""
    expert = text_kit.experts["question_answering"]
    assert isinstance(expert, ExtractiveAnswer)
    with text_kit.pool.use(next(key for key in text_kit.pool._models if key.startswith("ExtractiveAnswer"))) as parts:
        tokenizer, model = parts.tokenizer, parts.model
        read = tokenizer(document, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        asked = tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"][:32]
        tokens, spans = read["input_ids"], read["offset_mapping"]
        room = 64 - 3 - len(asked)
        step = room - min(8, room // 2)
        best: tuple[float, str] | None = None
        begin = 0
        while True:
            window = tokens[begin : begin + room]
            ids = torch.tensor([[2, *asked, 3, *window, 3]])
            with torch.inference_mode():
                found = model(input_ids=ids, attention_mask=torch.ones_like(ids))
            first = len(asked) + 2
            for start in range(len(window)):
                for end in range(start, min(start + 30, len(window))):
                    score = float(found.start_logits[0, first + start] + found.end_logits[0, first + end])
                    text = document[spans[begin + start][0] : spans[begin + end][1]]
                    if best is None or score > best[0] + 1e-4:
                        best = (score, text)
            if begin + room >= len(tokens):
                break
            begin += step
        with torch.inference_mode():
            (answer,) = expert.run_batch(parts, [document], [question])
    assert best is not None
    assert answer in document
    assert len(answer.split()) <= 30
    if answer != best[1].strip():  # another passage with the same score, up to rounding
        assert _score(parts, document, question, answer) == pytest.approx(best[0], abs=1e-3)


def _score(parts: Any, document: str, question: str, answer: str) -> float:
    """The best score of an answer: as a document, where there is one window."""
    tokens = parts.tokenizer(document, add_special_tokens=False, verbose=False)["input_ids"]
    asked = parts.tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"][:32]
    wanted = parts.tokenizer(answer, add_special_tokens=False, verbose=False)["input_ids"]
    room = 64 - 3 - len(asked)
    step = room - min(8, room // 2)
    best = float("-inf")
    for begin in range(0, max(len(tokens) - room, 0) + step, step):
        window = tokens[begin : begin + room]
        ids = torch.tensor([[2, *asked, 3, *window, 3]])
        with torch.inference_mode():
            found = parts.model(input_ids=ids, attention_mask=torch.ones_like(ids))
        for start in range(len(window) - len(wanted) + 1):
            if window[start : start + len(wanted)] == wanted:
                first = len(asked) + 2 + start
                score = found.start_logits[0, first] + found.end_logits[0, first + len(wanted) - 1]
                best = max(best, float(score))
    return best


def test_documents_and_questions_in_either_order(text_kit: ExpertToolkit) -> None:
    answering = text_kit["question_answering"]
    document, question = "The boat went under. The keeper saw it.", "Who saw the boat?"
    assert answering(document, question) == answering(question, document)
    assert answering("", "Who?") == ""
    assert answering(" \n", "") == ""
    assert answering("A boat.", "")


def test_an_answer_stands_in_the_document_as_it_is_written(text_kit: ExpertToolkit) -> None:
    document = "THE Lighthouse  was\nbuilt IN 1874."
    assert text_kit["question_answering"](document, "When?") in document
