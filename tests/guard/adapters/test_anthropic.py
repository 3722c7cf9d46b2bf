"""A loop around the client of Anthropic, which speaks to a server on this machine that says what stands in a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from anthropic.types import Message

from formal_llm.errors import EarlyAnswer
from formal_llm.guard.adapters.anthropic import MessagesLoop
from formal_llm.guard.live import GuardedRun
from tests.guard.adapters.scripted_server import ScriptedServer, serving
from tests.guard.adapters.shop import ASKING, TOOLS, Person, Record, Shop, guard

SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}, "amount": {"type": "integer"}}}
LISTED: Any = [{"name": name, "input_schema": SCHEMA} for name in TOOLS]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def functions(shop: Shop) -> dict[str, Callable[..., Any]]:
    return {name: getattr(shop, name) for name in TOOLS}


def call(*names: str, **arguments: Any) -> list[tuple[str, Any]]:
    return [(name, {"order": 7, **arguments}) for name in names]


def ran(server: ScriptedServer, run: Any, shop: Shop, *, stream: bool = False, **more: Any) -> str:
    """A loop as one writes it; gives the last answer."""
    loop = MessagesLoop(run, **more)
    with anthropic.Anthropic(api_key="-", base_url=server.url, max_retries=0) as client:
        messages: list[Any] = [loop.user("pay order 7")]
        while True:
            request: Any = {"model": "m", "max_tokens": 100, "messages": messages, "tools": LISTED}
            if stream:
                with client.messages.stream(**request) as streamed:
                    message = streamed.get_final_message()
            else:
                message = client.messages.create(**request)
            turn = loop.turn(message)
            messages += [{"role": "assistant", "content": message.content}, *turn.run(functions(shop))]
            if turn.done:
                return turn.text


def results(body: dict[str, Any]) -> list[tuple[str, bool]]:
    """What the model read as results of calls, and whether it was an error."""
    blocks = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return [(block["content"], block["is_error"]) for block in blocks if block["type"] == "tool_result"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_forbidden_call_is_refused_and_the_model_recovers(stream: bool) -> None:
    shop = Shop()
    with serving(call("pay"), call("draft"), call("approve"), call("pay"), "done") as server:
        assert ran(server, guard(), shop, stream=stream) == "done"
    assert shop.done == ["approve 7", "pay 7 1"]
    first, second, *made = results(server.asked[-1])
    assert "approve" in first[0]
    assert first[1]
    assert second[1]
    assert made == [("approved 7", False), ("paid 7", False)]


def test_the_tools_stay_the_same() -> None:
    with serving(call("approve"), call("pay"), "done") as server:
        ran(server, guard(), Shop())
    assert len({json.dumps(body["tools"]) for body in server.asked}) == 1
    assert all("tool_choice" not in body for body in server.asked)


def test_an_answer_that_comes_too_early_is_sent_back() -> None:
    shop = Shop()
    with serving("done", call("approve"), "really", call("pay"), "now") as server:
        assert ran(server, guard(), shop) == "now"
    assert shop.done == ["approve 7", "pay 7 1"]
    assert server.asked[1]["messages"][-1]["role"] == "user"
    assert "pay" in server.asked[1]["messages"][-1]["content"]
    with serving(*["done"] * 4) as server, pytest.raises(EarlyAnswer, match="most_early=1"):
        ran(server, guard(), shop, most_early=1)


def test_an_answer_that_is_paused_is_no_answer_yet() -> None:
    loop = MessagesLoop(guard())
    with serving("searching") as server, anthropic.Anthropic(api_key="-", base_url=server.url) as client:
        message = client.messages.create(model="m", max_tokens=9, messages=[loop.user("go")], tools=LISTED)  # type: ignore[list-item]
    turn = loop.turn(Message.model_validate({**message.model_dump(), "stop_reason": "pause_turn"}))
    assert not turn.done
    assert turn.messages == []


def test_parallel_calls_are_checked_as_a_sequence_and_answered_in_one_message() -> None:
    shop, record = Shop(), Record()
    with serving(call("pay", "approve", "draft", "pay"), "done") as server:
        ran(server, GuardedRun(guard(), audit=record), shop)
    assert shop.done == ["approve 7", "draft 7", "pay 7 1"]
    assert record.words[:5] == ["said user", "not pay", "call approve", "call draft", "call pay"]
    last = server.asked[-1]["messages"][-1]
    assert [block["is_error"] for block in last["content"]] == [True, False, False, False]


@pytest.mark.parametrize("says", [True, False])
def test_a_person_is_asked(says: bool) -> None:
    person, shop = Person(says), Shop()
    with serving(call("approve"), call("pay", amount=500), call("pay", amount=1), "done") as server:
        ran(server, GuardedRun(guard(ASKING), approve=person), shop)
    assert len(person.asked) == 1
    assert shop.done == ["approve 7", *(["pay 7 500"] if says else []), "pay 7 1"]


def test_errors_are_results() -> None:
    shop, record = Shop(), Record()
    with serving(call("approve"), call("pay", amount=-1), call("pay"), "done") as server:
        ran(server, GuardedRun(guard(), audit=record), shop)
    assert record.words[3:5] == ["call pay", "result pay failed"]
    assert results(server.asked[-1])[1] == ("the amount is negative", True)


def test_only_logging_changes_nothing() -> None:
    shop = Shop()
    with serving(call("pay"), call("draft", "approve"), "done") as server:
        ran(server, guard(severity="log"), shop)
    assert shop.done == ["pay 7 1", "draft 7", "approve 7"]
    assert results(server.asked[-1]) == [("paid 7", False), ("drafted 7", False), ("approved 7", False)]


def test_awaited_runs_at_once_do_not_mix() -> None:
    async def one(server: ScriptedServer, shop: Shop) -> None:
        loop = MessagesLoop(shared)
        async with anthropic.AsyncAnthropic(api_key="-", base_url=server.url, max_retries=0) as client:
            messages: list[Any] = [loop.user("pay order 7")]
            while True:
                message = await client.messages.create(model="m", max_tokens=9, messages=messages, tools=LISTED)
                turn = await loop.aturn(message)
                answer = {"role": "assistant", "content": message.content}
                messages += [answer, *await turn.arun(functions(shop))]
                if turn.done:
                    return

    async def both() -> None:
        await asyncio.gather(one(first, shops[0]), one(second, shops[1]))

    shared, shops = guard(), [Shop(), Shop()]
    with (
        serving(call("approve"), call("pay"), "done") as first,
        serving(call("approve"), call("draft"), call("pay"), "done") as second,
    ):
        asyncio.run(both())
    assert [shop.done for shop in shops] == [["approve 7", "pay 7 1"], ["approve 7", "draft 7", "pay 7 1"]]
