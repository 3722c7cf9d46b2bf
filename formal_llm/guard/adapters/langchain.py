"""LangChain 1: a middleware that guards the tools of an agent (``pip install 'formal-llm[langchain]'``).

Use ``create_agent(model, tools, middleware=[..., GuardMiddleware(guard)])``, with the guard as the last one, so that no
later middleware adds tools. The model sees the tools for which some call is legal; the calls of an answer are checked
as a sequence when it arrives, and again when each is made; a refused call gets a ``ToolMessage`` of status "error"
with the reason and the way on; a premature answer is sent back.

The state of a run is kept in the state of the graph, under ``guard``, as plain data: a checkpointer saves and restores
it, it forks with the thread, and is never shared between runs.
"""

from __future__ import annotations

import dataclasses
import threading
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypeAlias, cast

from formal_llm.errors import EarlyAnswer, MissingDependency
from formal_llm.guard.adapters.plumbing import (
    append_warning,
    find_legal_tools,
    find_outer_call,
    format_refusal,
    read_arguments,
    to_json_value,
    within_call,
)
from formal_llm.guard.events import ALLOW, Call, Decision, Result, Said, as_row, from_row
from formal_llm.guard.guard import Guard, GuardState
from formal_llm.guard.live import SAID_NO, Approve, Audit, GuardedRun, Noted, is_same_call

#: The guard's data in the state of a graph.
Kept: TypeAlias = dict[str, Any]
#: The maximum number of turns in memory; older ones are restored from their graphs.
_ALIVE = 1_000


@dataclasses.dataclass
class GraphTurn:
    """A turn: the run after the calls of one answer, the decisions, and the ids of calls whose results are recorded.

    ``prefix`` begins the ids of calls if the graph takes part in the run of another one.
    """

    run: GuardedRun
    decided: tuple[tuple[Call, Decision], ...] = ()
    recorded: set[str] = dataclasses.field(default_factory=set)
    prefix: str = ""

    def find_decision(self, call: Call) -> Decision | None:
        """Find the decision on a call of the answer."""
        return next((decision for past, decision in self.decided if is_same_call(past, call)), None)


class GraphTurns:
    """The turns of all runs of a graph, identified by a key in the graph's state.

    Args:
        approve: asks a person.
        audit: receives the record of each run.
        final: whether an answer ends a run.
    """

    def __init__(self, guard: Guard, approve: Approve | None, audit: Audit | None, *, final: bool = True) -> None:
        self._guard = guard
        self._approve = approve
        self._audit = audit
        self._final = final
        self._alive: OrderedDict[str, GraphTurn] = OrderedDict()
        self._lock = threading.Lock()

    def restore_turn(self, kept: Kept | None) -> GraphTurn:
        """Return the current turn of a graph; begin a new run if its state has none.

        A graph that a tool of another graph under the same guard runs takes part in the run of that graph.
        """
        outer = find_outer_call(self._guard)
        if kept is None:
            if outer is not None:
                return GraphTurn(outer.run, prefix=outer.prefix)
            return GraphTurn(self._start_run(self._guard.start()))
        with self._lock:
            turn = self._alive.get(kept["turn"])
            if turn is not None:
                self._alive.move_to_end(kept["turn"])
                return turn
        decided = tuple((_read_call_row(row["call"]), _read_decision_row(row["decision"])) for row in kept["decided"])
        if outer is not None:
            return self._cache_turn(kept["turn"], GraphTurn(outer.run, decided, prefix=outer.prefix))
        run = self._start_run(self._guard.resume(kept["snapshot"]), decided)
        return self._cache_turn(kept["turn"], GraphTurn(run, decided))

    def start_node(self, kept: Kept | None) -> GraphNodeRun:
        """Start a run for one node from the current state of the graph; it leaves no trace if the node fails."""
        turn = self.restore_turn(kept)
        lines: list[Noted] = []
        run = self._start_run(turn.run.state, audit=lines.append)
        return GraphNodeRun(run, lines, turn.decided, frozenset(turn.recorded), turn.prefix)

    def save_node(
        self, before: Kept | None, node: GraphNodeRun, decided: Iterable[tuple[Call, Decision]] = (), **more: object
    ) -> Kept:
        """Return the data for the graph's state after a node, pass on its record, and end the previous turn."""
        decided, key, outer = tuple(decided), uuid.uuid4().hex, find_outer_call(self._guard)
        if outer is None:
            if self._audit is not None:
                for line in node.lines:
                    self._audit(line)
            run = self._start_run(node.run.state, decided)
        else:
            decided, run = _move_calls(node, decided, outer.run), outer.run
        self._cache_turn(key, GraphTurn(run, decided, prefix=node.prefix))
        if before is not None:
            with self._lock:
                self._alive.pop(before["turn"], None)
        rows = [{"call": as_row(call), "decision": _write_decision_row(decision)} for call, decision in decided]
        return {**(before or {}), "turn": key, "snapshot": run.state.snapshot(), "decided": rows, **more}

    def _start_run(
        self, state: GuardState, decided: Iterable[tuple[Call, Decision]] = (), audit: Audit | None = None
    ) -> GuardedRun:
        receiver = self._audit if audit is None else audit
        run = GuardedRun(self._guard, state=state, approve=self._approve, audit=receiver, final=self._final)
        run.decided(decided)
        return run

    def _cache_turn(self, key: str, turn: GraphTurn) -> GraphTurn:
        with self._lock:
            turn = self._alive.setdefault(key, turn)
            while len(self._alive) > _ALIVE:
                self._alive.popitem(last=False)
            return turn


@dataclasses.dataclass(frozen=True)
class GraphNodeRun:
    """A run for one node of a graph.

    Attributes:
        lines: its record.
        decided: the decisions of the previous turn.
        recorded: the ids of the calls of the previous turn whose results are recorded.
        prefix: the prefix of the ids of calls; empty unless the graph takes part in the run of another one.
    """

    run: GuardedRun
    lines: list[Noted]
    decided: tuple[tuple[Call, Decision], ...]
    recorded: frozenset[str]
    prefix: str = ""


def _move_calls(
    node: GraphNodeRun, decided: Sequence[tuple[Call, Decision]], run: GuardedRun
) -> tuple[tuple[Call, Decision], ...]:
    """Record what a node has taken in the run of the outer graph, which may have advanced meanwhile."""
    run.new_turn()
    begun: dict[str, Decision] = {}
    for line in node.lines:
        if isinstance(line.event, Call) and line.told:
            call = dataclasses.replace(line.event, approved=False)
            begun[call.id] = run.begin(call, approved=line.approved)
        elif isinstance(line.event, Result):
            run.result(line.event)
    return tuple((call, begun.get(call.id, decision)) for call, decision in decided)


def _read_call_row(row: Mapping[str, Any]) -> Call:
    call = from_row(row)
    assert isinstance(call, Call)
    return call


def _write_decision_row(decision: Decision) -> dict[str, Any]:
    fields = dataclasses.asdict(decision)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def _read_decision_row(row: Mapping[str, Any]) -> Decision:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return Decision(**fields)


try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, hook_config
    from langchain.agents.middleware.types import ContextT, PrivateStateAttr, ResponseT
    from langchain.tools import BaseTool
    from langchain.tools.tool_node import ToolCallRequest
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
    from langgraph.errors import GraphBubbleUp
    from langgraph.runtime import Runtime
    from langgraph.types import Command, interrupt
except ImportError as error:
    raise MissingDependency("this adapter needs LangChain 1: pip install 'formal-llm[langchain]'") from error

#: The changes of a node to the state of the graph.
Update: TypeAlias = dict[str, Any]
#: The result of a tool in LangChain.
Returned: TypeAlias = "ToolMessage | Command[Any]"


class GuardedState(AgentState[Any]):
    """The state of the graph with the data of the middleware."""

    guard: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class GuardMiddleware(AgentMiddleware[GuardedState, ContextT, ResponseT]):
    """The tools of a LangChain agent under a guard.

    Args:
        approve: asks a person about calls that require approval. Without it the graph is interrupted with a request
            in the form of LangChain's ``HumanInTheLoopMiddleware``, which needs a checkpointer, and continues with
            ``Command(resume={"decisions": [{"type": "approve"}]})``, one decision for each call; a decision is of
            type "approve", or "reject" with a "message".
        audit: receives each line of the record of each run.
        hide: whether the model sees only tools for which some call is legal. Otherwise the tools stay the same,
            which keeps the cached prefix of the prompt, and illegal calls are refused.
        most_early: the maximum number of premature answers of one run that are sent back.
        final: whether an answer ends the run. In a conversation it hands over to the user, which is also allowed if
            the next event on the shortest way is a text of the user.

    Raises:
        EarlyAnswer: in a run, if one more premature answer follows.
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
        final: bool = True,
    ) -> None:
        super().__init__()
        self.hide = hide
        self.most_early = most_early
        self._turns = GraphTurns(guard, approve, audit, final=final)

    def _catch_up(self, state: GuardedState) -> Update | None:
        """Record the new messages: texts of users, earlier turns, results not recorded yet."""
        kept = state.get("guard")
        messages = _find_new_messages(state["messages"], None if kept is None else kept["last"])
        if kept is not None and not messages:
            return None
        node = self._turns.start_node(kept)
        calls = {call.id: call for call, decision in node.decided if decision.runs and call.id not in node.recorded}
        for place, message in enumerate(messages):
            if node.prefix and not isinstance(message, ToolMessage):
                continue  # this graph is addressed by another agent, not by a user
            if isinstance(message, HumanMessage) and "guard" not in message.additional_kwargs:
                node.run.said(Said("user", message.text))
            elif isinstance(message, AIMessage):
                calls |= _record_past_answer(node.run, message, messages[place + 1 :])
            elif isinstance(message, ToolMessage) and (id_ := node.prefix + message.tool_call_id) in calls:
                node.run.result(_read_result(calls.pop(id_), message))
        return self._build_update(state, node)

    def _build_update(
        self, state: GuardedState, node: GraphNodeRun, decided: Sequence[tuple[Call, Decision]] = (), **more: object
    ) -> Update:
        last = state["messages"][-1].id if state["messages"] else None
        return {"guard": self._turns.save_node(state.get("guard"), node, decided, **{"last": last, **more})}

    # -- the nodes of the graph ---------------------------------------------------------------------------------

    def before_agent(self, state: GuardedState, runtime: Runtime[ContextT]) -> Update | None:
        """Record the texts of the user; restart the count of premature answers."""
        kept = state.get("guard")
        return self._catch_up(state if kept is None else {**state, "guard": {**kept, "early": 0}})

    def before_model(self, state: GuardedState, runtime: Runtime[ContextT]) -> Update | None:
        """Record the results that were not recorded when they arrived."""
        return self._catch_up(state)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: GuardedState, runtime: Runtime[ContextT]) -> Update | None:
        """Check the calls of an answer as a sequence; send back a premature answer."""
        node = self._turns.start_node(state.get("guard"))
        changed, calls = _record_answer(node, state["messages"])
        if calls:
            decided = _interrupt_for_approval(node.run, [(call, node.run.begin(call)) for call in calls])
            return {**self._build_update(state, node, decided), **changed}
        return self._check_ending(state, node)

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: GuardedState, runtime: Runtime[ContextT]) -> Update | None:
        """Do the same as ``after_model``, and await the approval of a person."""
        node = self._turns.start_node(state.get("guard"))
        changed, calls = _record_answer(node, state["messages"])
        if calls:
            decided = _interrupt_for_approval(node.run, [(call, await node.run.abegin(call)) for call in calls])
            return {**self._build_update(state, node, decided), **changed}
        return self._check_ending(state, node)

    def _check_ending(self, state: GuardedState, node: GraphNodeRun) -> Update:
        # The answer of an inner graph is the result of a tool, and does not end the run.
        decision = ALLOW if node.prefix else node.run.stop()
        if decision.runs:
            return self._build_update(state, node)
        early = (state.get("guard") or {}).get("early", 0) + 1
        if early > self.most_early:
            raise EarlyAnswer(decision, self.most_early)
        back = HumanMessage(decision.message, id=uuid.uuid4().hex, additional_kwargs={"guard": decision.rule})
        update = self._build_update(state, node, early=early, last=back.id)
        if state.get("structured_response") is not None:
            update["structured_response"] = None
        return {**update, "messages": [back], "jump_to": "model"}

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: GuardedState, runtime: Runtime[ContextT]) -> Update | None:
        """Record the results of tools that end a run (``return_direct``); send the run back if the end is premature."""
        messages = state["messages"]
        if not messages or not isinstance(messages[-1], ToolMessage) or state.get("structured_response") is not None:
            return None
        turn = self._restore_turn(state)
        refused_ids = {call.id for call, decision in turn.decided if not decision.runs}
        now = cast("GuardedState", {**state, **(self._catch_up(state) or {})})
        if any(turn.prefix + found.tool_call_id in refused_ids for found in _find_trailing_results(messages)):
            return {"guard": now["guard"], "jump_to": "model"}  # the model has to read the refusal
        return self._check_ending(now, self._turns.start_node(now.get("guard")))

    # -- wrappers of the model and the tools ----------------------------------------------------------------------

    def _restore_turn(self, state: Mapping[str, Any]) -> GraphTurn:
        return self._turns.restore_turn(state.get("guard"))

    def _restrict_tools(self, request: ModelRequest[ContextT]) -> ModelRequest[ContextT]:
        if not self.hide:
            return request
        run = self._restore_turn(request.state).run
        names = {tool.name for tool in request.tools if isinstance(tool, BaseTool)}
        legal = find_legal_tools(run, names)
        tools = [tool for tool in request.tools if not isinstance(tool, BaseTool) or tool.name in legal]
        return request.override(tools=tools)

    def wrap_model_call(
        self, request: ModelRequest[ContextT], handler: Callable[[ModelRequest[ContextT]], ModelResponse[ResponseT]]
    ) -> ModelResponse[ResponseT]:
        """Show the model the tools for which some call is legal."""
        return handler(self._restrict_tools(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], Awaitable[ModelResponse[ResponseT]]],
    ) -> ModelResponse[ResponseT]:
        """Do the same as ``wrap_model_call`` in asynchronous runs."""
        return await handler(self._restrict_tools(request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Returned]) -> Returned:
        """Check a call when it is made, and record its result."""
        turn = self._restore_turn(request.state)
        call = _read_call(request.tool_call, turn.prefix)
        decision = turn.find_decision(call) or turn.run.begin(call)
        if not decision.runs:
            return _build_refusal(request.tool_call, decision)
        try:
            with within_call(turn.run, call.id):
                result = handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            turn.run.result(Result(call.tool, call.arguments, str(error), call.id, error=True))
            turn.recorded.add(call.id)
            raise
        return _record_result(turn, call, result, decision)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Returned]]
    ) -> Returned:
        """Do the same as ``wrap_tool_call`` in asynchronous runs."""
        turn = self._restore_turn(request.state)
        call = _read_call(request.tool_call, turn.prefix)
        decision = turn.find_decision(call) or await turn.run.abegin(call)
        if not decision.runs:
            return _build_refusal(request.tool_call, decision)
        try:
            with within_call(turn.run, call.id):
                result = await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            turn.run.result(Result(call.tool, call.arguments, str(error), call.id, error=True))
            turn.recorded.add(call.id)
            raise
        return _record_result(turn, call, result, decision)


def _read_call(tool_call: ToolCall, prefix: str = "") -> Call:
    return Call(tool_call["name"], read_arguments(tool_call["args"]) or {}, f"{prefix}{tool_call['id'] or ''}")


def _record_past_answer(run: GuardedRun, answer: AIMessage, later: Sequence[AnyMessage]) -> dict[str, Call]:
    """Record an answer that the guard has not seen; return its calls that were made, by their ids.

    A call without a result counts, since its tool may have done its work before the run ended.
    """
    if answer.text:
        run.said(Said("assistant", answer.text))
    results = {found.tool_call_id: found for found in reversed(later) if isinstance(found, ToolMessage)}
    calls: dict[str, Call] = {}
    for call in map(_read_call, answer.tool_calls):
        result = results.get(call.id)
        action = run.state.check(call).action
        if result is None and action in ("ask", "block"):
            continue  # it was not begun: it was refused, or a person was to be asked
        if result is not None and result.status == "error" and (action == "block" or SAID_NO in result.text):
            continue  # it was refused, as it would be now
        run.made(dataclasses.replace(call, approved=action == "ask"))
        calls[call.id] = call
    return calls


def _record_answer(node: GraphNodeRun, messages: Sequence[AnyMessage]) -> tuple[Update, list[Call]]:
    """Record the text of the last answer; return its calls that have no result yet, and the change of the answer.

    Calls that share an id are different calls. They get ids of their own: the nodes that make them know no more.
    """
    node.run.new_turn()
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            if message.text and not node.prefix:
                node.run.said(Said("assistant", message.text))
            ids = [call["id"] for call in message.tool_calls]
            tool_calls = [
                call
                if call["id"] and call["id"] not in ids[:place]
                else cast("ToolCall", {**call, "id": uuid.uuid4().hex})
                for place, call in enumerate(message.tool_calls)
            ]
            changed = tool_calls != message.tool_calls
            update = {"messages": [message.model_copy(update={"tool_calls": tool_calls})]} if changed else {}
            return update, [_read_call(call, node.prefix) for call in tool_calls if call["id"] not in answered]
    return {}, []


def _interrupt_for_approval(run: GuardedRun, decided: list[tuple[Call, Decision]]) -> list[tuple[Call, Decision]]:
    """Interrupt the graph if calls require approval and no approval function is available."""
    open_ = [place for place, (_, decision) in enumerate(decided) if decision.action == "ask"]
    if not open_:
        return decided
    pending = [decided[place] for place in open_]
    answers = interrupt({
        "action_requests": [
            {"name": call.tool, "args": dict(call.arguments), "description": decision.reason}
            for call, decision in pending
        ],
        "review_configs": [
            {"action_name": call.tool, "allowed_decisions": ["approve", "reject"]} for call, _ in pending
        ],
    })["decisions"]  # fmt: skip
    if len(answers) != len(pending):
        raise ValueError(f"{len(pending)} calls wait for a decision each, and {len(answers)} decisions came")
    for place, (call, _), answer in zip(open_, pending, answers, strict=True):
        if answer["type"] not in ("approve", "reject"):
            raise ValueError(f"a decision on {call.tool} is of type approve or reject, not {answer['type']}")
        decision = run.begin(call, approved=answer["type"] == "approve")
        if answer["type"] == "reject" and answer.get("message"):
            decision = dataclasses.replace(decision, reason=f"{decision.reason}: {answer['message']}")
        decided[place] = call, decision
    return decided


def _build_refusal(tool_call: ToolCall, decision: Decision) -> ToolMessage:
    text = format_refusal(decision)
    return ToolMessage(text, name=tool_call["name"], tool_call_id=tool_call["id"], status="error")


def _read_result(call: Call, message: ToolMessage) -> Result:
    return Result(call.tool, call.arguments, to_json_value(message.content), call.id, message.status == "error")


def _record_result(turn: GraphTurn, call: Call, result: Returned, decision: Decision) -> Returned:
    """Record a result, which is a message or a command that contains one; append a warning to it."""
    message: object = result
    if isinstance(result, Command):
        messages = result.update.get("messages", ()) if isinstance(result.update, dict) else ()
        message = next((found for found in messages if isinstance(found, ToolMessage)), None)
    found = (
        _read_result(call, message)
        if isinstance(message, ToolMessage)
        else Result(call.tool, call.arguments, id=call.id)
    )
    turn.run.result(found)
    turn.recorded.add(call.id)
    if isinstance(result, ToolMessage) and isinstance(result.content, str):
        return result.model_copy(update={"content": append_warning(result.content, decision)})
    return result


def _find_trailing_results(messages: Sequence[AnyMessage]) -> list[ToolMessage]:
    """Find the results after the last answer."""
    last = next((place for place in reversed(range(len(messages))) if isinstance(messages[place], AIMessage)), -1)
    return [found for found in messages[last + 1 :] if isinstance(found, ToolMessage)]


def _find_new_messages(messages: Sequence[AnyMessage], last: str | None) -> Sequence[AnyMessage]:
    """Find the messages after the last recorded one; if that one is missing, those after the last answer."""
    for place in reversed(range(len(messages))):
        if messages[place].id == last and last is not None:
            return messages[place + 1 :]
    if last is None:
        return messages
    answers = [place for place, message in enumerate(messages) if isinstance(message, AIMessage)]
    return messages[answers[-1] + 1 :] if answers else messages
