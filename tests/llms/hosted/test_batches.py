"""Questions asked in batches, at half the price."""

from __future__ import annotations

from threading import Event, Timer
from typing import Any

import pytest

from formal_llm import CFG, Planner
from formal_llm.errors import InvalidAnswer, LLMError, ProviderError, RunStopped
from formal_llm.llms import Question
from formal_llm.llms.hosted.batches import BatchedLLM
from formal_llm.llms.llm import outcome_of
from formal_llm.llms.text_request import TextRequest
from tests.llms.hosted.batches import Batches
from tests.llms.hosted.wire_server import FORMS, Form, serving

ONE = Question("Which one?", ["red", "green"])


@pytest.fixture(params=["openai", "anthropic"])
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


def write(body: dict[str, Any]) -> str | tuple[int, str]:
    text = str(body)
    if "refuse" in text:
        return 400, "not this one"
    return "nothing" if "confuse" in text else "A text." if "write" in text else '{"choice": 2}'


def test_a_round_is_a_batch(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(write)
    with serving(form, monkeypatch, batches):
        llm = BatchedLLM(form.model, look=0.01)
        assert llm.at_once > 1_000 and "write" in llm.can
        asked = [ONE, Question("refuse", ["a", "b"]), Question("confuse", ["a", "b"]), TextRequest("write"), ONE]
        first, refused, confused, text, last = map(outcome_of, llm.submit(asked))
        assert batches.sizes == [5]
        assert getattr(first, "numbers", None) == getattr(last, "numbers", None) == (2,)
        assert isinstance(refused, ProviderError) and "not this one" in str(refused)
        assert isinstance(confused, InvalidAnswer) and confused.usage.input_tokens == 5
        assert getattr(text, "text", "") == "A text."
        with pytest.raises(ProviderError, match="not this one"):
            llm.ask(asked[1])
        assert llm.identity["llm"] == form.model


def test_planning_in_batches(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(write)
    with serving(form, monkeypatch, batches):
        planner = Planner(CFG.from_string("S -> wash S | fold"), BatchedLLM(form.model, look=0.01))
        outcomes = planner.plan_all(["shirts", "socks", "towels"])
        assert [outcome.unwrap().word for outcome in outcomes] == [("fold",)] * 3
        assert batches.sizes == [3]


def test_a_batch_that_is_stopped_is_cancelled(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    batches, stop = Batches(write, looks=10_000), Event()
    with serving(form, monkeypatch, batches):
        llm = BatchedLLM(form.model, stop, look=0.01)
        Timer(0.3, stop.set).start()
        with pytest.raises(RunStopped):
            llm.ask(ONE)
        for _ in range(100):
            if batches.cancelled:
                break
            Event().wait(0.02)
        assert batches.cancelled == ["batch_0"]


def test_who_has_no_batches() -> None:
    with pytest.raises(LLMError, match="vllm:m is not asked in batches"):
        BatchedLLM("vllm:m")
    with pytest.raises(LLMError, match="builtin is not asked in batches"):
        BatchedLLM("builtin")
