"""Loops around the client of OpenAI, which speaks to a server on this machine that says what stands in a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from formal_llm.errors import EarlyAnswer
from formal_llm.guard.adapters.openai import ChatLoop, ResponsesLoop
from formal_llm.guard.live import GuardedRun
from tests.guard.adapters.scripted_server import ScriptedServer, serving
from tests.guard.adapters.shop import ASKING, TOOLS, Person, Record, Shop, guard

SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}, "amount": {"type": "integer"}}}
RESPONSES = [{"type": "function", "name": name, "parameters": SCHEMA} for name in TOOLS]
CHAT = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in TOOLS]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def functions(shop: Shop) -> dict[str, Callable[..., Any]]:
    return {name: getattr(shop, name) for name in TOOLS}


def call(*names: str, **arguments: Any) -> list[tuple[str, Any]]:
    return [(name, {"order": 7, **arguments}) for name in names]


def responses(server: ScriptedServer, run: Any, shop: Shop, *, stream: bool = False, **more: Any) -> str:
    """A loop over the Responses API, as one writes it; gives the last answer."""
    loop = ResponsesLoop(run, RESPONSES, **more)
    with openai.OpenAI(api_key="-", base_url=server.url, max_retries=0) as client:
        items: list[Any] = [loop.user("pay order 7")]
        while True:
            request: Any = {"model": "m", "input": items, "tools": RESPONSES, "tool_choice": loop.tool_choice()}
            if stream:
                with client.responses.stream(**request) as streamed:
                    response = streamed.get_final_response()
            else:
                response = client.responses.create(**request)
            turn = loop.turn(response)
            items += [*response.output, *turn.run(functions(shop))]
            if turn.done:
                return turn.text


def chat(server: ScriptedServer, run: Any, shop: Shop, *, stream: bool = False, **more: Any) -> str:
    """A loop over chat completions, as one writes it; gives the last answer."""
    loop = ChatLoop(run, CHAT, **more)
    with openai.OpenAI(api_key="-", base_url=server.url, max_retries=0) as client:
        messages: list[Any] = [loop.user("pay order 7")]
        while True:
            request: Any = {"model": "m", "messages": messages, "tools": CHAT, "tool_choice": loop.tool_choice()}
            if stream:
                with client.chat.completions.stream(**request) as streamed:
                    completion: Any = streamed.get_final_completion()
            else:
                completion = client.chat.completions.create(**request)
            turn = loop.turn(completion)
            messages += [completion.choices[0].message, *turn.run(functions(shop))]
            if turn.done:
                return turn.text


async def aresponses(server: ScriptedServer, run: Any, tools: dict[str, Callable[..., Any]]) -> str:
    """The same, awaited, with all calls of an answer at once."""
    loop = ResponsesLoop(run, RESPONSES)
    async with openai.AsyncOpenAI(api_key="-", base_url=server.url, max_retries=0) as client:
        items: list[Any] = [loop.user("pay order 7")]
        while True:
            choice = loop.tool_choice()
            response = await client.responses.create(model="m", input=items, tools=RESPONSES, tool_choice=choice)  # type: ignore[call-overload]
            turn = await loop.aturn(response)
            items += [*response.output, *await turn.arun(tools)]
            if turn.done:
                return turn.text


LOOPS = pytest.mark.parametrize("loop", [responses, chat])


def outputs(body: dict[str, Any]) -> list[str]:
    """What the model read as outputs of calls."""
    items = body.get("input") or body["messages"]
    return [
        item.get("output") or item.get("content") for item in items if item.get("role") == "tool" or "output" in item
    ]


def named(choice: Any) -> list[str]:
    """The tools that a request allows."""
    found = choice.get("allowed_tools", choice)
    assert choice["type"] == "allowed_tools"
    assert found["mode"] == "auto"
    return [tool["name"] if "name" in tool else tool["function"]["name"] for tool in found["tools"]]


@LOOPS
@pytest.mark.parametrize("stream", [False, True])
def test_a_forbidden_call_is_refused_and_the_model_recovers(loop: Any, stream: bool) -> None:
    shop = Shop()
    with serving(call("pay"), call("draft"), call("approve"), call("pay"), "done") as server:
        assert loop(server, guard(), shop, stream=stream) == "done"
    assert shop.done == ["approve 7", "pay 7 1"]
    first, second, *made = outputs(server.asked[-1])
    assert "approve" in first
    assert second
    assert made == ["approved 7", "paid 7"]


@LOOPS
def test_the_tools_stay_and_the_legal_ones_are_named(loop: Any) -> None:
    with serving(call("approve"), call("pay"), "done") as server:
        loop(server, guard(), Shop())
    assert len({json.dumps(body["tools"]) for body in server.asked}) == 1
    assert named(server.asked[0]["tool_choice"]) == ["approve", "look"]
    assert [body["tool_choice"] for body in server.asked[1:]] == ["auto", "auto"]


def test_what_may_be_chosen() -> None:
    search = {"type": "web_search"}
    loop = ResponsesLoop(guard(), [*RESPONSES, search])
    assert loop.tool_choice(required=True) == {
        "type": "allowed_tools", "mode": "required",
        "tools": [{"type": "function", "name": "approve"}, {"type": "function", "name": "look"}, search],
    }  # fmt: skip
    assert ResponsesLoop(guard(), RESPONSES[2:3]).tool_choice() == "none"
    assert ChatLoop(guard(), CHAT[2:3]).tool_choice() == "none"
    assert ChatLoop(guard(), CHAT[:1]).tool_choice(required=True) == "required"


@LOOPS
def test_an_answer_that_comes_too_early_is_sent_back(loop: Any) -> None:
    shop = Shop()
    with serving("done", call("approve"), "really", call("pay"), "now") as server:
        assert loop(server, guard(), shop) == "now"
    assert shop.done == ["approve 7", "pay 7 1"]
    said = (server.asked[1].get("input") or server.asked[1]["messages"])[-1]
    assert said["role"] in ("developer", "user")
    assert "pay" in said["content"]
    with serving(*["done"] * 4) as server, pytest.raises(EarlyAnswer, match="sent back 3 times"):
        loop(server, guard(), shop)


@LOOPS
@pytest.mark.parametrize("once", [False, True])
def test_parallel_calls_are_checked_as_a_sequence(loop: Any, once: bool) -> None:
    """Servers that number the calls of each answer from the beginning are no reason to take two calls for one."""
    shop, record = Shop(), Record()
    with serving(call("pay", "approve", "draft", "pay"), call("pay"), "done", once=once) as server:
        loop(server, GuardedRun(guard(), audit=record), shop)
    assert shop.done == ["approve 7", "draft 7", "pay 7 1", "pay 7 1"]
    assert record.words == [
        "said user", "not pay", "call approve", "call draft", "call pay", "result approve", "result draft",
        "result pay", "call pay", "result pay", "said assistant", "stop",
    ]  # fmt: skip


@LOOPS
@pytest.mark.parametrize("says", [True, False, None])
def test_a_person_is_asked(loop: Any, says: bool | None) -> None:
    person, shop = Person(bool(says)), Shop()
    with serving(call("approve"), call("pay", amount=500), call("pay", amount=1), "done") as server:
        loop(server, GuardedRun(guard(ASKING), approve=None if says is None else person), shop)
    assert len(person.asked) == (0 if says is None else 1)
    assert shop.done == ["approve 7", *(["pay 7 500"] if says else []), "pay 7 1"]
    if says is None:
        assert "Nobody could be asked" in outputs(server.asked[-1])[1]


@LOOPS
def test_errors_are_results(loop: Any) -> None:
    shop, record = Shop(), Record()
    bad = [("pay", '{"order": ')]
    with serving(call("approve"), bad, call("pay", amount=-1), call("pay"), [("sing", {})], "done") as server:
        loop(server, GuardedRun(guard(), audit=record), shop)
    assert shop.done == ["approve 7", "pay 7 1"]
    assert record.words[3:] == [
        "call pay", "result pay failed", "call pay", "result pay", "call sing", "result sing failed", "said assistant",
        "stop",
    ]  # fmt: skip
    _, unread, failed, _, unknown = outputs(server.asked[-1])
    assert unread == "The arguments of pay are no JSON object."
    assert failed == "the amount is negative"
    assert unknown == "there is no tool sing; there are approve, draft, pay, look"


def test_results_are_told_as_they_come() -> None:
    record = Record()
    loop = ResponsesLoop(GuardedRun(guard(), audit=record), RESPONSES)
    with serving(call("approve", "look")) as server, openai.OpenAI(api_key="-", base_url=server.url) as client:
        response = client.responses.create(model="m", input="go", tools=RESPONSES)  # type: ignore[arg-type]
    turn = loop.turn(response)
    approve, look = turn.calls
    turn.result(look, {"order": 7})
    with pytest.raises(ValueError, match="no result was reported for approve"):
        _ = turn.messages
    turn.result(approve, "no such order", error=True)
    with pytest.raises(ValueError, match="no call of the turn that waits"):
        turn.result(look, "twice")
    assert [item["output"] for item in turn.messages] == ["no such order", '{"order": 7}']
    assert record.words[-2:] == ["result look", "result approve failed"]


def test_only_logging_changes_nothing() -> None:
    shop = Shop()
    with serving(call("pay"), call("draft", "approve"), "done") as server:
        responses(server, guard(severity="log"), shop)
    assert shop.done == ["pay 7 1", "draft 7", "approve 7"]
    assert outputs(server.asked[-1]) == ["paid 7", "drafted 7", "approved 7"]
    assert [body["tool_choice"] for body in server.asked] == ["auto"] * 3


def test_a_warning_is_read_by_the_model() -> None:
    with serving(call("pay"), "done") as server:
        responses(server, guard(severity="warn"), Shop())
    assert outputs(server.asked[-1])[0].startswith("paid 7\n\nWarning: ")


def test_awaited_runs_make_the_calls_of_an_answer_at_once() -> None:
    async def both() -> None:
        met = asyncio.Barrier(2)

        async def approve(order: int) -> str:
            await met.wait()
            return shop.approve(order)

        async def look(order: int) -> str:
            await met.wait()
            return shop.look(order)

        run = GuardedRun(guard(ASKING), approve=person.waits)
        assert await aresponses(server, run, {**functions(shop), "approve": approve, "look": look}) == "done"

    person, shop = Person(True), Shop()
    with serving(call("draft"), call("approve", "look"), call("pay", amount=500), "done") as server:
        asyncio.run(both())
    assert sorted(shop.done) == ["approve 7", "look 7", "pay 7 500"]
    assert len(person.asked) == 1


def test_two_runs_at_once_do_not_mix() -> None:
    one_guard, shops = guard(), [Shop(), Shop()]
    with (
        serving(call("approve"), call("pay"), "done") as first,
        serving(call("approve"), call("draft"), call("pay"), "done") as second,
        ThreadPoolExecutor(2) as threads,
    ):
        list(threads.map(lambda server, shop: responses(server, one_guard, shop), (first, second), shops))
    assert [shop.done for shop in shops] == [["approve 7", "pay 7 1"], ["approve 7", "draft 7", "pay 7 1"]]
