"""Local models as answerers: alone, many together, behind caches and recordings, from threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from formal_llm import CFG, Planner, Task
from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.memory import fewer_tokens
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.question import Answer, Option, Question
from tests import tiny_models
from tests.llms.local import token_by_token

RULES = CFG.from_string(
    '%order prefix\n%limit 1\n%limit * e\nS -> a S | b S | c S | e\na "Alpha"\nb "Beta"\nc "Gamma"\ne "the input"'
)


@pytest.fixture
def llm(llama: Any, spoken: Callable[..., Any]) -> TransformersLLM:
    return TransformersLLM.of(llama, spoken(), name="tiny")


def test_together_as_alone(llm: TransformersLLM, llama: Any, spoken: Callable[..., Any]) -> None:
    asked = token_by_token.batch((2, 9, 12))
    together = llm.answer_all(asked)
    for one, question in zip(together, asked, strict=True):
        alone = TransformersLLM.of(llama, spoken()).ask(question)
        assert one.numbers == alone.numbers
        assert one.probabilities == pytest.approx(alone.probabilities, abs=1e-5)
    assert llm.answer_all([]) == []


@pytest.mark.parametrize("kind", ["gpt2", "bart"])
def test_a_question_too_long_fails_alone(kind: str, network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    llm = TransformersLLM.of(network(kind), spoken(end_after=kind == "bart"))
    asked = token_by_token.batch((2, 9, 12))
    long = Question("restore " * 3_000, ["a", "b"])
    several = Question("restore " * 3_000, ["a", "b"], several=True)
    expected = [answer.numbers for answer in llm.answer_all(asked)]
    outcomes = llm.answer_all([*asked[:5], long, *asked[5:], several])
    failed = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, LLMError)]
    assert failed == [5, 17]
    assert "shorten the wording" in str(outcomes[5])
    assert [outcome.numbers for outcome in outcomes if isinstance(outcome, Answer)] == expected
    with pytest.raises(LLMError, match="shorten the wording"):
        llm.ask(long)


def test_weights_that_are_no_numbers(spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal()
    llm = TransformersLLM.of(model, spoken())
    with torch.no_grad():
        model.model.norm.weight.fill_(torch.nan)
    with pytest.raises(ModelError, match="probabilities that are no numbers"):
        llm.ask(token_by_token.question(2))


def test_many_plans_advance_together(llm: TransformersLLM) -> None:
    sizes: list[int] = []
    real = llm.answer_all

    def counted(questions: Any) -> Any:
        sizes.append(len(questions))
        return real(questions)

    llm.answer_all = counted  # type: ignore[method-assign]
    tasks = [Task(f"make it {word} {number}") for word in ("alpha", "beta") for number in range(40)]
    outcomes = Planner(RULES, llm).plan_all(tasks, concurrency=80)
    assert all(RULES.accepts(outcome.plan.word) for outcome in outcomes)
    assert sizes[0] == 80 and len(sizes) <= 4
    for outcome in outcomes[::20]:
        alone = Planner(RULES, llm).plan(outcome.task)
        assert alone.word == outcome.plan.word
        assert alone.probability == pytest.approx(outcome.plan.probability, rel=1e-4)


def test_threads_share_a_model(llm: TransformersLLM) -> None:
    asked = token_by_token.batch((2, 9, 12))
    expected = [answer.probabilities for answer in llm.answer_all(asked)]
    llm.scorer.forget()
    errors: list[BaseException] = []
    inside: list[int] = []
    real = llm.scorer.log_probabilities

    def alone(questions: Any) -> Any:
        inside.append(1)
        time.sleep(0.001)  # time for another thread to come in, if it can
        assert len(inside) == 1
        try:
            return real(questions)
        finally:
            inside.pop()

    llm.scorer.log_probabilities = alone  # type: ignore[method-assign]

    def work(begin: int) -> None:
        try:
            for place in range(begin, begin + 16):
                answer = llm.ask(asked[place % 16])
                assert answer.probabilities == pytest.approx(expected[place % 16], abs=1e-5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(4 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def asked(count: int) -> list[Question]:
    options = [Option(number, f"option {number}") for number in (1, 2, 3)]
    return [
        Question(f"question {number}: what is to be done with {number} images?", options) for number in range(count)
    ]


@pytest.fixture
def llm_memory() -> LocalLLM:
    spoken = tiny_models.tokenizer()
    return TransformersLLM.of(tiny_models.causal("llama", len(spoken)), spoken, name="tiny", batch_tokens=2_048)


def test_a_model_with_little_memory_answers_the_same(llm_memory: LocalLLM) -> None:
    questions = asked(24)
    with torch.no_grad():
        whole = llm_memory.scorer.log_probabilities(questions)
    llm_memory.scorer.forget()
    passes = []
    inner = llm_memory.scorer.model.base_model
    base = inner.forward

    def little(*args: Any, **how: Any) -> Any:
        tokens = how["input_ids"].numel()
        passes.append(tokens)
        if tokens > 600:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return base(*args, **how)

    inner.forward = little
    answers = llm_memory.answer_all(questions)
    assert max(passes) > 600 >= passes[-1]
    assert llm_memory.scorer.batch_tokens < 2_048  # type: ignore[attr-defined]
    for answer, row in zip(answers, whole.exp().tolist(), strict=True):
        assert answer.probabilities == pytest.approx(dict(enumerate(row, 1)), abs=1e-5)  # type: ignore[union-attr]
    before = len(passes)
    llm_memory.scorer.forget()
    llm_memory.answer_all(questions)
    assert max(passes[before:]) <= 600  # what worked is kept


def test_a_pass_has_an_end_to_how_small_it_gets(llm_memory: LocalLLM) -> None:
    told = [fewer_tokens(llm_memory.scorer) for _ in range(7)]
    assert told[:2] == ["1,024 tokens in a pass", "512 tokens in a pass"]
    assert told[-1] == ""
    assert fewer_tokens(object()) == ""
