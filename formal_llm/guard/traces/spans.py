"""Spans of OpenTelemetry's conventions for generative AI, as JSON: that of OTLP, and that of the Python SDK.

Calls are the spans of the operation ``execute_tool``. Where a trace has none, they are read from the messages of its
chats, and so is what was said. Each chat repeats the messages before it: only new ones count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from formal_llm.guard.traces.trace import Row, Trace, TraceBuilder, extract_text, get_text
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
    """Whether it is an export of spans."""
    if isinstance(data, Mapping):
        return "resourceSpans" in data or "scopeSpans" in data or _is_span(data)
    return isinstance(data, list) and bool(data) and all(is_spans(one) for one in data)


def _is_span(data: Row) -> bool:
    return "attributes" in data and ("context" in data or "traceId" in data or "trace_id" in data)


def build_span_traces(data: JSON) -> list[Trace]:
    """The traces of an export, each in the order of time.

    Raises:
        TraceError: it cannot be read.
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
    """A value as OTLP writes it."""
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
    """A time in nanoseconds since 1970."""
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
    made = TraceBuilder(f"trace {name}", {"trace_id": name})
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
    for time, number, span, what in sorted(moments, key=lambda one: one[0]):
        place = f"span {number + 1} ({span.name})"
        if what in ("input", "output"):
            _add_chat(made, span, what, place, seen, with_calls=not tools)
        elif what == "call":
            made.add_call(
                _get_tool_name(span),
                span.attributes.get("gen_ai.tool.call.arguments"),
                _get_call_id(span, number),
                place,
                _to_datetime(time),
            )
        else:
            value = span.attributes.get("gen_ai.tool.call.result")
            made.add_result(_get_call_id(span, number), value, place, error=span.failed, at=_to_datetime(time))
    return made.build_trace()


def _get_tool_name(span: _Span) -> str:
    return get_text(span.attributes, "gen_ai.tool.name") or span.name.removeprefix("execute_tool ")


def _get_call_id(span: _Span, number: int) -> str:
    return get_text(span.attributes, "gen_ai.tool.call.id") or f"span {number + 1}"


def _add_chat(made: TraceBuilder, span: _Span, what: str, place: str, seen: list[str], *, with_calls: bool) -> None:
    """The messages of a chat that were not there before."""
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
    """What a message is known by: an answer comes back as input without the reason why it ended."""
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
