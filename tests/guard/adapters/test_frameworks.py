"""What is guarded in each framework, row by row as docs/howto/guard.md has it: a rule lets one payment through.

Each framework is a class with a method for each row that it has; the rest is what the page says it has not.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, ClassVar

import agents
import pydantic_ai
import pytest
from agents.testing import ScriptedModel, assistant_message, function_call
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware, wrap_tool_call
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from mcp import Client, MCPError
from mcp.server import MCPServer
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from formal_llm.guard import Guard, GuardedRun, GuardRules
from formal_llm.guard.adapters.langchain import GuardMiddleware
from formal_llm.guard.adapters.openai_agents import GuardedAgents
from formal_llm.guard.adapters.pydantic_ai import GuardCapability
from formal_llm.guard.hooks.hook import answer_event
from formal_llm.guard.mcp.proxy import McpProxy
from formal_llm.guard.mcp.servers import McpServer
from formal_llm.guard.mcp.upstreams import Upstream
from tests.guard.adapters.shop import Record
from tests.guard.adapters.test_langchain import Script as LangChainScript

agents.set_tracing_disabled(True)
ROWS = (
    "parallel", "shared id", "streaming", "hand-over", "sub-agent", "retry", "rename", "exception", "timeout", "cancel",
    "resume",
)  # fmt: skip
PAY = ("pay", {"order": 7})
Step = str | list[tuple[str, dict[str, Any]]]


class Framework:
    """A run of a framework in which one payment may be made.

    Attributes:
        paid: how often the tool ran.
        record: the record of the guard.
    """

    name: str
    #: The name of the call in the record, how often it is in there, how often the tool runs, and what is refused.
    counted, times, tries, refuses = "pay", 1, 1, True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paid = 0
        self.fails = False
        self.waits = False
        self.record = Record()
        self.guard = self.make_guard()

    def make_guard(self, names: str = "pay") -> Guard:
        return Guard(GuardRules.from_string(f"pay: {names}\nrule once: at most 1 pay\n"))

    def pay(self, order: int) -> str:
        """Pay."""
        self.paid += 1
        if self.fails and self.paid == 1:
            raise ConnectionError("it did not work")
        return f"paid {order}"

    async def apay(self, order: int) -> str:
        """Pay, or never come back the first time."""
        self.paid += 1
        while self.waits and self.paid == 1:
            await asyncio.sleep(0.01)
        return f"paid {order}"

    def expect(self, paid: int | None = None) -> None:
        """One call was let through, however often its tool ran."""
        assert self.paid == (self.tries if paid is None else paid)
        assert self.record.called.count(self.counted) == self.times
        assert self.refuses is any(
            line.decision is not None and line.decision.action == "block" for line in self.record
        )

    def play(self, *steps: Step, **options: Any) -> None:
        """Run the framework with a model that says these steps, in the same conversation as before."""
        raise NotImplementedError

    async def cancelled(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        while not self.paid:
            await asyncio.sleep(0.005)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def parallel(self) -> None:
        self.play([PAY, PAY], "done")

    def exception(self) -> None:
        self.fails = True
        with suppress(ConnectionError, agents.UserError):
            self.play([PAY], "it failed")
        self.play([PAY], "done")
        assert "result pay failed" in self.record.words


class PydanticAI(Framework):
    name = "PydanticAI"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.messages: list[Any] = []
        self.ids = 0

    def model(self, steps: tuple[Step, ...]) -> FunctionModel:
        left = list(steps)

        def parts() -> list[Any]:
            step = left.pop(0)
            if isinstance(step, str):
                return [TextPart(step)]
            self.ids += len(step)
            return [ToolCallPart(name, given, f"{self.ids}-{n}") for n, (name, given) in enumerate(step)]

        async def stream(messages: Any, info: Any) -> Any:
            for n, part in enumerate(parts()):
                yield (
                    part.content
                    if isinstance(part, TextPart)
                    else {n: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}
                )

        return FunctionModel(lambda messages, info: ModelResponse(parts()), stream_function=stream)

    def agent(self, *steps: Step, tools: Any = None, **more: Any) -> pydantic_ai.Agent[None, Any]:
        tools = [pydantic_ai.Tool(self.pay, max_retries=3)] if tools is None else tools
        capability = GuardCapability(self.guard, audit=self.record)
        return pydantic_ai.Agent(self.model(steps), tools=tools, capabilities=[capability], **more)

    async def go(self, made: pydantic_ai.Agent[None, Any], **more: Any) -> None:
        with pydantic_ai.capture_run_messages() as messages:
            try:
                await made.run("pay order 7", message_history=self.messages, **more)
            finally:
                self.messages = list(messages)

    def play(self, *steps: Step, tools: Any = None, **more: Any) -> None:
        asyncio.run(self.go(self.agent(*steps, tools=tools), **more))

    def streaming(self) -> None:
        async def read(context: Any, events: Any) -> None:
            async for _ in events:
                pass

        self.play([PAY, PAY], [PAY], "done", event_stream_handler=read)

    def hand_over(self) -> None:
        """The next agent is given the messages."""
        self.play([PAY], "done")
        self.play([PAY], "done")

    def resume(self) -> None:
        self.play([PAY], "done")
        self.messages = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(self.messages))
        self.guard = self.make_guard()
        self.play([PAY], "done")

    def sub_agent(self) -> None:
        inner = self.agent([PAY, PAY], "inner done", "inner done")

        async def delegate(task: str) -> str:
            """Let another agent do it."""
            return str((await inner.run(task)).output)

        tools = [pydantic_ai.Tool(delegate), pydantic_ai.Tool(self.pay, max_retries=3)]
        self.play([("delegate", {"task": "pay"})], [PAY], "done", tools=tools)
        assert self.record.words.count("said user") == 1  # the inner agent is addressed by an agent

    def retry(self) -> None:
        def pay(order: int) -> str:
            """Pay."""
            self.paid += 1
            raise pydantic_ai.ModelRetry("once more")

        self.play([PAY], [PAY], "done", tools=[pydantic_ai.Tool(pay, max_retries=3)])

    def rename(self) -> None:
        self.guard = self.make_guard("shop_pay")
        toolset = FunctionToolset([pydantic_ai.Tool(self.pay, max_retries=3)]).prefixed("shop")
        agent = self.agent([("shop_pay", {"order": 7})] * 2, "done", tools=[], toolsets=[toolset])
        asyncio.run(self.go(agent))
        assert self.record.called == ["shop_pay"]
        self.counted = "shop_pay"

    def timeout(self) -> None:
        self.waits = True
        self.play([PAY], [PAY], "done", tools=[pydantic_ai.Tool(self.apay, name="pay", max_retries=3, timeout=0.05)])
        assert "result pay failed" in self.record.words

    def cancel(self) -> None:
        self.waits = True
        tool = pydantic_ai.Tool(self.apay, name="pay", max_retries=3)
        asyncio.run(self.cancelled(self.go(self.agent([PAY], tools=[tool]))))
        self.play([PAY], "done", tools=[tool])
        self.times = 2  # the second run reads the call in the messages

    def exception(self) -> None:
        super().exception()
        self.times = 2  # as for cancel


class LangChain(Framework):
    name = "LangChain"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.saver = InMemorySaver()
        self.config: Any = {"configurable": {"thread_id": "1"}}

    def agent(self, *steps: Step, tools: Any = None, before: Any = (), saver: Any = None) -> Any:
        said = [
            step if isinstance(step, str) else [{"name": name, "args": given} for name, given in step] for step in steps
        ]
        return create_agent(
            LangChainScript(steps=said),
            tools=[langchain_tool(self.pay)] if tools is None else tools,
            middleware=[*before, GuardMiddleware(self.guard, audit=self.record, hide=False)],
            checkpointer=saver,
        )

    def play(self, *steps: Step, **more: Any) -> None:
        self.agent(*steps, saver=self.saver, **more).invoke({"messages": [HumanMessage("pay")]}, self.config)

    def shared_id(self) -> None:
        class Shared(LangChainScript):
            def _generate(self, *given: Any, **more: Any) -> Any:
                found = super()._generate(*given, **more)
                for call in found.generations[0].message.tool_calls:  # type: ignore[attr-defined]
                    call["id"] = "same"
                return found

        steps = [[{"name": "pay", "args": {"order": 7}}] * 2, "done"]
        middleware = [GuardMiddleware(self.guard, audit=self.record)]
        made = create_agent(Shared(steps=steps), tools=[langchain_tool(self.pay)], middleware=middleware)
        answered = made.invoke({"messages": [HumanMessage("pay")]})["messages"]
        (answer,) = [found for found in answered if isinstance(found, AIMessage) and found.tool_calls]
        assert len({call["id"] for call in answer.tool_calls}) == 2

    def streaming(self) -> None:
        given = {"messages": [HumanMessage("pay")]}
        list(self.agent([PAY, PAY], [PAY], "done").stream(given, stream_mode="messages"))

    def hand_over(self) -> None:
        """Two agents are nodes of one graph, and share its messages."""
        graph = StateGraph(MessagesState)
        graph.add_node("first", self.agent([PAY], "done"))
        graph.add_node("second", self.agent([PAY], "done"))
        graph.add_edge(START, "first")
        graph.add_edge("first", "second")
        graph.add_edge("second", END)
        graph.compile().invoke({"messages": [HumanMessage("pay")]})
        self.times = 2  # the second agent reads the call in the messages

    def sub_agent(self) -> None:
        inner = self.agent([PAY, PAY], "inner done")

        def delegate(task: str) -> str:
            """Let another agent do it."""
            return inner.invoke({"messages": [HumanMessage(task)]})["messages"][-1].text

        tools = [langchain_tool(delegate), langchain_tool(self.pay)]
        self.play([("delegate", {"task": "pay"})], [PAY], "done", tools=tools)
        assert self.record.words.count("said user") == 1  # the inner agent is addressed by an agent

    def retry(self) -> None:
        self.fails = True
        again = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
        self.play([PAY], [PAY], "done", before=[again])
        self.tries = 2

    def rename(self) -> None:
        @wrap_tool_call
        def renames(request: Any, handler: Callable[..., Any]) -> Any:
            changed = {**request.tool_call, "name": "pay"}
            return handler(request.override(tool_call=changed, tool=langchain_tool(self.pay)))

        def transfer(order: int) -> str:
            """Pay."""
            raise AssertionError("it is called by its other name")

        calls = [("transfer", {"order": 7})] * 2
        self.play(calls, "done", before=[renames], tools=[langchain_tool(transfer)])

    def timeout(self) -> None:
        self.waits = True
        tools = [langchain_tool("pay")(self.apay)]
        agent = self.agent([PAY], tools=tools, saver=self.saver)
        agent.step_timeout = 0.3
        with suppress(TimeoutError):
            asyncio.run(agent.ainvoke({"messages": [HumanMessage("pay")]}, self.config))
        self.play([PAY], "done")

    def cancel(self) -> None:
        self.waits = True
        agent = self.agent([PAY], tools=[langchain_tool("pay")(self.apay)], saver=self.saver)
        asyncio.run(self.cancelled(agent.ainvoke({"messages": [HumanMessage("pay")]}, self.config)))
        self.play([PAY], "done")

    def resume(self) -> None:
        self.play([PAY], "done")
        self.guard = self.make_guard()
        self.play([PAY], "done")


class OpenAIAgents(Framework):
    name = "OpenAI Agents"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.guarded = GuardedAgents(GuardedRun(self.guard, audit=self.record))
        self.ids = 0

    def model(self, *steps: Step) -> ScriptedModel:
        made: list[Any] = []
        for step in steps:
            self.ids += 1
            made.append(
                [assistant_message(step)]
                if isinstance(step, str)
                else [function_call(name, given, call_id=f"{self.ids}-{n}") for n, (name, given) in enumerate(step)]
            )
        return ScriptedModel(made)

    def agent(self, *steps: Step, tools: Any = None, **more: Any) -> agents.Agent[Any]:
        tools = [agents.function_tool(self.pay)] if tools is None else tools
        return agents.Agent(name=more.pop("name", "shop"), model=self.model(*steps), tools=tools, **more)

    async def go(self, made: agents.Agent[Any]) -> None:
        await agents.Runner.run(self.guarded.agent(made), "pay order 7", run_config=self.guarded.config())

    def play(self, *steps: Step, **more: Any) -> None:
        asyncio.run(self.go(self.agent(*steps, **more)))

    def shared_id(self) -> None:
        model = ScriptedModel(
            [
                [function_call(*PAY, call_id="same"), function_call(*PAY, call_id="same")],
                [function_call(*PAY, call_id="same")],
                [assistant_message("done")],
            ]
        )
        asyncio.run(self.go(agents.Agent(name="shop", model=model, tools=[agents.function_tool(self.pay)])))
        self.refuses = False  # for the SDK they are one call

    def streaming(self) -> None:
        async def go() -> None:
            agent = self.guarded.agent(self.agent([PAY, PAY], [PAY], "done"))
            async for _ in agents.Runner.run_streamed(agent, "pay", run_config=self.guarded.config()).stream_events():
                pass

        asyncio.run(go())

    def hand_over(self) -> None:
        payer = self.agent([PAY], "done", name="payer")
        self.play([PAY], [("transfer_to_payer", {})], handoffs=[payer])

    def sub_agent(self) -> None:
        inner = self.agent([PAY, PAY], "inner done")
        tools = [inner.as_tool("delegate", "pays"), agents.function_tool(self.pay)]
        self.play([("delegate", {"input": "pay"})], [PAY], "done", tools=tools)
        assert self.record.words.count("said user") == 1  # the inner agent is addressed by an agent
        assert inner.tools[0].tool_input_guardrails is None  # type: ignore[union-attr]

    def rename(self) -> None:
        self.play([PAY, PAY], "done", tools=[agents.function_tool(self.apay, name_override="pay")])

    def timeout(self) -> None:
        self.waits = True
        self.play([PAY], [PAY], "done", tools=[agents.function_tool(self.apay, name_override="pay", timeout=0.05)])
        assert "result pay failed" in self.record.words

    def cancel(self) -> None:
        self.waits = True
        tools = [agents.function_tool(self.apay, name_override="pay")]
        asyncio.run(self.cancelled(self.go(self.agent([PAY], tools=tools))))
        self.play([PAY], "done")

    def resume(self) -> None:
        self.play([PAY], "done")
        snapshot = json.dumps(self.guarded.run.state.snapshot())
        guard = self.make_guard()
        self.guarded = GuardedAgents(GuardedRun(guard, state=guard.resume(snapshot), audit=self.record))
        self.play([PAY], "done")


class MCP(Framework):
    """A guard before a server, and clients before it, in this process; test_serving.py has the real transports."""

    name = "MCP"

    def server(self) -> Any:
        made = MCPServer("shop")

        @made.tool()
        async def pay(order: int = 0) -> str:
            return self.pay(order) if not self.waits else await self.apay(order)

        return made

    async def serve(self, work: Callable[[McpProxy], Any], *servers: Any) -> None:
        proxy = McpProxy(lambda tools: self.guard, self.record)
        async with AsyncExitStack() as stack:
            for n, server in enumerate(servers or (self.server(),), 1):
                upstream = Upstream(McpServer(f"s{n}"), proxy.upstream_changed, target=server)
                await upstream.connect(stack)
                proxy.upstreams.append(upstream)
            await proxy.attach_upstreams(proxy.upstreams)
            await work(proxy)

    def play(self, *steps: Step, **more: Any) -> None:
        async def work(proxy: McpProxy) -> None:
            async with Client(proxy.server) as client:
                for step in steps:
                    if not isinstance(step, str):
                        await asyncio.gather(*(client.call_tool(*call) for call in step))

        asyncio.run(self.serve(work))

    def exception(self) -> None:
        self.fails = True
        self.play([PAY], [PAY])
        assert "result pay failed" in self.record.words

    def retry(self) -> None:
        self.play([PAY], [PAY])

    def hand_over(self) -> None:
        async def work(proxy: McpProxy) -> None:
            for _ in range(2):
                async with Client(proxy.server) as client:
                    await client.call_tool(*PAY)

        asyncio.run(self.serve(work))

    sub_agent = hand_over

    def rename(self) -> None:
        self.guard = self.make_guard("s1_pay | s2_pay")

        async def work(proxy: McpProxy) -> None:
            async with Client(proxy.server) as client:
                for name in ("s1_pay", "s2_pay"):
                    await client.call_tool(name, {"order": 7})

        asyncio.run(self.serve(work, self.server(), self.server()))
        self.counted = "s1_pay"

    def timeout(self) -> None:
        self.waits = True

        async def work(proxy: McpProxy) -> None:
            async with Client(proxy.server) as client:
                with suppress(MCPError):
                    await client.call_tool(*PAY, read_timeout_seconds=0.2)
                await client.call_tool(*PAY)

        asyncio.run(self.serve(work))

    def cancel(self) -> None:
        self.waits = True

        async def work(proxy: McpProxy) -> None:
            async with Client(proxy.server) as client:
                await self.cancelled(client.call_tool(*PAY))
                await client.call_tool(*PAY)

        asyncio.run(self.serve(work))


class Hooks(Framework):
    """Events as a coding agent sends them, each answered by itself from what is on the disk."""

    name = "hooks"

    def send(self, event: str, id_: str, tool: str = "pay", **more: Any) -> bool:
        row = {"session_id": "1", "hook_event_name": event, "cwd": "/", "transcript_path": "/t", "tool_name": tool,
               "tool_input": {"order": 7}, "tool_use_id": id_, **more}  # fmt: skip
        answer = answer_event(json.dumps(row).encode(), lambda: self.guard, self.folder)
        return not answer.out

    def call(self, id_: str, tool: str = "pay", **more: Any) -> bool:
        """Ask, and make the call if it may be made."""
        allowed = self.send("PreToolUse", id_, tool, **more)
        self.paid += allowed
        return allowed

    def expect(self, paid: int | None = None) -> None:
        assert self.paid == self.tries

    def parallel(self) -> None:
        assert [self.call("1"), self.call("2")] == [True, False]  # before any result

    def sub_agent(self) -> None:
        assert [self.call("1", agent_id="a"), self.call("2")] == [True, False]

    def retry(self) -> None:
        assert [self.call("1"), self.call("1"), self.call("2")] == [True, True, False]
        self.tries = 2

    def rename(self) -> None:
        self.guard = self.make_guard('"mcp__*__pay"')
        assert [self.call(name, f"mcp__{name}__pay") for name in ("shop", "till")] == [True, False]

    def exception(self) -> None:
        self.call("1")
        self.send("PostToolUseFailure", "1", error="it did not work")
        assert not self.call("2")

    timeout = exception

    def cancel(self) -> None:
        """No result comes, and the user goes on."""
        self.call("1")
        self.send("UserPromptSubmit", "", prompt="go on")
        assert not self.call("2")

    def resume(self) -> None:
        self.call("1")
        self.guard = self.make_guard()
        assert not self.call("2")


FRAMEWORKS = (PydanticAI, LangChain, OpenAIAgents, MCP, Hooks)


def method_of(framework: type[Framework], row: str) -> Callable[[Any], None] | None:
    return getattr(framework, re.sub(r"\W", "_", row), None)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.mark.parametrize(
    ("framework", "row"),
    [(one, row) for one in FRAMEWORKS for row in ROWS if method_of(one, row)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_one_payment_is_let_through(framework: type[Framework], row: str, tmp_path: Path) -> None:
    made, method = framework(tmp_path), method_of(framework, row)
    assert method is not None
    method(made)
    made.expect()


def test_a_graph_that_crashed_in_a_tool_runs_it_again_and_counts_it_once(tmp_path: Path) -> None:
    made = LangChain(tmp_path)

    def pay(order: int) -> str:
        """Pay."""
        made.paid += 1
        if made.paid == 1:
            raise KeyboardInterrupt  # as if the process ended
        return "paid"

    tools: ClassVar[Any] = [langchain_tool(pay)]
    with suppress(KeyboardInterrupt):
        made.play([PAY], tools=tools)
    made.guard = made.make_guard()
    made.agent([PAY], "done", tools=tools, saver=made.saver).invoke(None, made.config)
    made.expect(paid=2)


def test_a_call_without_a_result_in_the_messages_counts(tmp_path: Path) -> None:
    """Nobody knows whether its tool did its work."""
    made = LangChain(tmp_path)
    call: Any = {"name": PAY[0], "args": PAY[1], "id": "1", "type": "tool_call"}
    messages = [AIMessage("", tool_calls=[call]), HumanMessage("pay")]
    made.agent([PAY], "done").invoke({"messages": messages})
    made.expect(paid=0)


@pytest.mark.parametrize("model_of_run", [False, True])
def test_agents_behind_tools_of_agents_behind_tools(model_of_run: bool, tmp_path: Path) -> None:
    """However deep, with a configuration of its own, and where each is a tool of the other."""
    made = OpenAIAgents(tmp_path)
    deep = made.agent([PAY], "deep done", name="deep", tools=[agents.function_tool(made.pay)])
    middle = made.agent([("deep", {"input": "pay"}), PAY], "middle done", name="middle", tools=[])
    middle.tools = [
        deep.as_tool("deep", "", run_config=agents.RunConfig() if model_of_run else None),
        agents.function_tool(made.pay),
    ]
    deep.tools.append(middle.as_tool("middle", ""))
    tools = [middle.as_tool("middle", ""), agents.function_tool(made.pay)]
    made.play([("middle", {"input": "pay"})], [PAY], "done", tools=tools)
    made.expect()


def test_an_agent_tool_that_is_made_in_another_way_is_not_left_unguarded(tmp_path: Path) -> None:
    made = OpenAIAgents(tmp_path)
    tool = made.agent().as_tool("delegate", "")
    tool.on_invoke_tool = made.pay  # type: ignore[assignment]
    with pytest.raises(ValueError, match=r"guarded\.agent\(sub\)\.as_tool"):
        made.guarded.agent(made.agent(tools=[tool]))
