"""OpenAI Agents: the tools of an agent under a guard (``pip install 'formal-llm[openai-agents]'``).

::

    guarded = GuardedAgents(guard)
    result = await Runner.run(guarded.agent(agent), "Refund order 7.", run_config=guarded.config())

One ``GuardedAgents`` is one run, or one conversation. It makes copies of the agent, its hand-offs, tools and MCP
servers, so the agent itself stays as it is and may be run elsewhere at the same time. The model is shown the tools for
which some call is legal; each call is checked by an input guardrail of its tool, and a refusal goes back to the model;
an answer that comes too early is sent back before the run sees it.

Tools that are not legal are not disabled (``is_enabled``): a model that calls a disabled tool ends the run with an
error, and here it is told why, and what it can do.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeAlias, cast

from formal_llm.errors import EarlyAnswer, MissingDependency
from formal_llm.guard.adapters.plumbing import (
    find_legal_tools,
    format_refusal,
    format_warning,
    read_arguments,
    to_json_value,
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
        run: the guard, or a run of one: with its approval, its record, or a state to go on from.
        interrupt: whether calls for which the rules want a person interrupt the run (``result.interruptions``), to go
            on with ``state.approve(...)`` or ``state.reject(...)``. Else the run's ``approve`` is asked; where it has
            none, the call is refused. Calls of MCP tools are never interrupted for the guard.
        hide: whether the model is shown only tools for which some call is legal. Without it the tools stay the same,
            and with them the cached prefix of the prompt; calls are refused when they come.
        most_early: how many answers in a row that come too early are sent back.

    Raises:
        EarlyAnswer: in a run, when one more comes.
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

    # -- copies of what is run ------------------------------------------------------------------------------------

    def agent(self, agent: Agent[TContext]) -> Agent[TContext]:
        """A copy of an agent under the guard, with those that it hands off to."""
        for original, made in self._copies.values():
            if agent is original or agent is made:
                return cast("Agent[TContext]", made)
        made = agent.clone(
            tools=[self._guard_tool(tool) if isinstance(tool, FunctionTool) else tool for tool in agent.tools],
            mcp_servers=[self._guard_server(server) for server in agent.mcp_servers],
            handoffs=list(agent.handoffs),
        )
        if isinstance(agent.model, Model):
            made.model = GuardedModel(agent.model, self._talk)
        if agent.tool_use_behavior != "run_llm_again":
            made.tool_use_behavior = self._guard_ending(agent.tool_use_behavior)
        self._copies[id(agent)] = agent, made
        made.handoffs = [
            self.agent(handoff) if isinstance(handoff, Agent) else self._guard_handoff(handoff)
            for handoff in agent.handoffs
        ]
        return made

    def config(self, config: RunConfig | None = None) -> RunConfig:
        """The configuration of a run under the guard: its models are guarded, errors of tools are told."""
        config = RunConfig() if config is None else config
        formatter = config.tool_error_formatter

        async def note_failure(args: Any) -> str | None:
            if args.kind == "tool_exception":
                self._failed.add(args.call_id)
            found = None if formatter is None else formatter(args)
            return await found if inspect.isawaitable(found) else found

        model = GuardedModel(config.model, self._talk) if isinstance(config.model, Model) else config.model
        provider = GuardedProvider(config.model_provider, self._talk)
        return dataclasses.replace(config, model=model, model_provider=provider, tool_error_formatter=note_failure)

    def _guard_tool(self, tool: FunctionTool) -> FunctionTool:
        made = copy.copy(tool)
        made.tool_input_guardrails = [*(tool.tool_input_guardrails or ()), self._check]
        made.tool_output_guardrails = [self._tell, *(tool.tool_output_guardrails or ())]
        if (in_words := tool._failure_error_function) is not None:
            made._failure_error_function = self._wrap_error_function(in_words)
        if tool.timeout_seconds is not None:
            made.timeout_error_function = self._wrap_error_function(tool.timeout_error_function or _describe_timeout)
        if self.interrupt:
            own = tool.needs_approval

            async def is_approval_needed(context: RunContextWrapper[Any], arguments: dict[str, Any], id_: str) -> bool:
                wanted = own if isinstance(own, bool) else await own(context, arguments, id_)
                return wanted or self.run.state.check(Call(tool.name, arguments, id_)).action == "ask"

            made.needs_approval = is_approval_needed
        return made

    def _wrap_error_function(self, in_words: Any) -> Any:
        """A function of a tool that puts errors into words, which notes that its call failed."""

        async def note_failure(context: Any, error: Exception) -> str:
            self._failed.add(context.tool_call_id)
            found = in_words(context, error)
            return cast("str", await found if inspect.isawaitable(found) else found)

        return note_failure

    def _guard_server(self, server: MCPServer) -> MCPServer:
        made = copy.copy(server)
        made.tool_input_guardrails = [*(server.tool_input_guardrails or ()), self._check]
        made.tool_output_guardrails = [self._tell, *(server.tool_output_guardrails or ())]
        return made

    def _guard_handoff(self, handoff: Handoff[Any, Any]) -> Handoff[Any, Any]:
        invoke = handoff.on_invoke_handoff

        async def invoke_guarded(context: RunContextWrapper[Any], text: str) -> Agent[Any]:
            return self.agent(await invoke(context, text))

        return dataclasses.replace(handoff, on_invoke_handoff=invoke_guarded)

    def _guard_ending(self, behavior: Any) -> Any:
        """The way in which results of tools end a run, which does not end it too early."""

        async def decide_ending(context: RunContextWrapper[Any], results: list[Any]) -> ToolsToFinalOutputResult:
            results = [one for one in results if _get_call_id(one) not in self._refused]
            if not results:  # the model has to read the refusals
                return ToolsToFinalOutputResult(is_final_output=False)
            if callable(behavior):
                found = behavior(context, results)
                found = await found if inspect.isawaitable(found) else found
            else:
                names = None if behavior == "stop_on_first_tool" else behavior["stop_at_tool_names"]
                last = next((one for one in results if names is None or one.tool.name in names), None)
                found = ToolsToFinalOutputResult(last is not None, None if last is None else last.output)
            if found.is_final_output and not self.run.stop().runs:
                return ToolsToFinalOutputResult(is_final_output=False)
            return cast("ToolsToFinalOutputResult", found)

        return decide_ending

    # -- calls --------------------------------------------------------------------------------------------------

    async def _check_call(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Check a call when it is about to be made."""
        context = data.context
        call = _read_call(context)
        approved = context.is_tool_approved(context.tool_name, context.tool_call_id) or None
        decision = await self.run.abegin(call, approved=approved)
        if not decision.runs:
            self._refused.add(call.id)
            return ToolGuardrailFunctionOutput.reject_content(format_refusal(decision), decision.rule)
        self._decided[call.id] = decision
        return ToolGuardrailFunctionOutput.allow(decision.rule)

    async def _record_result(self, data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Tell the result of a call; behind that of a call against a rule that warns, the model reads the warning."""
        call = _read_call(data.context)
        failed = call.id in self._failed
        self.run.result(Result(call.tool, call.arguments, to_json_value(data.output), call.id, failed))
        decision = self._decided.pop(call.id, None)
        if decision is not None and decision.action == "warn":
            return ToolGuardrailFunctionOutput.reject_content(
                f"{data.output}\n\n{format_warning(decision)}", decision.rule
            )
        return ToolGuardrailFunctionOutput.allow()


def _describe_timeout(context: Any, error: Exception) -> str:  # noqa: ARG001  # the words of the SDK for a tool without its own
    assert isinstance(error, ToolTimeoutError)
    return default_tool_timeout_error_message(tool_name=error.tool_name, timeout_seconds=error.timeout_seconds)


def _read_call(context: Any) -> Call:
    return Call(context.tool_name, read_arguments(context.tool_arguments) or {}, context.tool_call_id)


def _get_call_id(result: Any) -> str | None:
    """The id of the call that a result of a tool belongs to."""
    raw = getattr(result.run_item, "raw_item", None)
    return raw.get("call_id") if isinstance(raw, dict) else getattr(raw, "call_id", None)


#: What stands in an answer that is not the end of a run: calls that are made on this side.
_CALLS = (
    "function_call", "custom_tool_call", "computer_call", "shell_call", "local_shell_call", "apply_patch_call",
    "mcp_approval_request",
)  # fmt: skip
#: The arguments of a request that are given by place.
_NAMES = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
#: What a model is asked with, by the names of the arguments.
Request: TypeAlias = dict[str, Any]


class ModelConversation:
    """What the models of a run share.

    Args:
        run: the run.
        hide: whether they are shown only tools for which some call is legal.
        most_early: how many answers in a row that come too early are sent back.
    """

    def __init__(self, run: GuardedRun, *, hide: bool, most_early: int) -> None:
        self.run = run
        self.hide = hide
        self.most_early = most_early
        self._heard: str | None = None

    def record_user_text(self, request: Request) -> None:
        """Tell what users said since the last answer; a request that is tried again says nothing new."""
        said = _find_last_user_text(request["input"])
        if said is not None and said != self._heard:
            self.run.said(Said("user", said))
        self._heard = said

    def restrict_tools(self, request: Request) -> Request:
        """A request to a model with the tools for which some call is legal."""
        if not self.hide:
            return request
        tools = request["tools"]
        names = {tool.name for tool in tools if isinstance(tool, FunctionTool)}
        legal = find_legal_tools(self.run, names)
        settings = request["model_settings"]
        if settings.tool_choice in names - legal:
            settings = dataclasses.replace(settings, tool_choice=None)
        shown = [tool for tool in tools if not isinstance(tool, FunctionTool) or tool.name in legal]
        return {**request, "tools": shown, "model_settings": settings}

    def record_answer(self, output: Sequence[TResponseOutputItem]) -> Decision | None:
        """Tell an answer; why it comes too early, where it does."""
        self._heard = None
        self.run.new_turn()
        parts = [part for item in output if item.type == "message" for part in item.content]
        if text := "".join(part.text for part in parts if part.type == "output_text"):
            self.run.said(Said("assistant", text))
        if any(item.type in _CALLS for item in output):
            return None
        decision = self.run.stop()
        return None if decision.runs else decision

    def build_retry(self, request: Request, answer: ModelResponse, decision: Decision, times: int) -> Request:
        """The request after an answer that came too early."""
        if times >= self.most_early:
            raise EarlyAnswer(decision, self.most_early)
        said = {"role": "user", "content": decision.message}
        if request["conversation_id"] is not None:
            return {**request, "input": [said]}
        if request["previous_response_id"] is not None:
            return {**request, "input": [said], "previous_response_id": answer.response_id}
        before = request["input"]
        items = [{"role": "user", "content": before}] if isinstance(before, str) else list(before)
        return {**request, "input": [*items, *answer.to_input_items(), said]}


class GuardedModel(Model):
    """A model whose early answers are sent back, and which is shown the tools that are legal."""

    def __init__(self, model: Model, talk: ModelConversation) -> None:
        self._model = model
        self._talk = talk

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """What the model advises."""
        return self._model.get_retry_advice(request)

    async def get_response(self, *args: object, **kwargs: object) -> ModelResponse:
        """The first answer that does not come too early, at the cost of all."""
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
        """As ``get_response``; of an answer that comes too early, all but its end is streamed as well."""
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
        """The model of a name, guarded."""
        return GuardedModel(self._provider.get_model(model_name), self._talk)

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()


def _find_last_user_text(given: Any) -> str | None:
    """What the user said last, after everything else; None where something came after it."""
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
