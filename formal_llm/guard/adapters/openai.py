"""A custom loop around the client of OpenAI, for Responses or chat completions.

::

    loop = ResponsesLoop(guard, tools)
    items = [loop.user("Refund order 7.")]
    while True:
        response = client.responses.create(model=..., input=items, tools=tools, tool_choice=loop.tool_choice())
        turn = loop.turn(response)
        items += [*response.output, *turn.run({"refund": refund, ...})]
        if turn.done:
            break

The tools of the requests stay the same, which keeps the cached prefix of the prompt: ``tool_choice`` specifies which of
them are legal (``allowed_tools``). A refused call gets an output like any other: the reason and the way on. Pass a
streamed response as a whole: ``stream.get_final_response()``, ``stream.get_final_completion()``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from formal_llm.guard.adapters.loops import GuardedLoop, Item, ModelAnswer, Native, RequestedCall, Response
from formal_llm.guard.adapters.plumbing import find_legal_tools, read_arguments
from formal_llm.guard.events import Call
from formal_llm.guard.guard import Guard
from formal_llm.guard.live import GuardedRun

if TYPE_CHECKING:
    from openai.types import responses
    from openai.types.chat import (
        ChatCompletion,
        ChatCompletionMessageToolCallUnion,
        ChatCompletionToolChoiceOptionParam,
    )
    from openai.types.responses.response_create_params import ToolChoice

    ResponseCall: TypeAlias = responses.ResponseFunctionToolCall | responses.ResponseCustomToolCall


#: A tool in the form of a request.
Tool: TypeAlias = Mapping[str, Any]


class _OpenAILoop(GuardedLoop[Response, Native]):
    """The common part of both APIs: the tools, and the choice of the legal ones."""

    def __init__(self, run: Guard | GuardedRun, tools: Iterable[Tool], *, most_early: int = 3) -> None:
        super().__init__(run, most_early=most_early)
        self.tools = tuple(tools)

    def _choose_tools(self, *, required: bool) -> tuple[Literal["none", "auto", "required"], list[Tool]]:
        """Return the mode of the choice, and the tools that may be called now if these are only some of them.

        Tools that the provider runs itself cannot be forbidden here.
        """
        names = {name for tool in self.tools if (name := _get_tool_name(tool)) is not None}
        listed_now = find_legal_tools(self.run, names)
        legal = [tool for tool in self.tools if (name := _get_tool_name(tool)) is None or name in listed_now]
        mode: Literal["auto", "required"] = "required" if required else "auto"
        return mode if legal else "none", legal if len(legal) < len(self.tools) else []


class ResponsesLoop(_OpenAILoop["responses.Response", "ResponseCall"]):
    """A run over the Responses API under a guard.

    Args:
        run: the guard, or a run of a guard with an approval function, a record, or a state to continue from.
        most_early: the maximum number of consecutive premature answers that are sent back.
    """

    def tool_choice(self, *, required: bool = False) -> ToolChoice:
        """Return the ``tool_choice`` of the next request: the tools that are legal now.

        Args:
            required: whether the model has to call one, so that it cannot answer yet.
        """
        mode, legal = self._choose_tools(required=required)
        if mode == "none" or not legal:
            return mode
        tools: list[dict[str, object]] = [
            {key: tool[key] for key in ("type", "name", "server_label") if key in tool} for tool in legal
        ]
        return {"type": "allowed_tools", "mode": mode, "tools": tools}

    def read_answer(self, response: responses.Response) -> ModelAnswer[ResponseCall]:
        """Read a response."""
        return ModelAnswer(_read_response_calls(response), response.output_text)

    def write_output(self, asked: RequestedCall[ResponseCall], text: str, *, error: bool) -> Item:
        """Write an item with the output of a call; there is no flag for errors."""
        kind = "custom_tool_call_output" if asked.native.type == "custom_tool_call" else "function_call_output"
        return {"type": kind, "call_id": asked.id, "output": text}

    def write_items(self, outputs: Sequence[Item], back: str | None) -> list[Item]:
        """Write the items of the next request."""
        return [*outputs, *([{"role": "developer", "content": back}] if back else ())]


class ChatLoop(_OpenAILoop["ChatCompletion", "ChatCompletionMessageToolCallUnion"]):
    """A run over chat completions under a guard, of OpenAI or a compatible server.

    Args:
        run: the guard, or a run of a guard with an approval function, a record, or a state to continue from.
        most_early: the maximum number of consecutive premature answers that are sent back.
    """

    def tool_choice(self, *, required: bool = False) -> ChatCompletionToolChoiceOptionParam:
        """Return the ``tool_choice`` of the next request: the tools that are legal now.

        Args:
            required: whether the model has to call one, so that it cannot answer yet.
        """
        mode, legal = self._choose_tools(required=required)
        if mode == "none" or not legal:
            return mode
        tools: list[dict[str, object]] = [
            {"type": kind, kind: {"name": _get_tool_name(tool)}}
            for tool in legal
            for kind in [tool.get("type", "function")]
        ]
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}

    def read_answer(self, response: ChatCompletion) -> ModelAnswer[ChatCompletionMessageToolCallUnion]:
        """Read a completion."""
        return ModelAnswer(_read_completion_calls(response), response.choices[0].message.content or "")

    def write_output(self, asked: RequestedCall[ChatCompletionMessageToolCallUnion], text: str, *, error: bool) -> Item:
        """Write a message with the output of a call; there is no flag for errors."""
        return {"role": "tool", "tool_call_id": asked.id, "content": text}

    def write_items(self, outputs: Sequence[Item], back: str | None) -> list[Item]:
        """Write the messages of the next request."""
        return [*outputs, *([{"role": "user", "content": back}] if back else ())]


def _read_response_calls(response: responses.Response) -> list[RequestedCall[Any]]:
    requested: list[RequestedCall[Any]] = []
    for item in response.output:
        if item.type == "function_call":
            requested.append(_build_requested_call(item, item.call_id, item.name, read_arguments(item.arguments)))
        elif item.type == "custom_tool_call":
            requested.append(_build_requested_call(item, item.call_id, item.name, {"input": item.input}))
    return requested


def _read_completion_calls(completion: ChatCompletion) -> list[RequestedCall[Any]]:
    requested: list[RequestedCall[Any]] = []
    for call in completion.choices[0].message.tool_calls or ():
        if call.type == "custom":
            requested.append(_build_requested_call(call, call.id, call.custom.name, {"input": call.custom.input}))
        else:
            requested.append(
                _build_requested_call(call, call.id, call.function.name, read_arguments(call.function.arguments))
            )
    return requested


def _build_requested_call(
    native: object, id_: str, tool: str, arguments: Mapping[str, Any] | None
) -> RequestedCall[Any]:
    return RequestedCall(native, id_, tool, None if arguments is None else Call(tool, arguments, id_))


def _get_tool_name(tool: Mapping[str, Any]) -> str | None:
    """Return the name of a tool that the caller runs; None for a tool of the provider."""
    kind = tool.get("type", "function")
    if kind not in ("function", "custom"):
        return None
    name = tool.get("name", tool.get(kind, {}).get("name"))
    return None if name is None else str(name)
