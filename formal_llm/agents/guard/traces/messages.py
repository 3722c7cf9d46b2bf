"""Messages of OpenAI's chat completions and Responses, and of Anthropic's, as they are sent and as they come back."""

from __future__ import annotations

from collections.abc import Mapping

from formal_llm.agents.guard.traces.trace import Row, TraceBuilder, extract_text, extract_value, get_text, require_rows
from formal_llm.planning.json_data import JSON

#: Roles that carry instructions, not what happened.
_SILENT = ("system", "developer")
#: Blocks of Anthropic's messages that are calls.
_USES = ("tool_use", "server_tool_use", "mcp_tool_use")


def add_messages(made: TraceBuilder, messages: JSON, called: str = "message") -> None:
    """Chat messages, of OpenAI or of Anthropic.

    Raises:
        TraceError: they are no list of objects.
    """
    for number, message in enumerate(require_rows(messages, called), 1):
        place = f"{called} {number}"
        role = get_text(message, "role")
        if role in ("tool", "function"):
            name = get_text(message, "tool_call_id") or get_text(message, "name")
            made.add_result(name, extract_value(message.get("content")), place, tool=get_text(message, "name"))
        elif role in _SILENT:
            continue
        elif role:
            _add_spoken_message(made, message, role, place)
        else:
            made.notes.append(f"{place}: it has no role, and is left out")


def _add_spoken_message(made: TraceBuilder, message: Row, role: str, place: str) -> None:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if isinstance(content, str):
        made.add_text(role, content, place)
    for number, block in enumerate(blocks, 1):
        where = f"{place}, block {number}"
        kind = get_text(block, "type") if isinstance(block, Mapping) else ""
        if isinstance(block, str):
            made.add_text(role, block, where)
        elif not isinstance(block, Mapping):
            made.notes.append(f"{where}: it is no object, and is left out")
        elif kind in _USES:
            made.add_call(get_text(block, "name"), block.get("input"), get_text(block, "id"), where)
        elif kind.endswith("tool_result"):
            failed = block.get("is_error") is True or _is_error(block.get("content"))
            made.add_result(get_text(block, "tool_use_id"), extract_value(block.get("content")), where, error=failed)
        elif kind in ("text", "input_text", "output_text", "refusal"):
            made.add_text(role, extract_text([block]) or get_text(block, "refusal"), where)
    calls = message.get("tool_calls") or []
    for number, call in enumerate(require_rows(calls, f"{place}, call"), 1):
        where = f"{place}, call {number}" if isinstance(calls, list) and len(calls) > 1 else place
        function = call.get("function", call.get("custom"))
        function = function if isinstance(function, Mapping) else call
        arguments = function.get("arguments", function.get("input"))
        made.add_call(get_text(function, "name"), arguments, get_text(call, "id"), where)
    if isinstance(old := message.get("function_call"), Mapping):
        made.add_call(get_text(old, "name"), old.get("arguments"), get_text(old, "name"), place)


def _is_error(content: JSON) -> bool:
    return isinstance(content, Mapping) and get_text(content, "type").endswith("_error")


def add_items(made: TraceBuilder, items: JSON, called: str = "item") -> None:
    """Items of OpenAI's Responses: input and output.

    Raises:
        TraceError: they are no list of objects.
    """
    for number, item in enumerate(require_rows(items, called), 1):
        _add_item(made, item, f"{called} {number}")


def _add_item(made: TraceBuilder, item: Row, place: str) -> None:
    kind = get_text(item, "type") or ("message" if "role" in item else "")
    name = get_text(item, "call_id") or get_text(item, "id")
    if kind == "message":
        if (role := get_text(item, "role")) not in _SILENT:
            made.add_text(role, extract_text(item.get("content")), place)
    elif kind in ("function_call", "custom_tool_call"):
        made.add_call(get_text(item, "name"), item.get("arguments", item.get("input")), name, place)
    elif kind == "mcp_call":
        made.add_call(get_text(item, "name"), item.get("arguments"), name, place)
        if "output" in item or item.get("error"):
            failed = item.get("error") is not None
            made.add_result(name, item.get("error") if failed else item.get("output"), place, error=failed)
    elif kind.endswith("_call_output"):
        made.add_result(name, extract_value(item.get("output")), place, error=item.get("status") == "failed")
    elif kind.endswith("_call"):
        given = ("action", "queries", "code", "arguments", "operation")
        made.add_call(kind.removesuffix("_call"), {key: item[key] for key in given if key in item}, name, place)
    elif kind not in ("reasoning", "item_reference", "compaction", "mcp_list_tools"):
        made.notes.append(f"{place}: {kind or 'an item without a type'} is left out")
