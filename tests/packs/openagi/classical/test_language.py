"""Text tools that choose among what stands in the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.openagi.classical.language import question_answering, sentiment, split_sentences, summarization
from formal_llm.packs.openagi.data.sources import load_opinions, load_passages

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
