"""Recordings of traces."""

from __future__ import annotations

from formal_llm.agents.guard.events import Call
from formal_llm.agents.guard.traces.trace import Recording, text_of, value_of


def test_contents() -> None:
    assert (
        text_of([{"type": "text", "text": "a"}, "b", {"content": [{"text": "c"}]}, {"type": "image"}, 3]) == "a\nb\nc"
    )
    assert value_of([{"type": "text", "text": "a"}]) == "a"
    assert value_of([{"type": "image", "data": "x"}]) == [{"type": "image", "data": "x"}]
    assert value_of([1, 2]) == [1, 2]


def test_arguments() -> None:
    made = Recording("r")
    for arguments in ('{"a": 1}', {"a": 1}, None, "", [1], '"x"'):
        made.call("f", arguments, "1", "here")  # type: ignore[arg-type]
    made.call("Bash", '{"command": "sudo git push"}', "2", "here")
    found = [dict(one.arguments) for one in made.events if isinstance(one, Call)]
    assert found[:6] == [{"a": 1}, {"a": 1}, {}, {}, {"value": [1]}, {"value": "x"}]
    assert found[6]["commands"] == [["sudo", "git", "push"], ["git", "push"]]
