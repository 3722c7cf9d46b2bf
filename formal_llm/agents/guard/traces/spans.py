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

from formal_llm.agents.guard.traces.trace import Recording, Row, Trace, text_at, text_of
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
        return text_at(self.attributes, "gen_ai.operation.name")


def is_spans(data: JSON) -> bool:
    """Whether it is an export of spans."""
    if isinstance(data, Mapping):
        return "resourceSpans" in data or "scopeSpans" in data or _is_span(data)
    return isinstance(data, list) and bool(data) and all(is_spans(one) for one in data)


def _is_span(data: Row) -> bool:
    return "attributes" in data and ("context" in data or "traceId" in data or "trace_id" in data)


def traces_of_spans(data: JSON) -> list[Trace]:
    """The traces of an export, each in the order of time.

    Raises:
        TraceError: it cannot be read.
    """
    by_trace: dict[str, list[_Span]] = {}
    for span in _spans(data):
        by_trace.setdefault(span.trace, []).append(span)
    return [_trace(name, spans) for name, spans in by_trace.items()]


def _spans(data: JSON) -> Iterator[_Span]:
    if isinstance(data, list):
        for one in data:
            yield from _spans(one)
    elif isinstance(data, Mapping):
        for key in ("resourceSpans", "scopeSpans", "spans"):
            if isinstance(data.get(key), list):
                yield from _spans(data[key])
                return
        if _is_span(data):
            yield _span(data)


def _span(data: Row) -> _Span:
    context = data.get("context")
    where = context if isinstance(context, Mapping) else data
    status = data.get("status")
    code = status.get("status_code", status.get("code")) if isinstance(status, Mapping) else None
    attributes = _attributes(data.get("attributes"))
    return _Span(
        str(where.get("trace_id", where.get("traceId", ""))),
        text_at(data, "name"),
        attributes,
        _time(data.get("start_time", data.get("startTimeUnixNano"))),
        _time(data.get("end_time", data.get("endTimeUnixNano"))),
        code in ("ERROR", "STATUS_CODE_ERROR", 2) or "error.type" in attributes,
    )


def _attributes(data: JSON) -> Row:
    if isinstance(data, Mapping):
        return data
    rows = [one for one in data if isinstance(one, Mapping)] if isinstance(data, list) else []
    return {text_at(one, "key"): _any_value(one.get("value")) for one in rows}


def _any_value(value: JSON) -> JSON:
    """A value as OTLP writes it."""
    if not isinstance(value, Mapping):
        return value
    for kind, inner in value.items():
        if kind == "intValue":
            return int(cast("str", inner))
        if kind == "arrayValue" and isinstance(inner, Mapping):
            values = inner.get("values")
            return [_any_value(one) for one in values] if isinstance(values, list) else []
        if kind == "kvlistValue" and isinstance(inner, Mapping):
            return dict(_attributes(inner.get("values")))
        return inner
    return None


def _time(value: JSON) -> int:
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


def _at(time: int) -> datetime | None:
    return datetime.fromtimestamp(time / 1e9, UTC) if time else None


def _trace(name: str, spans: list[_Span]) -> Trace:
    made = Recording(f"trace {name}", {"trace_id": name})
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
            made.call(
                _tool(span), span.attributes.get("gen_ai.tool.call.arguments"), _id(span, number), place, _at(time)
            )
        else:
            value = span.attributes.get("gen_ai.tool.call.result")
            made.result(_id(span, number), value, place, error=span.failed, at=_at(time))
    return made.made()


def _tool(span: _Span) -> str:
    return text_at(span.attributes, "gen_ai.tool.name") or span.name.removeprefix("execute_tool ")


def _id(span: _Span, number: int) -> str:
    return text_at(span.attributes, "gen_ai.tool.call.id") or f"span {number + 1}"


def _add_chat(made: Recording, span: _Span, what: str, place: str, seen: list[str], *, with_calls: bool) -> None:
    """The messages of a chat that were not there before."""
    messages = _json(span.attributes.get(f"gen_ai.{what}.messages"))
    rows = [one for one in messages if isinstance(one, Mapping)] if isinstance(messages, list) else []
    keys = [_key(row) for row in rows]
    if what == "input":
        new = next((place for place, key in enumerate(keys) if place >= len(seen) or seen[place] != key), len(keys))
        seen[:] = keys
    else:
        new = 0
        seen += keys
    for row in rows[new:]:
        _add_message(made, row, place, with_calls)


def _key(row: Row) -> str:
    """What a message is known by: an answer comes back as input without the reason why it ended."""
    return json.dumps([row.get("role"), row.get("parts", row.get("content"))], sort_keys=True)


def _add_message(made: Recording, row: Row, place: str, with_calls: bool) -> None:
    role = text_at(row, "role")
    parts = row.get("parts")
    if not isinstance(parts, list):
        parts = [{"type": "text", "content": text_of(row.get("content"))}]
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        kind = text_at(part, "type")
        if kind == "text" and role not in ("system", "tool"):
            made.said(role, text_of([part]), place)
        elif kind == "tool_call" and with_calls:
            made.call(text_at(part, "name"), part.get("arguments"), text_at(part, "id"), place)
        elif kind == "tool_call_response" and with_calls:
            made.result(text_at(part, "id"), part.get("response", part.get("result")), place)


def _json(value: JSON) -> JSON:
    if isinstance(value, str):
        try:
            return cast("JSON", json.loads(value))
        except (ValueError, RecursionError):
            return None
    return value
