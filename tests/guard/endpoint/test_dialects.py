"""Dialects by themselves: what is written as a stream is read back, and what is read is what the API wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard.endpoint.dialects import DIALECTS, AskedCall, Body, Dialect, ForcedToolError, add_usage, name_tool
from formal_llm.guard.events import Said
from tests.strategies import examples

CHAT, RESPONSES, MESSAGES = DIALECTS
#: A part of an answer: a text, or the name of a tool with its arguments.
Part = str | tuple[str, dict[str, Any]]
VALUES = st.dictionaries(
    st.text("ab", min_size=1), st.one_of(st.integers(), st.text(max_size=5), st.none()), max_size=2
)
CALLS = st.lists(st.tuples(st.sampled_from(["pay", "look", "é"]), VALUES), max_size=3)
TEXTS = st.text(max_size=10)


def write_chat(text: str, calls: list[tuple[str, dict[str, Any]]]) -> Body:
    message: Body = {"role": "assistant"}
    if text:
        message["content"] = text
    if calls:
        message["tool_calls"] = [
            {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for place, (name, given) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "1", "model": "m", "object": "chat.completion", "choices": [choice], "usage": {"total_tokens": 3}}


def write_response(text: str, calls: list[tuple[str, dict[str, Any]]]) -> Body:
    part = {"type": "output_text", "text": text, "annotations": []}
    said = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    items = [
        {"type": "function_call", "id": f"fc{place}", "call_id": f"c{place}", "name": name,
         "arguments": json.dumps(given), "status": "completed"}
        for place, (name, given) in enumerate(calls)
    ]  # fmt: skip
    return {"id": "r", "status": "completed", "output": [*([said] if text else []), *items]}


def write_message(text: str, calls: list[tuple[str, dict[str, Any]]]) -> Body:
    blocks: list[Body] = [{"type": "text", "text": text}] if text else []
    blocks += [
        {"type": "tool_use", "id": f"c{n}", "name": name, "input": given} for n, (name, given) in enumerate(calls)
    ]
    return {"id": "1", "type": "message", "role": "assistant", "content": blocks, "stop_sequence": None,
            "stop_reason": "tool_use" if calls else "end_turn", "usage": {"output_tokens": 1}}  # fmt: skip


WRITERS: list[tuple[Dialect, Callable[..., Body]]] = [
    (CHAT, write_chat), (RESPONSES, write_response), (MESSAGES, write_message),
]  # fmt: skip


@examples(200)
@given(text=TEXTS, calls=CALLS, which=st.sampled_from([0, 1, 2]))
def test_what_is_written_as_a_stream_is_read_back(text: str, calls: Any, which: int) -> None:
    dialect, write = WRITERS[which]
    answer = write(text, calls)
    reader = dialect.reader()
    passes = [reader.add_event({"type": name, **data}) for name, data in dialect.write_rest(answer, 0, begun=False)]
    read = {key: value for key, value in reader.answer.items() if key != "type" or which == 2}
    assert reader.ended and read == answer
    held = passes.index(False)
    assert not any(passes[held:])  # from the first call on, and the end in any case


@examples(200)
@given(text=TEXTS, calls=CALLS, which=st.sampled_from([0, 1, 2]))
def test_an_answer_is_read_in_its_order(text: str, calls: Any, which: int) -> None:
    dialect, write = WRITERS[which]
    parts = dialect.read_answer(write(text, calls))
    assert [part for part in parts if isinstance(part, Said)] == ([Said("assistant", text)] if text else [])
    asked = [part for part in parts if isinstance(part, AskedCall)]
    assert [(one.tool, dict(one.call.arguments)) for one in asked if one.call] == calls
    kept = dialect.drop_calls(write(text, calls), {one.place for one in asked[:1]}, "note") if asked else None
    if kept is not None:
        after = dialect.read_answer(kept)
        assert [one.tool for one in after if isinstance(one, AskedCall)] == [name for name, _ in calls[1:]]
        assert any(isinstance(one, Said) and one.text.endswith("note") for one in after)


@examples(100)
@given(calls=CALLS.filter(bool), refused=st.booleans())
def test_what_is_asked_again_can_be_read(calls: Any, refused: bool) -> None:
    """The next request has the calls with their refusals, or the reason; the guard never sees it as a past."""
    for dialect, write in WRITERS:
        key = "input" if dialect is RESPONSES else "messages"
        request = {key: [{"role": "user", "content": "do"}]}
        answer = write("so", calls if refused else [])
        refusals = {f"c{place}": "not now" for place, _ in enumerate(calls)} if refused else {}
        again = dialect.ask_again(request, answer, refusals, "" if refused else "not yet")
        assert len(request[key]) == 1
        assert dialect.find_obstacle(again) == ""
        assert ("not now" if refused else "not yet") in str(again)
        trace = dialect.read_past(again)
        assert [event.tool for event in trace.events if hasattr(event, "value")] == [
            name for name, _ in calls
        ] * refused
        assert trace.notes == ()


def test_a_reference_carries_its_call() -> None:
    """Clients such as the AI SDK send references instead of the items that they got."""
    answer = write_response("", [("pay", {"order": 7})])
    [item] = RESPONSES.mark_calls(answer)["output"]
    output = {"type": "function_call_output", "call_id": "c0", "output": "paid"}
    request = {"input": [{"type": "item_reference", "id": item["id"]}, output]}
    assert RESPONSES.find_obstacle(request) == ""
    assert [(event.tool, dict(event.arguments)) for event in RESPONSES.read_past(request).events] == [
        ("pay", {"order": 7}),
        ("pay", {"order": 7}),
    ]
    assert RESPONSES.restore_request(request)["input"][0] == {"type": "item_reference", "id": "fc0"}
    assert RESPONSES.mark_calls(write_response("a", [])) == write_response("a", [])
    for id_ in ("fc0", "fc0.guard.no", "fc0.guard.W10="):
        hidden = {"input": [{"type": "item_reference", "id": id_}, output]}
        assert "is not among the items" in RESPONSES.find_obstacle(hidden)


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ({"type": "function", "function": {"name": "pay"}}, "pay"), ({"type": "function", "name": "pay"}, "pay"),
        ({"type": "custom", "custom": {"name": "pay"}}, "pay"), ({"name": "pay"}, "pay"),
        ({"type": "web_search_20250305", "name": "web_search"}, "web_search"),
        ({"type": "web_search_preview"}, "web_search"), ({"type": "file_search"}, "file_search"),
    ],
)  # fmt: skip
def test_names_of_tools(tool: Body, name: str) -> None:
    assert name_tool(tool) == name


def test_closed_tools_are_not_sent_on() -> None:
    tools = [{"name": "pay"}, {"name": "look"}]
    assert MESSAGES.restrict_tools({"tools": tools}, lambda _: False) == {"tools": tools}
    assert MESSAGES.restrict_tools({"tools": tools}, "pay".__eq__) == {"tools": [{"name": "look"}]}
    nothing = MESSAGES.restrict_tools({"tools": tools, "tool_choice": {"type": "auto"}}, lambda _: True)
    assert nothing == {"tools": tools, "tool_choice": {"type": "none"}}
    with pytest.raises(ForcedToolError):
        MESSAGES.restrict_tools({"tools": tools, "tool_choice": {"type": "tool", "name": "pay"}}, "pay".__eq__)


def test_usage_adds_up() -> None:
    one = {"usage": {"a": 1, "b": {"c": 2}, "tier": "x"}}
    assert add_usage(one, {}) is one
    assert add_usage(one, {"a": 2, "b": {"c": 1, "d": 4}, "tier": "y", "e": None})["usage"] == {
        "a": 3, "b": {"c": 3, "d": 4}, "tier": "x", "e": None,
    }  # fmt: skip
    assert add_usage({}, {"a": 1})["usage"] == {"a": 1}


@pytest.mark.parametrize("more", ["choice", "function_call"])
def test_what_was_not_asked_for_is_not_passed_on(more: str) -> None:
    answer = write_chat("so", [])
    assert CHAT.read_answer(answer)
    if more == "choice":
        answer["choices"].append(write_chat("", [("pay", {})])["choices"][0])
    else:
        answer["choices"][0]["message"]["function_call"] = {"name": "pay", "arguments": "{}"}
    with pytest.raises(TypeError):
        CHAT.read_answer(answer)
