"""Traces as papers print them are words of their behaviour; those with a slip are told where."""

from __future__ import annotations

import pytest

from formal_llm import Behaviour
from formal_llm.agents.published.traces import read_react, read_rewoo
from formal_llm.errors import TranscriptError

# Written for this library, in the published formats.
REACT = [
    """
Question: In which country was the architect of the Sydney Opera House born?
Thought 1: I need to search Sydney Opera House and find its architect.
Action 1: Search[Sydney Opera House]
Observation 1: The Sydney Opera House is a centre for the performing arts.
It was designed by Jorn Utzon.
Thought 2: I need to search Jorn Utzon and find where he was born.
Action 2: Search[Jorn Utzon]
Observation 2: Could not find [Jorn Utzon]. Similar: ['Utzon', 'Sydney'].
Thought 3: Maybe the page says it.
Action 3: Lookup[born]
Observation 3: (Result 1 / 1) He was born in Copenhagen, Denmark.
Thought 4: So the answer is Denmark.
Action 4: Finish[Denmark]
""",
    "Question: 1 + 1?\nThought 1: That is 2.\nAction 1: Finish[2]",
    "Question: q\nThought 1: t\nAction 1: Calculate[[1] + 2]\nObservation 1: 3\nThought 2: u\nAction 2: Finish[]",
]
REWOO = [
    """
Question: How much older than the Eiffel Tower is the Brooklyn Bridge?
Plan: Find the year of the bridge.
#E1 = Search[Brooklyn Bridge]
Plan: Tell the year.
#E2 = LLM[In which year was it opened? Given #E1]
Plan: Subtract.
#E3 = Calculator[1889 - #E2]
Answer: 6 years
""",
    "Question: q\nAnswer: a",
]


@pytest.mark.parametrize("trace", REACT)
def test_traces_of_react_are_words_of_react(trace: str) -> None:
    made = read_react(trace)
    assert made.verify(Behaviour.load("react")).valid


@pytest.mark.parametrize("trace", REWOO)
def test_traces_of_rewoo_are_words_of_rewoo(trace: str) -> None:
    assert read_rewoo(trace).verify(Behaviour.load("rewoo")).valid


def test_texts_are_whole() -> None:
    made = read_react(REACT[0])
    assert made.segments[4].text.endswith("arts.\nIt was designed by Jorn Utzon.") and made.answer == "Denmark"
    assert [one.source for one in made.segments[:5]] == ["user", "model", "model", "model", "environment"]
    assert read_react(REACT[2]).segments[3].text == "[1] + 2"


@pytest.mark.parametrize(
    ("trace", "position"),
    [
        ("Question: q\nThought 1: t\nThought 2: u\nAction 2: Finish[a]", 2),
        ("Question: q\nAction 1: Search[x]\nObservation 1: o\nThought 2: u\nAction 2: Finish[a]", 1),
        ("Question: q\nThought 1: t\nAction 1: Search[x]", 4),
        ("Question: q\nThought 1: t\nAction 1: Search[x]\nAction 2: Finish[a]", 4),
    ],
)
def test_a_trace_with_a_slip_is_told_where(trace: str, position: int) -> None:
    found = read_react(trace).verify(Behaviour.load("react"))
    assert not found.valid and found.position == position


@pytest.mark.parametrize("trace", ["hello", "Question: q\nThought 1: t\nAction 1: search", "Question: q\nPlan: p"])
def test_what_is_no_trace(trace: str) -> None:
    with pytest.raises(TranscriptError):
        read_react(trace)
    with pytest.raises(TranscriptError):
        read_rewoo(trace.replace("Plan", "Thought"))
