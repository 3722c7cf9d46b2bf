"""Messages of providers, written by their own packages where they can be, read into the same events."""

from __future__ import annotations

import json

from anthropic.types import Message, TextBlock, ToolUseBlock, Usage
from openai.types.responses import ResponseFunctionToolCall

from formal_llm.agents.guard.events import Call, GuardEvent, Result, Said
from formal_llm.agents.guard.traces import traces_of

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
