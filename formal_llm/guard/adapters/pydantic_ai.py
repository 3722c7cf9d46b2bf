"""PydanticAI 2: a capability that guards the tools of an agent (``pip install 'formal-llm[pydantic-ai]'``).

``Agent(model, tools=[...], capabilities=[GuardCapability(guard)])``: the model sees the tools for which some call is
legal, each call is checked again, a refusal is sent to the model as a retry with the reason and the way on, and a
premature answer is sent back.

Each run has its own state. A run with a message history starts from the events in that history, so approvals in a
later run, and conversations, work across processes.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

from formal_llm.errors import MissingDependency
from formal_llm.guard.adapters.plumbing import (
    OuterCall,
    find_legal_tools,
    find_outer_call,
    format_refusal,
    format_warning,
    read_arguments,
    to_json_value,
    within_call,
)
from formal_llm.guard.events import Call, Decision, Result, Said
from formal_llm.guard.guard import Guard, GuardState
from formal_llm.guard.live import SAID_NO, Approve, Audit, GuardedRun

try:
    from pydantic_ai import ModelRetry, RunContext, SkipToolExecution, ToolReturn
    from pydantic_ai.capabilities import AbstractCapability, ValidatedToolArgs, WrapToolExecuteHandler
    from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.output import OutputContext
    from pydantic_ai.settings import ModelSettings, ToolOrOutput
    from pydantic_ai.tools import AgentDepsT, ToolDefinition
except ImportError as error:
    raise MissingDependency("this adapter needs PydanticAI 2: pip install 'formal-llm[pydantic-ai]'") from error

#: The text that PydanticAI writes for a call that it skipped because it already had the answer.
_LEFT_OUT = "Tool not executed"
#: The causes of a retry which mean that the call was not made at all.
_NOT_MADE = ("validation_error", "unknown_tool", "unavailable_tool")


class GuardCapability(AbstractCapability[AgentDepsT]):
    """The tools of a PydanticAI agent under a guard.

    Args:
        approve: asks a person about calls that require approval. Without it they become deferred tool requests
            (``ApprovalRequired``), like PydanticAI's own: give the agent ``DeferredToolRequests`` as an output type,
            or a capability that handles them.
        audit: receives each line of the record of each run.
        hide: whether the model sees only tools for which some call is legal. With "choice" it sees all, and
            ``tool_choice`` (``ToolOrOutput``) names the legal ones: a provider that supports allowed tools, such as
            OpenAI, keeps the cached prefix of the prompt. With False it sees all, and illegal calls are refused.
        refusal: "retry" sends a refusal as ``ModelRetry``, which counts against the tool's retries: an agent that
            insists is stopped. "failed" sends it as ``ToolFailed``, which does not count; this is also used for tools
            without retries.
        final: whether an answer ends the run. In a conversation it hands over to the user, which is also allowed if
            the next event on the shortest way is a text of the user.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        approve: Approve | None = None,
        audit: Audit | None = None,
        hide: bool | Literal["choice"] = True,
        refusal: Literal["retry", "failed"] = "retry",
        final: bool = True,
    ) -> None:
        self.guard = guard
        self.approve = approve
        self.audit = audit
        self.hide = hide
        self.refusal = refusal
        self.final = final
        self._run: GuardedRun | None = None
        self._outer: OuterCall | None = None
        self._begun: set[str] = set()
        self._told: set[str] = set()

    @property
    def run(self) -> GuardedRun:
        """The run of this instance: each run of an agent has its own instance."""
        if self._run is None:
            self._run = self._start_run(self.guard.start())
        return self._run

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> GuardCapability[AgentDepsT]:
        """Return an instance for one run, which starts from the message history.

        An agent that a tool of another agent under the same guard runs takes part in the run of that agent.
        """
        instance = copy.copy(self)
        instance._outer = outer = find_outer_call(self.guard)
        instance._run = outer.run if outer else self._start_run(replay_messages(self.guard.start(), ctx.messages))
        instance._begun = set()
        instance._told = set(_find_results([message for message in ctx.messages if isinstance(message, ModelRequest)]))
        return instance

    def _start_run(self, state: GuardState) -> GuardedRun:
        return GuardedRun(self.guard, state=state, approve=self.approve, audit=self.audit, final=self.final)

    async def before_run(self, ctx: RunContext[AgentDepsT]) -> None:
        """Record the text of the user."""
        if self._outer is None and (text := _read_text(ctx.prompt)) is not None:
            self.run.said(Said("user", text))

    # -- the model ----------------------------------------------------------------------------------------------

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Show the model the tools for which some call is legal."""
        self._catch_up(request_context.messages)
        parameters = request_context.model_request_parameters
        if not self.hide or not parameters.function_tools:
            return request_context
        names = [tool.name for tool in parameters.function_tools]
        legal = find_legal_tools(self.run, names)
        if self.hide == "choice":
            settings = ModelSettings(**(request_context.model_settings or {}))
            settings["tool_choice"] = ToolOrOutput([name for name in names if name in legal]) if legal else "none"
            return dataclasses.replace(request_context, model_settings=settings)
        visible = [tool for tool in parameters.function_tools if tool.name in legal]
        return dataclasses.replace(
            request_context, model_request_parameters=dataclasses.replace(parameters, function_tools=visible)
        )

    async def after_model_request(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Record the text of the assistant; its calls follow one by one, in their order."""
        self.run.new_turn()
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        if text and self._outer is None:
            self.run.said(Said("assistant", text))
        return response

    def _catch_up(self, messages: Sequence[ModelMessage]) -> None:
        """Record the results from outside, of external tools and of deferred calls, and calls that were interrupted.

        A call whose run ended while its tool was running counts, since the tool may have done its work.
        """
        place = next((n for n in reversed(range(len(messages))) if isinstance(messages[n], ModelResponse)), None)
        answer = None if place is None else messages[place]
        if place is None or not isinstance(answer, ModelResponse):
            return
        returns = _find_results(messages[place + 1 :])
        for part in answer.tool_calls:
            result = returns.get(part.tool_call_id)
            if (
                result is None
                or result.outcome not in ("success", "interrupted")
                or part.tool_call_id in self._told
                or not _has_been_made(result)
            ):
                continue
            call = Call(part.tool_name, read_arguments(part.args) or {}, part.tool_call_id)
            if result.outcome == "interrupted" and not self.run.state.check(call).runs:
                continue  # it was not begun: a person was to be asked, or it was refused
            if call.id not in self._begun:
                self.run.made(self._qualify_call(call))
            self._record_result(call, result.content, error=result.outcome == "interrupted")

    # -- calls --------------------------------------------------------------------------------------------------

    async def after_tool_validate(
        self, ctx: RunContext[AgentDepsT], *, call: ToolCallPart, tool_def: ToolDefinition, args: ValidatedToolArgs
    ) -> ValidatedToolArgs:
        """Check the calls that PydanticAI does not make itself, before a person is asked or they are sent outside."""
        if tool_def.kind == "unapproved" and not ctx.tool_call_approved:
            decision = self.run.state.check(self._qualify_call(_read_call(call, tool_def, args)))
            if decision.action == "block":
                raise self._build_refusal(ctx, decision)
        elif tool_def.kind == "external":
            decision = await self.run.abegin(self._qualify_call(_read_call(call, tool_def, args)))
            if not decision.runs:
                raise self._build_refusal(ctx, decision)
            self._begun.add(call.tool_call_id)
        return args

    async def wrap_tool_execute(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: ValidatedToolArgs,
        handler: WrapToolExecuteHandler,
    ) -> object:
        """Check a call, make it, and record its result."""
        guarded_call = _read_call(call, tool_def, args)
        run_call = self._qualify_call(guarded_call)
        decision = await self.run.abegin(run_call, approved=True if ctx.tool_call_approved else None)
        if decision.action == "ask":
            raise ApprovalRequired(metadata={"rule": decision.rule, "reason": decision.reason})
        if not decision.runs:
            raise self._build_refusal(ctx, decision)
        self._begun.add(guarded_call.id)
        try:
            with within_call(self.run, run_call.id):
                value = await handler(args)
        except (ApprovalRequired, CallDeferred):
            raise
        except SkipToolExecution as skipped:
            self._record_result(guarded_call, skipped.result)
            raise
        except Exception as error:
            self._record_result(guarded_call, str(error), error=True)
            raise
        self._record_result(guarded_call, value)
        if decision.action != "warn":
            return value
        if isinstance(value, ToolReturn):
            contents = [value.content] if isinstance(value.content, str) else list(value.content or ())
            return dataclasses.replace(value, content=[*contents, format_warning(decision)])
        return ToolReturn(return_value=value, content=format_warning(decision))

    def _qualify_call(self, call: Call) -> Call:
        """Return a call with its id in the run: behind that of the outer call, if there is one."""
        return call if self._outer is None else dataclasses.replace(call, id=self._outer.prefix + call.id)

    def _record_result(self, call: Call, value: object, *, error: bool = False) -> None:
        self._told.add(call.id)
        content = value.return_value if isinstance(value, ToolReturn) else value
        id_ = self._qualify_call(call).id
        self.run.result(Result(call.tool, call.arguments, to_json_value(content), id_, error))

    def _build_refusal(self, ctx: RunContext[AgentDepsT], decision: Decision) -> ModelRetry | ToolFailed:
        # A tool without retries would end the run at its first refusal.
        counts = self.refusal == "retry" and ctx.max_retries > 0
        return ModelRetry(format_refusal(decision)) if counts else ToolFailed(format_refusal(decision))

    # -- the answer ---------------------------------------------------------------------------------------------

    async def before_output_process(
        self, ctx: RunContext[AgentDepsT], *, output_context: OutputContext, output: object
    ) -> object:
        """Send back a premature answer; it counts against the retries of the output."""
        if not ctx.partial_output and self._outer is None:
            decision = self.run.stop()
            if not decision.runs:
                raise ModelRetry(decision.message)
        return output


def _read_call(call: ToolCallPart, tool_def: ToolDefinition, args: Mapping[str, object]) -> Call:
    """Read a call for the rules: the arguments of the schema that the model sees, with the values to be used."""
    raw = read_arguments(call.args) or {}
    known = tool_def.parameters_json_schema.get("properties", {})
    used = to_json_value(args)
    if all(name in known for name in used):
        raw = {**raw, **used}
    return Call(call.tool_name, raw, call.tool_call_id)


def _read_text(prompt: object) -> str | None:
    """Read the text of a prompt, without its images and files."""
    if prompt is None or isinstance(prompt, str):
        return prompt
    parts = prompt if isinstance(prompt, Sequence) else [prompt]
    return "\n".join(part if isinstance(part, str) else str(getattr(part, "content", "")) for part in parts)


def replay_messages(state: GuardState, messages: Sequence[ModelMessage]) -> GuardState:
    """Return the state after the events of a message history: texts, the calls that were made, their results.

    A call that was refused, by this guard or by a person, or that has no result yet, was not made.
    """
    for place, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, UserPromptPart) and (text := _read_text(part.content)) is not None:
                    state = state.after(Said("user", text))
            continue
        if text := "".join(part.content for part in message.parts if isinstance(part, TextPart)):
            state = state.after(Said("assistant", text))
        returns = _find_results(messages[place + 1 :])
        results: list[Result] = []
        for tool_call in message.tool_calls:
            answer = returns.get(tool_call.tool_call_id)
            if answer is not None and _has_been_made(answer):
                call = Call(tool_call.tool_name, read_arguments(tool_call.args) or {}, tool_call.tool_call_id)
                decision = state.check(call)
                error = answer.outcome in ("failed", "retried", "interrupted")
                if error and (decision.action == "block" or SAID_NO in str(answer.content)):
                    continue  # it was refused, as it would be now
                state = state.after(dataclasses.replace(call, approved=decision.action == "ask"))
                results.append(Result(call.tool, call.arguments, to_json_value(answer.content), call.id, error))
        for result in results:
            state = state.after(result)
    return state


def _find_results(later: Sequence[ModelMessage]) -> dict[str, ToolReturnPart]:
    """Find the results before the next answer of the model."""
    found: dict[str, ToolReturnPart] = {}
    for message in later:
        if not isinstance(message, ModelRequest):
            break
        found.update({part.tool_call_id: part for part in message.parts if isinstance(part, ToolReturnPart)})
    return found


def _has_been_made(answer: ToolReturnPart) -> bool:
    if answer.outcome == "denied":
        return False
    if answer.outcome == "retried":
        return answer.retry is None or answer.retry.cause not in _NOT_MADE
    return not (isinstance(answer.content, str) and answer.content.startswith(_LEFT_OUT))
