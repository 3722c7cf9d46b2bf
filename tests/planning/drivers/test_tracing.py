"""Spans and log lines: one for each plan and question, and no text unless asked."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from formal_llm import Answer, Budget, Limits, Plan, Planner, Question, WeightedLLM
from formal_llm.errors import BudgetExceeded, MissingDependency
from formal_llm.llms import TokenUsage
from formal_llm.planning.drivers.tracing import Spans, logged
from formal_llm.planning.walks.events import Event
from tests.planning.wandering import CHAIN

SECRET = "Sell the company to Mallory"


class Provider:
    """Where finished spans are kept."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.provider.shutdown()


def answer(question: Question) -> Answer:
    found = WeightedLLM(3).choose(question)
    return Answer(found.numbers, found.probabilities, f"I choose {found.number}", TokenUsage(1, 100, 7, 30, 5))


@pytest.mark.parametrize("content", [False, True])
def test_a_span_for_each_plan_and_question(provider: Provider, content: bool) -> None:
    spans = Spans("openai:gpt-x", content=content, tracer=provider.provider.get_tracer("t"))
    planner = Planner(CHAIN, answer, on_event=spans)
    outcomes = planner.plan_all([f"{SECRET} {number}" for number in range(5)], concurrency=3)
    found = provider.spans()
    plans = [span for span in found if span.name == "invoke_workflow formal_llm.plan"]
    chats = [span for span in found if span.name == "chat gpt-x"]
    assert len(plans) == 5
    assert len(chats) == sum(outcome.usage.questions for outcome in outcomes) == len(found) - 5
    for plan in plans:
        assert plan.attributes is not None
        outcome = outcomes[int(str(plan.attributes["formal_llm.walk"]))]
        mine = [c for c in chats if c.parent and c.parent.span_id == plan.context.span_id]
        assert len(mine) == outcome.usage.questions == plan.attributes["formal_llm.questions"]
        assert plan.attributes["gen_ai.usage.input_tokens"] == outcome.usage.input_tokens
    for chat in chats:
        assert chat.attributes is not None
        assert chat.attributes["gen_ai.operation.name"] == "chat"
        assert chat.attributes["gen_ai.provider.name"] == "openai"
        assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == 30
        assert 0 < float(chat.attributes["formal_llm.probability"]) <= 1  # type: ignore[arg-type]
    text = " ".join(span.to_json() for span in found)
    assert (SECRET in text) == content
    assert ("I choose" in text) == content
    if content:
        messages = json.loads(str(chats[0].attributes["gen_ai.input.messages"]))  # type: ignore[index]
        assert messages[-1]["role"] == "user"


def test_walks_of_the_same_name_that_are_awaited_together_are_kept_apart(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = [f"task {number}" for number in range(4)]

    class Rounds(WeightedLLM):
        """Answers a question of each walk before the next one of any: all are under way together."""

        def __init__(self) -> None:
            super().__init__(3)
            self.asked: list[str] = []

        async def achoose(self, question: Question) -> Answer:
            self.asked.append(question.task)
            await asyncio.sleep(0)
            return self.choose(question)

        async def aclose(self) -> None: ...

    llm = Rounds()
    spans, lines = Spans(llm, content=True, tracer=provider.provider.get_tracer("t")), logged(content=True)

    def told(event: Event) -> None:
        spans(event)
        lines(event)

    async def all_of_them() -> list[Plan]:
        planner = Planner(CHAIN, llm, on_event=told)
        return await asyncio.gather(*(planner.aplan(task) for task in tasks))

    with caplog.at_level(logging.DEBUG, logger="formal_llm"):
        plans = asyncio.run(all_of_them())
    assert llm.asked[:4] == tasks
    found = provider.spans()
    told_plans = {span.attributes["formal_llm.task"]: span for span in found if span.name.startswith("invoke")}  # type: ignore[index]
    assert sorted(map(str, told_plans)) == tasks
    for task, plan in zip(tasks, plans, strict=True):
        span = told_plans[task]
        assert span.attributes["formal_llm.plan"] == " ".join(plan.word)  # type: ignore[index]
        assert span.attributes["formal_llm.questions"] == plan.usage.questions  # type: ignore[index]
        mine = [chat for chat in found if chat.parent and chat.parent.span_id == span.context.span_id]
        assert len(mine) == plan.usage.questions
        assert all(task in str(chat.attributes["gen_ai.input.messages"]) for chat in mine)  # type: ignore[index]
    # Each walk has log lines of its own, too.
    begun = [record.message for record in caplog.records if record.message.endswith(tuple(tasks))]
    assert len({line.partition(":")[0] for line in begun}) == 4
    assert all(line.startswith("walk #") for line in begun)


def test_a_failure_ends_its_spans(provider: Provider) -> None:
    spans = Spans("test:first", tracer=provider.provider.get_tracer("t"))
    with pytest.raises(BudgetExceeded):
        Planner(CHAIN, "test:first", budget=Budget(questions=2), on_event=spans).plan(SECRET)

    def broken(question: Question) -> int:
        raise OSError(SECRET)

    with pytest.raises(OSError, match=SECRET):
        Planner(CHAIN, broken, on_event=spans).plan(SECRET)
    found = provider.spans()
    plans = [span for span in found if span.name.startswith("invoke")]
    assert [span.attributes["error.type"] for span in plans] == ["BudgetExceeded", "OSError"]  # type: ignore[index]
    assert all(span.status.status_code is StatusCode.ERROR for span in plans)
    assert [span.status.status_code for span in found if span.name.startswith("chat")].count(StatusCode.ERROR) == 1
    assert SECRET not in " ".join(span.to_json() for span in found)


def test_what_happens_on_the_way_is_noted(provider: Provider) -> None:
    spans = Spans(tracer=provider.provider.get_tracer("t"))
    Planner(CHAIN, "test:first", limits=Limits({"a": 2, "b": 0}), on_event=spans).plan("t")
    Planner(CHAIN, "test:first", limits=Limits({"a": 2, "b": 2}, {"c": 1}), lookahead="off", on_event=spans).plan("t")
    names = [event.name for span in provider.spans() for event in span.events]
    assert "formal_llm.forced" in names


def test_without_the_library_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingDependency, match=r"formal-llm\[otel\]"):
        Spans()


@pytest.mark.parametrize("content", [False, True])
def test_log_lines(caplog: pytest.LogCaptureFixture, content: bool) -> None:
    with caplog.at_level(logging.DEBUG, logger="formal_llm"):
        Planner(CHAIN, "test:first", limits=Limits({"a": 2, "b": 2}), on_event=logged(content=content)).plan(SECRET)
        with pytest.raises(BudgetExceeded):
            Planner(CHAIN, "test:first", budget=Budget(questions=1), on_event=logged(content=content)).plan("t")
    levels = [record.levelname for record in caplog.records]
    assert {"INFO", "DEBUG", "WARNING"} == set(levels)
    assert (SECRET in caplog.text) == content
    forced = [record.getMessage() for record in caplog.records if "a choice left one option" in record.getMessage()]
    assert forced and all(
        re.search(r"one option of \d+: " if content else r"one option of \d+$", one) for one in forced
    )
    assert "BudgetExceeded" in caplog.text
