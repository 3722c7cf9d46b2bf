"""The guard as an MCP server: real servers behind it, real clients before it, in the old protocol and the new one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from mcp import MCPError

from tests.guard.mcp.shop_server import shop

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

from mcp import Client
from mcp.types import ElicitResult, ToolListChangedNotification

from formal_llm.guard import Call, Guard, GuardEvent, GuardRules, Result
from formal_llm.guard.live import Noted
from formal_llm.guard.mcp.proxy import McpProxy
from formal_llm.guard.mcp.servers import McpServer
from formal_llm.guard.mcp.upstreams import Upstream

MODES = ["legacy", "auto"]
TRAP = """
draft: draft
approve: approve
pay: pay
rule approved: approve before pay
rule no-draft: never approve after draft
rule paid: at least 1 pay
"""
ASK = "pay: pay[amount > 100]\npaid: pay\nrule dear ask: never pay\nrule twice: at most 2 paid\n"
Answers = Callable[[Any, Any], Awaitable[ElicitResult]]


@asynccontextmanager
async def guarded(
    rules: str, *servers: Any, noted: list[Noted] | None = None, mode: str = "auto", answers: Answers | None = None,
    heard: list[object] | None = None, past: Sequence[GuardEvent] = (),
) -> AsyncIterator[tuple[Client, McpProxy]]:  # fmt: skip
    read = GuardRules.from_string(rules)
    proxy = McpProxy(lambda tools: Guard(read, tools), None if noted is None else noted.append, past)

    async def hear(message: object) -> None:
        if heard is not None:
            heard.append(message)

    async with AsyncExitStack() as stack:
        upstreams = []
        for number, server in enumerate(servers or (shop(),), 1):
            one = Upstream(McpServer(f"s{number}"), proxy.upstream_changed, target=server)
            await one.connect(stack)
            upstreams.append(one)
        await proxy.attach_upstreams(upstreams)
        client = Client(proxy.server, mode=mode, elicitation_callback=answers, message_handler=hear)
        await stack.enter_async_context(client)
        yield client, proxy


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def text(answer: Any) -> str:
    return "\n".join(block.text for block in answer.content)


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 60))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
def test_only_legal_tools_are_listed_and_calls_are_checked_again(mode: str) -> None:
    async def work() -> None:
        noted: list[Noted] = []
        async with guarded(TRAP, mode=mode, noted=noted) as (client, proxy):
            assert await names(client) == {"approve", "fail", "crash"}
            refused = await client.call_tool("draft", {"text": "x"})  # not listed, and called all the same
            assert refused.is_error
            assert "no-draft" in text(refused) or "approve" in text(refused)
            assert (await client.call_tool("approve", {"order": 7})).structured_content == {"order": 7}
            assert await names(client) == {"draft", "approve", "pay", "fail", "crash"}
            assert text(await client.call_tool("pay", {"amount": 3})) == "paid 3"
            assert proxy.run.stop().runs
            told = [one.event for one in noted if one.told]
            assert [type(one).__name__ for one in told] == ["Call", "Result", "Call", "Result"]
            assert isinstance(told[1], Result)
            assert told[1].value == {"order": 7}

    run(work)


def test_a_run_goes_on_after_its_past() -> None:
    async def work() -> None:
        noted: list[Noted] = []
        past = [
            Call("approve", {"order": 7}, "4"),
            Result("approve", {"order": 7}, {"order": 7}, "4"),
            Call("pay", {}, "x"),
        ]
        async with guarded(TRAP, noted=noted, past=past) as (client, proxy):
            assert "pay" in await names(client)
            assert proxy.run.stop().runs
            await client.call_tool("pay", {"amount": 3})
            assert isinstance(noted[1].event, Call)
            assert noted[1].event.id == "5"
            await proxy.refresh_tools()
            assert len(proxy.run.state.history) == 5

    run(work)


def test_clients_of_the_old_protocol_are_told_of_changes() -> None:
    async def work() -> None:
        heard: list[object] = []
        async with guarded(TRAP, mode="legacy", heard=heard) as (client, _):
            assert client.server_capabilities.tools is not None
            await names(client)
            await client.call_tool("fail")
            assert not [one for one in heard if isinstance(one, ToolListChangedNotification)]
            await client.call_tool("approve", {"order": 1})
            await names(client)
            assert len([one for one in heard if isinstance(one, ToolListChangedNotification)]) == 1

    run(work)


def test_clients_of_the_new_protocol_listen_for_changes() -> None:
    async def work() -> None:
        async with guarded(TRAP) as (client, _):
            await names(client)
            async with client.listen(tools_list_changed=True) as events:
                await client.call_tool("approve", {"order": 1})
                assert type(await anext(aiter(events))).__name__ == "ToolsListChanged"
            assert "pay" in await names(client)

    run(work)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (ElicitResult(action="accept", content={"approve": True}), True),
        (ElicitResult(action="accept", content={"approve": False}), False),
        (ElicitResult(action="decline"), False),
        (ElicitResult(action="cancel"), False),
    ],
    ids=["yes", "no", "declines", "cancels"],
)
def test_a_person_is_asked(mode: str, answer: ElicitResult, runs: bool) -> None:
    async def work() -> None:
        asked: list[str] = []

        async def answers(_: Any, params: Any) -> ElicitResult:
            asked.append(params.message)
            return answer

        noted: list[Noted] = []
        async with guarded(ASK, mode=mode, answers=answers, noted=noted) as (client, _):
            assert text(await client.call_tool("pay", {"amount": 5})) == "paid 5"
            assert asked == []
            found = await client.call_tool("pay", {"amount": 500})
            assert found.is_error is not runs
            assert (text(found) == "paid 500") is runs
            assert len(asked) == 1
            assert '{"amount": 500}' in asked[0]
            assert [one.approved for one in noted if one.approved is not None] == [runs]

    run(work)


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_cannot_ask_is_told_why(mode: str) -> None:
    async def work() -> None:
        async with guarded(ASK, mode=mode) as (client, _):
            found = await client.call_tool("pay", {"amount": 500})
            assert found.is_error
            assert "approval of a person" in text(found)
            assert "cannot ask" in text(found)

    run(work)


def test_an_approval_is_for_one_call() -> None:
    """What a client sends back belongs to the call that was asked about, and counts once."""

    async def work() -> None:
        async def never(_: Any, __: Any) -> ElicitResult:
            raise AssertionError

        yes: Any = {"approve": ElicitResult(action="accept", content={"approve": True})}
        async with guarded(ASK, answers=never) as (client, _):
            wanted = await client.session.call_tool("pay", {"amount": 500}, allow_input_required=True)
            state: str = wanted.request_state  # type: ignore[union-attr,assignment]
            for token, amount in ((state, 900), ("made up", 500)):
                with pytest.raises(MCPError, match="not asked about"):
                    await client.call_tool("pay", {"amount": amount}, input_responses=yes, request_state=token)
            wanted = await client.session.call_tool("pay", {"amount": 500}, allow_input_required=True)
            state = wanted.request_state  # type: ignore[union-attr,assignment]
            answer = await client.call_tool("pay", {"amount": 500}, input_responses=yes, request_state=state)
            assert text(answer) == "paid 500"
            with pytest.raises(MCPError, match="not asked about"):
                await client.call_tool("pay", {"amount": 500}, input_responses=yes, request_state=state)

    run(work)


@pytest.mark.parametrize("mode", MODES)
def test_errors_of_a_server_are_passed_on_and_told(mode: str) -> None:
    async def work() -> None:
        noted: list[Noted] = []
        rules = "failed: fail.result[error]\npay: pay\nrule stop: never pay after failed\n"
        async with guarded(rules, mode=mode, noted=noted) as (client, _):
            answer = await client.call_tool("fail")
            assert answer.is_error
            assert "Error executing tool fail" in text(answer)
            assert isinstance(noted[1].event, Result)
            assert noted[1].event.error
            assert "pay" not in await names(client)
            with pytest.raises(MCPError, match="no tool nothing"):
                await client.call_tool("nothing")

    run(work)


def test_names_that_two_servers_have() -> None:
    async def work() -> None:
        rules = "pay: s1_pay\nrule never-first: never pay\n"
        async with guarded(rules, shop("one"), shop("two")) as (client, _):
            found = await names(client)
            assert {"s1_draft", "s2_draft", "s2_pay"} <= found
            assert "s1_pay" not in found
            assert text(await client.call_tool("s2_pay", {"amount": 2})) == "paid 2"

    run(work)


@pytest.mark.parametrize("mode", MODES)
def test_resources_and_prompts_are_passed_on(mode: str) -> None:
    async def work() -> None:
        async with guarded("pay: pay\nrule one: at most 1 pay\n", mode=mode) as (client, _):
            (resource,) = (await client.list_resources()).resources
            assert (await client.read_resource(str(resource.uri))).contents[0].text == "9 to 5"  # type: ignore[union-attr]
            (prompt,) = (await client.list_prompts()).prompts
            assert "Hello Bob" in str((await client.get_prompt(prompt.name, {"name": "Bob"})).messages)
            assert (await client.list_resource_templates()).resource_templates == []

    run(work)


def test_a_warning_comes_with_the_result() -> None:
    async def work() -> None:
        async with guarded("pay: pay\nrule one warn: at most 0 pay\n") as (client, _):
            told = text(await client.call_tool("pay", {"amount": 2}))
            assert told.startswith("paid 2\n")
            assert "one" in told

    run(work)


def test_calls_at_once_share_one_limit() -> None:
    async def work() -> None:
        async with guarded("pay: pay\nrule few: at most 3 pay\n") as (client, _):
            found = await asyncio.gather(*[client.call_tool("pay", {"amount": 1}) for _ in range(8)])
            assert sum(not one.is_error for one in found) == 3

    run(work)


def test_tools_that_a_server_adds_later() -> None:
    async def work() -> None:
        server = shop()
        async with guarded("pay: pay\nrule one: at most 1 pay\n", server) as (client, proxy):
            await client.call_tool("pay", {"amount": 1})
            server.add_tool(lambda: "new", name="later")
            await proxy.upstream_changed()
            assert "later" in await names(client)
            assert "pay" not in await names(client)  # what happened is kept
            assert text(await client.call_tool("later")) == "new"

    run(work)


def test_what_no_server_has() -> None:
    async def work() -> None:
        async with guarded("pay: pay\nrule one: at most 1 pay\n", shop("a"), shop("b")) as (client, _):
            assert len((await client.list_resources()).resources) == 2
            with pytest.raises(MCPError):
                await client.read_resource("shop://nowhere")
            with pytest.raises(MCPError, match="no prompt"):
                await client.get_prompt("nothing")

    asyncio.run(asyncio.wait_for(work(), 60))
