"""What the endpoint knows of the APIs: chat completions and Responses of OpenAI, and Anthropic's Messages.

A dialect reads a conversation and an answer as events, and writes what the endpoint changes: the tools that are sent
on, an answer without its refused calls, the next request with the reasons. Everything else passes unchanged.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, cast

from formal_llm.guard.adapters.plumbing import read_arguments
from formal_llm.guard.events import Call, Said
from formal_llm.guard.shell.commands import add_effects
from formal_llm.guard.traces.reading import add_items, add_messages
from formal_llm.guard.traces.trace import Trace, TraceBuilder
from formal_llm.planning.json_data import JSON

#: A request, an answer, or a part of one, as JSON.
Body: TypeAlias = dict[str, Any]
#: An event of a stream: its name, empty in chat completions, and its data.
StreamEvent: TypeAlias = tuple[str, Body]


@dataclass(frozen=True)
class AskedCall:
    """A call that an answer asks for.

    Attributes:
        id: the provider's identifier.
        call: the call as the rules see it; None if its arguments are no JSON object.
        place: which of the calls, blocks or items of the answer it is.
    """

    id: str
    tool: str
    call: Call | None
    place: int


#: What an answer consists of, in its order.
AnswerPart: TypeAlias = AskedCall | Said


class ForcedToolError(Exception):
    """The request demands a call of a tool that cannot be called now."""

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.tool = tool


class StreamReader(ABC):
    """Puts the answer together while its stream arrives.

    Attributes:
        answer: the answer, as it would come without a stream.
        passed: how much of it was passed on: characters, blocks or items.
        ended: whether the answer is complete.
        is_split: whether the name of a tool came in pieces, which clients read differently.
    """

    def __init__(self) -> None:
        self.answer: Body = {}
        self.passed = 0
        self.ended = self.is_split = False
        self._has_calls = False

    @abstractmethod
    def add_event(self, event: Body) -> bool:
        """Add an event; return whether it may be passed on before the calls of the answer are known.

        What ends the answer is held back, and everything from its first call on.
        """


class Dialect(ABC):
    """One API. A body is never changed: what is changed is a copy."""

    path: ClassVar[str]
    provider: ClassVar[Literal["openai", "anthropic"]] = "openai"
    reader: ClassVar[type[StreamReader]]
    #: The choice of no tool.
    no_tools: ClassVar[JSON] = "none"

    # -- requests -----------------------------------------------------------------------------------------------

    def restore_request(self, request: Body) -> Body:
        """Return a request without the marks of :meth:`mark_calls`."""
        return request

    @abstractmethod
    def find_obstacle(self, request: Body) -> str:
        """Return why a request cannot be guarded; empty if it can."""

    def read_past(self, request: Body) -> Trace:
        """Read what has happened from the conversation.

        Raises:
            TraceError: it is no list of objects.
        """
        made = TraceBuilder("request")
        add_messages(made, request.get("messages"))
        return made.build_trace()

    def list_tools(self, request: Body) -> list[str]:
        """List the names of the tools of a request."""
        return [name_tool(tool) for tool in request.get("tools") or ()]

    def restrict_tools(self, request: Body, is_closed: Callable[[str], bool]) -> Body:
        """Return a request that offers only the tools that may be called now.

        Raises:
            ForcedToolError: it demands a call of one that may not, or of any while there is none.
        """
        closed = {name for name in self.list_tools(request) if is_closed(name)}
        if not closed:
            return request
        choice = request.get("tool_choice")
        if (forced := _find_forced_tool(choice)) in closed:
            raise ForcedToolError(str(forced))
        tools = [tool for tool in request["tools"] if name_tool(tool) not in closed]
        listed = _find_listed_tools(choice)
        if not tools or (listed is not None and all(name_tool(one) in closed for one in listed)):
            if _is_demand(choice):
                raise ForcedToolError("any tool")
            return {**request, "tool_choice": self.no_tools}
        if listed is None or not isinstance(choice, dict):
            return {**request, "tools": tools}
        kept = [one for one in listed if name_tool(one) not in closed]
        nested = choice.get("allowed_tools")
        changed = {"allowed_tools": {**nested, "tools": kept}} if nested else {"tools": kept}
        return {**request, "tools": tools, "tool_choice": {**choice, **changed}}

    @abstractmethod
    def ask_again(self, request: Body, answer: Body, refusals: Mapping[str, str], reason: str) -> Body:
        """Return the next request after an answer that is refused as a whole.

        Args:
            request: the request.
            answer: the answer.
            refusals: for each of its calls by id, why it was not made.
            reason: why the answer is not accepted, if it has no calls.
        """

    # -- answers ------------------------------------------------------------------------------------------------

    @abstractmethod
    def read_answer(self, answer: Body) -> list[AnswerPart]:
        """Read the texts and calls of an answer.

        Raises:
            LookupError, TypeError, TraceError: it is none.
        """

    def mark_calls(self, answer: Body) -> Body:
        """Return an answer whose calls can be recognized where a later request only refers to them."""
        return answer

    def is_paused(self, answer: Body) -> bool:
        """Return whether an answer without calls is to be continued unchanged."""
        return bool(answer.get("stop_reason") == "pause_turn")

    @abstractmethod
    def drop_calls(self, answer: Body, places: set[int], note: str) -> Body:
        """Return an answer without some of its calls, and with a text that explains why."""

    @abstractmethod
    def replace_by_text(self, answer: Body, text: str) -> Body:
        """Return an answer that consists of a text."""

    @abstractmethod
    def keep_beginning(self, first: Body, passed: int, answer: Body) -> Body:
        """Return an answer that begins with what was passed on of an earlier one."""

    @abstractmethod
    def write_rest(self, answer: Body, passed: int, *, begun: bool) -> Iterator[StreamEvent]:
        """Write an answer as a stream, without what was passed on already."""

    def write_error(self, message: str) -> Body:
        """Write an error as the API does."""
        return {"error": {"message": message, "type": "guard_refused", "param": None, "code": None}}


class _ListDialect(Dialect):
    """An API whose answers are lists of texts and calls, among others."""

    #: The field of an answer that has the list.
    content: ClassVar[str]
    #: The types of the calls in it that the caller carries out.
    call_kinds: ClassVar[Sequence[str]]

    @abstractmethod
    def write_text(self, text: str, answer: Body) -> Body:
        """Write a text as a part of an answer."""

    def drop_calls(self, answer: Body, places: set[int], note: str) -> Body:
        parts = [part for place, part in enumerate(answer[self.content]) if place not in places]
        first = next((place for place, part in enumerate(parts) if part["type"] in self.call_kinds), len(parts))
        return {**answer, self.content: [*parts[:first], self.write_text(note, answer), *parts[first:]]}

    def replace_by_text(self, answer: Body, text: str) -> Body:
        return {**answer, self.content: [self.write_text(text, answer)]}

    def keep_beginning(self, first: Body, passed: int, answer: Body) -> Body:
        return {**answer, self.content: [*first[self.content][:passed], *answer[self.content]]}


# -- chat completions ---------------------------------------------------------------------------------------------


class _ChatStream(StreamReader):
    """The stream of a chat completion."""

    def add_event(self, event: Body) -> bool:
        choices = event.get("choices") or []
        answer = self.answer
        for key, value in event.items():
            if key != "choices" and value is not None:
                answer[key] = value
        answer["object"] = "chat.completion"
        message = answer.setdefault("choices", [{"index": 0, "message": {}, "finish_reason": None}])[0]["message"]
        for choice in choices:
            delta = choice.get("delta") or {}
            if choice.get("index") or delta.get("function_call"):
                raise ValueError("a choice that was not asked for, or a call without tools")
            named = _count_names(message)
            _merge_delta(message, delta)
            self.is_split |= _count_names(message) - named < _count_names(delta)
            if choice.get("finish_reason"):
                answer["choices"][0]["finish_reason"] = choice["finish_reason"]
                self.ended = True
        if self.ended or message.get("tool_calls"):
            return False
        self.passed = len(message.get("content") or "")
        return True


class _ChatDialect(Dialect):
    """Chat completions, of OpenAI or a compatible server."""

    path = "/v1/chat/completions"
    reader = _ChatStream

    def find_obstacle(self, request: Body) -> str:
        if request.get("n") not in (None, 1):
            return "several choices (n) cannot be guarded; ask for one"
        if request.get("functions"):
            return "functions cannot be guarded; write them as tools"
        if request.get("web_search_options") is not None:
            return "web_search_options: the messages do not show what was searched; use web_search of Responses"
        return ""

    def ask_again(self, request: Body, answer: Body, refusals: Mapping[str, str], reason: str) -> Body:
        message = answer["choices"][0]["message"]
        said = [{"role": "user", "content": reason}] if reason else []
        outputs = [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in refusals.items()]
        kept = {key: value for key, value in message.items() if value is not None}
        return {**request, "messages": [*request["messages"], kept, *outputs, *said]}

    def read_answer(self, answer: Body) -> list[AnswerPart]:
        message = answer["choices"][0]["message"]
        if len(answer["choices"]) > 1 or message.get("function_call"):
            raise TypeError("a choice that was not asked for, or a call without tools")
        parts: list[AnswerPart] = [Said("assistant", message["content"])] if message.get("content") else []
        for place, one in enumerate(message.get("tool_calls") or ()):
            if one.get("type") == "custom":
                parts.append(_build_call(one["id"], one["custom"]["name"], {"input": one["custom"]["input"]}, place))
            else:
                parts.append(_build_call(one["id"], one["function"]["name"], one["function"].get("arguments"), place))
        return parts

    def drop_calls(self, answer: Body, places: set[int], note: str) -> Body:
        message = answer["choices"][0]["message"]
        calls = [one for place, one in enumerate(message["tool_calls"]) if place not in places]
        content = _join_texts(message.get("content"), note)
        return self._with_message(answer, {**message, "content": content, "tool_calls": calls})

    def replace_by_text(self, answer: Body, text: str) -> Body:
        return self._with_message(answer, {"role": "assistant", "content": text}, "stop")

    def keep_beginning(self, first: Body, passed: int, answer: Body) -> Body:
        message = answer["choices"][0]["message"]
        begun = (first["choices"][0]["message"].get("content") or "")[:passed]
        return self._with_message(answer, {**message, "content": _join_texts(begun, message.get("content"))})

    def _with_message(self, answer: Body, message: Body, reason: str | None = None) -> Body:
        [choice] = answer["choices"][:1]
        reason = reason or choice["finish_reason"]
        return {**answer, "choices": [{**choice, "message": message, "finish_reason": reason}]}

    def write_rest(self, answer: Body, passed: int, *, begun: bool) -> Iterator[StreamEvent]:
        head = {key: value for key, value in answer.items() if key not in ("choices", "usage")}
        head["object"] = "chat.completion.chunk"
        [choice] = answer["choices"]
        message = choice["message"]
        delta: Body = {} if begun else {"role": "assistant"}
        if rest := (message.get("content") or "")[passed:]:
            delta["content"] = rest
        if calls := message.get("tool_calls"):
            delta["tool_calls"] = [{**one, "index": place} for place, one in enumerate(calls)]
        yield "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield "", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
        if answer.get("usage"):
            yield "", {**head, "choices": [], "usage": answer["usage"]}


# -- Responses ------------------------------------------------------------------------------------------------------

#: Stands in the identifier of an item before the item itself.
_MARK = ".guard."
#: Items of Responses that the caller carries out.
_CALLER_ITEMS = (
    "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call",
)  # fmt: skip


class _ResponsesStream(StreamReader):
    """The stream of a response: its last event holds the whole."""

    def add_event(self, event: Body) -> bool:
        kind = event.get("type")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self.answer = event["response"]
            self.ended = True
        elif kind == "response.output_item.added":
            self._has_calls |= event["item"].get("type") in _CALLER_ITEMS
        elif kind == "response.output_item.done" and not self._has_calls:
            self.passed = event["output_index"] + 1
        return not (self._has_calls or self.ended)


class _ResponsesDialect(_ListDialect):
    """OpenAI's Responses."""

    path = "/v1/responses"
    reader = _ResponsesStream
    content = "output"
    call_kinds = _CALLER_ITEMS

    def find_obstacle(self, request: Body) -> str:
        for key in ("previous_response_id", "conversation", "prompt", "background"):
            if request.get(key):
                return f"{key} hides the conversation from the guard; send the whole input with each request"
        items = request.get("input")
        if isinstance(items, list):
            calls = {one.get("call_id") for one in map(_resolve_reference, items) if one.get("type") in _CALLER_ITEMS}
            outputs = {one.get("call_id") for one in items if str(one.get("type")).endswith("_call_output")}
            if outputs - calls:
                return (
                    f"the call {min(map(str, outputs - calls))} has a result and is not among the items; send it, too"
                )
        if any(tool.get("type") == "mcp" for tool in request.get("tools") or ()):
            return f"a tool of type mcp {_UNSEEN}"
        return ""

    def read_past(self, request: Body) -> Trace:
        made = TraceBuilder("request")
        items = request.get("input")
        if isinstance(items, str):
            made.add_text("user", items, "input")
        else:
            items = [*map(_resolve_reference, items)] if isinstance(items, list) else items
            add_items(made, cast("JSON", items))
        return made.build_trace()

    def restore_request(self, request: Body) -> Body:
        items = request.get("input")
        if not isinstance(items, list):
            return request
        restored = [
            {**one, "id": one["id"].partition(_MARK)[0]} if _MARK in str(one.get("id")) else one for one in items
        ]
        return {**request, "input": restored}

    def mark_calls(self, answer: Body) -> Body:
        # Some clients send back a reference instead of the item, so the identifier carries the call.
        items = [_mark_item(item) if item["type"] in _CALLER_ITEMS else item for item in answer["output"]]
        return {**answer, "output": items} if items != answer["output"] else answer

    def ask_again(self, request: Body, answer: Body, refusals: Mapping[str, str], reason: str) -> Body:
        items = request["input"]
        items = [{"role": "user", "content": items}] if isinstance(items, str) else items
        kinds = {one.get("call_id"): one["type"] for one in answer["output"]}
        outputs = [
            {"type": f"{kinds[id_]}_output", "call_id": id_, "output": _write_output(kinds[id_], text)}
            for id_, text in refusals.items()
        ]
        said = [{"role": "developer", "content": reason}] if reason else []
        return {**request, "input": [*items, *answer["output"], *outputs, *said]}

    def read_answer(self, answer: Body) -> list[AnswerPart]:
        parts: list[AnswerPart] = []
        for place, item in enumerate(answer["output"]):
            if item["type"] in ("function_call", "custom_tool_call"):
                custom = item["type"] == "custom_tool_call"
                arguments = {"input": item["input"]} if custom else item["arguments"]
                parts.append(_build_call(item["call_id"], item["name"], arguments, place))
                continue
            made = TraceBuilder("answer")
            add_items(made, [item])
            for event in made.events:
                if isinstance(event, Said):
                    parts.append(event)
                elif isinstance(event, Call) and item["type"] in _CALLER_ITEMS:
                    parts.append(AskedCall(event.id, event.tool, event, place))
        return parts

    def write_text(self, text: str, answer: Body) -> Body:
        part = {"type": "output_text", "text": text, "annotations": []}
        return {"type": "message", "id": f"msg_guard_{answer.get('id', '')}", "role": "assistant",
                "status": "completed", "content": [part]}  # fmt: skip

    def write_rest(self, answer: Body, passed: int, *, begun: bool) -> Iterator[StreamEvent]:
        events: list[Body] = []
        if not begun:
            empty = {**answer, "output": [], "status": "in_progress"}
            events.append({"type": "response.created", "response": empty})
        for place, item in enumerate(answer["output"][passed:], passed):
            events += _write_item(place, item)
        events.append({"type": f"response.{answer.get('status', 'completed')}", "response": answer})
        for number, event in enumerate(events):
            yield event["type"], {**event, "sequence_number": number}


def _mark_item(item: Body) -> Body:
    kept = {key: value for key, value in item.items() if key not in ("id", "status")}
    written = urlsafe_b64encode(json.dumps(kept).encode()).decode()
    return {**item, "id": f"{item.get('id', '')}{_MARK}{written}"}


def _resolve_reference(item: Body) -> Body:
    """Return the item that a reference means, if its identifier carries it."""
    if item.get("type") != "item_reference" or _MARK not in str(item.get("id")):
        return item
    try:
        return dict(json.loads(urlsafe_b64decode(str(item["id"]).partition(_MARK)[2])))
    except (ValueError, TypeError):
        return item


def _write_output(kind: str, text: str) -> JSON:
    return (
        [{"stdout": "", "stderr": text, "outcome": {"type": "exit", "exit_code": 1}}] if kind == "shell_call" else text
    )


def _write_item(place: int, item: Body) -> Iterator[Body]:
    about = {"output_index": place, "item_id": item.get("id")}
    empty = {**item, "status": "in_progress"}
    if item["type"] == "message":
        yield {"type": "response.output_item.added", "output_index": place, "item": {**empty, "content": []}}
        for number, part in enumerate(item["content"]):
            at = {**about, "content_index": number}
            text = part.get("text", "")
            yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
            yield {"type": "response.output_text.delta", **at, "delta": text, "logprobs": []}
            yield {"type": "response.output_text.done", **at, "text": text, "logprobs": []}
            yield {"type": "response.content_part.done", **at, "part": part}
    elif item["type"] == "function_call":
        yield {"type": "response.output_item.added", "output_index": place, "item": {**empty, "arguments": ""}}
        yield {"type": "response.function_call_arguments.delta", **about, "delta": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **about, "arguments": item["arguments"],
               "name": item["name"]}  # fmt: skip
    else:
        yield {"type": "response.output_item.added", "output_index": place, "item": empty}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


# -- Messages -------------------------------------------------------------------------------------------------------

#: For each kind of delta, the field of the block that it continues.
_DELTAS = {
    "text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking",
    "signature_delta": "signature",
}  # fmt: skip


class _MessagesStream(StreamReader):
    """The stream of a message of Anthropic."""

    def add_event(self, event: Body) -> bool:
        match event["type"]:
            case "message_start":
                self.answer = {**event["message"], "content": []}
            case "content_block_start":
                block = dict(event["content_block"])
                self._has_calls |= block["type"] == "tool_use"
                self.answer["content"].append(block)
            case "content_block_delta":
                block, delta = self.answer["content"][event["index"]], event["delta"]
                if delta["type"] == "citations_delta":
                    block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
                else:
                    key = _DELTAS[delta["type"]]
                    block[key] = block.get(key, "") + delta[key]
            case "content_block_stop":
                block = self.answer["content"][event["index"]]
                if "partial_json" in block:
                    block["input"] = json.loads(block.pop("partial_json") or "{}")
                if not self._has_calls:
                    self.passed = event["index"] + 1
            case "message_delta":
                usage = {**self.answer.get("usage", {}), **(event.get("usage") or {})}
                self.answer = {**self.answer, **event["delta"], "usage": usage}
                self.ended = True
        return not (self._has_calls or self.ended)


class _MessagesDialect(_ListDialect):
    """Anthropic's Messages."""

    path = "/v1/messages"
    provider = "anthropic"
    reader = _MessagesStream
    no_tools: ClassVar[JSON] = {"type": "none"}
    content = "content"
    call_kinds = ("tool_use",)

    def find_obstacle(self, request: Body) -> str:
        return f"mcp_servers: what they do {_UNSEEN}" if request.get("mcp_servers") else ""

    def ask_again(self, request: Body, answer: Body, refusals: Mapping[str, str], reason: str) -> Body:
        outputs: list[Body] = [
            {"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": True}
            for id_, text in refusals.items()
        ]
        said = [{"role": "assistant", "content": answer["content"]}] if answer["content"] else []
        return {
            **request, "messages": [*request["messages"], *said, {"role": "user", "content": outputs or reason}],
        }  # fmt: skip

    def read_answer(self, answer: Body) -> list[AnswerPart]:
        parts: list[AnswerPart] = []
        for place, block in enumerate(answer["content"]):
            if block["type"] == "tool_use":
                parts.append(_build_call(block["id"], block["name"], block["input"], place))
            elif block["type"] == "text" and block["text"]:
                parts.append(Said("assistant", block["text"]))
        return parts

    def write_text(self, text: str, _: Body) -> Body:
        return {"type": "text", "text": text}

    def replace_by_text(self, answer: Body, text: str) -> Body:
        return {**super().replace_by_text(answer, text), "stop_reason": "end_turn"}

    def write_rest(self, answer: Body, passed: int, *, begun: bool) -> Iterator[StreamEvent]:
        if not begun:
            yield "message_start", {"message": {**answer, "content": [], "stop_reason": None, "stop_sequence": None}}
        for place, block in enumerate(answer["content"][passed:], passed):
            empty, deltas = _split_block(block)
            yield "content_block_start", {"index": place, "content_block": empty}
            for delta in deltas:
                yield "content_block_delta", {"index": place, "delta": delta}
            yield "content_block_stop", {"index": place}
        ending = {"stop_reason": answer["stop_reason"], "stop_sequence": answer.get("stop_sequence")}
        yield "message_delta", {"delta": ending, "usage": answer.get("usage", {})}
        yield "message_stop", {}

    def write_error(self, message: str) -> Body:
        return {"type": "error", "error": {"type": "permission_error", "message": message}}


def _split_block(block: Body) -> tuple[Body, Sequence[Body]]:
    """Split a block into its beginning and what its deltas add."""
    if block["type"] == "tool_use":
        written = json.dumps(block["input"], ensure_ascii=False)
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": written}]
    keys = [(kind, key) for kind, key in _DELTAS.items() if isinstance(block.get(key), str)]
    return {**block, **{key: "" for _, key in keys}}, [{"type": kind, key: block[key]} for kind, key in keys]


# -- what they share ------------------------------------------------------------------------------------------------

DIALECTS: tuple[Dialect, ...] = (_ChatDialect(), _ResponsesDialect(), _MessagesDialect())
_UNSEEN = (
    "is carried out by the provider, unseen by the guard; put the MCP server behind `formal-llm guard RULES -- ...`"
)


def name_tool(tool: Body) -> str:
    """Return the name of a tool of a request; of one that the provider runs, the name that its calls have."""
    kind = str(tool.get("type", "function"))
    nested = tool.get(kind)
    name = tool.get("name") or (nested.get("name") if isinstance(nested, dict) else None)
    return str(name or kind.removesuffix("_preview"))


def add_usage(answer: Body, before: Body) -> Body:
    """Return an answer whose usage includes that of earlier attempts."""
    return {**answer, "usage": _add_numbers(answer.get("usage") or {}, before)} if before else answer


def _add_numbers(one: Body, other: Body) -> Body:
    added = dict(one)
    for key, value in other.items():
        if isinstance(value, dict):
            added[key] = _add_numbers(added.get(key) or {}, value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            added[key] = (added.get(key) or 0) + value
        else:
            added.setdefault(key, value)
    return added


def _build_call(id_: str, tool: str, raw: object, place: int) -> AskedCall:
    arguments = read_arguments(raw)
    call = None if arguments is None else Call(tool, add_effects(tool, arguments), id_)
    return AskedCall(id_, tool, call, place)


def _find_forced_tool(choice: object) -> str | None:
    """Return the tool that a choice demands by name."""
    if not isinstance(choice, dict) or choice.get("type") in ("auto", "any", "none", "allowed_tools"):
        return None
    return name_tool({**choice, "type": "function"} if choice.get("type") == "tool" else choice)


def _find_listed_tools(choice: object) -> list[Body] | None:
    """Return the tools to which a choice is limited."""
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return list(choice.get("allowed_tools", choice)["tools"])
    return None


def _is_demand(choice: object) -> bool:
    if isinstance(choice, dict):
        return choice.get("type") == "any" or choice.get("allowed_tools", choice).get("mode") == "required"
    return choice == "required"


def _merge_delta(message: Body, delta: Body) -> None:
    """Add a delta of a chat completion to what it continues."""
    for key, value in delta.items():
        if key == "tool_calls":
            calls = message.setdefault("tool_calls", [])
            for one in value or ():
                place = one.get("index", len(calls))
                if place > len(calls):
                    raise ValueError(f"call {place} comes before call {len(calls)}")
                calls += [{}] if place == len(calls) else []
                _merge_delta(calls[place], {name: part for name, part in one.items() if name != "index"})
        elif isinstance(value, dict):
            _merge_delta(message.setdefault(key, {}), value)
        elif isinstance(value, str) and key not in ("role", "id", "type"):
            message[key] = (message.get(key) or "") + value
        elif value is not None or key not in message:
            message[key] = value


def _count_names(message: Body) -> int:
    """Count the calls of a message, or of its delta, that have a name."""
    calls = message.get("tool_calls") or ()
    return sum(bool((one.get("function") or one.get("custom") or {}).get("name")) for one in calls)


def _join_texts(*texts: str | None) -> str:
    return "\n\n".join(filter(None, texts))
