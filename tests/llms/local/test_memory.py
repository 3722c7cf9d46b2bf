"""Batches that find their size: memory that runs out is simulated by models that say so."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.memory import fewer_tokens, fitted, out_of_memory
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.question import Option, Question
from tests import tiny_models


def test_what_says_that_memory_ran_out() -> None:
    assert out_of_memory(MemoryError())
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert out_of_memory(RuntimeError("[enforce fail at alloc_cpu.cpp] . DefaultCPUAllocator: can't allocate memory"))
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_work_is_made_smaller_until_it_fits() -> None:
    size, tried = [16], []

    def work() -> int:
        tried.append(size[0])
        if size[0] > 3:
            raise torch.OutOfMemoryError
        return size[0]

    def smaller() -> str:
        size[0] //= 2
        return f"{size[0]}"

    assert fitted(work, smaller) == 2
    assert tried == [16, 8, 4, 2]


def test_what_cannot_be_smaller_and_other_errors_are_raised() -> None:
    def full() -> None:
        raise torch.OutOfMemoryError

    def wrong() -> None:
        raise RuntimeError("shapes")

    with pytest.raises(torch.OutOfMemoryError):
        fitted(full, lambda: "")
    with pytest.raises(RuntimeError, match="shapes"):
        fitted(wrong, lambda: pytest.fail("nothing to make smaller"))


def asked(count: int) -> list[Question]:
    options = [Option(number, f"option {number}") for number in (1, 2, 3)]
    return [
        Question(f"question {number}: what is to be done with {number} images?", options) for number in range(count)
    ]


@pytest.fixture
def llm() -> LocalLLM:
    spoken = tiny_models.tokenizer()
    return TransformersLLM.of(tiny_models.causal("llama", len(spoken)), spoken, name="tiny", batch_tokens=2_048)


def test_a_model_with_little_memory_answers_the_same(llm: LocalLLM) -> None:
    questions = asked(24)
    with torch.no_grad():
        whole = llm.scorer.log_probabilities(questions)
    llm.scorer.forget()
    passes = []
    inner = llm.scorer.model.base_model
    base = inner.forward

    def little(*args: Any, **how: Any) -> Any:
        tokens = how["input_ids"].numel()
        passes.append(tokens)
        if tokens > 600:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return base(*args, **how)

    inner.forward = little
    answers = llm.choose_many(questions)
    assert max(passes) > 600 >= passes[-1]
    assert llm.scorer.batch_tokens < 2_048  # type: ignore[attr-defined]
    for answer, row in zip(answers, whole.exp().tolist(), strict=True):
        assert answer.probabilities == pytest.approx(dict(enumerate(row, 1)), abs=1e-5)  # type: ignore[union-attr]
    before = len(passes)
    llm.scorer.forget()
    llm.choose_many(questions)
    assert max(passes[before:]) <= 600  # what worked is kept


def test_a_pass_has_an_end_to_how_small_it_gets(llm: LocalLLM) -> None:
    told = [fewer_tokens(llm.scorer) for _ in range(7)]
    assert told[:2] == ["1,024 tokens in a pass", "512 tokens in a pass"]
    assert told[-1] == ""
    assert fewer_tokens(object()) == ""
