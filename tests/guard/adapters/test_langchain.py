"""LangChain's agents themselves, with a scripted model: what a guard lets happen in their runs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ToolCallRequest, ToolRetryMiddleware, wrap_tool_call
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel, PrivateAttr

from formal_llm.errors import EarlyAnswer
from formal_llm.guard import Call, Result
from formal_llm.guard.adapters import langchain
from formal_llm.guard.adapters.langchain import GraphTurns, GuardMiddleware, Kept
from tests.guard.adapters.shop import ASKING, Person, Record, Shop, guard

Step = str | list[dict[str, Any]]


class Script(BaseChatModel):
    """A model that says what stands in a script, whatever it is asked, and remembers what it was shown."""

    steps: list[Any]
    _shown: list[list[str]] = PrivateAttr(default_factory=list)
    _heard: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _ids: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:
        return self.bind(shown=[made.name for made in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        self._shown.append(list(more.get("shown", ())))
        self._heard.append(list(messages))
        step = self.steps.pop(0)
        if isinstance(step, str):
            return ChatResult(generations=[ChatGeneration(message=AIMessage(step))])
        calls = []
        for made in step:
            self._ids += 1
            calls.append({**made, "id": f"call-{self._ids}", "type": "tool_call"})
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])


def call(*names: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"name": name, "args": {"order": 7, **arguments}} for name in names]


def tools_of(shop: Shop) -> list[Any]:
    return [tool(function) for function in (shop.approve, shop.draft, shop.pay, shop.look)]


def agent(script: Script, shop: Shop, *middleware: Any, **more: Any) -> Any:
    return create_agent(script, tools=more.pop("tools", None) or tools_of(shop), middleware=list(middleware), **more)


def said(text: str = "pay order 7") -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def ran(guarded: Any, given: Any, way: str, config: Any = None) -> dict[str, Any]:
    """A run, waiting or awaited."""
    if way == "waiting":
        return guarded.invoke(given, config)
    return asyncio.run(guarded.ainvoke(given, config))


WAYS = pytest.mark.parametrize("way", ["waiting", "awaited"])


def refusals(state: dict[str, Any]) -> list[str]:
    return [found.text for found in state["messages"] if isinstance(found, ToolMessage) and found.status == "error"]


@WAYS
def test_a_forbidden_call_is_refused_and_the_model_recovers(way: str) -> None:
    script, shop = Script(steps=[call("pay"), call("approve"), call("pay"), "done"]), Shop()
    state = ran(agent(script, shop, GuardMiddleware(guard())), said(), way)
    assert state["messages"][-1].text == "done"
    assert shop.done == ["approve 7", "pay 7 1"]
    assert len(refusals(state)) == 1
    assert "approve" in refusals(state)[0]
    assert "guard" not in state


@WAYS
def test_a_dead_end_is_refused_though_each_rule_allows_the_step(way: str) -> None:
    script, shop = Script(steps=[call("draft"), call("approve"), call("draft"), call("pay"), "done"]), Shop()
    state = ran(agent(script, shop, GuardMiddleware(guard())), said(), way)
    assert shop.done == ["approve 7", "draft 7", "pay 7 1"]
    assert len(refusals(state)) == 1


def test_only_tools_with_a_legal_call_are_shown() -> None:
    script, shop = Script(steps=[call("approve"), call("pay"), "done"]), Shop()
    agent(script, shop, GuardMiddleware(guard())).invoke(said())
    assert script._shown == [["approve", "look"], *[["approve", "draft", "pay", "look"]] * 2]
    script = Script(steps=[call("approve"), call("pay"), "done"])
    agent(script, shop, GuardMiddleware(guard(), hide=False)).invoke(said())
    assert script._shown == [["approve", "draft", "pay", "look"]] * 3


@WAYS
def test_an_answer_that_comes_too_early_is_sent_back(way: str) -> None:
    script, shop = Script(steps=["done", call("approve"), "really", call("pay"), "now"]), Shop()
    state = ran(agent(script, shop, GuardMiddleware(guard())), said(), way)
    assert state["messages"][-1].text == "now"
    assert shop.done == ["approve 7", "pay 7 1"]
    with pytest.raises(EarlyAnswer, match="most_early=2") as stopped:
        ran(agent(Script(steps=["done"] * 9), shop, GuardMiddleware(guard(), most_early=2)), said(), way)
    assert stopped.value.times == 2
    assert stopped.value.decision.message


class Final(BaseModel):
    """The answer."""

    paid: bool


def test_a_structured_answer_that_comes_too_early_is_sent_back() -> None:
    final = [{"name": "Final", "args": {"paid": True}}]
    script, shop = Script(steps=[final, call("approve"), call("pay"), final]), Shop()
    state = agent(script, shop, GuardMiddleware(guard()), response_format=Final).invoke(said())
    assert state["structured_response"] == Final(paid=True)
    assert shop.done == ["approve 7", "pay 7 1"]


def test_a_tool_that_ends_the_run_does_not_end_it_too_early() -> None:
    shop = Shop()
    look = tool(shop.look, return_direct=True)
    script = Script(steps=[call("look"), call("approve"), call("pay"), call("look")])
    state = agent(script, shop, GuardMiddleware(guard()), tools=[look, *tools_of(shop)[:3]]).invoke(said())
    assert shop.done == ["look 7", "approve 7", "pay 7 1", "look 7"]
    assert state["messages"][-1].text == "order 7"


def test_a_refusal_of_a_tool_that_ends_the_run_does_not_end_it() -> None:
    shop = Shop()
    rules = "look: look\ndraft: draft\nrule once: at most 1 draft\n"
    draft = tool(shop.draft, return_direct=True)
    look = tool(shop.look)
    script = Script(steps=[call("look"), call("draft", "draft"), call("look"), "one is enough"])
    state = agent(script, shop, GuardMiddleware(guard(rules)), tools=[draft, look]).invoke(said())
    assert state["messages"][-1].text == "one is enough"
    assert shop.done == ["look 7", "draft 7", "look 7"]


@WAYS
def test_parallel_calls_are_checked_as_a_sequence(way: str) -> None:
    script, shop, record = Script(steps=[call("pay", "approve", "draft", "pay"), "done"]), Shop(), Record()
    state = ran(agent(script, shop, GuardMiddleware(guard(), audit=record)), said(), way)
    assert sorted(shop.done) == ["approve 7", "draft 7", "pay 7 1"]
    assert len(refusals(state)) == 1
    assert record.words[:5] == ["said user", "not pay", "call approve", "call draft", "call pay"]
    assert sorted(record.words[5:8]) == ["result approve", "result draft", "result pay"]


@WAYS
@pytest.mark.parametrize("says", [True, False])
def test_a_person_who_is_asked_here(way: str, says: bool) -> None:
    person = Person(says)
    script, shop = Script(steps=[call("approve"), call("pay", amount=500), call("pay", amount=1), "done"]), Shop()
    approve = person if way == "waiting" else person.waits
    state = ran(agent(script, shop, GuardMiddleware(guard(ASKING), approve=approve)), said(), way)
    assert [asked.arguments["amount"] for asked in person.asked] == [500]
    assert shop.done == ["approve 7", *(["pay 7 500"] if says else []), "pay 7 1"]
    assert len(refusals(state)) == (0 if says else 1)


@WAYS
@pytest.mark.parametrize("says", [True, False])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_person_for_whom_the_graph_is_interrupted(way: str, says: bool, restarted: bool) -> None:
    """The run may go on in another process: all it needs is what the checkpointer kept."""
    shop, record, saver = Shop(), Record(), InMemorySaver()
    script = Script(steps=[call("approve"), call("look") + call("pay", amount=500), call("pay", amount=1), "done"])
    config = {"configurable": {"thread_id": "1"}}
    guarded = agent(script, shop, GuardMiddleware(guard(ASKING), audit=record), checkpointer=saver)
    state = ran(guarded, said(), way, config)
    (wanted,) = state["__interrupt__"]
    assert wanted.value["action_requests"][0]["args"] == {"order": 7, "amount": 500}
    assert shop.done == ["approve 7"]
    if restarted:
        guarded = agent(script, shop, GuardMiddleware(guard(ASKING), audit=record), checkpointer=saver)
    decision = {"type": "approve"} if says else {"type": "reject", "message": "too much"}
    state = ran(guarded, Command(resume={"decisions": [decision]}), way, config)
    both = shop.done[1:-1]  # calls of one message run in threads of their own, in any order
    assert [shop.done[0], *sorted(both), shop.done[-1]] == ["approve 7", "look 7", *["pay 7 500"] * says, "pay 7 1"]
    assert record.called == ["approve", "look", *(["pay"] if says else []), "pay"]
    assert ("too much" in str(refusals(state))) is not says


def test_a_conversation_goes_on_where_it_stood() -> None:
    shop, saver = Shop(), InMemorySaver()
    script = Script(steps=[call("approve"), call("pay"), "paid", call("draft"), call("approve"), "no"])
    config = {"configurable": {"thread_id": "1"}}
    for text in ("pay", "draft and approve"):
        guarded = agent(script, shop, GuardMiddleware(guard()), checkpointer=saver)
        state = guarded.invoke(said(text), config)
    assert state["messages"][-1].text == "no"
    assert shop.done == ["approve 7", "pay 7 1", "draft 7"]


def test_a_history_from_before_the_guard_is_read() -> None:
    shop, record = Shop(), Record()
    history = [
        HumanMessage("approve"), AIMessage("", tool_calls=[{**call("approve")[0], "id": "a", "type": "tool_call"}]),
        ToolMessage("approved", tool_call_id="a"), AIMessage("it is approved"), HumanMessage("pay"),
    ]  # fmt: skip
    agent(Script(steps=[call("pay"), "done"]), shop, GuardMiddleware(guard(), audit=record)).invoke(
        {"messages": history}
    )
    assert shop.done == ["pay 7 1"]
    assert record.words[:6] == [
        "said user", "call approve", "result approve", "said assistant", "said user", "call pay",
    ]  # fmt: skip


def test_without_a_checkpointer_the_messages_tell_what_happened() -> None:
    """A server that is sent the whole conversation each time, with the refusals in it and a person's no."""
    shop, record, person = Shop(), Record(), Person(False)
    script = Script(steps=[call("draft"), call("approve"), call("pay", amount=500), call("pay", amount=1), "paid"])
    state = agent(script, shop, GuardMiddleware(guard(ASKING), approve=person)).invoke(said())
    script = Script(steps=[call("draft"), "drafted"])
    messages = [*state["messages"], HumanMessage("draft")]
    agent(script, shop, GuardMiddleware(guard(ASKING), audit=record)).invoke({"messages": messages})
    assert shop.done == ["approve 7", "pay 7 1", "draft 7"]
    assert record.called == ["approve", "pay", "draft"]


def test_going_back_to_an_earlier_checkpoint_goes_back_to_its_state() -> None:
    shop, saver = Shop(), InMemorySaver()
    config = {"configurable": {"thread_id": "1"}}
    script = Script(steps=[call("approve"), call("draft"), call("pay"), "paid", call("approve"), call("pay"), "again"])
    guarded = agent(script, shop, GuardMiddleware(guard()), checkpointer=saver)
    guarded.invoke(said(), config)
    before_draft = next(
        place for place in guarded.get_state_history(config)
        if place.next and sum(isinstance(found, ToolMessage) for found in place.values["messages"]) == 1
    )  # fmt: skip
    state = guarded.invoke(None, before_draft.config)
    assert state["messages"][-1].text == "again"
    assert shop.done == ["approve 7", "draft 7", "pay 7 1", "draft 7", "pay 7 1"]
    assert len(refusals(state)) == 1


@WAYS
def test_errors_are_results(way: str) -> None:
    shop, record = Shop(), Record()
    script = Script(steps=[call("approve"), call("pay", amount=-1), call("pay"), "done"])

    def as_text(request: ToolCallRequest, handler: Any) -> Any:
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")

    async def as_text_awaited(request: ToolCallRequest, handler: Any) -> Any:
        try:
            return await handler(request)
        except ValueError as error:
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")

    outer = wrap_tool_call(as_text if way == "waiting" else as_text_awaited)
    ran(agent(script, shop, outer, GuardMiddleware(guard(), audit=record)), said(), way)
    assert record.words == [
        "said user", "call approve", "result approve", "call pay", "result pay failed", "call pay", "result pay",
        "said assistant", "stop",
    ]  # fmt: skip


def test_a_call_that_is_tried_again_is_one_call() -> None:
    tries: list[int] = []

    def pay(order: int) -> str:
        """Pay."""
        tries.append(order)
        if len(tries) < 3:
            raise ConnectionError("try again")
        return "paid"

    shop, record = Shop(), Record()
    again = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    script = Script(steps=[call("approve"), call("pay"), "done"])
    agent(script, shop, again, GuardMiddleware(guard(), audit=record), tools=[tool(pay), tool(shop.approve)]).invoke(
        said()
    )
    assert len(tries) == 3
    assert record.called == ["approve", "pay"]
    assert record.words.count("result pay failed") == 2


def test_a_call_that_another_middleware_changes_is_checked_as_it_is_made() -> None:
    @wrap_tool_call
    def changes(request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        if request.tool_call["name"] == "look":
            return handler(request.override(tool_call={**request.tool_call, "name": "draft"}, tool=tools_of(shop)[1]))
        return handler(request)

    script, shop = Script(steps=[call("look"), call("approve"), call("pay"), "done"]), Shop()
    state = agent(script, shop, changes, GuardMiddleware(guard())).invoke(said())
    assert shop.done == ["approve 7", "pay 7 1"]
    assert len(refusals(state)) == 1


def test_only_logging_changes_nothing() -> None:
    states = []
    for middleware in ([], [GuardMiddleware(guard(severity="log"))]):
        script, shop = Script(steps=[call("pay"), call("draft", "approve"), "done"]), Shop()
        state = agent(script, shop, *middleware).invoke(said("go"))
        assert shop.done[0] == "pay 7 1"
        states.append([(type(found).__name__, found.text) for found in state["messages"]])
        assert all(len(shown) == 4 for shown in script._shown)
    assert states[0] == states[1]


def test_a_warning_is_read_by_the_model() -> None:
    script, shop = Script(steps=[call("pay"), "done"]), Shop()
    agent(script, shop, GuardMiddleware(guard(severity="warn"))).invoke(said("go"))
    assert shop.done == ["pay 7 1"]
    assert "Warning: " in script._heard[-1][-1].text


def test_two_runs_at_once_do_not_mix() -> None:
    shops, met, middleware = [Shop(), Shop()], threading.Barrier(2), GuardMiddleware(guard())

    def made(shop: Shop) -> Any:
        def approve(order: int) -> str:
            """Approve."""
            met.wait(5)
            return shop.approve(order)

        return tool(approve)

    scripts = [
        Script(steps=[call("approve"), call("pay"), "done"]),
        Script(steps=[call("approve"), call("draft"), call("pay"), "done"]),
    ]
    agents = [
        agent(script, shop, middleware, tools=[made(shop), *tools_of(shop)[1:]])
        for script, shop in zip(scripts, shops, strict=True)
    ]
    threads = [threading.Thread(target=lambda one=one: one.invoke(said())) for one in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [shop.done for shop in shops] == [["approve 7", "pay 7 1"], ["approve 7", "draft 7", "pay 7 1"]]


def test_runs_that_stream() -> None:
    script, shop = Script(steps=[call("draft"), call("approve"), call("pay"), "done"]), Shop()
    updates = list(agent(script, shop, GuardMiddleware(guard())).stream(said(), stream_mode="updates"))
    assert shop.done == ["approve 7", "pay 7 1"]
    assert sum("tools" in update for update in updates) == 3


APPROVE, DRAFT, PAY = (Call(name, {"order": 7}, name) for name in ("approve", "draft", "pay"))


def kept_after(turns: GraphTurns, kept: Kept | None, *calls: Call) -> Kept:
    """What stands in the graph after a node that took these calls."""
    node = turns.start_node(kept)
    return turns.save_node(kept, node, [(call, node.run.begin(call)) for call in calls], last="message")


def test_what_is_kept_is_plain_data_that_another_process_goes_on_from() -> None:
    kept = kept_after(GraphTurns(guard(), None, None), None, DRAFT, APPROVE)
    read = json.loads(json.dumps(kept))
    assert read == kept
    assert read["last"] == "message"
    turn = GraphTurns(guard(), None, None).restore_turn(read)
    assert [decision.action for _, decision in turn.decided] == ["block", "allow"]
    assert turn.run.begin(DRAFT).action == "block"  # as it was decided in this turn, though it is legal by now
    assert turn.run.begin(PAY).action == "allow"


def test_the_calls_of_a_turn_share_one_run_and_the_next_node_sees_their_results() -> None:
    turns = GraphTurns(guard(), None, None)
    kept = kept_after(turns, None, APPROVE)
    assert turns.restore_turn(kept) is turns.restore_turn(kept)
    turns.restore_turn(kept).run.result(Result("approve", {"order": 7}, "approved", "approve"))
    turns.restore_turn(kept).recorded.add("approve")
    node = turns.start_node(kept)
    assert len(node.run.state) == 2
    assert node.recorded == {"approve"}
    again = kept_after(turns, kept)
    assert len(turns.restore_turn(again).run.state) == 2


def test_a_node_that_fails_leaves_no_trace() -> None:
    record = Record()
    turns = GraphTurns(guard(), None, record)
    kept = kept_after(turns, None, APPROVE)
    told = list(record)
    turns.start_node(kept).run.begin(PAY)
    assert record == told
    assert len(turns.restore_turn(kept).run.state) == 1


def test_going_back_starts_from_what_was_kept() -> None:
    turns = GraphTurns(guard(), None, None)
    first = kept_after(turns, None, APPROVE)
    turns.restore_turn(first).run.result(Result("approve", {"order": 7}, "approved", "approve"))
    kept_after(turns, first, PAY)
    assert turns.restore_turn(first).run.state.snapshot() == first["snapshot"]


def test_many_runs_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langchain, "_ALIVE", 2)
    turns = GraphTurns(guard(), None, None)
    kept = [kept_after(turns, None, APPROVE) for _ in range(5)]
    assert len(turns._alive) == 2
    assert all(turns.restore_turn(one).run.begin(PAY).runs for one in kept)
    assert len(turns._alive) == 2
