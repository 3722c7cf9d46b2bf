"""Which format a file has is seen from what stands in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from anthropic.types import Message, TextBlock, ToolUseBlock, Usage

from formal_llm.errors import RecordError
from formal_llm.guard.audit import AuditLog
from formal_llm.guard.events import Call, GuardEvent, Result, Said, as_row
from formal_llm.guard.traces import TraceBuilder, extract_text, extract_value, read_traces, traces_of

TAU = Path(__file__).parents[3] / "shared" / "data" / "tau-airline" / "trajectories.jsonl"


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
        ("[1]", "no object"), ('[{"type": "function_call", "name": "f"}]', "no messages"),
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


def test_contents() -> None:
    assert (
        extract_text([{"type": "text", "text": "a"}, "b", {"content": [{"text": "c"}]}, {"type": "image"}, 3])
        == "a\nb\nc"
    )
    assert extract_value([{"type": "text", "text": "a"}]) == "a"
    assert extract_value([{"type": "image", "data": "x"}]) == [{"type": "image", "data": "x"}]
    assert extract_value([1, 2]) == [1, 2]


def test_arguments() -> None:
    made = TraceBuilder("r")
    for arguments in ('{"a": 1}', {"a": 1}, None, "", [1], '"x"'):
        made.add_call("f", arguments, "1", "here")  # type: ignore[arg-type]
    made.add_call("Bash", '{"command": "git push"}', "2", "here")
    found = [dict(one.arguments) for one in made.events if isinstance(one, Call)]
    assert found[:6] == [{"a": 1}, {"a": 1}, {}, {}, {"value": [1]}, {"value": "x"}]
    assert found[6]["commands"] == [["git", "push"]]
