"""Spans of agents: one for each run, request and call, and no text unless asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from formal_llm.agents import Agent
from formal_llm.agents.tracing import AgentSpans
from formal_llm.errors import AgentPaused, LLMError, Pending
from formal_llm.llms.generation import ToolTurn
from formal_llm.llms.text_doubles import FunctionTurnLLM, ScriptedTurnLLM
from formal_llm.tools import tool
from tests.planning.drivers.test_tracing import Provider

SECRET = "Mallory"


@tool
def search(query: str) -> str:
    """Searches."""
    if query == "nothing":
        raise ValueError(f"{SECRET} is not there")
    return f"found {query}"


@tool
def ask_user(question: str) -> str:
    """Asks the user."""
    raise Pending(question)


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.provider.shutdown()


def make_spans(provider: Provider, content: bool = False) -> AgentSpans:
    return AgentSpans("react", "openai:gpt-x", content=content, tracer=provider.provider.get_tracer("t"))


def children_of(span: ReadableSpan, found: tuple[ReadableSpan, ...]) -> list[ReadableSpan]:
    assert span.context is not None
    return [one for one in found if one.parent is not None and one.parent.span_id == span.context.span_id]


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("content", [False, True])
def test_a_span_for_each_run_request_and_call(provider: Provider, content: bool) -> None:
    turns = [
        ("I search.", [("search", {"query": SECRET}), ("rm", {})]), ("", [("search", {"query": "nothing"})]), SECRET,
    ]  # fmt: skip
    agent = Agent("react", ScriptedTurnLLM(turns), [search], on_event=make_spans(provider, content))
    made = agent.run(f"Who is {SECRET}?")
    found = provider.spans()
    (run,) = [span for span in found if span.name == "invoke_agent react"]
    chats = [span for span in found if span.name == "chat gpt-x"]
    calls = [span for span in found if span.name == "execute_tool search"]
    assert len(found) == 6 and children_of(run, found) == [one for one in found if one is not run]
    about = attributes_of(run)
    assert about["gen_ai.operation.name"] == "invoke_agent" and about["gen_ai.agent.name"] == "react"
    assert about["gen_ai.provider.name"] == "openai" and about["gen_ai.request.model"] == "gpt-x"
    assert about["gen_ai.usage.input_tokens"] == made.usage.input_tokens > 0
    assert about["formal_llm.corrections"] == 1 and [one.name for one in run.events] == ["formal_llm.corrected"]
    assert len(chats) == made.usage.requests == 3 and all(one.kind is SpanKind.CLIENT for one in chats)
    read = sum(attributes_of(one)["gen_ai.usage.input_tokens"] for one in chats)
    assert read == made.usage.input_tokens
    assert [attributes_of(one)["gen_ai.tool.name"] for one in calls] == ["search", "search"]
    assert [attributes_of(one).get("error.type") for one in calls] == [None, "ToolError"]
    assert [one.status.status_code for one in calls] == [StatusCode.UNSET, StatusCode.ERROR]
    assert run.status.status_code is StatusCode.UNSET
    assert (SECRET in " ".join(span.to_json() for span in found)) == content
    if content:
        assert SECRET in about["gen_ai.input.messages"] and SECRET in about["gen_ai.output.messages"]
        assert attributes_of(calls[0])["gen_ai.tool.call.result"] == f"found {SECRET}"
        assert SECRET in attributes_of(chats[0])["gen_ai.input.messages"]


def test_runs_of_the_same_name_that_are_awaited_together_are_kept_apart(provider: Provider) -> None:
    async def answer(turn: ToolTurn) -> Any:
        await asyncio.sleep(0)  # all runs are under way together
        done = sum(message.role == "tool" for message in turn.messages)
        number = int(turn.messages[0].content)
        return ("", [("search", {"query": f"{number}"})]) if done < number else f"answer {number}"

    class Awaited(FunctionTurnLLM):
        async def achoose(self, question: Any) -> Any:
            turn = await answer(question)
            return FunctionTurnLLM(lambda _: turn).choose(question)

        async def aclose(self) -> None: ...

    agent = Agent("react", Awaited(str), [search], on_event=make_spans(provider, content=True))

    async def run_all() -> None:
        await asyncio.gather(*(agent.arun(str(number)) for number in range(1, 6)))

    asyncio.run(run_all())
    found = provider.spans()
    runs = [span for span in found if span.name.startswith("invoke_agent")]
    assert len(runs) == 5
    for run in runs:
        number = next(n for n in range(1, 6) if f"answer {n}" in attributes_of(run)["gen_ai.output.messages"])
        kinds = Counter(one.name for one in children_of(run, found))
        assert kinds == {"chat gpt-x": number + 1, "execute_tool search": number}
        for one in children_of(run, found):
            assert attributes_of(one).get("gen_ai.tool.call.arguments", f'{{"query": "{number}"}}') == (
                f'{{"query": "{number}"}}'
            )


def test_several_calls_at_once_have_a_span_each(provider: Provider) -> None:
    plan = ("", [("search", {"query": "a"}), ("search", {"query": "a"}), ("LLM", {"request": "b"})])
    llm = ScriptedTurnLLM([plan, "worked", "solved"])
    Agent("rewoo", llm, [search], on_event=AgentSpans("rewoo", llm, tracer=provider.provider.get_tracer("t"))).run("q")
    names = Counter(span.name for span in provider.spans())
    assert names == {"invoke_agent rewoo": 1, "chat text": 3, "execute_tool search": 2, "execute_tool LLM": 1}


def test_a_pause_is_no_failure_and_a_failure_ends_its_spans(provider: Provider) -> None:
    agent = Agent("react", ScriptedTurnLLM([("", [("ask_user", {"question": "?"})])]), [ask_user],
                  on_event=make_spans(provider))  # fmt: skip
    with pytest.raises(AgentPaused) as paused:
        agent.run("q")
    call, run = provider.spans()[-2:]
    assert attributes_of(run)["formal_llm.paused"] is True and run.status.status_code is StatusCode.UNSET
    assert call.name == "execute_tool ask_user" and call.status.status_code is StatusCode.UNSET
    with pytest.raises(LLMError, match="the script ended"):
        agent.resume(paused.value.state, results={"4.0": "Mallory"}).run_to_end()
    chat, run = provider.spans()[-2:]
    for span in (chat, run):
        assert attributes_of(span)["error.type"] == "LLMError" and span.status.status_code is StatusCode.ERROR
    assert run.name == "invoke_agent react" and chat.name == "chat gpt-x"
    assert "the script" not in " ".join(span.to_json() for span in provider.spans())
