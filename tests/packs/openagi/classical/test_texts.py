"""The classical tools for texts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.openagi.classical.language import question_answering, sentiment, split_sentences, summarization
from formal_llm.packs.openagi.classical.ngrams import GAP, fill_mask, split_tokens, text_generation
from formal_llm.packs.openagi.data.making import MASK, mask_word
from formal_llm.packs.openagi.data.sources import load_opinions, load_passages, load_prose
from tests.strategies import examples

TEXTS = st.text(alphabet=st.sampled_from("abcXYZ é.!?,'\"“”\n\t 019[]_-ß"), max_size=80)


def test_the_sentiments_of_the_task_data() -> None:
    for opinion in load_opinions():
        assert sentiment(opinion.text["English"]) == opinion.sentiment["English"]


@pytest.mark.parametrize("text", ["", "   ", "The table has four legs.", "!!!", "12"])
def test_what_feels_nothing_is_neutral(text: str) -> None:
    assert sentiment(text) == "neutral"


def test_sentences_end_where_a_person_ends_them() -> None:
    text = 'Mr. Fox met Dr. A. Hen.  "Run!" she cried.\nNo one did… Why?'
    assert split_sentences(text) == ["Mr. Fox met Dr. A. Hen.", '"Run!" she cried.', "No one did…", "Why?"]
    assert split_sentences("no mark at all") == ["no mark at all"]
    assert split_sentences(" \n") == []


def test_a_summary_is_some_sentences_in_their_order() -> None:
    for passage in load_passages():
        found = split_sentences(passage.text)
        chosen = split_sentences(summarization(passage.text))
        assert 1 <= len(chosen) <= 3 < len(found)
        places = [found.index(sentence) for sentence in chosen]
        assert places == sorted(places)


def test_a_summary_takes_what_the_text_is_about_and_says_nothing_twice() -> None:
    about = "The river carries sand to the sea. The sand of the river makes new land at the sea. "
    text = about + "A bird sang. " + "The river carries sand to the sea. " + "Somebody slept. It rained."
    assert summarization(text) == about.strip()
    assert summarization("One sentence.") == "One sentence."
    assert summarization("") == ""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When was the lighthouse built?", "1874"),
        ("How many steps did the keeper climb?", "212"),
        ("Who was its keeper?", "Martha Lindqvist"),
        ("How many ships reached the harbour?", "Eleven"),
        ("What went out in the storm?", "In the storm of her third winter the lamp went out, and she carried oil"),
    ],
)
def test_answers_are_found(question: str, answer: str) -> None:
    document = load_passages()[0].text
    found = question_answering(document, question)
    assert found.startswith(answer)
    assert question_answering(question, document) == found, "in either order"


def test_an_answer_without_a_document_is_empty() -> None:
    assert question_answering("", "Who?") == ""
    assert question_answering("", "") == ""


@given(TEXTS, TEXTS)
def test_any_text(text: str, other: str) -> None:
    assert sentiment(text) in ("positive", "negative", "neutral")
    flat = " ".join(text.split())
    assert all(sentence in flat for sentence in split_sentences(text))
    assert "".join(split_sentences(text)).replace(" ", "") == flat.replace(" ", "")
    assert all(sentence in flat for sentence in split_sentences(summarization(text)))
    answer = question_answering(text, other)
    assert answer in flat or answer in " ".join(other.split())


ANY_TEXTS = st.lists(
    st.sampled_from(["Alice", "the", MASK, "<mask>", "____", "qwx", ".", "?", "é", " ", "\n"]), max_size=12
)


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


@given(ANY_TEXTS)
@examples(30)
def test_any_text_goes_on(parts: list[str]) -> None:
    text = " ".join(parts)
    filled = fill_mask(text)
    assert not GAP.search(filled)
    assert fill_mask(filled) == filled
    outside = [part.strip() for part in GAP.split(text) if part.strip()]
    assert all(part in filled for part in outside)
    assert text_generation(text).startswith(text.rstrip().strip() if text.strip() else "")
