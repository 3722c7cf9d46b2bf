"""What tests of training share: a small language, a tiny model, one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from formal_llm import CFG, Limits, Planner, Task
from formal_llm.llms.local.encoders import BiEncoderScorer
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.model import TransformersLLM
from tests import tiny_models

#: Three tools in any order, each at most once, over an input: 16 plans.
RULES = CFG.from_string(
    '%order prefix\n%limit 1\n%limit * e\nS -> a S | b S | c S | e\na "Alpha"\nb "Beta"\nc "Gamma"\ne "the input"'
)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # two threads get in each other's way on tiny models
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def rules() -> CFG:
    return RULES


@pytest.fixture
def planner() -> Planner:
    return Planner(RULES, "test:first")


@pytest.fixture
def tasks() -> list[Task]:
    """Tasks over the same rules; the last one without a tool."""
    return [Task("make it alpha"), Task("make it beta"), Task("make it short", limits=Limits({"c": 0}))]


@pytest.fixture(scope="session")
def spoken() -> Any:
    return tiny_models.tokenizer()


@pytest.fixture
def build(spoken: Any) -> Callable[..., LocalLLM]:
    """Makes a tiny model: ``llama``, ``gpt2``, ``t5``, ``bert``; each call a new one with the same weights."""

    def made(kind: str = "llama", **settings: Any) -> LocalLLM:
        if kind == "t5":
            ended = tiny_models.tokenizer(end_after=True)
            return TransformersLLM.of(tiny_models.seq2seq("t5", len(ended)), ended, name="tiny t5", **settings)
        if kind == "bert":
            scorer = BiEncoderScorer(tiny_models.encoder(len(spoken)), spoken, **settings)
            return LocalLLM(scorer, "tiny bert")
        return TransformersLLM.of(tiny_models.causal(kind, len(spoken)), spoken, name=f"tiny {kind}", **settings)

    return made
