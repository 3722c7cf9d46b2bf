"""A local HTTP server that says what stands in a script, as OpenAI and Anthropic write it, streamed or whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

#: A text, or calls: a name and its arguments, as an object or as the text that stands for one.
Step = str | list[tuple[str, Any]]
Body = dict[str, Any]


class ScriptedServer(ThreadingHTTPServer):
    """Answers each request with the next step of its script.

    Attributes:
        steps: what is said next.
        asked: the bodies of the requests so far.
        once: whether ids of calls begin at 0 again in each answer, as some servers have it.
    """

    daemon_threads = True

    def __init__(self, *steps: Step, once: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.steps = list(steps)
        self.asked: list[Body] = []
        self.once = once
        self._ids = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def calls(self, step: list[tuple[str, Any]]) -> list[tuple[str, str, str]]:
        """The id, the name and the written arguments of each call of a step."""
        if self.once:
            self._ids = 0
        found = []
        for name, arguments in step:
            self._ids += 1
            found.append(
                (f"call_{self._ids}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
            )
        return found


@contextmanager
def serving(*steps: Step, once: bool = False) -> Iterator[ScriptedServer]:
    """A server of a script, for as long as it is needed."""
    server = ScriptedServer(*steps, once=once)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body)
        step = self.server.steps.pop(0)
        path = self.path.split("?")[0].removeprefix("/v1")
        write = {"/responses": _response, "/chat/completions": _completion, "/messages": _message}[path]
        whole, events = write(self.server, step)
        if body.get("stream"):
            kind, lines = "text/event-stream", [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events]
            if path == "/chat/completions":
                lines = [line.split("\n", 1)[1] for line in lines] + ["data: [DONE]\n\n"]
            page = "".join(lines).encode()
        else:
            kind, page = "application/json", json.dumps(whole).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


Events = list[tuple[str, Body]]


def _response(server: ScriptedServer, step: Step) -> tuple[Body, Events]:
    items: list[Body]
    if isinstance(step, str):
        part = {"type": "output_text", "text": step, "annotations": []}
        items = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}]
    else:
        items = [
            {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": name, "arguments": arguments,
             "status": "completed"}
            for id_, name, arguments in server.calls(step)
        ]  # fmt: skip
    top = {"id": "resp_1", "object": "response", "created_at": 1, "model": "test", "parallel_tool_calls": True,
           "tool_choice": "auto", "tools": [], "status": "completed"}  # fmt: skip
    whole = {**top, "output": items}
    events: Events = [("response.created", {"response": {**top, "status": "in_progress", "output": []}})]
    for place, item in enumerate(items):
        empty = {**item, "content": []} if item["type"] == "message" else {**item, "arguments": ""}
        events.append(("response.output_item.added", {"output_index": place, "item": empty}))
        events.append(("response.output_item.done", {"output_index": place, "item": item}))
    events.append(("response.completed", {"response": whole}))
    return whole, [(name, {"type": name, "sequence_number": n, **data}) for n, (name, data) in enumerate(events)]


def _completion(server: ScriptedServer, step: Step) -> tuple[Body, Events]:
    message: Body = {"role": "assistant", "content": step if isinstance(step, str) else None}
    if not isinstance(step, str):
        message["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in server.calls(step)
        ]
    reason = "stop" if isinstance(step, str) else "tool_calls"
    top = {"id": "chatcmpl-1", "created": 1, "model": "test"}
    whole = {**top, "object": "chat.completion", "choices": [{"index": 0, "finish_reason": reason, "message": message}]}
    delta = {**message, "tool_calls": [{"index": n, **one} for n, one in enumerate(message.get("tool_calls", ()))]}
    chunk = {**top, "object": "chat.completion.chunk"}
    first = {**chunk, "choices": [{"index": 0, "finish_reason": None, "delta": delta}]}
    last = {**chunk, "choices": [{"index": 0, "finish_reason": reason, "delta": {}}]}
    return whole, [("chunk", first), ("chunk", last)]


def _message(server: ScriptedServer, step: Step) -> tuple[Body, Events]:
    blocks: list[Body]
    if isinstance(step, str):
        blocks = [{"type": "text", "text": step}]
    else:
        blocks = [
            {"type": "tool_use", "id": id_, "name": name, "input": json.loads(arguments)}
            for id_, name, arguments in server.calls(step)
        ]
    reason = "end_turn" if isinstance(step, str) else "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    top: Body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test",
        "stop_sequence": None,
        "usage": usage,
    }
    events: Events = [("message_start", {"message": {**top, "content": [], "stop_reason": None}})]
    for place, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            ("content_block_start", {"index": place, "content_block": empty}),
            ("content_block_delta", {"index": place, "delta": delta}),
            ("content_block_stop", {"index": place}),
        ]
    events += [
        ("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}),
        ("message_stop", {}),
    ]
    return {**top, "content": blocks, "stop_reason": reason}, [(name, {"type": name, **data}) for name, data in events]
