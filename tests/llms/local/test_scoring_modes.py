"""Ways of scoring options: their names, what they read, and the brute force: each text read alone, token by token."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.local.text_scorer import text_scorer
from formal_llm.llms.question import Message, Question
from formal_llm.llms.scoring import MODES, UNKNOWN, Reading, known_mode, readings, weigh_options

TEXTS = ["Image Denoising", 'the output of "Colorization"', "Translation", "the input image", "Image Denoising"]


def asked(texts: list[str], task: str = "a noisy image", *, told: bool = True) -> Question:
    lines = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
    prompt = f"{f'Task: {task}. ' if told else ''}Which tool?\n{lines}\nAnswer with a number from 1 to {len(texts)}."
    return Question(prompt, texts, task=task, messages=[Message("system", f"You plan for {task}.")] if told else [])


def written(model: Any, tokenizer: Any, question: Question, answers: list[str]) -> torch.Tensor:
    """The log-probability of each answer and its end, with nothing of the library's scorers."""
    found = []
    before = "".join(f"{m.content}\n{'Answer:' if m.role == 'user' else ''}" + ("" if m.role == "user" else "\n")
                     for m in question.messages)  # fmt: skip
    start = len(tokenizer(before, add_special_tokens=False)["input_ids"])
    for answer in answers:
        ids = tokenizer(f"{before} {answer}\n", add_special_tokens=False)["input_ids"]
        logs = torch.log_softmax(model(input_ids=torch.tensor([ids])).logits[0].float(), dim=-1)
        total = sum(logs[place - 1, ids[place]] for place in range(start, len(ids)))
        found.append(total)
    return torch.stack(found)  # type: ignore[arg-type]


def normalised(scores: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(scores, dim=0)


def brute(model: Any, tokenizer: Any, mode: str, texts: list[str]) -> torch.Tensor:
    question = asked(texts)
    numbers = [str(number) for number in range(1, len(texts) + 1)]
    if mode == "number":
        return normalised(written(model, tokenizer, question, numbers))
    scores = written(model, tokenizer, question, texts)
    if mode == "calibrated":
        scores = scores - written(model, tokenizer, asked(texts, UNKNOWN), texts)
    return normalised(scores)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("texts", [TEXTS[:4], TEXTS, TEXTS[1:3]])
def test_each_is_what_it_says(llama: Any, spoken: Callable[..., Any], mode: str, texts: list[str]) -> None:
    scorer = text_scorer(llama, spoken(), scoring=mode)
    with torch.no_grad():
        wanted = brute(llama, spoken(), mode, texts)
        for _ in range(2):  # the second time from memory
            (found,) = scorer.log_probabilities([asked(texts)])
            assert torch.allclose(found, wanted, atol=1e-4)
            scorer._remembered.clear()


@pytest.mark.parametrize("mode", MODES)
def test_the_gradient_is_that_of_the_brute_force(llama: Any, spoken: Callable[..., Any], mode: str) -> None:
    texts = TEXTS[:3]
    weight = llama.get_input_embeddings().weight

    def slope(scores: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(scores[0] - 0.3 * scores[1], [weight])[0]

    (found,) = text_scorer(llama, spoken(), scoring=mode).log_probabilities([asked(texts)])
    wanted = slope(brute(llama, spoken(), mode, texts))
    assert float((slope(found) - wanted).norm() / wanted.norm()) < 1e-3


def test_one_texts_probability_is_that_of_the_other(llama: Any, spoken: Callable[..., Any]) -> None:
    with torch.no_grad():
        (found,) = text_scorer(llama, spoken(), scoring="text").log_probabilities([asked(TEXTS)])
    assert found[0] == found[4]


def test_a_prompt_without_the_task_says_nothing_by_itself(llama: Any, spoken: Callable[..., Any]) -> None:
    question = asked(TEXTS, told=False)
    with torch.no_grad():
        (plain,) = text_scorer(llama, spoken(), scoring="text").log_probabilities([question])
        (found,) = text_scorer(llama, spoken(), scoring="calibrated").log_probabilities([question])
    assert torch.equal(plain, found)


def test_the_unknown_task_is_read_once(llama: Any, spoken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = text_scorer(llama, spoken(), scoring="calibrated")
    read: list[int] = []
    score = scorer.score
    monkeypatch.setattr(scorer, "score", lambda prompts: read.append(len(prompts)) or score(prompts))
    with torch.no_grad():
        scorer.log_probabilities([asked(TEXTS, "one"), asked(TEXTS, "two")])
        scorer.log_probabilities([asked(TEXTS, "three")])
    assert read == [3, 1]
    scorer.forget()
    with torch.no_grad():
        scorer.log_probabilities([asked(TEXTS, "three")])
    assert read == [3, 1, 2]


@pytest.mark.parametrize(
    ("scoring", "wording"),
    [("number", ""), ("text", "unlisted"), ("calibrated", "unlisted")],
)
def test_options_that_are_scored_by_text_need_no_list(
    llama: Any, spoken: Callable[..., Any], scoring: str, wording: str
) -> None:
    assert TransformersLLM.of(llama, spoken(), scoring=scoring).wording == wording


@pytest.mark.parametrize(("text", "words"), [("", "no way of scoring"), ("numbr", "did you mean number")])
def test_what_is_no_scoring(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        known_mode(text)


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


def test_the_log_odds_of_a_selection() -> None:
    told = {"a": -1.0, "b": -4.0}

    def scores(reading: Reading) -> list[float]:
        return [told[text] - 3.0 * reading.prior for text in reading.answers]

    total = math.log(2 * math.exp(-1) + math.exp(-4)) - math.log(3)  # without a prior all options are equally probable
    assert weigh_options(QUESTION, "text", scores) == pytest.approx([-1 - total, -4 - total, -1 - total])
    assert weigh_options(QUESTION, "calibrated", scores) == pytest.approx([3.0, 3.0, 3.0])
