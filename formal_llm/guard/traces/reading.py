"""Reader of traces from files; the content determines the format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from formal_llm.agents.transcript import Transcript
from formal_llm.authored.files import read_bytes
from formal_llm.errors import RecordError
from formal_llm.guard.audit import FORMAT, read_lines
from formal_llm.guard.events import Said, from_row
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


@dataclass(frozen=True, slots=True)
class _Span:
    trace: str
    name: str
    attributes: Row
    begun: int
    ended: int
    failed: bool

    @property
    def operation(self) -> str:
        return get_text(self.attributes, "gen_ai.operation.name")


def is_spans(data: JSON) -> bool:
    """Return whether the data is an export of spans."""
    if isinstance(data, Mapping):
        return "resourceSpans" in data or "scopeSpans" in data or _is_span(data)
    return isinstance(data, list) and bool(data) and all(is_spans(one) for one in data)


def _is_span(data: Row) -> bool:
    return "attributes" in data and ("context" in data or "traceId" in data or "trace_id" in data)


def build_span_traces(data: JSON) -> list[Trace]:
    """Build the traces of an export, each in chronological order.

    Raises:
        RecordError: the export cannot be read.
    """
    by_trace: dict[str, list[_Span]] = {}
    for span in _iterate_spans(data):
        by_trace.setdefault(span.trace, []).append(span)
    return [_build_trace(name, spans) for name, spans in by_trace.items()]


def _iterate_spans(data: JSON) -> Iterator[_Span]:
    if isinstance(data, list):
        for one in data:
            yield from _iterate_spans(one)
    elif isinstance(data, Mapping):
        for key in ("resourceSpans", "scopeSpans", "spans"):
            if isinstance(data.get(key), list):
                yield from _iterate_spans(data[key])
                return
        if _is_span(data):
            yield _read_span(data)


def _read_span(data: Row) -> _Span:
    context = data.get("context")
    where = context if isinstance(context, Mapping) else data
    status = data.get("status")
    code = status.get("status_code", status.get("code")) if isinstance(status, Mapping) else None
    attributes = _read_attributes(data.get("attributes"))
    return _Span(
        str(where.get("trace_id", where.get("traceId", ""))),
        get_text(data, "name"),
        attributes,
        _read_nanoseconds(data.get("start_time", data.get("startTimeUnixNano"))),
        _read_nanoseconds(data.get("end_time", data.get("endTimeUnixNano"))),
        code in ("ERROR", "STATUS_CODE_ERROR", 2) or "error.type" in attributes,
    )


def _read_attributes(data: JSON) -> Row:
    if isinstance(data, Mapping):
        return data
    rows = [one for one in data if isinstance(one, Mapping)] if isinstance(data, list) else []
    return {get_text(one, "key"): _read_any_value(one.get("value")) for one in rows}


def _read_any_value(value: JSON) -> JSON:
    """Read a value in the form of OTLP."""
    if not isinstance(value, Mapping):
        return value
    for kind, inner in value.items():
        if kind == "intValue":
            return int(cast("str", inner))
        if kind == "arrayValue" and isinstance(inner, Mapping):
            values = inner.get("values")
            return [_read_any_value(one) for one in values] if isinstance(values, list) else []
        if kind == "kvlistValue" and isinstance(inner, Mapping):
            return dict(_read_attributes(inner.get("values")))
        return inner
    return None


def _read_nanoseconds(value: JSON) -> int:
    """Read a time as nanoseconds since 1970."""
    if isinstance(value, str) and not value.isdigit():
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return 0
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
    return int(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else 0


def _to_datetime(time: int) -> datetime | None:
    return datetime.fromtimestamp(time / 1e9, UTC) if time else None


def _build_trace(name: str, spans: list[_Span]) -> Trace:
    builder = TraceBuilder(f"trace {name}", {"trace_id": name})
    tools = [span for span in spans if span.operation == "execute_tool"]
    chats = [
        span
        for span in spans
        if "gen_ai.input.messages" in span.attributes or "gen_ai.output.messages" in span.attributes
    ]
    seen: list[str] = []
    moments: list[tuple[int, int, _Span, str]] = []
    for number, span in enumerate(spans):
        if span in tools:
            moments += [(span.begun, number, span, "call"), (span.ended, number, span, "result")]
        elif span in chats:
            moments += [(span.begun, number, span, "input"), (span.ended, number, span, "output")]
    for time, number, span, kind in sorted(moments, key=lambda one: one[0]):
        place = f"span {number + 1} ({span.name})"
        if kind in ("input", "output"):
            _add_chat(builder, span, kind, place, seen, with_calls=not tools)
        elif kind == "call":
            builder.add_call(
                _get_tool_name(span),
                span.attributes.get("gen_ai.tool.call.arguments"),
                _get_call_id(span, number),
                place,
                _to_datetime(time),
            )
        else:
            value = span.attributes.get("gen_ai.tool.call.result")
            builder.add_result(_get_call_id(span, number), value, place, error=span.failed, at=_to_datetime(time))
    return builder.build_trace()


def _get_tool_name(span: _Span) -> str:
    return get_text(span.attributes, "gen_ai.tool.name") or span.name.removeprefix("execute_tool ")


def _get_call_id(span: _Span, number: int) -> str:
    return get_text(span.attributes, "gen_ai.tool.call.id") or f"span {number + 1}"


def _add_chat(made: TraceBuilder, span: _Span, what: str, place: str, seen: list[str], *, with_calls: bool) -> None:
    """Add the messages of a chat that were not in it before."""
    messages = _parse_json(span.attributes.get(f"gen_ai.{what}.messages"))
    rows = [one for one in messages if isinstance(one, Mapping)] if isinstance(messages, list) else []
    keys = [_make_message_key(row) for row in rows]
    if what == "input":
        new = next((place for place, key in enumerate(keys) if place >= len(seen) or seen[place] != key), len(keys))
        seen[:] = keys
    else:
        new = 0
        seen += keys
    for row in rows[new:]:
        _add_message(made, row, place, with_calls)


def _make_message_key(row: Row) -> str:
    """Make a key that identifies a message: an answer is repeated as input without its finish reason."""
    return json.dumps([row.get("role"), row.get("parts", row.get("content"))], sort_keys=True)


def _add_message(made: TraceBuilder, row: Row, place: str, with_calls: bool) -> None:
    role = get_text(row, "role")
    parts = row.get("parts")
    if not isinstance(parts, list):
        parts = [{"type": "text", "content": extract_text(row.get("content"))}]
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        kind = get_text(part, "type")
        if kind == "text" and role not in ("system", "tool"):
            made.add_text(role, extract_text([part]), place)
        elif kind == "tool_call" and with_calls:
            made.add_call(get_text(part, "name"), part.get("arguments"), get_text(part, "id"), place)
        elif kind == "tool_call_response" and with_calls:
            made.add_result(get_text(part, "id"), part.get("response", part.get("result")), place)


def _parse_json(value: JSON) -> JSON:
    if isinstance(value, str):
        try:
            return cast("JSON", json.loads(value))
        except (ValueError, RecursionError):
            return None
    return value


#: Roles of instructions, which are not events.
_SILENT = ("system", "developer")
#: The types of blocks that are calls in Anthropic's messages.
_USES = ("tool_use", "server_tool_use", "mcp_tool_use")


def add_messages(made: TraceBuilder, messages: JSON, called: str = "message") -> None:
    """Add chat messages of OpenAI or Anthropic.

    Raises:
        RecordError: they are not a list of objects.
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
    """Add items of OpenAI's Responses: input and output.

    Raises:
        RecordError: they are not a list of objects.
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
        keys = ("action", "queries", "code", "arguments", "operation")
        made.add_call(kind.removesuffix("_call"), {key: item[key] for key in keys if key in item}, name, place)
    elif kind not in ("reasoning", "item_reference", "compaction", "mcp_list_tools"):
        made.notes.append(f"{place}: {kind or 'an item without a type'} is left out")


_TRANSCRIPT = "formal-llm transcript"
#: The form of calls that agents write in the text of a state: ``Search[Paris]``.
_WRITTEN_CALL = re.compile(r"\s*([A-Za-z_][\w.-]*)\[(.*)\]\s*", re.DOTALL)
_WANTED = (
    "wanted are messages of OpenAI or Anthropic, items of Responses, spans of OpenTelemetry, a transcript, or the log "
    "of a guard, as JSON or JSON lines"
)
#: The keys by which lines are recognized as items of one conversation.
_ITEM_KEYS = ("role", "type")


def read_traces(path: str | Path) -> list[Trace]:
    """Read the traces of a file.

    Raises:
        RecordError: the file cannot be read; the message names file and line.
    """
    try:
        data = read_bytes(path)
    except OSError as error:
        raise RecordError(f"the file cannot be read: {error.strerror or error}", file=str(path)) from error
    try:
        return traces_of(data)
    except RecordError as error:
        error.file = str(path)
        raise


def traces_of(data: bytes | str) -> list[Trace]:
    """Read the traces of a text.

    Raises:
        RecordError: the text cannot be read.
    """
    text = data if isinstance(data, str) else _decode_text(data)
    beginning = text.lstrip()[:200]
    if f'"{FORMAT}"' in beginning:
        return [_read_log_trace(text)]
    if f'"{_TRANSCRIPT}' in beginning:
        return [_read_transcript(text)]
    try:
        parsed = cast("JSON", json.loads(text))
    except (ValueError, RecursionError):
        parsed = _parse_json_lines(text)
    traces = list(_split_traces(parsed))
    if not traces:
        raise RecordError(f"there is no trace in it; {_WANTED}")
    return traces


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError(f"it is no text in UTF-8 (byte {error.start})") from None


def _parse_json_lines(text: str) -> JSON:
    rows: list[JSON] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                rows.append(cast("JSON", json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise RecordError(f"line {number} is no JSON: {error}; {_WANTED}") from None
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
                raise RecordError(f"trace {number} is no object; {_WANTED}")
            yield _read_conversation(row, f"trace {number}")
    elif isinstance(data, Mapping):
        yield _read_conversation(data, "trace 1")


def _is_item(one: JSON) -> bool:
    return isinstance(one, Mapping) and any(key in one for key in _ITEM_KEYS) and "messages" not in one


def _read_conversation(row: Row, name: str) -> Trace:
    """Read one conversation: an object with its messages, or the request and the answer of Responses."""
    facts = {
        key: value for key, value in row.items() if key not in ("messages", "input", "output", "content", "choices")
    }
    builder = TraceBuilder(name, facts)
    request, answer = row.get("request"), row.get("response")
    if isinstance(request, Mapping) and isinstance(answer, Mapping):
        row = {**answer, **request}
    recognized = False
    for key in ("messages", "traj", "conversation"):
        if isinstance(row.get(key), list):
            _add_messages_or_items(builder, row[key])
            recognized = True
            break
    if isinstance(row.get("input"), list | str) and not recognized:
        _add_messages_or_items(builder, row["input"], "input item")
        recognized = True
    if isinstance(row.get("output"), list):
        add_items(builder, row["output"], "output item")
        recognized = True
    if isinstance(choices := row.get("choices"), list) and choices and isinstance(choices[0], Mapping):
        add_messages(builder, [choices[0].get("message")], "choice")
        recognized = True
    if get_text(row, "role") and isinstance(row.get("content"), list) and not recognized:
        add_messages(builder, [dict(row)], "answer")
        recognized = True
    if not recognized:
        raise RecordError(f"{name} has no messages; {_WANTED}")
    return builder.build_trace()


def _add_messages_or_items(made: TraceBuilder, items: JSON, called: str = "message") -> None:
    """Add messages of chats, or items of Responses."""
    if isinstance(items, str):
        made.add_text("user", items, called)
    elif isinstance(items, list) and any(
        isinstance(one, Mapping) and get_text(one, "type") and get_text(one, "type") != "message" for one in items
    ):
        add_items(made, items, called)
    else:
        add_messages(made, items, called)


def _read_transcript(text: str) -> Trace:
    """Read a transcript of formal_llm: a state that the environment answers is a call with its text as argument."""
    try:
        transcript = Transcript.from_jsonl(text)
    except ValueError as error:
        raise RecordError(str(error)) from error
    builder = TraceBuilder(transcript.agent, {"agent": transcript.agent})
    segments = transcript.segments
    for number, segment in enumerate(segments):
        place = f"segment {number + 1}"
        answered = number + 1 < len(segments) and segments[number + 1].source == "environment"
        if segment.source == "environment":
            builder.add_result(f"segment {number}", segment.text, place, tool="" if number else segment.state)
        elif segment.source == "user":
            builder.add_text("user", segment.text, place)
        elif answered:
            match = _WRITTEN_CALL.fullmatch(segment.text)
            tool, argument = (match[1], match[2]) if match else (segment.state, segment.text)
            builder.add_call(tool, {"text": argument, "state": segment.state}, place, place)
        else:
            builder.add_text("assistant", segment.text, place)
    return builder.build_trace()


def _read_log_trace(text: str) -> Trace:
    """Read the log of a guard: the events that its state accepted."""
    reading = read_lines(text.encode())
    builder = TraceBuilder("log", {"rules": reading.rules})
    builder.notes += [str(fault) for fault in reading.faults]
    if reading.torn:
        builder.notes.append("the last line was cut off, and never counted")
    for entry in reading.entries:
        row = entry.row.get("event")
        if isinstance(row, Mapping) and entry.row.get("told") is True:
            try:
                event = from_row(row)
            except (KeyError, TypeError, ValueError) as error:
                builder.notes.append(f"line {entry.line}: the event cannot be read ({error}), and is left out")
                continue
            builder.add_event(event, f"line {entry.line}")
            if isinstance(event, Said) and not event.text:
                builder.notes.append(f"line {entry.line}: a text without words")
    return builder.build_trace()
