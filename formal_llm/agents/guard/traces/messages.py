"""Messages of OpenAI's chat completions and Responses, and of Anthropic's, as they are sent and as they come back."""

from __future__ import annotations

from collections.abc import Mapping

from formal_llm.agents.guard.traces.trace import Recording, Row, rows_of, text_at, text_of, value_of
from formal_llm.planning.json_data import JSON

#: Roles that carry instructions, not what happened.
_SILENT = ("system", "developer")
#: Blocks of Anthropic's messages that are calls.
_USES = ("tool_use", "server_tool_use", "mcp_tool_use")


def add_messages(made: Recording, messages: JSON, called: str = "message") -> None:
    """Chat messages, of OpenAI or of Anthropic.

    Raises:
        TraceError: they are no list of objects.
    """
    for number, message in enumerate(rows_of(messages, called), 1):
        place = f"{called} {number}"
        role = text_at(message, "role")
        if role in ("tool", "function"):
            name = text_at(message, "tool_call_id") or text_at(message, "name")
            made.result(name, value_of(message.get("content")), place, tool=text_at(message, "name"))
        elif role in _SILENT:
            continue
        elif role:
            _spoken(made, message, role, place)
        else:
            made.notes.append(f"{place}: it has no role, and is left out")


def _spoken(made: Recording, message: Row, role: str, place: str) -> None:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if isinstance(content, str):
        made.said(role, content, place)
    for number, block in enumerate(blocks, 1):
        where = f"{place}, block {number}"
        kind = text_at(block, "type") if isinstance(block, Mapping) else ""
        if isinstance(block, str):
            made.said(role, block, where)
        elif not isinstance(block, Mapping):
            made.notes.append(f"{where}: it is no object, and is left out")
        elif kind in _USES:
            made.call(text_at(block, "name"), block.get("input"), text_at(block, "id"), where)
        elif kind.endswith("tool_result"):
            failed = block.get("is_error") is True or _is_error(block.get("content"))
            made.result(text_at(block, "tool_use_id"), value_of(block.get("content")), where, error=failed)
        elif kind in ("text", "input_text", "output_text", "refusal"):
            made.said(role, text_of([block]) or text_at(block, "refusal"), where)
    calls = message.get("tool_calls") or []
    for number, call in enumerate(rows_of(calls, f"{place}, call"), 1):
        where = f"{place}, call {number}" if isinstance(calls, list) and len(calls) > 1 else place
        function = call.get("function", call.get("custom"))
        function = function if isinstance(function, Mapping) else call
        arguments = function.get("arguments", function.get("input"))
        made.call(text_at(function, "name"), arguments, text_at(call, "id"), where)
    if isinstance(old := message.get("function_call"), Mapping):
        made.call(text_at(old, "name"), old.get("arguments"), text_at(old, "name"), place)


def _is_error(content: JSON) -> bool:
    return isinstance(content, Mapping) and text_at(content, "type").endswith("_error")


def add_items(made: Recording, items: JSON, called: str = "item") -> None:
    """Items of OpenAI's Responses: input and output.

    Raises:
        TraceError: they are no list of objects.
    """
    for number, item in enumerate(rows_of(items, called), 1):
        _item(made, item, f"{called} {number}")


def _item(made: Recording, item: Row, place: str) -> None:
    kind = text_at(item, "type") or ("message" if "role" in item else "")
    name = text_at(item, "call_id") or text_at(item, "id")
    if kind == "message":
        if (role := text_at(item, "role")) not in _SILENT:
            made.said(role, text_of(item.get("content")), place)
    elif kind in ("function_call", "custom_tool_call"):
        made.call(text_at(item, "name"), item.get("arguments", item.get("input")), name, place)
    elif kind == "mcp_call":
        made.call(text_at(item, "name"), item.get("arguments"), name, place)
        if "output" in item or item.get("error"):
            failed = item.get("error") is not None
            made.result(name, item.get("error") if failed else item.get("output"), place, error=failed)
    elif kind.endswith("_call_output"):
        made.result(name, value_of(item.get("output")), place, error=item.get("status") == "failed")
    elif kind.endswith("_call"):
        given = ("action", "queries", "code", "arguments", "operation")
        made.call(kind.removesuffix("_call"), {key: item[key] for key in given if key in item}, name, place)
    elif kind not in ("reasoning", "item_reference", "compaction", "mcp_list_tools"):
        made.notes.append(f"{place}: {kind or 'an item without a type'} is left out")
