"""What the models of OpenAI Agents are shown, and what becomes of answers that come too early."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import (
    FunctionTool,
    ModelProvider,
    ModelResponse,
    ModelSettings,
    ModelTracing,
    RunConfig,
    Runner,
    Usage,
    function_tool,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from formal_llm.errors import EarlyAnswer
from formal_llm.guard import GuardedRun
from formal_llm.guard.adapters.openai_agents import GuardedAgents, GuardedModel, ModelConversation
from tests.guard.adapters.shop import Record, Shop, guard
from tests.guard.adapters.test_openai_agents import agent, call, ran, script


async def asked(model: GuardedModel, given: Any, *tools: FunctionTool, **more: Any) -> ModelResponse:
    """A request as the runner makes it."""
    settings = more.pop("model_settings", ModelSettings())
    more = {"previous_response_id": None, "conversation_id": None, "prompt": None, **more}
    return await model.get_response(None, given, settings, list(tools), None, [], ModelTracing.DISABLED, **more)


@pytest.mark.parametrize(
    ("more", "given"),
    [
        ({}, ["user", "assistant", "user"]),
        ({"previous_response_id": "before"}, ["user"]),
        ({"conversation_id": "talk"}, ["user"]),
    ],
)
def test_what_a_model_is_asked_again(more: dict[str, str], given: list[str]) -> None:
    """Where the provider keeps the conversation, only what is new is sent."""
    inner = ScriptedModel([[assistant_message("early")], [function_call("approve", {"order": 7}, call_id="1")]])
    record = Record()
    talk = ModelConversation(GuardedRun(guard(), audit=record), hide=True, most_early=1)
    asyncio.run(asked(GuardedModel(inner, talk), "pay", **more))
    second = inner.calls[1]
    assert [item["role"] for item in second.input] == given
    assert second.previous_response_id == ("resp-789" if "previous_response_id" in more else None)
    assert record.words == ["said user", "said assistant", "stop"]


def test_what_the_user_says_is_told_once() -> None:
    """A request that fails and is tried again says nothing new; a second answer of the same words does."""
    inner = ScriptedModel([
        RuntimeError("overloaded"),
        [function_call("approve", {"order": 7}, call_id="1")],
        [function_call("approve", {"order": 7}, call_id="2")],
    ])  # fmt: skip
    record = Record()
    model = GuardedModel(inner, ModelConversation(GuardedRun(guard(), audit=record), hide=True, most_early=1))
    with pytest.raises(RuntimeError):
        asyncio.run(asked(model, "go"))
    for _ in range(2):
        asyncio.run(asked(model, [{"role": "user", "content": [{"type": "input_text", "text": "go"}]}]))
    assert record.words == ["said user", "said user"]


def test_a_tool_that_is_not_shown_is_not_forced() -> None:
    shop = Shop()
    inner = ScriptedModel([[function_call("approve", {"order": 7}, call_id="1")]])
    model = GuardedModel(inner, ModelConversation(GuardedRun(guard()), hide=True, most_early=1))
    settings = ModelSettings(tool_choice="pay")
    asyncio.run(asked(model, "go", function_tool(shop.approve), function_tool(shop.pay), model_settings=settings))
    assert inner.calls[0].model_settings.tool_choice is None
    assert [tool.name for tool in inner.calls[0].tools] == ["approve"]


def test_streams_are_sent_back_only_so_often() -> None:
    async def streamed() -> None:
        result = Runner.run_streamed(guarded.agent(made), "pay", run_config=guarded.config())
        async for _ in result.stream_events():
            pass

    guarded, made = GuardedAgents(guard(), most_early=1), agent(script("early", "early"), Shop())
    with pytest.raises(EarlyAnswer):
        asyncio.run(streamed())


def test_what_early_answers_cost_is_counted() -> None:
    usage = Usage(requests=1, input_tokens=5, output_tokens=2, total_tokens=7)
    steps = [
        ModelStep([assistant_message("early")], usage),
        ModelStep([function_call("approve", {"order": 7}, call_id="a")], usage),
        ModelStep([function_call("pay", {"order": 7, "amount": 1}, call_id="b")]),
        ModelStep([assistant_message("now")]),
    ]
    model = ScriptedModel(steps)
    result = ran(GuardedAgents(guard()), agent(model, Shop()))
    assert result.context_wrapper.usage.total_tokens == 14


def test_runs_that_stream() -> None:
    async def streamed() -> str:
        result = Runner.run_streamed(guarded.agent(made), "pay", run_config=guarded.config())
        kinds.extend([event.type async for event in result.stream_events()])
        return str(result.final_output)

    kinds: list[str] = []
    model, shop = script("early", call("draft"), call("approve"), call("pay"), "done"), Shop()
    guarded, made = GuardedAgents(guard()), agent(model, shop)
    assert asyncio.run(streamed()) == "done"
    assert shop.done == ["approve 7", "pay 7 1"]
    assert "run_item_stream_event" in kinds


def test_models_of_a_provider_are_guarded() -> None:
    class Provider(ModelProvider):
        def get_model(self, model_name: str | None) -> Any:
            assert model_name == "some-model"
            return model

    model, shop = script("early", call("approve"), call("pay"), "done"), Shop()
    config = RunConfig(model_provider=Provider())
    assert ran(GuardedAgents(guard()), agent("some-model", shop), run_config=config).final_output == "done"
    assert shop.done == ["approve 7", "pay 7 1"]
