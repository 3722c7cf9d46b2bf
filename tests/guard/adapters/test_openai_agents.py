"""The OpenAI Agents SDK itself, with a scripted model: what a guard lets happen in its runs."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    RunConfig,
    Runner,
    SQLiteSession,
    StopAtTools,
    function_tool,
    set_tracing_disabled,
)
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as MCPTool

from formal_llm.errors import EarlyAnswer
from formal_llm.guard.adapters.openai_agents import GuardedAgents
from formal_llm.guard.live import GuardedRun
from tests.guard.adapters.shop import ASKING, TOOLS, Person, Record, Shop, guard

set_tracing_disabled(True)

IDS = itertools.count()
Step = str | list[tuple[str, dict[str, Any]]]


def script(*steps: Step) -> ScriptedModel:
    """A model that says what stands in a script, whatever it is asked."""
    made: list[Any] = []
    for step in steps:
        if isinstance(step, str):
            made.append([assistant_message(step)])
            continue
        calls = []
        for name, arguments in step:
            calls.append(function_call(name, arguments, call_id=f"call-{next(IDS)}"))
        made.append(calls)
    return ScriptedModel(made)


def call(*names: str, **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(name, {"order": 7, "amount": 1, **arguments} if name == "pay" else {"order": 7}) for name in names]


def tools_of(shop: Shop) -> list[FunctionTool]:
    return [function_tool(function) for function in (shop.approve, shop.draft, shop.pay, shop.look)]


def agent(model: Any, shop: Shop, **more: Any) -> Agent[Any]:
    return Agent(name="shop", model=model, tools=more.pop("tools", None) or tools_of(shop), **more)


def ran(guarded: GuardedAgents, made: Agent[Any], given: Any = "pay order 7", **more: Any) -> Any:
    config = guarded.config(more.pop("run_config", None))
    return asyncio.run(Runner.run(guarded.agent(made), given, run_config=config, **more))


def outputs(model: ScriptedModel) -> list[str]:
    """What the model read as outputs of calls."""
    assert model.last_call is not None
    return [item["output"] for item in model.last_call.input if item.get("type") == "function_call_output"]


def shown(model: ScriptedModel) -> list[list[str]]:
    return [[tool.name for tool in made.tools] for made in model.calls]


def test_a_forbidden_call_is_refused_and_the_model_recovers() -> None:
    model, shop = script(call("pay"), call("draft"), call("approve"), call("pay"), "done"), Shop()
    original = agent(model, shop)
    assert ran(GuardedAgents(guard()), original).final_output == "done"
    assert shop.done == ["approve 7", "pay 7 1"]
    first, second, *made = outputs(model)
    assert "approve" in first
    assert second
    assert made == ["approved 7", "paid 7"]
    assert all(tool.tool_input_guardrails is None for tool in original.tools if isinstance(tool, FunctionTool))


def test_only_tools_with_a_legal_call_are_shown() -> None:
    model = script(call("approve"), call("pay"), "done")
    ran(GuardedAgents(guard()), agent(model, Shop()))
    assert shown(model) == [["approve", "look"], list(TOOLS), list(TOOLS)]
    model = script(call("approve"), call("pay"), "done")
    ran(GuardedAgents(guard(), hide=False), agent(model, Shop()))
    assert shown(model) == [list(TOOLS)] * 3


def test_an_answer_that_comes_too_early_is_sent_back() -> None:
    model, shop = script("done", call("approve"), "really", call("pay"), "now"), Shop()
    result = ran(GuardedAgents(guard()), agent(model, shop))
    assert result.final_output == "now"
    assert shop.done == ["approve 7", "pay 7 1"]
    said = model.calls[1].input[-1]
    assert said["role"] == "user"
    assert "pay" in said["content"]
    with pytest.raises(EarlyAnswer, match="sent back 1 times"):
        ran(GuardedAgents(guard(), most_early=1), agent(script("done", "done", "done"), shop))


@pytest.mark.parametrize("behavior", ["stop_on_first_tool", StopAtTools(stop_at_tool_names=["look"]), None])
def test_a_tool_that_ends_the_run_does_not_end_it_too_early(behavior: Any) -> None:
    from agents import ToolsToFinalOutputResult

    def at_once(context: Any, results: list[Any]) -> ToolsToFinalOutputResult:
        return ToolsToFinalOutputResult(results[0].tool.name == "look", results[0].output)

    model, shop = script(call("look"), call("approve"), call("pay"), call("look")), Shop()
    result = ran(GuardedAgents(guard()), agent(model, shop, tool_use_behavior=behavior or at_once))
    assert result.final_output == ("paid 7" if behavior == "stop_on_first_tool" else "order 7")
    assert shop.done[:3] == ["look 7", "approve 7", "pay 7 1"]


def test_a_refusal_does_not_end_the_run() -> None:
    model, shop = script(call("draft"), call("look"), "never said"), Shop()
    rules = "draft: draft\nrule no: never draft\n"
    result = ran(GuardedAgents(guard(rules)), agent(model, shop, tool_use_behavior="stop_on_first_tool"))
    assert result.final_output == "order 7"
    assert shop.done == ["look 7"]


def test_parallel_calls_are_checked_as_a_sequence() -> None:
    model, shop, record = script(call("pay", "approve", "draft", "pay"), "done"), Shop(), Record()
    ran(GuardedAgents(GuardedRun(guard(), audit=record)), agent(model, shop))
    assert sorted(shop.done) == ["approve 7", "draft 7", "pay 7 1"]
    told = [word for word in record.words if not word.startswith("result")]
    assert told == ["said user", "not pay", "call approve", "call draft", "call pay", "said assistant", "stop"]


@pytest.mark.parametrize("says", [True, False])
def test_a_person_who_is_asked_here(says: bool) -> None:
    for approve in (person := Person(says), person.waits):
        model, shop = script(call("approve"), call("pay", amount=500), call("pay", amount=1), "done"), Shop()
        ran(GuardedAgents(GuardedRun(guard(ASKING), approve=approve)), agent(model, shop))
        assert shop.done == ["approve 7", *(["pay 7 500"] if says else []), "pay 7 1"]
    assert len(person.asked) == 2


@pytest.mark.parametrize("says", [True, False])
def test_a_person_for_whom_the_run_is_interrupted(says: bool) -> None:
    model, shop, record = (
        script(call("approve"), call("look") + call("pay", amount=500), call("pay", amount=1), "done"),
        Shop(),
        Record(),
    )
    guarded = GuardedAgents(GuardedRun(guard(ASKING), audit=record), interrupt=True)
    made = agent(model, shop)
    result = ran(guarded, made)
    (wanted,) = result.interruptions
    assert wanted.name == "pay"
    assert "pay 7 500" not in shop.done
    state = result.to_state()
    (state.approve if says else state.reject)(wanted)
    assert ran(guarded, made, state).final_output == "done"
    assert shop.done == ["approve 7", "look 7", *(["pay 7 500"] if says else []), "pay 7 1"]
    assert record.called == ["approve", "look", *(["pay"] if says else []), "pay"]


def test_a_conversation_goes_on_where_it_stood() -> None:
    model, shop, record = (
        script(call("approve"), call("pay"), "paid", call("draft"), call("approve"), "no"),
        Shop(),
        Record(),
    )
    guarded, made, session = GuardedAgents(GuardedRun(guard(), audit=record)), agent(model, shop), SQLiteSession("1")
    ran(guarded, made, "pay", session=session)
    assert ran(guarded, made, "draft and approve", session=session).final_output == "no"
    assert shop.done == ["approve 7", "pay 7 1", "draft 7"]
    assert record.words.count("said user") == 2
    session.close()


def test_errors_are_results() -> None:
    def in_words(context: Any, error: Exception) -> str:
        return "it did not work"

    for failing in ({}, {"failure_error_function": in_words}):
        shop, record = Shop(), Record()
        tools = [*tools_of(shop)[:2], function_tool(shop.pay, **failing)]
        model = script(call("approve"), call("pay", amount=-1), call("pay"), "done")
        ran(GuardedAgents(GuardedRun(guard(), audit=record)), agent(model, shop, tools=tools))
        assert record.words[3:7] == ["call pay", "result pay failed", "call pay", "result pay"]
        assert shop.done == ["approve 7", "pay 7 1"]


def test_a_tool_that_takes_too_long_has_failed() -> None:
    async def pay(order: int, amount: int) -> str:
        """Pay."""
        await asyncio.Event().wait()
        return "never"

    texts = []
    for guarded in (True, False):
        model, shop, record = script(call("approve"), call("pay"), "done"), Shop(), Record()
        made = agent(model, shop, tools=[*tools_of(shop)[:2], function_tool(pay, timeout=0.02)])
        if guarded:
            ran(GuardedAgents(GuardedRun(guard(), audit=record)), made)
            assert record.words[3:5] == ["call pay", "result pay failed"]
        else:
            asyncio.run(Runner.run(made, "pay"))
        texts.append(outputs(model))
    assert texts[0] == texts[1]


def test_only_logging_changes_nothing() -> None:
    read = []
    for guarded in (None, GuardedAgents(guard(severity="log"))):
        model, shop = script(call("pay"), call("draft", "approve"), "done"), Shop()
        made = agent(model, shop)
        result = ran(guarded, made) if guarded else asyncio.run(Runner.run(made, "pay order 7"))
        assert result.final_output == "done"
        assert shop.done[0] == "pay 7 1"
        assert model.last_call is not None
        kinds = [item.get("type", item.get("role")) for item in model.last_call.input]
        read.append((outputs(model), shown(model), kinds))
    assert read[0] == read[1]


def test_a_warning_is_read_by_the_model() -> None:
    model, shop = script(call("pay"), "done"), Shop()
    ran(GuardedAgents(guard(severity="warn")), agent(model, shop))
    assert shop.done == ["pay 7 1"]
    assert outputs(model)[0].startswith("paid 7\n\nWarning: ")


def test_two_runs_of_one_agent_at_once_do_not_mix() -> None:
    async def both() -> None:
        async def approve(order: int) -> str:
            """Approve."""
            await met.wait()
            return f"approved {order}"

        met, shop = asyncio.Barrier(2), Shop()
        made = Agent(name="shop", tools=[function_tool(approve), *tools_of(shop)[1:]])
        for record, model in zip(records, models, strict=True):
            guarded = GuardedAgents(GuardedRun(guard(), audit=record))
            config = guarded.config(RunConfig(model=model))
            running.append(asyncio.create_task(Runner.run(guarded.agent(made), "go", run_config=config)))
        await asyncio.gather(*running)

    records, running = [Record(), Record()], []
    models = [script(call("approve"), call("pay"), "done"), script(call("approve"), call("draft"), call("pay"), "done")]
    asyncio.run(both())
    assert [record.called for record in records] == [["approve", "pay"], ["approve", "draft", "pay"]]


def test_agents_that_hand_off_share_the_guard() -> None:
    shop = Shop()
    payer = Agent(name="payer", model=script(call("pay"), "done"), tools=tools_of(shop)[1:])
    steps: list[Step] = [call("approve"), [("transfer_to_payer", {})]]
    made = Agent(name="desk", model=script(*steps), tools=tools_of(shop)[:2], handoffs=[payer])
    payer.handoffs = [made]
    result = ran(GuardedAgents(guard()), made)
    assert result.final_output == "done"
    assert result.last_agent.name == "payer"
    assert shop.done == ["approve 7", "pay 7 1"]


class Tools(MCPServer):
    """An MCP server in this process."""

    def __init__(self, shop: Shop) -> None:
        super().__init__()
        self.shop = shop

    name = "shop"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[MCPTool]:
        schema = {"type": "object", "properties": {"order": {"type": "integer"}}}
        return [MCPTool(name=name, inputSchema=schema) for name in TOOLS]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        text = getattr(self.shop, tool_name)(arguments["order"])
        return CallToolResult(content=[TextContent(type="text", text=text)])

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...


def test_tools_of_mcp_servers_are_guarded() -> None:
    shop, record = Shop(), Record()
    model = script(call("pay"), call("approve"), call("pay"), "done")
    server = Tools(shop)
    made = Agent(name="shop", model=model, mcp_servers=[server])
    ran(GuardedAgents(GuardedRun(guard(), audit=record)), made)
    assert shop.done == ["approve 7", "pay 7 1"]
    assert shown(model)[0] == ["approve", "look"]
    assert record.words[1:5] == ["not pay", "call approve", "result approve", "call pay"]
    assert server.tool_input_guardrails is None
