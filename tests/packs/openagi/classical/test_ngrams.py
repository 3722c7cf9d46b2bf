"""Filling gaps and continuing texts by counts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.openagi.classical import ngrams
from formal_llm.packs.openagi.classical.ngrams import GAP, NGrams, fill_mask, split_tokens, text_generation
from formal_llm.packs.openagi.data.making import MASK, mask_word
from formal_llm.packs.openagi.data.sources import load_passages, load_prose
from tests.strategies import examples

TEXTS = st.lists(
    st.sampled_from(["Alice", "the", MASK, "<mask>", "____", "qwx", ".", "?", "é", " ", "\n"]), max_size=12
)


def test_counts() -> None:
    model = NGrams(["The cat sat. The cat ran.", "A dog sat."])
    one, two, three = model.counts
    assert one["cat",] == 2
    assert two["the", "cat"] == 2
    assert two[".", "a"] == 0, "no run goes over the end of a text"
    assert three["the", "cat", "sat"] == 1
    assert model.compute_probability("cat", ["the"]) > model.compute_probability("dog", ["the"]) > 0
    assert model.fill_gap(["the"], ["ran"]) == "cat"
    assert model.fill_gap(["a"], ["sat"]) == "dog"


@given(st.lists(st.sampled_from(["the", "cat", "sat", ".", "unknown"]), max_size=3))
def test_probabilities_are_a_distribution(before: list[str]) -> None:
    model = NGrams(["The cat sat. The cat ran.", "A dog sat ,"])
    total = sum(model.compute_probability(token, before) for (token,) in model.counts[0])
    assert 0 < total <= 1.0001


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Alice was [MASK] to get very tired.", "Alice was beginning to get very tired."),
        ("The White ___ ran close by.", "The White rabbit ran close by."),
        ("No gap here.", "No gap here."),
        ("", ""),
    ],
)
def test_gaps_are_filled(text: str, filled: str) -> None:
    assert fill_mask(text) == filled


def test_the_text_itself_counts() -> None:
    text = "The zorb glows. Every zorb glows at night. One [MASK] glows."
    assert fill_mask(text).endswith("One zorb glows.")


def test_the_task_data_are_not_known_before() -> None:
    assert not [passage for passage in load_passages() if passage.text[:40] in load_prose()]


def test_some_gaps_of_the_prose_are_filled_as_they_were() -> None:
    # The model has counted this text, so this says that it looks at both sides, not how good it is.
    paragraphs = [text for text in load_prose().split("\n\n") if len(text) > 300][:20]
    chosen = random.Random(0)
    right = sum(fill_mask(mask_word(text, chosen)).casefold() == text.casefold() for text in paragraphs)
    assert right >= 10


def test_continuing_is_repeatable_and_ends_a_sentence() -> None:
    for text in ["The Queen", "Alice said", "", "Qwx qwx", "What?"]:
        longer = text_generation(text)
        assert longer.startswith(text)
        assert longer == text_generation(text)
        assert longer[-1] in ".!?"
        assert 10 <= len(split_tokens(longer)) - len(split_tokens(text)) <= 61
    assert text_generation("The Queen") != text_generation("The King").replace("King", "Queen")


@pytest.mark.parametrize(
    ("text", "capital"), [("Hello.", True), ("What?", True), ("", True), ("Once upon a", False), ("He was", False)]
)
def test_a_continuation_begins_with_a_capital_letter_where_a_sentence_begins(text: str, capital: bool) -> None:
    assert text_generation(text).removeprefix(text).strip()[0].isupper() is capital


def test_for_a_gap_only_what_is_near_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(text: str) -> list[str]:
        read.append(len(text))
        return split_tokens(text)

    monkeypatch.setattr(ngrams, "split_tokens", counted)
    text = "One word and another. " * 2000 + f"{MASK} and " * 100
    assert MASK not in fill_mask(text)
    # The prose and the text once, for the counts; 400 characters on either side of each of the 100 gaps.
    assert sum(read) <= len(load_prose()) + len(text) + 100 * 2 * 400


@given(TEXTS)
@examples(30)
def test_any_text(parts: list[str]) -> None:
    text = " ".join(parts)
    filled = fill_mask(text)
    assert not GAP.search(filled)
    assert fill_mask(filled) == filled
    outside = [part.strip() for part in GAP.split(text) if part.strip()]
    assert all(part in filled for part in outside)
    assert text_generation(text).startswith(text.rstrip().strip() if text.strip() else "")


def test_what_was_filled_in_is_no_gap() -> None:
    around = "zweb mask quux, zweb mask quux, zweb {} quux"
    assert fill_mask(around.format("[[MASK]]")) == around.format("[mask]")
    assert fill_mask(around.format("<[MASK]>")) == around.format("<mask>")
