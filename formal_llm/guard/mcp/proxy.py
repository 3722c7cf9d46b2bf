"""The server that a client sees: it lists the tools that the rules allow now, and checks each call again.

A client of the protocols up to 2025-11-25 receives a notification when the list changes; a client of 2026-07-28
receives it if it listens. A person is asked by elicitation: by a request in the old protocols, by a result that
requires input in the new one.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.caching import CacheHint
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from formal_llm.guard.events import Call, Decision, GuardEvent, Result
from formal_llm.guard.guard import Guard
from formal_llm.guard.live import Audit, GuardedRun
from formal_llm.guard.mcp.upstreams import OfferedTool, Upstream, assign_tool_names
from formal_llm.guard.shell import add_effects
from formal_llm.planning.json_data import JSON


def register_passthrough(server: Server, upstreams: Sequence[Upstream]) -> None:
    """Let a server offer the resources and prompts of the servers behind it, if these have any."""
    if any(one.has_capability("resources") for one in upstreams):
        _ResourceHandlers([one for one in upstreams if one.has_capability("resources")]).register_handlers(server)
    if any(one.has_capability("prompts") for one in upstreams):
        _PromptHandlers([one for one in upstreams if one.has_capability("prompts")]).register_handlers(server)


class _ResourceHandlers:
    def __init__(self, upstreams: Sequence[Upstream]) -> None:
        self.upstreams = upstreams

    def register_handlers(self, server: Server[Any]) -> None:
        server.add_request_handler("resources/list", PaginatedRequestParams, self.list_resources)
        server.add_request_handler("resources/templates/list", PaginatedRequestParams, self.list_templates)
        server.add_request_handler("resources/read", ReadResourceRequestParams, self.read_resource)

    async def list_resources(
        self, _: ServerRequestContext[Any], __: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        return ListResourcesResult(resources=[found for one in self.upstreams for found in await one.list_resources()])

    async def list_templates(
        self, _: ServerRequestContext[Any], __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        templates = [templates for one in self.upstreams for templates in await one.list_templates()]
        return ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        self, _: ServerRequestContext[Any], params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """Return the resource from the first server that has it."""
        error: MCPError | None = None
        for one in self.upstreams:
            try:
                return await one.client.read_resource(params.uri)
            except MCPError as told:
                error = error or told
        raise error or MCPError(INVALID_PARAMS, f"there is no resource {params.uri}")


class _PromptHandlers:
    def __init__(self, upstreams: Sequence[Upstream]) -> None:
        self.upstreams = upstreams

    def register_handlers(self, server: Server[Any]) -> None:
        server.add_request_handler("prompts/list", PaginatedRequestParams, self.list_prompts)
        server.add_request_handler("prompts/get", GetPromptRequestParams, self.get_prompt)

    async def list_prompts(self, _: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[found for one in self.upstreams for found in await one.list_prompts()])

    async def get_prompt(self, _: ServerRequestContext[Any], params: GetPromptRequestParams) -> GetPromptResult:
        """Return the prompt from the first server that has one with that name."""
        for one in self.upstreams:
            if any(found.name == params.name for found in await one.list_prompts()):
                return await one.client.get_prompt(params.name, params.arguments)
        raise MCPError(INVALID_PARAMS, f"there is no prompt {params.name}")


_log = logging.getLogger("formal_llm.guard")

_APPROVE: dict[str, Any] = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Approve this call"}},
    "required": ["approve"],
}
#: The maximum number of characters of the arguments that a person sees.
_SHOWN = 2_000
#: The maximum number of open questions to persons.
_MOST_OPEN = 1_000


class McpProxy:
    """The guard as an MCP server.

    Args:
        guarded: makes the guard for a set of tools.
        audit: receives each line of the record.
        past: the events after which the run goes on.
    """

    def __init__(
        self, guarded: Callable[[Sequence[str]], Guard], audit: Audit | None = None, past: Sequence[GuardEvent] = ()
    ) -> None:
        self._guarded = guarded
        self._audit = audit
        self._past = past
        self._bus = InMemorySubscriptionBus()
        self._sessions: dict[int, ServerSession] = {}
        self._asked: dict[str, Call] = {}
        # A result belongs to the call with its id, so none of the past is used again.
        self._calls = max((int(one.id) for one in past if isinstance(one, Call) and one.id.isdecimal()), default=0)
        self._offered: dict[str, OfferedTool] = {}
        self._listed: tuple[str, ...] | None = None
        self._lock = anyio.Lock()
        self.upstreams: list[Upstream] = []
        self.run: GuardedRun
        self.server: Server[Any] = Server(
            "formal-llm-guard",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus),
            cache_hints={"tools/list": CacheHint(ttl_ms=0)},
        )

    async def attach_upstreams(self, upstreams: Sequence[Upstream]) -> None:
        """Offer the tools of connected servers.

        Raises:
            ToolkitError: a server lists its tools incorrectly.
        """
        self.upstreams = list(upstreams)
        await self.refresh_tools()
        register_passthrough(self.server, self.upstreams)

    async def refresh_tools(self) -> None:
        """Request the tools of the servers again; the state of the run is kept."""
        async with self._lock:
            offered = assign_tool_names([(one, await one.list_tools()) for one in self.upstreams])
            if offered.keys() != self._offered.keys() or not hasattr(self, "run"):
                guard = self._guarded(list(offered))
                state = guard.start()
                for event in self.run.state.history if hasattr(self, "run") else self._past:
                    state = state.after(event)
                self.run = GuardedRun(guard, state=state, audit=self._audit)
            self._offered = offered

    async def upstream_changed(self) -> None:
        """Handle a change in the offers of a server."""
        await self.refresh_tools()
        await self._notify_clients(None)

    # -- requests of clients --------------------------------------------------------------------------------------

    async def _list_tools(self, ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        self._remember_session(ctx.session)
        self._listed = self._find_legal_tools()
        return ListToolsResult(tools=[self._offered[name].tool for name in self._listed])

    def _remember_session(self, session: ServerSession) -> None:
        """Remember a client of the old protocols to notify it of changes, once for each connection."""
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._sessions[id(session.client_params)] = session

    def _find_legal_tools(self) -> tuple[str, ...]:
        return tuple(name for name in self.run.state.allowed_tools() if name in self._offered)

    async def _call_tool(
        self, ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        target = self._offered.get(params.name)
        if target is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name}")
        answered: bool | None = None
        call = self._build_call(params)
        if params.request_state is not None:
            pending = self._asked.pop(params.request_state, None)
            if pending is None or (pending.tool, pending.arguments) != (call.tool, call.arguments):
                raise MCPError(INVALID_PARAMS, "this call was not asked about; make it again")
            call, answered = pending, _has_approved((params.input_responses or {}).get("approve"))
        decision = self.run.begin(call, approved=answered)
        if decision.action == "ask":
            if not _can_ask(ctx):
                return await self._refuse_call(
                    ctx, f"{decision.reason} This needs the approval of a person, and this client cannot ask one."
                )
            if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return self._ask_by_answer(call, decision)
            reply = await ctx.session.elicit_form(
                _write_question(call, decision), _APPROVE, related_request_id=ctx.request_id
            )
            decision = self.run.begin(call, approved=_has_approved(reply))
        if not decision.runs:
            return await self._refuse_call(ctx, decision.message)
        return await self._forward_call(ctx, target, call, params, decision)

    def _build_call(self, params: CallToolRequestParams) -> Call:
        self._calls += 1
        self.run.new_turn()  # each request is one call with its own id
        return Call(params.name, add_effects(params.name, params.arguments or {}), f"{self._calls}")

    def _ask_by_answer(self, call: Call, decision: Decision) -> InputRequiredResult:
        token = secrets.token_urlsafe(24)
        self._asked[token] = call
        while len(self._asked) > _MOST_OPEN:
            self._asked.pop(next(iter(self._asked)))
        form = ElicitRequestFormParams(message=_write_question(call, decision), requested_schema=_APPROVE)
        return InputRequiredResult(input_requests={"approve": ElicitRequest(params=form)}, request_state=token)

    async def _refuse_call(self, ctx: ServerRequestContext[Any], told: str) -> CallToolResult:
        await self._notify_clients(ctx.session)
        return CallToolResult(content=[TextContent(type="text", text=told)], is_error=True)

    async def _forward_call(
        self,
        ctx: ServerRequestContext[Any],
        target: OfferedTool,
        call: Call,
        params: CallToolRequestParams,
        decision: Decision,
    ) -> CallToolResult:
        """Make the call, and record its result, however it ends."""

        async def forward_progress(progress: float, total: float | None, message: str | None) -> None:
            await ctx.session.report_progress(progress, total, message)

        value: JSON = "the call was cancelled"
        failed = True
        try:
            answer = await target.upstream.client.call_tool(
                target.name, params.arguments, progress_callback=forward_progress
            )
            value, failed = _extract_value(answer), bool(answer.is_error)
        except MCPError as error:
            value = error.error.message
            raise
        except Exception as error:
            value = f"the MCP server {target.upstream.server.name} failed: {error}"
            raise MCPError(-32603, value) from error
        finally:
            self.run.result(Result(call.tool, call.arguments, value, call.id, failed))
            with anyio.CancelScope(shield=True):
                await self._notify_clients(ctx.session)
        if decision.message:  # a warning
            note = TextContent(type="text", text=decision.message)
            return answer.model_copy(update={"content": [*answer.content, note]})
        return answer

    async def _notify_clients(self, session: ServerSession | None) -> None:
        """Notify clients if the list has changed since they last requested it."""
        if self._listed is None or self._listed == self._find_legal_tools():
            return
        self._listed = self._find_legal_tools()
        await self._bus.publish(ToolsListChanged())
        if session is not None:
            self._remember_session(session)
        for key, one in list(self._sessions.items()):
            try:
                await one.send_tool_list_changed()
            except Exception as error:  # a lost client must not break the call of another
                _log.warning("a client could not be told of a change: %s", error)
                self._sessions.pop(key, None)


def _extract_value(answer: CallToolResult) -> JSON:
    """Extract the result of a tool as data: its structured content, else its texts, else its blocks."""
    if answer.structured_content is not None:
        content: JSON = answer.structured_content
        # Servers wrap a value that is not an object: {"result": 3}.
        if isinstance(content, dict) and content.keys() == {"result"}:
            inner: JSON = content["result"]
            return inner
        return content
    texts = [block.text for block in answer.content if isinstance(block, TextContent)]
    if len(texts) == len(answer.content):
        return "\n".join(texts)
    return [block.model_dump(mode="json", exclude_none=True) for block in answer.content]


def _can_ask(ctx: ServerRequestContext[Any]) -> bool:
    """Return whether the client can show a form; a client that declares no mode can."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _write_question(call: Call, decision: Decision) -> str:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    arguments = arguments if len(arguments) <= _SHOWN else f"{arguments[:_SHOWN]} ... ({len(arguments):,} characters)"
    return f"{decision.reason}\n\nThe agent wants to call {call.tool} with {arguments}. May it?"


def _has_approved(answer: object) -> bool:
    if isinstance(answer, ElicitResult):
        return answer.action == "accept" and (answer.content or {}).get("approve") is True
    if isinstance(answer, Mapping):
        content = answer.get("content")
        return answer.get("action") == "accept" and isinstance(content, Mapping) and content.get("approve") is True
    return False
