"""Traces from files: which format it is, is seen from what stands in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from formal_llm.agents.transcript import Transcript
from formal_llm.authored.files import read_bytes
from formal_llm.errors import TraceError
from formal_llm.guard.audit import FORMAT, read_lines
from formal_llm.guard.events import Said, from_row
from formal_llm.guard.traces.spans import build_span_traces, is_spans
from formal_llm.guard.traces.trace import (
    Row,
    Trace,
    TraceBuilder,
    extract_text,
    extract_value,
    get_text,
    require_rows,
)
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


_TRANSCRIPT = "formal-llm transcript"
#: ``Search[Paris]``: how agents write calls in the text of a state.
_WRITTEN_CALL = re.compile(r"\s*([A-Za-z_][\w.-]*)\[(.*)\]\s*", re.DOTALL)
_WANTED = (
    "wanted are messages of OpenAI or Anthropic, items of Responses, spans of OpenTelemetry, a transcript, or the log "
    "of a guard, as JSON or JSON lines"
)
#: Roles and types by which lines are known to be those of one conversation.
_ITEM_KEYS = ("role", "type")


def read_traces(path: str | Path) -> list[Trace]:
    """The traces of a file.

    Raises:
        TraceError: it cannot be read; the message names file and line.
    """
    try:
        data = read_bytes(path)
    except OSError as error:
        raise TraceError(f"{path}: the file cannot be read: {error.strerror or error}") from error
    try:
        return traces_of(data)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None


def traces_of(data: bytes | str) -> list[Trace]:
    """The traces of a text.

    Raises:
        TraceError: it cannot be read.
    """
    text = data if isinstance(data, str) else _decode_text(data)
    first = text.lstrip()[:200]
    if f'"{FORMAT}"' in first:
        return [_read_log_trace(text)]
    if f'"{_TRANSCRIPT}' in first:
        return [_read_transcript(text)]
    try:
        whole = cast("JSON", json.loads(text))
    except (ValueError, RecursionError):
        whole = _parse_json_lines(text)
    made = list(_split_traces(whole))
    if not made:
        raise TraceError(f"there is no trace in it; {_WANTED}")
    return made


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(f"it is no text in UTF-8 (byte {error.start})") from None


def _parse_json_lines(text: str) -> JSON:
    rows: list[JSON] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                rows.append(cast("JSON", json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise TraceError(f"line {number} is no JSON: {error}; {_WANTED}") from None
    return rows


def _split_traces(data: JSON) -> Iterator[Trace]:
    if is_spans(data):
        yield from build_span_traces(data)
    elif isinstance(data, list) and data and all(_is_item(one) for one in data):
        yield _read_conversation({"messages": data}, "trace 1")
    elif isinstance(data, list):
        for number, one in enumerate(data, 1):
            row = {"messages": one} if isinstance(one, list) else one
            if not isinstance(row, Mapping):
                raise TraceError(f"trace {number} is no object; {_WANTED}")
            yield _read_conversation(row, f"trace {number}")
    elif isinstance(data, Mapping):
        yield _read_conversation(data, "trace 1")


def _is_item(one: JSON) -> bool:
    return isinstance(one, Mapping) and any(key in one for key in _ITEM_KEYS) and "messages" not in one


def _read_conversation(row: Row, name: str) -> Trace:
    """One conversation: an object with its messages, or the request and the answer of Responses."""
    facts = {
        key: value for key, value in row.items() if key not in ("messages", "input", "output", "content", "choices")
    }
    made = TraceBuilder(name, facts)
    request, answer = row.get("request"), row.get("response")
    if isinstance(request, Mapping) and isinstance(answer, Mapping):
        row = {**answer, **request}
    known = False
    for key in ("messages", "traj", "conversation"):
        if isinstance(row.get(key), list):
            _add_messages_or_items(made, row[key])
            known = True
            break
    if isinstance(row.get("input"), list | str) and not known:
        _add_messages_or_items(made, row["input"], "input item")
        known = True
    if isinstance(row.get("output"), list):
        add_items(made, row["output"], "output item")
        known = True
    if isinstance(choices := row.get("choices"), list) and choices and isinstance(choices[0], Mapping):
        add_messages(made, [choices[0].get("message")], "choice")
        known = True
    if get_text(row, "role") and isinstance(row.get("content"), list) and not known:
        add_messages(made, [dict(row)], "answer")
        known = True
    if not known:
        raise TraceError(f"{name} has no messages; {_WANTED}")
    return made.build_trace()


def _add_messages_or_items(made: TraceBuilder, items: JSON, called: str = "message") -> None:
    """Messages of chats, or items of Responses."""
    if isinstance(items, str):
        made.add_text("user", items, called)
    elif isinstance(items, list) and any(
        isinstance(one, Mapping) and get_text(one, "type") and get_text(one, "type") != "message" for one in items
    ):
        add_items(made, items, called)
    else:
        add_messages(made, items, called)


def _read_transcript(text: str) -> Trace:
    """A transcript of ours: a state of the model that the environment answers is a call, its text the argument."""
    try:
        transcript = Transcript.from_jsonl(text)
    except ValueError as error:
        raise TraceError(str(error)) from error
    made = TraceBuilder(transcript.agent, {"agent": transcript.agent})
    segments = transcript.segments
    for number, segment in enumerate(segments):
        place = f"segment {number + 1}"
        answered = number + 1 < len(segments) and segments[number + 1].source == "environment"
        if segment.source == "environment":
            made.add_result(f"segment {number}", segment.text, place, tool="" if number else segment.state)
        elif segment.source == "user":
            made.add_text("user", segment.text, place)
        elif answered:
            written = _WRITTEN_CALL.fullmatch(segment.text)
            tool, argument = (written[1], written[2]) if written else (segment.state, segment.text)
            made.add_call(tool, {"text": argument, "state": segment.state}, place, place)
        else:
            made.add_text("assistant", segment.text, place)
    return made.build_trace()


def _read_log_trace(text: str) -> Trace:
    """The log of a guard: what it was told, and what it refused."""
    reading = read_lines(text.encode())
    made = TraceBuilder("log", {"rules": reading.rules})
    made.notes += [str(fault) for fault in reading.faults]
    if reading.torn:
        made.notes.append("the last line was cut off, and never counted")
    for entry in reading.entries:
        row = entry.row.get("event")
        if isinstance(row, Mapping) and entry.row.get("told") is True:
            try:
                event = from_row(row)
            except (KeyError, TypeError, ValueError) as error:
                made.notes.append(f"line {entry.line}: the event cannot be read ({error}), and is left out")
                continue
            made.add_event(event, f"line {entry.line}")
            if isinstance(event, Said) and not event.text:
                made.notes.append(f"line {entry.line}: a text without words")
    return made.build_trace()
