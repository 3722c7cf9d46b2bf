"""OpenAI Agents: what stands between a run and its model: which tools it is shown, and answers that come too early."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeAlias

from agents import FunctionTool, Model, ModelProvider, ModelResponse, ModelRetryAdvice, ModelRetryAdviceRequest, Usage
from agents.items import TResponseOutputItem, TResponseStreamEvent

from formal_llm.agents.guard.adapters.plumbing import find_legal_tools
from formal_llm.agents.guard.events import Decision, Said
from formal_llm.agents.guard.live import GuardedRun
from formal_llm.errors import EarlyAnswer

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
