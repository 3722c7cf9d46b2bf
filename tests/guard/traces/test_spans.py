"""Spans that the SDK of OpenTelemetry made and wrote, and the same in OTLP's JSON."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from formal_llm.guard.events import Call, Result, Said
from formal_llm.guard.traces import traces_of


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


USER = message("user", {"type": "text", "content": "Pay 5."})
CALL = message("assistant", {"type": "tool_call", "id": "c1", "name": "pay", "arguments": {"amount": 5}})
BACK = message("tool", {"type": "tool_call_response", "id": "c1", "response": "no money"})
DONE = message("assistant", {"type": "text", "content": "Sorry."})


def spans(tools: bool = True) -> list[dict[str, Any]]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")

    def chat(given: list[dict[str, Any]], made: dict[str, Any]) -> None:
        with tracer.start_as_current_span("chat m") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.input.messages", json.dumps(given))
            span.set_attribute("gen_ai.output.messages", json.dumps([{**made, "finish_reason": "stop"}]))

    with tracer.start_as_current_span("invoke_agent a"):
        chat([USER], CALL)
        if tools:
            with tracer.start_as_current_span("execute_tool pay") as span:
                span.set_attribute("gen_ai.operation.name", "execute_tool")
                span.set_attribute("gen_ai.tool.name", "pay")
                span.set_attribute("gen_ai.tool.call.id", "c1")
                span.set_attribute("gen_ai.tool.call.arguments", '{"amount": 5}')
                span.set_attribute("gen_ai.tool.call.result", "no money")
                span.set_status(Status(StatusCode.ERROR))
        chat([USER, CALL, BACK], DONE)
    return [json.loads(span.to_json()) for span in exporter.get_finished_spans()]


def otlp(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows of the SDK in the form of OTLP."""
    made = []
    for row in rows:
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in row["attributes"].items()]
        made.append({
            "traceId": row["context"]["trace_id"], "name": row["name"], "attributes": attributes,
            "startTimeUnixNano": row["start_time"], "endTimeUnixNano": row["end_time"],
            "status": {"code": 2 if row["status"]["status_code"] == "ERROR" else 0},
        })  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}


def test_tools_and_chats() -> None:
    rows = spans()
    for text in (json.dumps(rows), json.dumps(otlp(rows)), "\n".join(map(json.dumps, rows))):
        (trace,) = traces_of(text)
        said, call, result, end = trace.events
        assert said == Said("user", "Pay 5.")
        assert isinstance(call, Call)
        assert (call.tool, dict(call.arguments), call.id) == ("pay", {"amount": 5}, "c1")
        assert call.at is not None
        assert isinstance(result, Result)
        assert (result.tool, result.value, result.error) == ("pay", "no money", True)
        assert end == Said("assistant", "Sorry.")


def test_calls_from_messages_where_no_span_shows_them() -> None:
    (trace,) = traces_of(json.dumps(spans(tools=False)))
    assert [type(one).__name__ for one in trace.events] == ["Said", "Call", "Result", "Said"]


def test_each_trace_by_itself() -> None:
    assert len(traces_of(json.dumps(spans() + spans()))) == 2


def test_values_of_otlp() -> None:
    from formal_llm.guard.traces.spans import _read_any_value

    values = {
        "values": [
            {"intValue": "3"},
            {"boolValue": True},
            {"kvlistValue": {"values": [{"key": "a", "value": {"doubleValue": 1.5}}]}},
        ]
    }
    assert _read_any_value({"arrayValue": values}) == [3, True, {"a": 1.5}]  # type: ignore[dict-item]
