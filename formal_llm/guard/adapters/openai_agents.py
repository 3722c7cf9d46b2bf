"""OpenAI Agents: the tools of an agent under a guard (``pip install 'formal-llm[openai-agents]'``).

::

    guarded = GuardedAgents(guard)
    result = await Runner.run(guarded.agent(agent), "Refund order 7.", run_config=guarded.config())

One ``GuardedAgents`` is one run, or one conversation. It copies the agent, its hand-offs, tools (and the agents behind
them: ``as_tool``) and MCP servers, so the agent itself stays unchanged and may be run elsewhere at the same time. The
model sees the tools for which some call is legal; an input guardrail of each tool checks its calls, and a refusal is
sent to the model; a premature answer is sent back before the run sees it.

Illegal tools are not disabled (``is_enabled``): a call of a disabled tool ends the run with an error, whereas here the
model receives the reason, and what it can do.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import CellType, FunctionType
from typing import Any, TypeAlias, cast

from formal_llm.errors import EarlyAnswer, MissingDependency
from formal_llm.guard.adapters.plumbing import (
    find_legal_tools,
    find_outer_call,
    format_refusal,
    format_warning,
    read_arguments,
    to_json_value,
    within_call,
)
from formal_llm.guard.events import Call, Decision, Result, Said
from formal_llm.guard.guard import Guard
from formal_llm.guard.live import GuardedRun

try:
    from agents import (
        Agent,
        FunctionTool,
        Handoff,
        Model,
        ModelProvider,
        ModelResponse,
        ModelRetryAdvice,
        ModelRetryAdviceRequest,
        RunConfig,
        RunContextWrapper,
        TContext,
        ToolGuardrailFunctionOutput,
        ToolInputGuardrail,
        ToolInputGuardrailData,
        ToolOutputGuardrail,
        ToolOutputGuardrailData,
        ToolsToFinalOutputResult,
        ToolTimeoutError,
        Usage,
    )
    from agents.items import TResponseOutputItem, TResponseStreamEvent
    from agents.mcp import MCPServer
    from agents.tool import default_tool_timeout_error_message
except ImportError as error:
    raise MissingDependency("this adapter needs OpenAI Agents: pip install 'formal-llm[openai-agents]'") from error


class GuardedAgents:
    """Agents of the OpenAI Agents SDK under a guard, for one run.

    Args:
        run: the guard, or a run of a guard with an approval function, a record, or a state to continue from.
        interrupt: whether calls that require approval interrupt the run (``result.interruptions``), which continues
            with ``state.approve(...)`` or ``state.reject(...)``. Otherwise the run's ``approve`` is called; without
            one, the call is refused. Calls of MCP tools are never interrupted by the guard.
        hide: whether the model sees only tools for which some call is legal. Otherwise the tools stay the same,
            which keeps the cached prefix of the prompt, and illegal calls are refused.
        most_early: the maximum number of consecutive premature answers that are sent back.

    Raises:
        EarlyAnswer: in a run, if one more premature answer follows.
    """

    def __init__(
        self, run: Guard | GuardedRun, *, interrupt: bool = False, hide: bool = True, most_early: int = 3
    ) -> None:
        self.run = run if isinstance(run, GuardedRun) else GuardedRun(run)
        self.interrupt = interrupt
        self._talk = ModelConversation(self.run, hide=hide, most_early=most_early)
        self._copies: dict[int, tuple[Agent[Any], Agent[Any]]] = {}
        self._decided: dict[str, Decision] = {}
        self._failed: set[str] = set()
        self._refused: set[str] = set()
        self._check: ToolInputGuardrail[Any] = ToolInputGuardrail(
            guardrail_function=self._check_call, name="formal_llm"
        )
        self._tell: ToolOutputGuardrail[Any] = ToolOutputGuardrail(
            guardrail_function=self._record_result, name="formal_llm"
        )

    # -- guarded copies -------------------------------------------------------------------------------------------

    def agent(self, agent: Agent[TContext]) -> Agent[TContext]:
        """Return a copy of an agent under the guard, including the agents that it hands off to, or has as tools.

        Raises:
            ValueError: the agent behind a tool cannot be replaced by its copy.
        """
        for original, guarded in self._copies.values():
            if agent is original or agent is guarded:
                return cast("Agent[TContext]", guarded)
        guarded = agent.clone(mcp_servers=[self._guard_server(server) for server in agent.mcp_servers])
        if isinstance(agent.model, Model):
            guarded.model = GuardedModel(agent.model, self._talk)
        if agent.tool_use_behavior != "run_llm_again":
            guarded.tool_use_behavior = self._guard_ending(agent.tool_use_behavior)
        self._copies[id(agent)] = agent, guarded
        guarded.tools = [self._guard_tool(tool) if isinstance(tool, FunctionTool) else tool for tool in agent.tools]
        guarded.handoffs = [
            self.agent(handoff) if isinstance(handoff, Agent) else self._guard_handoff(handoff)
            for handoff in agent.handoffs
        ]
        return guarded

    def config(self, config: RunConfig | None = None) -> RunConfig:
        """Return the configuration of a run under the guard: its models are guarded, and tool failures are recorded."""
        config = RunConfig() if config is None else config
        formatter = config.tool_error_formatter

        async def note_failure(args: Any) -> str | None:
            if args.kind == "tool_exception":
                self._failed.add(self._qualify_id(args.call_id))
            message = None if formatter is None else formatter(args)
            return await message if inspect.isawaitable(message) else message

        model = GuardedModel(config.model, self._talk) if isinstance(config.model, Model) else config.model
        provider = GuardedProvider(config.model_provider, self._talk)
        return dataclasses.replace(config, model=model, model_provider=provider, tool_error_formatter=note_failure)

    def _guard_tool(self, tool: FunctionTool) -> FunctionTool:
        guarded = copy.copy(tool)
        guarded.tool_input_guardrails = [*(tool.tool_input_guardrails or ()), self._check]
        guarded.tool_output_guardrails = [self._tell, *(tool.tool_output_guardrails or ())]
        if (in_words := tool._failure_error_function) is not None:
            guarded._failure_error_function = self._wrap_error_function(in_words)
        if tool.timeout_seconds is not None:
            guarded.timeout_error_function = self._wrap_error_function(tool.timeout_error_function or _describe_timeout)
        if self.interrupt:
            own = tool.needs_approval

            async def is_approval_needed(context: RunContextWrapper[Any], arguments: dict[str, Any], id_: str) -> bool:
                needed = own if isinstance(own, bool) else await own(context, arguments, id_)
                return needed or self.run.state.check(Call(tool.name, arguments, id_)).action == "ask"

            guarded.needs_approval = is_approval_needed
        if isinstance(behind := tool._agent_instance, Agent):
            guarded._agent_instance = self.agent(behind)
            guarded.on_invoke_tool = self._guard_agent_tool(guarded)
        return guarded

    def _guard_agent_tool(self, tool: FunctionTool) -> Callable[..., Awaitable[Any]]:
        """Return what a tool that runs an agent invokes, with the guarded copy of the agent.

        The SDK keeps the agent and its configuration only in the closure of the function that runs it.
        """
        invoker = copy.copy(tool.on_invoke_tool)
        run: Any = getattr(invoker, "_invoke_tool_impl", None)
        if not {"self", "run_config"} <= set(getattr(getattr(run, "__code__", None), "co_freevars", ())):
            raise ValueError(
                f"the agent behind the tool {tool.name} cannot be guarded, because this version of the SDK makes such "
                "tools in another way; make the tool from a guarded copy: guarded.agent(sub).as_tool(...)"
            )
        cells = dict(zip(run.__code__.co_freevars, run.__closure__, strict=True))
        cells["self"] = CellType(tool._agent_instance)
        if (config := cells["run_config"].cell_contents) is not None:
            cells["run_config"] = CellType(self.config(config))
        run = FunctionType(run.__code__, run.__globals__, run.__name__, run.__defaults__, tuple(cells.values()))

        async def run_within(context: Any, text: str) -> object:
            with within_call(self.run, self._qualify_id(context.tool_call_id)):
                return await run(context, text)

        invoker._invoke_tool_impl = run_within  # type: ignore[attr-defined]  # it was read above
        return invoker

    def _wrap_error_function(self, in_words: Any) -> Any:
        """Wrap the function that describes errors of a tool so that it records the failure of the call."""

        async def note_failure(context: Any, error: Exception) -> str:
            self._failed.add(self._qualify_id(context.tool_call_id))
            message = in_words(context, error)
            return cast("str", await message if inspect.isawaitable(message) else message)

        return note_failure

    def _guard_server(self, server: MCPServer) -> MCPServer:
        guarded = copy.copy(server)
        guarded.tool_input_guardrails = [*(server.tool_input_guardrails or ()), self._check]
        guarded.tool_output_guardrails = [self._tell, *(server.tool_output_guardrails or ())]
        return guarded

    def _guard_handoff(self, handoff: Handoff[Any, Any]) -> Handoff[Any, Any]:
        invoke = handoff.on_invoke_handoff

        async def invoke_guarded(context: RunContextWrapper[Any], text: str) -> Agent[Any]:
            return self.agent(await invoke(context, text))

        return dataclasses.replace(handoff, on_invoke_handoff=invoke_guarded)

    def _guard_ending(self, behavior: Any) -> Any:
        """Wrap the behaviour that ends a run after tool results so that it does not end the run prematurely."""

        async def decide_ending(context: RunContextWrapper[Any], results: list[Any]) -> ToolsToFinalOutputResult:
            results = [one for one in results if self._qualify_id(_get_call_id(one)) not in self._refused]
            if not results:  # the model has to read the refusals
                return ToolsToFinalOutputResult(is_final_output=False)
            if callable(behavior):
                ending = behavior(context, results)
                ending = await ending if inspect.isawaitable(ending) else ending
            else:
                names = None if behavior == "stop_on_first_tool" else behavior["stop_at_tool_names"]
                last = next((one for one in results if names is None or one.tool.name in names), None)
                ending = ToolsToFinalOutputResult(last is not None, None if last is None else last.output)
            if ending.is_final_output and not find_outer_call(self.run.guard) and not self.run.stop().runs:
                return ToolsToFinalOutputResult(is_final_output=False)
            return cast("ToolsToFinalOutputResult", ending)

        return decide_ending

    # -- calls --------------------------------------------------------------------------------------------------

    def _qualify_id(self, call_id: str) -> str:
        """Return the id of a call in the run: behind that of the call of the tool, if the agent is one."""
        outer = find_outer_call(self.run.guard)
        return call_id if outer is None else outer.prefix + call_id

    def _read_call(self, context: Any) -> Call:
        arguments = read_arguments(context.tool_arguments) or {}
        return Call(context.tool_name, arguments, self._qualify_id(context.tool_call_id))

    async def _check_call(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        context = data.context
        call = self._read_call(context)
        approved = context.is_tool_approved(context.tool_name, context.tool_call_id) or None
        decision = await self.run.abegin(call, approved=approved)
        if not decision.runs:
            self._refused.add(call.id)
            return ToolGuardrailFunctionOutput.reject_content(format_refusal(decision), decision.rule)
        self._decided[call.id] = decision
        return ToolGuardrailFunctionOutput.allow(decision.rule)

    async def _record_result(self, data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Record the result of a call; append the warning if the call breaks a rule that warns."""
        call = self._read_call(data.context)
        failed = call.id in self._failed
        self.run.result(Result(call.tool, call.arguments, to_json_value(data.output), call.id, failed))
        decision = self._decided.pop(call.id, None)
        if decision is not None and decision.action == "warn":
            return ToolGuardrailFunctionOutput.reject_content(
                f"{data.output}\n\n{format_warning(decision)}", decision.rule
            )
        return ToolGuardrailFunctionOutput.allow()


def _describe_timeout(context: Any, error: Exception) -> str:  # noqa: ARG001  # the SDK's message for tools without their own
    assert isinstance(error, ToolTimeoutError)
    return default_tool_timeout_error_message(tool_name=error.tool_name, timeout_seconds=error.timeout_seconds)


def _get_call_id(result: Any) -> str:
    """Return the id of the call to which a tool result belongs; empty if it has none."""
    raw = getattr(result.run_item, "raw_item", None)
    return (raw.get("call_id") if isinstance(raw, dict) else getattr(raw, "call_id", None)) or ""


#: The item types that keep an answer from ending the run: calls that the client makes.
_CALLS = (
    "function_call", "custom_tool_call", "computer_call", "shell_call", "local_shell_call", "apply_patch_call",
    "mcp_approval_request",
)  # fmt: skip
#: The names of the positional arguments of a request.
_NAMES = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
#: The arguments of a request to a model, by name.
Request: TypeAlias = dict[str, Any]


class ModelConversation:
    """The state that the models of a run share.

    Args:
        hide: whether they see only tools for which some call is legal.
        most_early: the maximum number of consecutive premature answers that are sent back.
    """

    def __init__(self, run: GuardedRun, *, hide: bool, most_early: int) -> None:
        self.run = run
        self.hide = hide
        self.most_early = most_early
        self._heard: str | None = None

    def record_user_text(self, request: Request) -> None:
        """Record the texts of users since the last answer; a repeated request adds nothing.

        An agent that is a tool is addressed by another agent, and not by a user.
        """
        if find_outer_call(self.run.guard):
            return
        text = _find_last_user_text(request["input"])
        if text is not None and text != self._heard:
            self.run.said(Said("user", text))
        self._heard = text

    def restrict_tools(self, request: Request) -> Request:
        """Return a request with only the tools for which some call is legal."""
        if not self.hide:
            return request
        tools = request["tools"]
        names = {tool.name for tool in tools if isinstance(tool, FunctionTool)}
        legal = find_legal_tools(self.run, names)
        settings = request["model_settings"]
        if settings.tool_choice in names - legal:
            settings = dataclasses.replace(settings, tool_choice=None)
        visible = [tool for tool in tools if not isinstance(tool, FunctionTool) or tool.name in legal]
        return {**request, "tools": visible, "model_settings": settings}

    def record_answer(self, output: Sequence[TResponseOutputItem]) -> Decision | None:
        """Record an answer; return the decision against it if it is premature.

        The answer of an agent that is a tool is the result of the tool: it neither ends the run nor is read by a user.
        """
        self.run.new_turn()
        if find_outer_call(self.run.guard):
            return None
        self._heard = None
        parts = [part for item in output if item.type == "message" for part in item.content]
        if text := "".join(part.text for part in parts if part.type == "output_text"):
            self.run.said(Said("assistant", text))
        if any(item.type in _CALLS for item in output):
            return None
        decision = self.run.stop()
        return None if decision.runs else decision

    def build_retry(self, request: Request, answer: ModelResponse, decision: Decision, times: int) -> Request:
        """Build the request after a premature answer."""
        if times >= self.most_early:
            raise EarlyAnswer(decision, self.most_early)
        message = {"role": "user", "content": decision.message}
        if request["conversation_id"] is not None:
            return {**request, "input": [message]}
        if request["previous_response_id"] is not None:
            return {**request, "input": [message], "previous_response_id": answer.response_id}
        previous = request["input"]
        items = [{"role": "user", "content": previous}] if isinstance(previous, str) else list(previous)
        return {**request, "input": [*items, *answer.to_input_items(), message]}


class GuardedModel(Model):
    """A model that sees only the legal tools, and whose premature answers are sent back."""

    def __init__(self, model: Model, talk: ModelConversation) -> None:
        self._model = model
        self._talk = talk

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return the advice of the model."""
        return self._model.get_retry_advice(request)

    async def get_response(self, *args: object, **kwargs: object) -> ModelResponse:
        """Return the first answer that is not premature, with the usage of all answers."""
        request: Request = {**dict(zip(_NAMES, args, strict=False)), **kwargs}
        self._talk.record_user_text(request)
        usage = None
        times = 0
        while True:
            answer = await self._model.get_response(**self._talk.restrict_tools(request))
            if usage is not None:
                usage.add(answer.usage)
                answer = dataclasses.replace(answer, usage=usage)
            early = self._talk.record_answer(answer.output)
            if early is None:
                return answer
            usage = answer.usage
            request = self._talk.build_retry(request, answer, early, times)
            times += 1

    async def stream_response(self, *args: object, **kwargs: object) -> AsyncIterator[TResponseStreamEvent]:
        """Do the same as ``get_response`` as a stream; a premature answer is streamed too, except for its end."""
        request: Request = {**dict(zip(_NAMES, args, strict=False)), **kwargs}
        self._talk.record_user_text(request)
        times = 0
        while True:
            early = None
            async for event in self._model.stream_response(**self._talk.restrict_tools(request)):
                if event.type == "response.completed":
                    early = self._talk.record_answer(event.response.output)
                    if early is not None:
                        answer = ModelResponse(event.response.output, Usage(), event.response.id)
                        request = self._talk.build_retry(request, answer, early, times)
                        times += 1
                        continue
                yield event
            if early is None:
                return


class GuardedProvider(ModelProvider):
    """A provider of models whose models are guarded."""

    def __init__(self, provider: ModelProvider, talk: ModelConversation) -> None:
        self._provider = provider
        self._talk = talk

    def get_model(self, model_name: str | None) -> Model:
        """Return the model with a name, guarded."""
        return GuardedModel(self._provider.get_model(model_name), self._talk)

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()


def _find_last_user_text(given: Any) -> str | None:
    """Find the texts of the user at the end of the input; return None if it ends with something else."""
    if isinstance(given, str):
        return given
    texts: list[str] = []
    for item in reversed(given):
        if item.get("role") != "user":
            break
        content = item["content"]
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        texts[:0] = ["\n".join(parts)]
    return "\n".join(texts) if texts else None
