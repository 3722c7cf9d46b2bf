"""Ways of scoring options: their names, and what they read."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.question import Question
from formal_llm.llms.scoring import MODES, UNKNOWN, Reading, combine_scores, named, readings, weights


@given(st.dictionaries(st.sampled_from(MODES), st.sampled_from([0.25, 0.5, 1.0, 2.0]), min_size=1))
def test_names(scoring: dict[str, float]) -> None:
    assert weights(named(scoring)) == scoring == weights(scoring)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no way of scoring"),
        ("numbr", "did you mean number"),
        ("x*text", "no weight"),
        ("0*text", "above 0"),
        ("inf*text", "above 0"),
        ("nan*text", "above 0"),
        ("text+text", "named once"),
    ],
)
def test_what_is_no_scoring(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        weights(text)


QUESTION = Question("Task: dry it. Which?\n1: a\n2: b\n3: a", ["a", "b", "a"], task="dry it")


def test_what_is_read() -> None:
    (number,) = readings(QUESTION, "number")
    assert (number.answers, number.of, number.weight) == (("1", "2", "3"), (0, 1, 2), 1.0)
    text, prior = readings(QUESTION, "calibrated")
    assert (text.answers, text.of) == (("a", "b"), (0, 1, 0)) and not text.prior
    assert prior.weight == -1 and prior.prior and UNKNOWN in prior.messages[-1].content


@pytest.mark.parametrize("prompt", ["Task: go. Categories of goods:", "Ago, Go; go"])
def test_only_whole_words_are_the_task(prompt: str) -> None:
    _, prior = readings(Question(prompt, ["goods", "go"], task="go"), "calibrated")
    assert prior.messages[-1].content == re.sub(r"\bgo\b", UNKNOWN, prompt)


def test_scores_are_put_together() -> None:
    told = {"a": (-1.0, 1), "b": (-4.0, 4), "1": (-1.0, 1), "2": (-2.0, 1), "3": (-3.0, 1)}

    def scores(reading: Reading) -> list[tuple[float, int]]:
        return [(log - 3.0 * reading.prior, count) for log, count in (told[text] for text in reading.answers)]

    def softmax(logs: list[float]) -> list[float]:
        total = math.log(sum(map(math.exp, logs)))
        return [log - total for log in logs]

    assert combine_scores(QUESTION, {"text": 1.0}, scores) == pytest.approx(softmax([-1, -4, -1]))
    assert combine_scores(QUESTION, {"calibrated": 2.0}, scores) == pytest.approx(softmax([0.0, 0.0, 0.0]))
    mixed = [one + 0.5 * other for one, other in zip(softmax([-1, -4, -1]), softmax([-1, -2, -3]), strict=True)]
    assert combine_scores(QUESTION, {"text": 1.0, "number": 0.5}, scores) == pytest.approx(softmax(mixed))
    shares = softmax([-1, -2, -3])
    assert combine_scores(QUESTION, {"number": 1.0}, scores) == pytest.approx(shares)
