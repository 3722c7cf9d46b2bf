"""Synonyms: from a lexicon that may not be there."""

from __future__ import annotations

import sys
import types

import pytest

from formal_llm import CFG, Planner
from formal_llm.errors import MissingDependency
from formal_llm.llms import resolve
from formal_llm.llms.builtin import BuiltinLLM, equal_stems
from formal_llm.llms.question import Term
from formal_llm.llms.synonyms import SHARE, SynonymLikeness

KNOWN = {"fuzzy": ["blurry", "out of focus"], "picture": ["image"], "enlarges": ["magnify"]}
TERMS = (Term("d", "Deblurring", "sharpens a blurry image"), Term("s", "Super Resolution", "enlarges it"))


def test_synonyms_count_less_than_the_words_themselves() -> None:
    likeness = SynonymLikeness(lambda word: KNOWN.get(word, []))
    words = ("fuzzy", "image", "magnify", "house")
    assert likeness(words, TERMS) == [{0: SHARE, 1: 1.0}, {2: SHARE}]
    assert equal_stems(words, TERMS) == [{1: 1.0}, {}]
    # Either way round: the word has the synonym, or the terminal's word has it.
    assert likeness(("pictures",), TERMS) == [{}, {}]  # the lexicon is asked for words as they are written
    assert likeness(("picture",), TERMS) == [{0: SHARE}, {}]


def test_a_plan_with_a_word_that_only_the_lexicon_knows() -> None:
    cfg = CFG.from_string('I -> A I | photo\nA -> d | s\nd "D" "sharpens a blurry image"\ns "S" "enlarges it"')
    llm = BuiltinLLM(SynonymLikeness(lambda word: KNOWN.get(word, [])))
    assert Planner(cfg, llm).plan("my photo is fuzzy").word == ("d", "photo")
    assert Planner(cfg, "builtin").plan("my photo is fuzzy").word == ("photo",)


def test_the_lexicon_of_oyemi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Oyemi", None)
    with pytest.raises(MissingDependency, match=r"formal-llm\[synonyms\]"):
        resolve("builtin:synonyms")
    module = types.ModuleType("Oyemi")
    monkeypatch.setitem(sys.modules, "Oyemi", module)
    monkeypatch.setattr(module, "find_synonyms", lambda word: KNOWN.get(word, []), raising=False)
    llm = resolve("builtin:synonyms")
    assert isinstance(llm, BuiltinLLM)
    assert llm.likeness(("fuzzy",), TERMS) == [{0: SHARE}, {}]


def test_synonyms_of_wordnet() -> None:
    pytest.importorskip("Oyemi")
    likeness = SynonymLikeness()
    terms = (Term("c", "Image Captioning", "describes an image with a caption"),)
    assert likeness(("legend", "subtitle", "banana"), terms) == [{0: SHARE, 1: SHARE}]
