"""Weights of mixtures, against a search over all weights."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from formal_llm.llms.local.mixing import fit_weights
from formal_llm.llms.local.text_scorer import text_scorer
from formal_llm.llms.question import Question
from formal_llm.llms.scoring import weights

TEXTS = ["Image Denoising", "Colorization", "Translation", "the input image"]


def examples() -> tuple[list[Question], list[frozenset[int]]]:
    rng, questions, right = random.Random(2), [], []
    for number in range(12):
        texts = rng.sample(TEXTS, rng.choice([2, 3, 4]))
        lines = "\n".join(f"{n}: {text}" for n, text in enumerate(texts, 1))
        questions.append(Question(f"Task {number}. Which?\n{lines}\nAnswer with a number.", texts, task=str(number)))
        right.append(frozenset(rng.sample(range(1, len(texts) + 1), rng.choice([1, 1, 2]))))
    return questions, right


def likelihood(scorer: Any, questions: list[Question], right: list[frozenset[int]], scoring: dict[str, float]) -> float:
    scorer.scoring = scoring
    scorer._remembered.clear()
    with torch.no_grad():
        table = scorer.log_probabilities(questions).exp()
    shares = [sum(float(row[n - 1]) for n in numbers) for row, numbers in zip(table, right, strict=True)]
    ridge = 1e-3 * sum(weight**2 for weight in scoring.values())
    return float(torch.tensor(shares).log().mean()) - ridge


def test_no_other_weights_are_better(llama: Any, spoken: Callable[..., Any]) -> None:
    scorer = text_scorer(llama, spoken())
    questions, right = examples()
    found = fit_weights(scorer, questions, right, ["number", "text"])
    assert scorer.scoring == {"number": 1.0}
    best = likelihood(scorer, questions, right, found)
    for one, other in itertools.product([0.02, 0.1, 0.3, 1.0, 3.0, 10.0], repeat=2):
        assert likelihood(scorer, questions, right, {"number": one, "text": other}) <= best + 2e-3


def test_what_foretells_nothing_is_left_out(llama: Any, spoken: Callable[..., Any]) -> None:
    scorer = text_scorer(llama, spoken())
    questions, _ = examples()
    scorer.scoring = {"text": 1.0}
    with torch.no_grad():
        table = scorer.log_probabilities(questions)
    right = [frozenset({int(row.argmax()) + 1}) for row in table]
    scorer.scoring = {"number": 1.0}
    found = fit_weights(scorer, questions, right, ["number", "text"])
    assert found["text"] > 1 and found.get("number", 0.0) < found["text"]
    assert weights("+".join(f"{weight}*{mode}" for mode, weight in found.items())) == found


def test_nothing_to_fit_on(llama: Any, spoken: Callable[..., Any]) -> None:
    scorer = text_scorer(llama, spoken())
    with pytest.raises(ValueError, match="at least one"):
        fit_weights(scorer, [], [], ["number"])
    with pytest.raises(ValueError, match="at least one"):
        fit_weights(scorer, [Question("?", ["a", "b"])], [{1}], [])
