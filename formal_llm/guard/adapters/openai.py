"""A loop of one's own around the client of OpenAI, Responses or chat completions.

::

    loop = ResponsesLoop(guard, tools)
    items = [loop.user("Refund order 7.")]
    while True:
        response = client.responses.create(model=..., input=items, tools=tools, tool_choice=loop.tool_choice())
        turn = loop.turn(response)
        items += [*response.output, *turn.run({"refund": refund, ...})]
        if turn.done:
            break

The tools of the requests stay as they are, so the cached prefix of the prompt stays too: which of them are legal is
said in ``tool_choice`` (``allowed_tools``). A refused call gets its output like any other: the reason and the way on. A
response that was streamed goes in as a whole: ``stream.get_final_response()``, ``stream.get_final_completion()``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from formal_llm.guard.adapters.loops import GuardedLoop, Item, RequestedCall, Turn, WireFormat
from formal_llm.guard.adapters.plumbing import find_legal_tools, read_arguments
from formal_llm.guard.events import Call
from formal_llm.guard.guard import Guard
from formal_llm.guard.live import GuardedRun

if TYPE_CHECKING:
    from openai.types.chat import (
        ChatCompletion,
        ChatCompletionMessageToolCallUnion,
        ChatCompletionToolChoiceOptionParam,
    )
    from openai.types.responses import Response, ResponseCustomToolCall, ResponseFunctionToolCall
    from openai.types.responses.response_create_params import ToolChoice


#: A tool as it stands in a request.
Tool: TypeAlias = Mapping[str, Any]


class _ResponsesWire:
    """How outputs are written for the Responses API."""

    def write_output(self, asked: RequestedCall[Any], text: str, *, error: bool) -> Item:  # it has no flag for errors
        kind = "custom_tool_call_output" if asked.native.type == "custom_tool_call" else "function_call_output"
        return {"type": kind, "call_id": asked.id, "output": text}

    def write_items(self, outputs: Sequence[Item], said: str | None) -> list[Item]:
        return [*outputs, *([{"role": "developer", "content": said}] if said else ())]


class _ChatWire:
    """How outputs are written for chat completions."""

    def write_output(self, asked: RequestedCall[Any], text: str, *, error: bool) -> Item:  # it has no flag for errors
        return {"role": "tool", "tool_call_id": asked.id, "content": text}

    def write_items(self, outputs: Sequence[Item], said: str | None) -> list[Item]:
        return [*outputs, *([{"role": "user", "content": said}] if said else ())]


class _OpenAILoop(GuardedLoop[Any]):
    """What both APIs share: the tools, and how those that are legal are named."""

    wire_format: ClassVar[type[WireFormat[Any]]]

    def __init__(self, run: Guard | GuardedRun, tools: Iterable[Tool], *, most_early: int = 3) -> None:
        super().__init__(run, self.wire_format(), most_early)
        self.tools = tuple(tools)

    def _choose_tools(self, *, required: bool) -> tuple[Literal["none", "auto", "required"], list[Tool]]:
        """The mode of the choice, and the tools that may be called now where these are some of them.

        Those that the provider itself runs are not ours to forbid.
        """
        names = {name for tool in self.tools if (name := _get_tool_name(tool)) is not None}
        listed_now = find_legal_tools(self.run, names)
        legal = [tool for tool in self.tools if (name := _get_tool_name(tool)) is None or name in listed_now]
        mode: Literal["auto", "required"] = "required" if required else "auto"
        return mode if legal else "none", legal if len(legal) < len(self.tools) else []


class ResponsesLoop(_OpenAILoop):
    """A run over the Responses API under a guard.

    Args:
        run: the guard, or a run of one: with its approval, its record, or a state to go on from.
        tools: the tools of the requests.
        most_early: how many answers in a row that come too early are sent back.
    """

    wire_format = _ResponsesWire

    def tool_choice(self, *, required: bool = False) -> ToolChoice:
        """What goes into the request as ``tool_choice``: the tools that are legal now.

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

    def turn(self, response: Response) -> Turn[ResponseFunctionToolCall | ResponseCustomToolCall]:
        """Check the calls of an answer as a sequence.

        Raises:
            EarlyAnswer: it is an answer that comes too early, once too often.
        """
        return self._check_turn(_read_response_calls(response), response.output_text, paused=False)

    async def aturn(self, response: Response) -> Turn[ResponseFunctionToolCall | ResponseCustomToolCall]:
        """As ``turn``; a person who is asked is waited for."""
        return await self._acheck_turn(_read_response_calls(response), response.output_text, paused=False)


class ChatLoop(_OpenAILoop):
    """A run over chat completions under a guard, of OpenAI or of a server that speaks like it.

    Args:
        run: the guard, or a run of one: with its approval, its record, or a state to go on from.
        tools: the tools of the requests.
        most_early: how many answers in a row that come too early are sent back.
    """

    wire_format = _ChatWire

    def tool_choice(self, *, required: bool = False) -> ChatCompletionToolChoiceOptionParam:
        """What goes into the request as ``tool_choice``: the tools that are legal now.

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

    def turn(self, completion: ChatCompletion) -> Turn[ChatCompletionMessageToolCallUnion]:
        """Check the calls of an answer as a sequence.

        Raises:
            EarlyAnswer: it is an answer that comes too early, once too often.
        """
        return self._check_turn(
            _read_completion_calls(completion), completion.choices[0].message.content or "", paused=False
        )

    async def aturn(self, completion: ChatCompletion) -> Turn[ChatCompletionMessageToolCallUnion]:
        """As ``turn``; a person who is asked is waited for."""
        return await self._acheck_turn(
            _read_completion_calls(completion), completion.choices[0].message.content or "", paused=False
        )


def _read_response_calls(response: Response) -> list[RequestedCall[Any]]:
    asked: list[RequestedCall[Any]] = []
    for item in response.output:
        if item.type == "function_call":
            asked.append(_build_requested_call(item, item.call_id, item.name, read_arguments(item.arguments)))
        elif item.type == "custom_tool_call":
            asked.append(_build_requested_call(item, item.call_id, item.name, {"input": item.input}))
    return asked


def _read_completion_calls(completion: ChatCompletion) -> list[RequestedCall[Any]]:
    asked: list[RequestedCall[Any]] = []
    for call in completion.choices[0].message.tool_calls or ():
        if call.type == "custom":
            asked.append(_build_requested_call(call, call.id, call.custom.name, {"input": call.custom.input}))
        else:
            asked.append(
                _build_requested_call(call, call.id, call.function.name, read_arguments(call.function.arguments))
            )
    return asked


def _build_requested_call(
    native: object, id_: str, tool: str, arguments: Mapping[str, Any] | None
) -> RequestedCall[Any]:
    return RequestedCall(native, id_, tool, None if arguments is None else Call(tool, arguments, id_))


def _get_tool_name(tool: Mapping[str, Any]) -> str | None:
    """The name of a tool that the caller runs; None for one of the provider."""
    kind = tool.get("type", "function")
    if kind not in ("function", "custom"):
        return None
    found = tool.get("name", tool.get(kind, {}).get("name"))
    return None if found is None else str(found)
