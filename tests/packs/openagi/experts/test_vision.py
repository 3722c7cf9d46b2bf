"""Experts that look at pictures and say something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from formal_llm.packs.openagi.experts.loading import ModelSource
from formal_llm.packs.openagi.experts.toolkit import ExpertToolkit
from formal_llm.packs.openagi.experts.vision import AnswerByClass, AnswerInWords, ImageClassification
from tests.packs.openagi.experts import tiny_experts
from tests.packs.openagi.experts.expert_cases import PICTURES


def test_another_detector(make: Callable[..., ExpertToolkit], tmp_path: Path) -> None:
    from transformers import AutoImageProcessor, AutoModelForObjectDetection

    torch.manual_seed(0)
    tiny_experts.yolos(tmp_path / "yolos")
    kit = make(["detection"], checkpoints={"detection": str(tmp_path / "yolos")})
    named = kit["detection"].batch(PICTURES)
    assert named == [kit["detection"](image) for image in PICTURES]
    # By hand: every query that names an object rather than "no object" with more than the threshold.
    model = AutoModelForObjectDetection.from_pretrained(tmp_path / "yolos")
    images = AutoImageProcessor.from_pretrained(tmp_path / "yolos", backend="pil")
    with torch.inference_mode():
        logits = model(**images(images=PICTURES[0], return_tensors="pt")).logits[0]
    wanted = {
        model.config.id2label[int(shares[:-1].argmax())]
        for shares in logits.softmax(-1)
        if float(shares[:-1].max()) > 0.01
    }
    assert set(named[0].split(", ")) == wanted


def test_of_a_long_question_a_classifier_reads_the_beginning(kit: ExpertToolkit) -> None:
    expert = kit.experts["visual_question_answering"]
    assert isinstance(expert, AnswerByClass)
    loaded = expert.load_model()
    most = loaded.model.config.max_position_embeddings
    short, long = (expert.tokenize_question(loaded, "what is red " * count)["input_ids"] for count in (1, 100))
    assert short.shape[1] < long.shape[1] == most
    assert torch.equal(short[:, :-1], long[:, : short.shape[1] - 1])
    asking = kit["visual_question_answering"]
    assert asking(PICTURES[0], "what is red " * 100) == asking(PICTURES[0], "what is red " * 200)


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


def test_what_is_prepared_is_one_row_for_each_picture(kit: ExpertToolkit) -> None:
    expert = kit.experts["classification"]
    assert isinstance(expert, ImageClassification)
    rows = expert.prepare_rows(expert.load_model(), PICTURES)
    assert {tuple(row["pixel_values"].shape) for row in rows} == {(1, 3, tiny_experts.SIDE, tiny_experts.SIDE)}
    assert len(rows) == len(PICTURES)
