"""Transcripts come back as they were written, in both forms."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Behaviour, Usage
from formal_llm.agents import Monitor
from formal_llm.agents.markers import Markers
from formal_llm.agents.transcript import Correction, Segment, StateUsage, Transcript
from formal_llm.errors import RecordError
from tests.strategies import examples

REACT = Behaviour.load("react")
WORD = ("Ques", "Tht", "Act", "Act-Inp", "Obs", "Final-Tht", "Ans")

some_text = st.text(max_size=12) | st.lists(
    st.sampled_from([*Markers.of(REACT).states, "[", "\\", "\n", " ", "[Tho", "ught]", "\u2028", "x"]), max_size=6
).map("".join)
segments = st.builds(
    Segment, st.sampled_from(WORD), some_text, st.sampled_from(["user", "model", "environment", "forced"])
)
corrections = st.builds(Correction, st.integers(0, 9), some_text, st.lists(some_text, max_size=2), some_text, some_text)
transcripts = st.builds(
    Transcript,
    some_text,
    st.lists(segments, max_size=5),
    st.lists(corrections, max_size=2),
    st.dictionaries(
        st.sampled_from(["", "Tht", "Obs"]),
        st.builds(Usage, requests=st.integers(0, 5), cost=st.none() | st.floats(0, 9)),
    ),
)


@given(transcripts)
@examples(80)
def test_json_lines_read_back_are_equal(transcript):
    text = transcript.to_jsonl()
    assert Transcript.from_jsonl(text) == transcript
    assert all(json.loads(line) for line in text.split("\n")[:-1])


@given(st.lists(some_text, min_size=1, max_size=7))
@examples(80)
def test_text_read_back_is_equal(texts):
    """Whatever the texts of its segments are, markers among them."""
    made = [Segment(state, text) for state, text in zip(WORD, texts, strict=False)]
    text = Transcript("react", tuple(made)).to_text(REACT)
    read = Transcript.from_text(text, REACT)
    assert [(one.state, one.text) for one in read.segments] == [(one.state, one.text) for one in made]
    sources = ["user", "model", "model", "model", "environment", "model", "model"]
    assert [one.source for one in read.segments] == sources[: len(made)]


def test_it_is_verified_by_the_monitor() -> None:
    whole = Transcript("react", tuple(Segment(state) for state in WORD))
    assert whole.word == WORD
    assert whole.verify(REACT).valid
    monitor = Monitor(REACT)
    broken = Transcript("react", (*whole.segments[:3], *whole.segments[4:]))
    found = broken.verify(monitor, repair=True)
    assert (found.position, found.allowed, found.nearest) == (3, ("Act-Inp",), WORD)


def test_values() -> None:
    transcript = Transcript("react", (Segment("Ques", "q", "user"),))
    more = transcript.plus(Segment("Tht", "hm"), usage=Usage(requests=1), corrections=[Correction(1, "[Answer]")])
    assert (len(transcript), len(more), more.usage.requests) == (1, 2, 1)
    last = more.plus(usage=Usage(requests=2), state="Tht").plus(usage=Usage(requests=3), state="Tht")
    assert last.usage == Usage(requests=6)
    assert last.by_state == {
        "Ques": StateUsage(1, 0, Usage()), "Tht": StateUsage(1, 1, Usage(requests=5)),
        "": StateUsage(0, 0, Usage(requests=1)),
    }  # fmt: skip
    assert (more.answer, more.text_of("Ques"), more.text_of("Ans")) == ("hm", "q", None)
    assert str(more) == "Ques: q\nTht: hm"
    assert Transcript("react").answer == ""
    with pytest.raises(ValueError, match="written by one of"):
        Segment("Tht", "", "nobody")  # type: ignore[arg-type]


def test_corrections_read_as_sentences() -> None:
    one = Correction(2, "[Answer]", ("[Action]",), "[Action]")
    assert str(one) == "segment 3: '[Answer]' was not allowed (allowed: [Action]); '[Action]' stands there instead"
    assert str(Correction(0, "x")).endswith("; it was left out")


def test_states_of_one_marker_are_told_apart_by_the_rules() -> None:
    text = '(define twice (:states (a (:text "[X]")) (b (:text "[X]"))) (:behavior (next a b b)))'
    behaviour = Behaviour.from_string(text)
    assert Transcript.from_text("[X] 1\n[X] 2\n[X] 3\n[X] 4\n", behaviour).word == ("a", "b", "b", "a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("{", "line 1 of the transcript is no JSON"),
        ('{"format": "other", "agent": "a"}', "line 1 of the transcript is damaged"),
        ('{"format": "formal-llm transcript 1", "agent": "a"}\n{"text": "x"}', "line 2 of the transcript is damaged"),
        ('{"format": "formal-llm transcript 1", "agent": "a"}\n\n{"state": 1}', "line 3 of the transcript is damaged"),
        ('{"format": "formal-llm transcript 1", "agent": "a"}\n{"usage": {"x": 1}}', "line 2 of the transcript"),
    ],
)
def test_damaged_lines_are_named(text, message) -> None:
    with pytest.raises(RecordError, match=message):
        Transcript.from_jsonl(text)


def test_what_has_no_text_form() -> None:
    silent = Behaviour.from_string("(define s (:states a) (:behavior a))")
    with pytest.raises(RecordError, match="the state a has no text"):
        Transcript("s", (Segment("a"),)).to_text(silent)
    with pytest.raises(RecordError, match="before the first marker stands 'hello'"):
        Transcript.from_text("hello\n[Question] q", REACT)
    assert Transcript.from_text(" \n[Question] q", REACT).word == ("Ques",)
