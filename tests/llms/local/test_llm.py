"""Local models as answerers: alone, many together, behind caches and recordings, from threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm import CFG, Planner, Task
from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.llm import BatchLLM
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.recorded.cache import CachedLLM
from formal_llm.llms.recorded.transcript import RecordingLLM, ReplayLLM
from tests import tiny_models
from tests.llms.local import token_by_token

RULES = CFG.from_string('%limit 1\n%limit * e\nS -> a S | b S | c S | e\na "Alpha"\nb "Beta"\nc "Gamma"\ne "the input"')


@pytest.fixture
def llm(llama: Any, spoken: Callable[..., Any]) -> TransformersLLM:
    return TransformersLLM.of(llama, spoken(), name="tiny")


def test_together_as_alone(llm: TransformersLLM, llama: Any, spoken: Callable[..., Any]) -> None:
    asked = token_by_token.batch((2, 9, 12))
    together = llm.choose_many(asked)
    for one, question in zip(together, asked, strict=True):
        alone = TransformersLLM.of(llama, spoken()).choose(question)
        assert one.numbers == alone.numbers
        assert one.probabilities == pytest.approx(alone.probabilities, abs=1e-5)
    assert llm.choose_many([]) == []


@pytest.mark.parametrize("kind", ["gpt2", "bart"])
def test_a_question_too_long_fails_alone(kind: str, network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    llm = TransformersLLM.of(network(kind), spoken(end_after=kind == "bart"))
    asked = token_by_token.batch((2, 9, 12))
    long = Question("restore " * 3_000, ["a", "b"])
    several = Question("restore " * 3_000, ["a", "b"], several=True)
    expected = [answer.numbers for answer in llm.choose_many(asked)]
    outcomes = llm.choose_many([*asked[:5], long, *asked[5:], several])
    failed = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, LLMError)]
    assert failed == [5, 17]
    assert "shorten the wording" in str(outcomes[5])
    assert [outcome.numbers for outcome in outcomes if isinstance(outcome, Answer)] == expected
    with pytest.raises(LLMError, match="shorten the wording"):
        llm.choose(long)


def test_weights_that_are_no_numbers(spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal()
    llm = TransformersLLM.of(model, spoken(), packing="on")
    with torch.no_grad():
        model.model.norm.weight.fill_(torch.nan)
    with pytest.raises(ModelError, match="probabilities that are no numbers"):
        llm.choose(token_by_token.question(2))


def test_many_plans_advance_together(llm: TransformersLLM) -> None:
    sizes: list[int] = []
    real = llm.choose_many

    def counted(questions: Any) -> Any:
        sizes.append(len(questions))
        return real(questions)

    llm.choose_many = counted  # type: ignore[method-assign]
    tasks = [Task(f"make it {word} {number}") for word in ("alpha", "beta") for number in range(40)]
    outcomes = Planner(RULES, llm).plan_all(tasks, concurrency=80)
    assert all(RULES.accepts(outcome.plan.word) for outcome in outcomes)
    assert sizes[0] == 80 and len(sizes) <= 4
    for outcome in outcomes[::20]:
        alone = Planner(RULES, llm).plan(outcome.task)
        assert alone.word == outcome.plan.word
        assert alone.probability == pytest.approx(outcome.plan.probability, rel=1e-4)


@pytest.mark.slow
def test_thousands_of_questions_with_little_memory(llama: Any, spoken: Callable[..., Any]) -> None:
    """Texts come and go in the cache of beginnings; the plans are those of a model without one."""
    tasks = [Task(f"make {number} of them {word}") for number in range(200) for word in ("alpha", "beta")]
    found = []
    for cache_bytes in (300_000, 0):
        llm = TransformersLLM.of(llama, spoken(), cache_bytes=cache_bytes)
        planner = Planner(RULES, llm, search="sample", seed=5)
        outcomes = planner.plan_all(tasks, concurrency=200)
        found.append([outcome.plan for outcome in outcomes])
        assert llm.scorer.stats["questions"] > 800
    same = sum(one.word == other.word for one, other in zip(*found, strict=True))
    assert same >= 396  # a draw at the very border of two options may fall to the other side
    for one, other in zip(*found, strict=True):
        if one.word == other.word:
            assert one.probability == pytest.approx(other.probability, rel=1e-3)


def test_behind_a_cache(llm: TransformersLLM, tmp_path: Path) -> None:
    tasks = [f"make it alpha {number % 4}" for number in range(8)]
    with CachedLLM(llm, tmp_path / "answers") as cached:
        assert isinstance(cached, BatchLLM)
        first = Planner(RULES, cached).plan_all(tasks)
        computed = llm.scorer.stats["questions"]
        again = Planner(RULES, cached).plan_all(tasks)
        assert llm.scorer.stats["questions"] == computed
        assert cached.stats.hits >= cached.stats.misses > 0
    assert [outcome.plan.word for outcome in first] == [outcome.plan.word for outcome in again]
    assert [o.plan.probability for o in first] == pytest.approx([o.plan.probability for o in again])


def test_recorded_and_replayed(llm: TransformersLLM, tmp_path: Path) -> None:
    tasks = [f"make it alpha {number}" for number in range(5)]
    with RecordingLLM(llm, tmp_path / "transcript") as recording:
        first = Planner(RULES, recording).plan_all(tasks)
    again = Planner(RULES, ReplayLLM(tmp_path / "transcript")).plan_all(tasks)
    assert [outcome.plan.word for outcome in first] == [outcome.plan.word for outcome in again]
    assert [outcome.plan.usage.input_tokens for outcome in first] == [o.plan.usage.input_tokens for o in again]


def test_threads_share_a_model(llm: TransformersLLM) -> None:
    asked = token_by_token.batch((2, 9, 12))
    expected = [answer.probabilities for answer in llm.choose_many(asked)]
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
                answer = llm.choose(asked[place % 16])
                assert answer.probabilities == pytest.approx(expected[place % 16], abs=1e-5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(4 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
