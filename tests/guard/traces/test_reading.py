"""Which format a file has is seen from what stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message, TextBlock, ToolUseBlock, Usage
from openai.types.responses import ResponseFunctionToolCall
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from formal_llm.agents import Segment, Transcript
from formal_llm.errors import RecordError
from formal_llm.guard.audit import AuditLog
from formal_llm.guard.events import Call, GuardEvent, Result, Said, as_row
from formal_llm.guard.traces import read_traces, traces_of

TAU = Path(__file__).parents[4] / "shared" / "data" / "tau-airline" / "trajectories.jsonl"


def test_a_transcript_of_ours() -> None:
    segments = (
        Segment("Question", "Who?", "user"), Segment("Thought", "Hm."), Segment("Act", "Search[Bob [2]]"),
        Segment("Observation", "A builder.", "environment"), Segment("Answer", "Bob."),
    )  # fmt: skip
    (trace,) = traces_of(Transcript("react", segments).to_jsonl())
    call = Call("Search", {"text": "Bob [2]", "state": "Act"}, "segment 3")
    assert trace.events == (
        Said("user", "Who?"), Said("assistant", "Hm."), call,
        Result("Search", call.arguments, "A builder.", "segment 3"), Said("assistant", "Bob."),
    )  # fmt: skip
    assert trace.places[3] == "segment 4"


def test_the_log_of_a_guard(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log")
    told = [Said("user", "x"), Call("f", {"a": 1}, "1", True), Result("f", {"a": 1}, [1], "1", True)]
    for event in told:
        log.append({"event": as_row(event), "told": True})
    log.append({"event": as_row(Call("g", {})), "told": False})
    (trace,) = read_traces(tmp_path / "log")
    assert list(trace.events) == told
    assert trace.places == ("line 2", "line 3", "line 4")


def test_several_conversations() -> None:
    one = [{"role": "user", "content": "a"}]
    for text in (
        json.dumps([one, one]),
        json.dumps([{"messages": one}] * 2),
        "\n".join([json.dumps({"messages": one})] * 2),
    ):
        assert [trace.name for trace in traces_of(text)] == ["trace 1", "trace 2"]
    assert len(traces_of("\n".join([json.dumps(one[0])] * 3))) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no trace"), ("{", "line 1 is no JSON"), ("3", "no trace"), ('{"a": 1}', "no messages"),
        ('[{"a": 1}]', "no messages"),
        ("[[1]]", "message 1 is no object"), ('{"messages": [{"role": "user"}, 4]}', "message 2 is no object"),
        ("[1]", "no object"),
        ('{"role": "user"}\n{broken', "line 2 is no JSON"), ("[" * 100_000, "no JSON"),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_told(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=f"trace.json: .*{told}"):
        read_traces(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot be read"):
        read_traces(tmp_path)
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    with pytest.raises(RecordError, match="UTF-8"):
        read_traces(tmp_path / "x")


@pytest.mark.skipif(not TAU.exists(), reason="the recorded conversations of tau-bench are not here")
def test_recorded_conversations() -> None:
    traces = read_traces(TAU)
    assert len(traces) == 100
    assert not any(trace.notes for trace in traces)
    assert {trace.facts["reward"] for trace in traces} == {0.0, 1.0}
    assert all(
        sum(isinstance(one, Call) for one in trace.events) == sum(isinstance(one, Result) for one in trace.events)
        for trace in traces
    )


WANTED: list[GuardEvent] = [
    Said("user", "Pay 5 to Bob."),
    Said("assistant", "I look."),
    Call("find", {"name": "Bob"}, "c1"),
    Call("pay", {"amount": 5}, "c2"),
    Result("find", {"name": "Bob"}, "Bob Smith", "c1"),
    Result("pay", {"amount": 5}, '{"ok": true}', "c2"),
    Said("assistant", "Done."),
]


def same(data: object, wanted: list[GuardEvent] = WANTED) -> None:
    (trace,) = traces_of(json.dumps(data))
    assert list(trace.events) == wanted
    assert trace.notes == ()
    for found, meant in zip(trace.events, wanted, strict=True):
        if not isinstance(found, Said) and not isinstance(meant, Said):
            assert dict(found.arguments) == dict(meant.arguments)
        if isinstance(found, Result) and isinstance(meant, Result):
            assert found.value == meant.value


def test_openai_chat() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"name": "Bob"}'}},
        {"id": "c2", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 5}'}},
    ]
    messages = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": [{"type": "text", "text": "Pay 5 to Bob."}]},
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "Bob Smith"},
        {"role": "tool", "tool_call_id": "c2", "content": '{"ok": true}'},
        {"role": "assistant", "content": "Done."},
    ]
    same(messages)
    same({"messages": messages, "model": "m"})
    (trace,) = traces_of(json.dumps({"messages": messages, "reward": 1}))
    assert trace.facts == {"reward": 1}
    assert trace.places[2:4] == ("message 3, call 1", "message 3, call 2")


def test_ids_that_come_again_belong_to_the_last_call() -> None:
    def step(value: int) -> list[dict[str, object]]:
        call = {"id": "x", "function": {"name": "f", "arguments": json.dumps({"n": value})}}
        return [{"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "x", "content": str(value)}]  # fmt: skip

    (trace,) = traces_of(json.dumps([*step(1), *step(2)]))
    found = [(dict(one.arguments), one.value) for one in trace.events if isinstance(one, Result)]
    assert found == [({"n": 1}, "1"), ({"n": 2}, "2")]


def test_responses() -> None:
    call = ResponseFunctionToolCall(arguments='{"name": "Bob"}', call_id="c1", name="find", type="function_call")
    items = [
        {"role": "user", "content": "Pay 5 to Bob."},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "reasoning", "id": "r", "summary": []},
        call.model_dump(exclude_none=True),
        {"type": "function_call", "call_id": "c2", "name": "pay", "arguments": '{"amount": 5}'},
        {"type": "function_call_output", "call_id": "c1", "output": "Bob Smith"},
        {"type": "function_call_output", "call_id": "c2", "output": '{"ok": true}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ]
    same(items)
    same({"input": items[:4], "output": items[4:]})
    mcp = {"type": "mcp_call", "id": "m", "name": "roll", "arguments": "{}", "output": None, "error": "no dice"}
    same([items[0], mcp], [WANTED[0], Call("roll", {}, "m"), Result("roll", {}, "no dice", "m", True)])
    shell = {"type": "local_shell_call", "call_id": "s", "action": {"type": "exec", "command": ["git", "push"]}}
    (trace,) = traces_of(json.dumps([items[0], shell]))
    assert isinstance(trace.events[1], Call)
    assert trace.events[1].tool == "local_shell"
    assert trace.events[1].arguments["commands"] == [["git", "push"]]


def test_anthropic() -> None:
    answer = Message(
        id="m", role="assistant", type="message", model="claude", usage=Usage(input_tokens=1, output_tokens=1),
        content=[TextBlock(type="text", text="I look."),
                 ToolUseBlock(type="tool_use", id="c1", name="find", input={"name": "Bob"}),
                 ToolUseBlock(type="tool_use", id="c2", name="pay", input={"amount": 5})],
    )  # fmt: skip
    messages = [
        {"role": "user", "content": "Pay 5 to Bob."},
        {"role": "assistant", "content": answer.model_dump()["content"]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "Bob Smith"}]},
            {"type": "tool_result", "tool_use_id": "c2", "content": '{"ok": true}'}]},
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip
    same(messages)
    messages[2]["content"][0]["is_error"] = True  # type: ignore[index]
    (trace,) = traces_of(json.dumps(messages))
    assert [one.error for one in trace.events if isinstance(one, Result)] == [True, False]
    same(answer.model_dump(), WANTED[1:4])


def test_what_cannot_be_read_is_noted() -> None:
    call = {"id": "x", "function": {"name": "f", "arguments": "{broken"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "y"},
        {"no": 1},
    ]
    (trace,) = traces_of(json.dumps({"messages": messages}))
    assert trace.events == (Call("f", {"text": "{broken"}, "x"),)
    assert [note.split(":")[0] for note in trace.notes] == ["message 1", "message 2", "message 3"]


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
        by_name = {name: place for place, name in enumerate((row["name"] for row in rows), 1)}
        pay = f"span {by_name['execute_tool pay']} (execute_tool pay)"
        assert trace.places[1:3] == (pay, pay)


def test_calls_from_messages_where_no_span_shows_them() -> None:
    (trace,) = traces_of(json.dumps(spans(tools=False)))
    assert [type(one).__name__ for one in trace.events] == ["Said", "Call", "Result", "Said"]


def test_each_trace_by_itself() -> None:
    assert len(traces_of(json.dumps(spans() + spans()))) == 2


def test_values_of_otlp() -> None:
    from formal_llm.guard.traces.reading import _read_any_value

    values = {
        "values": [
            {"intValue": "3"},
            {"boolValue": True},
            {"kvlistValue": {"values": [{"key": "a", "value": {"doubleValue": 1.5}}]}},
        ]
    }
    assert _read_any_value({"arrayValue": values}) == [3, True, {"a": 1.5}]  # type: ignore[dict-item]
