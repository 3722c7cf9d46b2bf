"""Recordings of traces."""

from __future__ import annotations

from formal_llm.guard.events import Call
from formal_llm.guard.traces.trace import TraceBuilder, extract_text, extract_value


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
