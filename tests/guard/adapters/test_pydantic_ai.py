"""PydanticAI itself, with a scripted model: what a guard lets happen in its runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import openai
import pytest
from pydantic_ai import (
    Agent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    ToolDenied,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import Tool, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from formal_llm.guard import Call
from formal_llm.guard.adapters.pydantic_ai import GuardCapability, replay_messages
from tests.guard.adapters.scripted_server import serving
from tests.guard.adapters.shop import ASKING, RULES, Person, Record, Shop, guard

Step = str | list[tuple[str, dict[str, Any]]]


class Script:
    """A model that says what stands in a script, whatever it is asked, and remembers what it was shown."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.shown: list[list[str]] = []
        self.heard: list[list[ModelMessage]] = []
        self.ids = 0

    def _parts(self, messages: list[ModelMessage], info: AgentInfo) -> list[TextPart | ToolCallPart]:
        self.shown.append([tool.name for tool in info.function_tools])
        self.heard.append(list(messages))
        step = self.steps.pop(0)
        if isinstance(step, str):
            return [TextPart(step)]
        parts: list[TextPart | ToolCallPart] = []
        for name, arguments in step:
            self.ids += 1
            parts.append(ToolCallPart(name, arguments, f"call-{self.ids}"))
        return parts

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(self._parts(messages, info))

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for place, part in enumerate(self._parts(messages, info)):
            if isinstance(part, TextPart):
                yield part.content
            else:
                yield {place: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self.answer, stream_function=self.stream)

    @property
    def refusals(self) -> list[str]:
        """What the model read of calls that were not made."""
        return [
            str(part.content)
            for message in self.heard[-1]
            for part in message.parts
            if isinstance(part, ToolReturnPart) and part.outcome != "success"
        ]


def agent(script: Script, shop: Shop, *capabilities: GuardCapability, **more: Any) -> Agent[None, Any]:
    tools = [Tool(function, max_retries=3) for function in (shop.approve, shop.draft, shop.pay, shop.look)]
    more.setdefault("retries", {"output": 3})
    return Agent(script.model, tools=more.pop("tools", tools), capabilities=list(capabilities), **more)


def ran(guarded: Agent[None, Any], *given: Any, **more: Any) -> Any:
    """A run in an event loop of its own, which is closed (``run_sync`` leaves one open)."""
    return asyncio.run(guarded.run(*given, **more))


def call(*names: str, **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(name, {"order": 7, **arguments}) for name in names]


def test_a_forbidden_call_is_refused_and_the_model_recovers() -> None:
    script, shop = Script(call("pay"), call("approve"), call("pay"), "done"), Shop()
    result = ran(agent(script, shop, GuardCapability(guard())), "pay order 7")
    assert result.output == "done"
    assert shop.done == ["approve 7", "pay 7 1"]
    assert "approve" in script.refusals[0]


def test_a_dead_end_is_refused_though_each_rule_allows_the_step() -> None:
    script, shop = Script(call("draft"), call("approve"), call("draft"), call("pay"), "done"), Shop()
    ran(agent(script, shop, GuardCapability(guard())), "draft and pay")
    assert shop.done == ["approve 7", "draft 7", "pay 7 1"]
    assert len(script.refusals) == 1


def test_only_tools_with_a_legal_call_are_shown() -> None:
    script, shop = Script(call("approve"), call("pay"), "done"), Shop()
    ran(agent(script, shop, GuardCapability(guard())), "pay")
    assert script.shown[0] == ["approve", "look"]
    assert script.shown[1] == ["approve", "draft", "pay", "look"]


def test_tools_that_are_not_hidden_stay_the_same() -> None:
    script, shop = Script(call("draft"), call("approve"), call("pay"), "done"), Shop()
    ran(agent(script, shop, GuardCapability(guard(), hide=False)), "pay")
    assert all(shown == ["approve", "draft", "pay", "look"] for shown in script.shown)
    assert shop.done == ["approve 7", "pay 7 1"]


@pytest.mark.parametrize("api", [OpenAIResponsesModel, OpenAIChatModel])
def test_a_provider_that_knows_allowed_tools_keeps_the_tools(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real client of OpenAI, against a server on this machine."""

    async def asked(url: str) -> str:
        async with openai.AsyncOpenAI(api_key="-", base_url=url, max_retries=0) as client:
            tools = [shop.approve, shop.draft, shop.pay, shop.look]
            model = api("m", provider=OpenAIProvider(openai_client=client))
            capability = GuardCapability(guard(), hide="choice")
            guarded: Agent[None, str] = Agent(model, tools=tools, capabilities=[capability])
            return (await guarded.run("pay")).output

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    shop = Shop()
    with serving([("approve", {"order": 7})], [("pay", {"order": 7})], "done") as server:
        assert asyncio.run(asked(server.url)) == "done"
    assert len({json.dumps(body["tools"]) for body in server.asked}) == 1
    choice = server.asked[0]["tool_choice"]
    assert choice["type"] == "allowed_tools"
    assert "approve" in str(choice)
    assert "draft" not in str(choice)
    assert shop.done == ["approve 7", "pay 7 1"]


def test_an_answer_that_comes_too_early_is_sent_back() -> None:
    script, shop = Script("done", call("approve"), "really", call("pay"), "now"), Shop()
    assert ran(agent(script, shop, GuardCapability(guard())), "pay").output == "now"
    assert shop.done == ["approve 7", "pay 7 1"]


def test_a_structured_answer_that_comes_too_early_is_sent_back() -> None:
    script, shop = (
        Script([("final_result", {"response": 1})], call("approve"), call("pay"), [("final_result", {"response": 2})]),
        Shop(),
    )
    assert ran(agent(script, shop, GuardCapability(guard()), output_type=int), "pay").output == 2


def test_who_insists_is_stopped() -> None:
    script, shop = Script(*["done"] * 4), Shop()
    with pytest.raises(UnexpectedModelBehavior):
        ran(agent(script, shop, GuardCapability(guard())), "pay")
    script = Script(*[call("draft")] * 6, "done")
    with pytest.raises(UnexpectedModelBehavior):
        ran(agent(script, shop, GuardCapability(guard())), "pay")
    assert shop.done == []


def test_a_refusal_may_leave_the_retries_of_a_tool_alone() -> None:
    script, shop = Script(*[call("draft")] * 6, call("approve"), call("pay"), "done"), Shop()
    ran(agent(script, shop, GuardCapability(guard(), refusal="failed")), "pay")
    assert shop.done == ["approve 7", "pay 7 1"]
    assert len(script.refusals) == 6


def test_parallel_calls_are_checked_as_a_sequence() -> None:
    script, shop, record = Script(call("pay", "approve", "draft", "pay"), "done"), Shop(), Record()
    ran(agent(script, shop, GuardCapability(guard(), audit=record)), "all")
    assert sorted(shop.done) == ["approve 7", "draft 7", "pay 7 1"]
    assert record.words[:5] == ["said user", "not pay", "call approve", "call draft", "call pay"]


def test_a_person_who_is_asked_here() -> None:
    for says in (True, False):
        person = Person(says)
        script, shop = Script(call("approve"), call("pay", amount=500), call("pay", amount=1), "done"), Shop()
        capability = GuardCapability(guard(ASKING), approve=person if says else person.waits)
        ran(agent(script, shop, capability), "pay")
        assert [asked.arguments["amount"] for asked in person.asked] == [500]
        assert shop.done == ["approve 7", *(["pay 7 500"] if says else []), "pay 7 1"]


@pytest.mark.parametrize("says", [True, False])
def test_a_person_who_is_asked_between_runs(says: bool) -> None:
    """The second run goes on from the messages of the first: it knows the approval of the order, and the payment."""
    script = Script(call("approve"), call("pay", amount=500), call("pay", amount=1), "done")
    shop, record = Shop(), Record()
    guarded = agent(script, shop, GuardCapability(guard(ASKING), audit=record), output_type=[str, DeferredToolRequests])
    first = ran(guarded, "pay")
    assert isinstance(first.output, DeferredToolRequests)
    (wanted,) = first.output.approvals
    assert first.output.metadata[wanted.tool_call_id]["rule"] == "care"
    answers = DeferredToolResults(approvals={wanted.tool_call_id: True if says else ToolDenied("too much")})
    history = first.all_messages()
    second = ran(guarded, message_history=history, deferred_tool_results=answers)
    assert second.output == "done"
    assert shop.done == ["approve 7", *(["pay 7 500"] if says else []), "pay 7 1"]
    approved = [
        line.event.approved
        for line in record
        if line.told and getattr(line.event, "tool", "") == "pay" and hasattr(line.event, "approved")
    ]
    assert approved == ([True, False] if says else [False])


def test_a_conversation_goes_on_where_it_stood() -> None:
    script, shop = (
        Script(call("draft"), call("approve"), call("pay"), "paid", call("draft"), call("approve"), "no"),
        Shop(),
    )
    guarded = agent(script, shop, GuardCapability(guard()))
    first = ran(guarded, "pay")
    second = ran(guarded, "draft and approve", message_history=first.all_messages())
    assert second.output == "no"
    assert shop.done == ["approve 7", "pay 7 1", "draft 7"]


@pytest.mark.parametrize("external", [True, False])
def test_results_that_come_from_outside_are_told(external: bool) -> None:
    """Of a tool that is external, and of one that puts its call off: the result comes with the next run."""

    def pay(order: int) -> str:
        raise CallDeferred

    shop, record = Shop(), Record()
    script = Script(call("approve"), call("pay"), "done")
    more: dict[str, Any] = {"tools": [shop.approve, shop.draft, pay]}
    if external:
        schema = {"type": "object", "properties": {"order": {"type": "integer"}}}
        more = {
            "tools": [shop.approve],
            "toolsets": [ExternalToolset([ToolDefinition(name="pay", parameters_json_schema=schema)])],
        }
    guarded = agent(
        script, shop, GuardCapability(guard(), audit=record), output_type=[str, DeferredToolRequests], **more
    )
    first = ran(guarded, "pay")
    (wanted,) = first.output.calls
    results = DeferredToolResults(calls={wanted.tool_call_id: "paid 7"})
    second = ran(guarded, message_history=first.all_messages(), deferred_tool_results=results)
    assert second.output == "done"
    assert record.words[-4:] == ["call pay", "result pay", "said assistant", "stop"]
    assert replay_messages(guard().start(), second.all_messages()).may_stop().runs


def test_external_calls_are_checked_before_they_go_outside() -> None:
    schema = {"type": "object", "properties": {"order": {"type": "integer"}}}
    shop, script = Shop(), Script(call("pay"), call("approve"), call("pay"))
    toolset = ExternalToolset([ToolDefinition(name="pay", parameters_json_schema=schema)])
    outputs = [str, DeferredToolRequests]
    guarded = agent(
        script, shop, GuardCapability(guard()), tools=[shop.approve], toolsets=[toolset], output_type=outputs
    )
    assert len(ran(guarded, "pay").output.calls) == 1
    assert shop.done == ["approve 7"]


def test_a_persons_no_is_known_in_a_later_run() -> None:
    script = Script(call("approve"), call("pay", amount=500), call("pay", amount=1), "paid", call("draft"), "drafted")
    shop = Shop()
    guarded = agent(script, shop, GuardCapability(guard(ASKING), approve=Person(False)))
    first = ran(guarded, "pay")
    state = replay_messages(guard(ASKING).start(), first.all_messages())
    assert [(event.tool, event.arguments.get("amount")) for event in state.history if isinstance(event, Call)] == [
        ("approve", None),
        ("pay", 1),
    ]
    ran(guarded, "draft", message_history=first.all_messages())
    assert shop.done == ["approve 7", "pay 7 1", "draft 7"]


def test_errors_are_results_and_retries_are_calls_of_their_own() -> None:
    tries: list[int] = []

    def pay(order: int) -> str:
        tries.append(order)
        if len(tries) == 1:
            raise ModelRetry("try again")
        return "paid"

    shop, record = Shop(), Record()
    script = Script(call("approve"), call("pay"), call("pay"), "done")
    ran(agent(script, shop, GuardCapability(guard(), audit=record), tools=[shop.approve, shop.draft, pay]), "pay")
    assert record.words == [
        "said user", "call approve", "result approve", "call pay", "result pay failed", "call pay", "result pay",
        "said assistant", "stop",
    ]  # fmt: skip


def test_calls_with_arguments_that_cannot_be_read_are_not_made() -> None:
    script, shop, record = Script(call("approve"), [("pay", {"order": "seven"})], call("pay"), "done"), Shop(), Record()
    ran(agent(script, shop, GuardCapability(guard(), audit=record)), "pay")
    assert record.called == ["approve", "pay"]


def test_only_logging_changes_nothing() -> None:
    steps: list[Step] = [call("pay"), call("draft", "approve"), "done"]
    heard = []
    for capabilities in ([], [GuardCapability(guard(severity="log"))]):
        script, shop = Script(*steps), Shop()
        assert ran(agent(script, shop, *capabilities), "go").output == "done"
        assert shop.done[0] == "pay 7 1"
        heard.append([[part.part_kind for part in message.parts] for message in script.heard[-1]])
        assert all(len(shown) == 4 for shown in script.shown)
    assert heard[0] == heard[1]


def test_a_warning_is_read_by_the_model() -> None:
    script, shop = Script(call("pay"), "done"), Shop()
    ran(agent(script, shop, GuardCapability(guard(severity="warn"))), "go")
    assert shop.done == ["pay 7 1"]
    assert "Warning: " in str(script.heard[-1])


def test_two_runs_at_once_do_not_mix() -> None:
    async def both() -> list[list[str]]:
        capability, shops = GuardCapability(guard()), [Shop(), Shop()]
        met = asyncio.Barrier(2)

        def made(shop: Shop) -> Callable[..., Any]:
            async def approve(order: int) -> str:
                await met.wait()
                return shop.approve(order)

            return approve

        scripts: Sequence[Script] = [
            Script(call("approve"), call("pay"), "done"), Script(call("approve"), call("draft"), call("pay"), "done"),
        ]  # fmt: skip
        await asyncio.gather(*(
            agent(script, shop, capability, tools=[made(shop), shop.draft, shop.pay]).run("go")
            for script, shop in zip(scripts, shops, strict=True)
        ))  # fmt: skip
        return [shop.done for shop in shops]

    assert asyncio.run(both()) == [["approve 7", "pay 7 1"], ["approve 7", "draft 7", "pay 7 1"]]


def test_runs_that_stream() -> None:
    async def streamed() -> str:
        async with guarded.run_stream("pay") as result:
            return await result.get_output()

    script, shop = Script(call("draft"), call("approve"), call("pay"), "done"), Shop()
    guarded = agent(script, shop, GuardCapability(guard()))
    assert asyncio.run(streamed()) == "done"
    assert shop.done == ["approve 7", "pay 7 1"]


def test_runs_with_a_stream_of_events_send_early_answers_back() -> None:
    async def seen(ctx: Any, events: Any) -> None:
        kinds.extend([event.event_kind async for event in events])

    kinds: list[str] = []
    script, shop = Script("done", call("approve"), call("pay"), "now"), Shop()
    guarded = agent(script, shop, GuardCapability(guard()))
    assert asyncio.run(guarded.run("pay", event_stream_handler=seen)).output == "now"
    assert kinds.count("function_tool_result") == 2


def test_a_streamed_answer_that_comes_too_early() -> None:
    async def streamed() -> str:
        async with guarded.run_stream("pay") as result:
            return await result.get_output()

    script, shop = Script("done", call("approve"), call("pay"), "now"), Shop()
    guarded = agent(script, shop, GuardCapability(guard()))
    with pytest.raises(UnexpectedModelBehavior, match="retries are not supported in `run_stream"):
        asyncio.run(streamed())


def test_tools_that_a_person_approves_anyway_are_checked_before_he_is_asked() -> None:
    shop = Shop()
    script = Script(call("pay"), call("approve"), call("pay"), "done")
    tools = [Tool(shop.approve), Tool(shop.pay, requires_approval=True, max_retries=2)]
    guarded = agent(script, shop, GuardCapability(guard(RULES)), tools=tools, output_type=[str, DeferredToolRequests])
    first = ran(guarded, "pay")
    assert isinstance(first.output, DeferredToolRequests)
    assert len(first.output.approvals) == 1
    assert shop.done == ["approve 7"]
