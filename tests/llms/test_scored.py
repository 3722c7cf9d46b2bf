"""Ways of scoring over HTTP, against the same model run here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from formal_llm import Question
from formal_llm.errors import LLMError
from formal_llm.llms import resolve
from formal_llm.llms.hosted.llamacpp import LlamaCppLLM
from formal_llm.llms.hosted.vllm import VLLM
from formal_llm.llms.local.text_scorer import text_scorer
from formal_llm.llms.question import Message
from formal_llm.llms.scored import ScoredLLM
from formal_llm.llms.scoring import MODES
from tests import tiny_models
from tests.llms.hosted.model_server import ModelServer

TEXTS = [
    "Image Denoising",
    "Image",
    "Translation",
    "the input image",
    "Image Denoising",
    *(f"tool {n}" for n in range(6)),
]
SERVERS = {"vllm": (VLLM, "/v1"), "llamacpp": (LlamaCppLLM, "")}


def asked(task: str, texts: list[str] = TEXTS) -> Question:
    lines = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
    return Question(
        f"Task: {task}. Which?\n{lines}\nThe number?", texts, task=task, messages=[Message("system", "Go.")]
    )


@pytest.fixture(scope="module")
def parts() -> tuple[Any, Any]:
    tokenizer = tiny_models.tokenizer()
    tokenizer.chat_template = tiny_models.CHAT_TEMPLATE
    return tiny_models.causal("llama", tiny_models.VOCABULARY), tokenizer


@pytest.fixture(scope="module")
def served(parts: tuple[Any, Any]) -> Iterator[ModelServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        server = ModelServer(*parts)
        server.start()
        yield server
        server.stop()


@pytest.fixture(params=SERVERS, scope="module")
def hosted(request: pytest.FixtureRequest, served: ModelServer) -> Iterator[Any]:
    kind, prefix = SERVERS[request.param]
    llm = kind("m", base_url=served.url + prefix, api_key="x", timeout=30, max_retries=0)
    yield llm
    llm.client.close()


@pytest.mark.parametrize("scoring", [mode for mode in MODES if mode != "rotated"] + ["calibrated+0.5*number"])
def test_the_probabilities_are_those_of_the_model_here(parts: tuple[Any, Any], hosted: Any, scoring: str) -> None:
    question = asked("dry it")
    found = ScoredLLM(hosted, scoring).choose(question)
    with torch.no_grad():
        wanted = text_scorer(*parts, scoring=scoring).log_probabilities([question])[0].exp().tolist()
    assert found.probabilities == pytest.approx(dict(enumerate(wanted, 1)), abs=1e-4)
    assert found.number == wanted.index(max(wanted)) + 1


def test_rotations(parts: tuple[Any, Any], hosted: Any) -> None:
    question = asked("dry it", TEXTS[:3])
    found = ScoredLLM(hosted, "rotated").choose(question)
    with torch.no_grad():
        wanted = text_scorer(*parts, scoring="rotated").log_probabilities([question])[0].exp().tolist()
    assert found.probabilities == pytest.approx(dict(enumerate(wanted, 1)), abs=1e-4)


def test_the_unknown_task_is_asked_for_once(hosted: Any, served: ModelServer) -> None:
    llm = ScoredLLM(hosted, "calibrated")
    answers = []
    for task in ("dry it", "wash it", "dry it"):
        served.paths.clear()
        answers.append((llm.choose(asked(task)), len(served.paths)))
    assert answers[0][0].probabilities == answers[2][0].probabilities != answers[1][0].probabilities
    assert answers[0][0].usage.requests == 2 and answers[1][0].usage.requests == 1
    assert answers[2][1] < answers[0][1]


def test_many_and_awaited(hosted: Any) -> None:
    llm, question = ScoredLLM(hosted, "text"), asked("dry it", TEXTS[:3])
    one = llm.choose(question)
    assert asyncio.run(llm.achoose(question)).probabilities == one.probabilities  # type: ignore[attr-defined]
    assert llm.identity == {**hosted.identity, "scoring": "text"}


def test_who_cannot_tell() -> None:
    with pytest.raises(LLMError, match="does not report how probable"):
        ScoredLLM("test:first", "text")
    with pytest.raises(ValueError, match="did you mean text"):
        resolve("scored:txt:vllm:m")

    class Silent:
        def choose(self, question: Question) -> Any:
            raise NotImplementedError

        def answer_log_probabilities(self, messages: object, texts: object) -> None:
            return None

    with pytest.raises(LLMError, match="does not report"):
        ScoredLLM(Silent(), "text").choose(asked("x"))


def test_provider_strings() -> None:
    llm = resolve("scored:calibrated+0.5*number:vllm:a/b:c")
    assert isinstance(llm, ScoredLLM) and llm.llm.name == "vllm:a/b:c"  # type: ignore[attr-defined]
    assert llm.scoring == {"calibrated": 1.0, "number": 0.5}
    llm.llm.client.close()  # type: ignore[attr-defined]
