"""Which format a file has is seen from what stands in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm.agents import Segment, Transcript
from formal_llm.agents.guard.audit import AuditLog
from formal_llm.agents.guard.events import Call, Result, Said, as_row
from formal_llm.agents.guard.traces import read_traces, traces_of
from formal_llm.errors import TraceError

TAU = Path(__file__).parents[5] / "shared" / "data" / "tau-airline" / "trajectories.jsonl"


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
    with pytest.raises(TraceError, match=f"trace.json: .*{told}"):
        read_traces(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        read_traces(tmp_path)
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    with pytest.raises(TraceError, match="UTF-8"):
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
