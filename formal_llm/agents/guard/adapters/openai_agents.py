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
from typing import Any, cast

from formal_llm.agents.guard.adapters.plumbing import format_refusal, format_warning, read_arguments, to_json_value
from formal_llm.agents.guard.events import Call, Decision, Result
from formal_llm.agents.guard.guard import Guard
from formal_llm.agents.guard.live import GuardedRun
from formal_llm.errors import MissingDependency

try:
    from agents import (
        Agent,
        FunctionTool,
        Handoff,
        Model,
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
    )
    from agents.mcp import MCPServer
    from agents.tool import default_tool_timeout_error_message

    from formal_llm.agents.guard.adapters.agents_model import GuardedModel, GuardedProvider, ModelConversation
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
