"""LangChain 1: a middleware that guards the tools of an agent (``pip install 'formal-llm[langchain]'``).

``create_agent(model, tools, middleware=[..., GuardMiddleware(guard)])``, as the last one: so nothing behind it shows the
model other tools. The model is shown the tools for which some call is legal; the calls of an answer are checked as a
sequence when it comes, and again when each is made; a refused call gets a ``ToolMessage`` of status "error" with the
reason and the way on; an answer that comes too early is sent back.

The state of a run lies in the state of the graph, under ``guard``, as plain data: it is saved and restored by a
checkpointer, forks with the thread, and is never shared between runs.
"""

from __future__ import annotations

import dataclasses
import threading
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, NotRequired, cast

from formal_llm.agents.guard.adapters.plumbing import arguments_of, listed, plain, refused, with_warning
from formal_llm.agents.guard.events import Call, Decision, Result, Said
from formal_llm.agents.guard.guard import Guard
from formal_llm.agents.guard.live import Approve, Audit, GuardedRun, Noted
from formal_llm.errors import EarlyAnswer, MissingDependency

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, hook_config
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain.tools import BaseTool
    from langchain.tools.tool_node import ToolCallRequest
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
    from langgraph.errors import GraphBubbleUp
    from langgraph.types import Command, interrupt
except ImportError as error:
    raise MissingDependency("this adapter needs LangChain 1: pip install 'formal-llm[langchain]'") from error

#: How many turns are kept alive; an older one is restored from the state of its graph.
_ALIVE = 1_000
_NO = "A person was asked and said no"


class GuardedState(AgentState[Any]):
    """What the middleware keeps in the state of the graph."""

    guard: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


@dataclasses.dataclass
class _Turn:
    """A turn: the run with the calls of one answer taken, and the ids whose results it was told."""

    run: GuardedRun
    decided: list[tuple[Call, Decision]]
    told: set[str] = dataclasses.field(default_factory=set)


class GuardMiddleware(AgentMiddleware[GuardedState, Any, Any]):
    """The tools of a LangChain agent under a guard.

    Args:
        guard: the guard.
        approve: asks a person about calls for which the rules want one. Without it the graph is interrupted with a
            request in the form of LangChain's ``HumanInTheLoopMiddleware``, which needs a checkpointer, and goes on
            with ``Command(resume={"decisions": [{"type": "approve"}]})``, one decision for each call; a decision is of
            type "approve", or "reject" with a "message".
        audit: is told each line of the record of each run.
        hide: whether the model is shown only tools for which some call is legal. Without it the tools stay the same,
            and with them the cached prefix of the prompt; calls are refused when they come.
        most_early: how many answers of one run that come too early are sent back.

    Raises:
        EarlyAnswer: in a run, when one more comes.
    """

    state_schema = GuardedState

    def __init__(
        self,
        guard: Guard,
        *,
        approve: Approve | None = None,
        audit: Audit | None = None,
        hide: bool = True,
        most_early: int = 3,
    ) -> None:
        super().__init__()
        self.guard = guard
        self.approve = approve
        self.audit = audit
        self.hide = hide
        self.most_early = most_early
        self._alive: OrderedDict[str, _Turn] = OrderedDict()
        self._lock = threading.Lock()

    # -- the state in the graph ---------------------------------------------------------------------------------

    def _restored(self, state: Mapping[str, Any], audit: Audit | None) -> _Turn:
        """The turn in which a graph stands: alive in this process, or from its state."""
        kept = state.get("guard")
        if kept is None:
            return _Turn(GuardedRun(self.guard, approve=self.approve, audit=audit), [])
        with self._lock:
            turn = self._alive.get(kept["turn"])
            if turn is not None:
                self._alive.move_to_end(kept["turn"])
                return turn
        decided = [(_call(row["call"]), _decision(row["decision"])) for row in kept["decided"]]
        at = self.guard.resume(kept["snapshot"])
        turn = _Turn(GuardedRun(self.guard, state=at, turn=decided, approve=self.approve, audit=audit), decided)
        return self._keep(kept["turn"], turn)

    def _keep(self, key: str, turn: _Turn) -> _Turn:
        with self._lock:
            turn = self._alive.setdefault(key, turn)
            while len(self._alive) > _ALIVE:
                self._alive.popitem(last=False)
            return turn

    def _at_node(self, state: Mapping[str, Any]) -> tuple[GuardedRun, list[Noted], set[str]]:
        """A run of its own for one node of the graph, which may be run again: it records into a list."""
        turn = self._restored(state, self.audit)
        lines: list[Noted] = []
        run = GuardedRun(self.guard, state=turn.run.state, approve=self.approve, audit=lines.append)
        return run, lines, turn.told

    def _dumped(
        self, state: Mapping[str, Any], run: GuardedRun, lines: list[Noted], decided: Sequence[tuple[Call, Decision]] = (),
        **more: object,
    ) -> dict[str, Any]:  # fmt: skip
        """The update of the graph's state after a node; what the node recorded is told."""
        if self.audit is not None:
            for line in lines:
                self.audit(line)
        key = uuid.uuid4().hex
        kept = list(decided)
        live = GuardedRun(self.guard, state=run.state, turn=kept, approve=self.approve, audit=self.audit)
        self._keep(key, _Turn(live, kept))
        before = state.get("guard") or {}
        rows = [{"call": {"name": call.tool, "args": dict(call.arguments), "id": call.id},
                 "decision": dataclasses.asdict(decision)} for call, decision in kept]  # fmt: skip
        last = state["messages"][-1].id if state["messages"] else None
        guard = {"early": 0, **before, "turn": key, "snapshot": run.state.snapshot(), "decided": rows, "last": last}
        return {"guard": {**guard, **more}}

    def _caught_up(self, state: GuardedState) -> dict[str, Any] | None:
        """Tell what came into the messages since: what users said, earlier turns, results that were not told yet."""
        kept = state.get("guard")
        messages = _since(state["messages"], None if kept is None else kept["last"])
        if kept is not None and not messages:
            return None
        run, lines, told = self._at_node(state)
        if kept is not None:
            with self._lock:  # the turn is over; who goes back to it starts from what the graph kept
                self._alive.pop(kept["turn"], None)
        made = {row["call"]["id"]: row for row in (kept or {}).get("decided", ()) if _decision(row["decision"]).runs}
        for place, message in enumerate(messages):
            if isinstance(message, HumanMessage) and "guard" not in message.additional_kwargs:
                run.said(Said("user", message.text))
            elif isinstance(message, AIMessage):
                self._tell_answer(run, message, messages[place + 1 :], made)
            elif isinstance(message, ToolMessage) and message.tool_call_id in made and message.tool_call_id not in told:
                run.result(_result(_call(made[message.tool_call_id]["call"]), message))
        return self._dumped(state, run, lines)

    def _tell_answer(
        self, run: GuardedRun, message: AIMessage, later: Sequence[AnyMessage], made: dict[Any, dict[str, Any]]
    ) -> None:
        """Tell an answer of the history from before the guard: its text, and the calls that have a result."""
        if message.text:
            run.said(Said("assistant", message.text))
        answered = {found.tool_call_id for found in later if isinstance(found, ToolMessage)}
        run.new_turn()
        for tool_call in message.tool_calls:
            if tool_call["id"] in answered and run.begin(_call(tool_call), approved=True).runs:
                made[tool_call["id"]] = {"call": tool_call}

    # -- the nodes of the graph ---------------------------------------------------------------------------------

    def before_agent(self, state: GuardedState, runtime: Any) -> dict[str, Any] | None:  # noqa: D102
        return self._caught_up({**state, "guard": {**state["guard"], "early": 0}} if "guard" in state else state)

    def before_model(self, state: GuardedState, runtime: Any) -> dict[str, Any] | None:  # noqa: D102
        return self._caught_up(state)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: GuardedState, runtime: Any) -> dict[str, Any] | None:
        """Check the calls of an answer as a sequence; send back an answer that comes too early."""
        run, lines, calls, message = self._answer(state)
        if not calls:
            return self._ended(state, run, lines, message)
        decided = [(call, run.begin(call)) for call in calls]
        return self._dumped(state, run, lines, self._asked(run, decided))

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: GuardedState, runtime: Any) -> dict[str, Any] | None:
        """As ``after_model``; a person is waited for."""
        run, lines, calls, message = self._answer(state)
        if not calls:
            return self._ended(state, run, lines, message)
        decided = [(call, await run.abegin(call)) for call in calls]
        return self._dumped(state, run, lines, self._asked(run, decided))

    def _answer(self, state: GuardedState) -> tuple[GuardedRun, list[Noted], list[Call], AIMessage | None]:
        run, lines, _ = self._at_node(state)
        messages = state["messages"]
        place = next((place for place in reversed(range(len(messages))) if isinstance(messages[place], AIMessage)), None)
        if place is None:
            return run, lines, [], None
        message = cast("AIMessage", messages[place])
        if message.text:
            run.said(Said("assistant", message.text))
        answered = {found.tool_call_id for found in messages[place + 1 :] if isinstance(found, ToolMessage)}
        return run, lines, [_call(call) for call in message.tool_calls if call["id"] not in answered], message

    def _asked(self, run: GuardedRun, decided: list[tuple[Call, Decision]]) -> list[tuple[Call, Decision]]:
        """Interrupt the graph where the rules want a person and none could be asked here."""
        open_ = [place for place, (_, decision) in enumerate(decided) if decision.action == "ask"]
        if not open_:
            return decided
        request = {
            "action_requests": [
                {"name": call.tool, "args": dict(call.arguments), "description": decision.reason}
                for call, decision in (decided[place] for place in open_)
            ],
            "review_configs": [
                {"action_name": decided[place][0].tool, "allowed_decisions": ["approve", "reject"]} for place in open_
            ],
        }
        answers = interrupt(request)["decisions"]
        if len(answers) != len(open_):
            raise ValueError(f"{len(open_)} calls wait for a decision, and {len(answers)} decisions came")
        for place, answer in zip(open_, answers, strict=True):
            call, _ = decided[place]
            decision = run.begin(call, approved=answer["type"] == "approve")
            if answer["type"] != "approve" and answer.get("message"):
                decision = dataclasses.replace(decision, reason=f"{decision.reason}: {answer['message']}")
            decided[place] = call, decision
        return decided

    def _ended(
        self, state: GuardedState, run: GuardedRun, lines: list[Noted], message: AIMessage | None
    ) -> dict[str, Any] | None:
        decision = run.stop()
        if message is None or decision.runs:
            return self._dumped(state, run, lines)
        early = (state.get("guard") or {}).get("early", 0) + 1
        if early > self.most_early:
            raise EarlyAnswer(decision, self.most_early)
        back = HumanMessage(decision.message, id=uuid.uuid4().hex, additional_kwargs={"guard": decision.rule})
        update = self._dumped(state, run, lines, early=early, last=back.id)
        if state.get("structured_response") is not None:
            update["structured_response"] = None
        return {**update, "messages": [back], "jump_to": "model"}

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: GuardedState, runtime: Any) -> dict[str, Any] | None:
        """Tell the results of tools that end a run (``return_direct``); send the run back where it is too early."""
        messages = state["messages"]
        if not messages or not isinstance(messages[-1], ToolMessage) or state.get("structured_response") is not None:
            return None
        caught_up = self._caught_up(state)
        now = cast("GuardedState", {**state, **(caught_up or {})})
        run, lines, _ = self._at_node(now)
        last_answer = next((found for found in reversed(messages) if isinstance(found, AIMessage)), None)
        return self._ended(now, run, lines, last_answer)

    # -- what stands around the model and the tools ---------------------------------------------------------------

    def _shown(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if not self.hide:
            return request
        run = self._restored(request.state, self.audit).run
        names = {tool.name for tool in request.tools if isinstance(tool, BaseTool)}
        legal = listed(run, names)
        tools = [tool for tool in request.tools if not isinstance(tool, BaseTool) or tool.name in legal]
        return request.override(tools=tools)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., ModelResponse[Any]]) -> Any:
        """Show the model the tools for which some call is legal."""
        return handler(self._shown(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        """As ``wrap_model_call``."""
        return await handler(self._shown(request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., ToolMessage | Command[Any]]) -> Any:
        """Check a call when it is made, and tell its result when it comes."""
        turn, call = self._restored(request.state, self.audit), _call(request.tool_call)
        decision = turn.run.begin(call)
        if not decision.runs:
            return _refusal(call, decision)
        try:
            result = handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            _tell(turn, call, error)
            raise
        return _tell(turn, call, result, decision)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Awaitable[Any]]) -> Any:
        """As ``wrap_tool_call``."""
        turn, call = self._restored(request.state, self.audit), _call(request.tool_call)
        decision = await turn.run.abegin(call)
        if not decision.runs:
            return _refusal(call, decision)
        try:
            result = await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            _tell(turn, call, error)
            raise
        return _tell(turn, call, result, decision)


def _call(tool_call: ToolCall | Mapping[str, Any]) -> Call:
    return Call(tool_call["name"], arguments_of(tool_call["args"]) or {}, tool_call["id"] or "")


def _decision(row: Mapping[str, Any]) -> Decision:
    return Decision(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})


def _refusal(call: Call, decision: Decision) -> ToolMessage:
    return ToolMessage(refused(decision), name=call.tool, tool_call_id=call.id, status="error")


def _result(call: Call, message: ToolMessage) -> Result:
    return Result(call.tool, call.arguments, plain(message.content), call.id, message.status == "error")


def _tell(turn: _Turn, call: Call, result: Any, decision: Decision | None = None) -> Any:
    """Tell a result: a message, an error, or a command with a message in it; a warning is written behind it."""
    message = result
    if isinstance(result, Command):
        inside = result.update.get("messages", ()) if isinstance(result.update, dict) else ()
        message = next((found for found in inside if isinstance(found, ToolMessage)), None)
    if isinstance(message, ToolMessage):
        told = _result(call, message)
    else:
        failed = isinstance(message, Exception)
        told = Result(call.tool, call.arguments, str(message) if failed else None, call.id, failed)
    turn.run.result(told)
    turn.told.add(call.id)
    if decision is not None and isinstance(result, ToolMessage) and isinstance(result.content, str):
        return result.model_copy(update={"content": with_warning(result.content, decision)})
    return result


def _since(messages: Sequence[AnyMessage], last: str | None) -> Sequence[AnyMessage]:
    """The messages after the last one that was told; where that one is gone, those after the last answer."""
    for place in reversed(range(len(messages))):
        if messages[place].id == last and last is not None:
            return messages[place + 1 :]
    if last is None:
        return messages
    answers = [place for place, message in enumerate(messages) if isinstance(message, AIMessage)]
    return messages[answers[-1] + 1 :] if answers else messages
