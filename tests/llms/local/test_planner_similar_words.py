"""Words that an encoder finds similar."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from formal_llm import CFG, Planner
from formal_llm.llms import resolve
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.local.planner import ALIKE, UNLIKE, SimilarWords
from formal_llm.llms.packaged import find_minilm
from formal_llm.llms.question import Term

torch = pytest.importorskip("torch")

TERMS = (Term("d", "Deblurring", "sharpens a blurry image"), Term("s", "Enlarging"), Term("n", ""))
#: The cosine of each word with the word "blurry".
NEAR = {"fuzzy": 0.7, "dim": UNLIKE, "bleary": 0.95, "blurry": 1.0}


def vectors(texts: Sequence[str]) -> object:
    assert len(set(texts)) == len(texts)
    rows = [(NEAR.get(text, 0.0), (1 - NEAR.get(text, 0.0) ** 2) ** 0.5) for text in texts]
    # Words that are not near have a direction of their own.
    return torch.tensor([[a, 0.0, b] if a else [0.0, 1.0, 0.0] for a, b in rows]) * torch.tensor([1.0, 1.0, 0.0])


def test_similar_words_have_a_share() -> None:
    likeness = SimilarWords(vectors)
    one, other, nothing = likeness(("fuzzy", "bleary", "dim", "fuzzy"), TERMS)
    share = (0.7 - UNLIKE) / (ALIKE - UNLIKE)
    assert one == pytest.approx({0: share, 1: 1.0, 3: share})
    assert other == nothing == {}
    assert likeness((), TERMS) == [{}, {}, {}]
    assert likeness(("fuzzy",), (Term("n", ""),)) == [{}]


def test_equal_stems_count_wholly() -> None:
    assert SimilarWords(vectors)(("sharpening",), TERMS)[0] == {0: 1.0}


def test_with_minilm() -> None:
    pytest.importorskip("transformers")
    try:
        find_minilm()
    except ImportError:
        pytest.skip("MiniLM is not installed")
    llm = resolve("builtin:minilm")
    assert isinstance(llm, BuiltinLLM)
    cfg = CFG.from_string('S -> d | s\nd "D" "paints an image"\ns "S" "sings a song"')
    assert Planner(cfg, llm).plan("melody").word == ("s",)
    assert Planner(cfg, llm).plan("photo").word == ("d",)
