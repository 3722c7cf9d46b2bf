"""A server on this machine that speaks the protocols of six providers, and misbehaves on demand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple, Self


@dataclass(frozen=True)
class Reply:
    """What comes back for a request.

    Attributes:
        body: JSON data, or what is sent as it stands.
        delay: the seconds before it.
        cut: after how many bytes of it the server hangs up.
        drip: the seconds between its tenths.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0
    cut: int | None = None
    drip: float = 0


class Asked(NamedTuple):
    """A request: its path, its body, and its headers with names in lower case."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]


#: Answers a request.
Answering = Callable[[Asked], Reply | dict[str, Any]]


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # many may ask at once


class WireServer:
    """The server; it ends with the ``with`` block.

    Args:
        answering: answers all requests, or replies that are given in turn; the last one stays.

    Attributes:
        asked: the requests so far.
        answering: as given; may be changed.
    """

    def __init__(self, *answering: Answering | Reply | dict[str, Any]) -> None:
        self.script = list(answering)
        self.asked: list[Asked] = []
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self.root = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, asked: Asked) -> Reply:
        """Answer a request."""
        self.asked.append(asked)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        made = step(asked) if callable(step) else step
        return made if isinstance(made, Reply) else Reply(made)


def _handler(server: WireServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            try:
                body = json.loads(raw) if raw else {}
            except ValueError:
                body = {"raw": raw}
            reply = server.answer(Asked(self.path, body, {name.lower(): one for name, one in self.headers.items()}))
            time.sleep(reply.delay)
            data = reply.body if isinstance(reply.body, (str, bytes)) else json.dumps(reply.body)
            data = data.encode() if isinstance(data, str) else data
            try:
                self.send_response(reply.status)
                length = {"content-type": "application/json", "content-length": str(len(data))}
                for name, value in {**length, **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                step = len(data) // 10 + 1 if reply.drip else len(data) or 1
                for start in range(0, len(data) if reply.cut is None else min(reply.cut, len(data)), step):
                    time.sleep(reply.drip)
                    self.wfile.write(data[start : start + step][: None if reply.cut is None else reply.cut])
                    self.wfile.flush()
            except OSError:
                self.close_connection = True  # the client has gone, as it may
            if reply.cut is not None:
                self.close_connection = True

        do_GET = do_DELETE = do_POST  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Handler


# -- the protocols ----------------------------------------------------------------------------------------------------

#: A call of a tool: its id, its name, and its arguments.
Call = tuple[str, str, dict[str, Any]]


class Form(NamedTuple):
    """A protocol.

    Attributes:
        model: the provider string.
        variables: the environment with the key and the address, ``{}`` being that of the server.
        write: the body of an answer with this text, these calls, and what ended it (``stop``, ``length``, ``filter``).
        stream: the same as events.
        settings: of the model that is made.
    """

    model: str
    variables: Mapping[str, str]
    write: Callable[[str, Sequence[Call], str], dict[str, Any]]
    stream: Callable[[str, Sequence[Call], str], str]

    def reply(self, text: str, calls: Sequence[Call] = (), stop: str = "stop") -> Answering:
        """Return what answers requests so, as a stream where one is wanted."""

        def answer(asked: Asked) -> Reply:
            if asked.body.get("stream") or "stream" in asked.path.casefold():
                return Reply(self.stream(text, calls, stop), headers={"content-type": "text/event-stream"})
            return Reply(self.write(text, calls, stop))

        return answer

    def make(self, **settings: Any) -> Any:
        """Return the model; the variables have to be set."""
        from formal_llm.llms import HostedLLM

        return HostedLLM(self.model, **{"max_retries": 0, "deadline": 5, **settings})


def chat(text: str | None, calls: Sequence[Call] = (), stop: str = "stop", **message: Any) -> dict[str, Any]:
    """An answer of OpenAI's chat completions."""
    asked = [{"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls]
    more = {"tool_calls": asked} if calls else {}
    reason = {"stop": "tool_calls" if calls else "stop", "filter": "content_filter"}.get(stop, stop)
    top = {"logprobs": message.pop("logprobs")} if "logprobs" in message else {}
    choice = {
        "index": 0,
        "finish_reason": reason,
        **top,
        "message": {"role": "assistant", "content": text, **more, **message},
    }
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": _USAGE, "choices": [choice]}


_USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def events(*parts: object, last: str = "data: [DONE]\n\n") -> Reply:
    """A stream of events, as OpenAI's protocol has it."""
    text = "".join(f"data: {json.dumps(part)}\n\n" for part in parts)
    return Reply(text + last, headers={"content-type": "text/event-stream"})


def delta(finish: str | None = None, **part: Any) -> dict[str, Any]:
    """A part of a streamed chat completion."""
    choice = {"index": 0, "delta": part, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def _stream_chat(text: str, calls: Sequence[Call], stop: str) -> str:
    reason = {"stop": "tool_calls" if calls else "stop", "filter": "content_filter"}.get(stop, stop)
    asked = [
        {"index": n, "id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(a)}}
        for n, (i, name, a) in enumerate(calls)
    ]
    parts = [*(delta(content=one) for one in text), *(delta(tool_calls=[one]) for one in asked), delta(reason)]
    return str(events(*parts, {**delta(), "choices": [], "usage": _USAGE}).body)


def _responses(text: str, calls: Sequence[Call] = (), stop: str = "stop") -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
    asked = [
        {
            "type": "function_call",
            "id": f"f{i}",
            "call_id": i,
            "name": n,
            "arguments": json.dumps(a),
            "status": "completed",
        }
        for i, n, a in calls
    ]
    usage = {
        "input_tokens": 5, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 7,
    }  # fmt: skip
    reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(stop)
    return {
        "id": "r1", "object": "response", "created_at": 1, "model": "m", "error": None, "tools": [], "usage": usage,
        "status": "incomplete" if reason else "completed", "tool_choice": "auto", "parallel_tool_calls": True,
        "incomplete_details": {"reason": reason} if reason else None, "output": [*([message] if text else []), *asked],
    }  # fmt: skip


def _named(*parts: dict[str, Any]) -> str:
    return "".join(f"event: {part['type']}\ndata: {json.dumps(part)}\n\n" for part in parts)


def _stream_responses(text: str, calls: Sequence[Call], stop: str) -> str:
    whole = _responses(text, calls, stop)
    begun = {**whole, "output": [], "status": "in_progress", "usage": None, "incomplete_details": None}
    parts: list[dict[str, Any]] = [{"type": "response.created", "response": begun, "sequence_number": 0}]
    for place, item in enumerate(whole["output"]):
        parts.append({"type": "response.output_item.added", "output_index": place, "item": item, "sequence_number": 1})
        if item["type"] == "message":
            where = {"item_id": "m1", "output_index": place, "content_index": 0, "sequence_number": 2, "logprobs": []}
            parts += [{"type": "response.output_text.delta", "delta": one, **where} for one in text]
        parts.append({"type": "response.output_item.done", "output_index": place, "item": item, "sequence_number": 3})
    kind = "response.incomplete" if whole["status"] == "incomplete" else "response.completed"
    return _named(*parts, {"type": kind, "response": whole, "sequence_number": 4})


def _anthropic(text: str, calls: Sequence[Call] = (), stop: str = "stop") -> dict[str, Any]:
    used = [{"type": "tool_use", "id": i, "name": name, "input": a} for i, name, a in calls]
    reason = {"stop": "tool_use" if calls else "end_turn", "length": "max_tokens", "filter": "refusal"}[stop]
    return {
        "id": "x", "type": "message", "role": "assistant", "model": "m", "stop_reason": reason, "stop_sequence": None,
        "content": [*([{"type": "text", "text": text}] if text else []), *used],
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }  # fmt: skip


def _stream_anthropic(text: str, calls: Sequence[Call], stop: str) -> str:
    whole = _anthropic(text, calls, stop)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 5, "output_tokens": 0}}
    parts: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for place, block in enumerate(whole["content"]):
        empty = {"text": ""} if block["type"] == "text" else {"input": {}}
        parts.append({"type": "content_block_start", "index": place, "content_block": {**block, **empty}})
        pieces: list[dict[str, Any]] = [{"type": "text_delta", "text": one} for one in block.get("text", "")]
        pieces += [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}] if "input" in block else []
        parts += [{"type": "content_block_delta", "index": place, "delta": one} for one in pieces]
        parts.append({"type": "content_block_stop", "index": place})
    end = {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": {"output_tokens": 2}}
    return _named(*parts, end, {"type": "message_stop"})


def _google(text: str, calls: Sequence[Call] = (), stop: str = "stop") -> dict[str, Any]:
    used = [{"functionCall": {"id": i, "name": name, "args": a}} for i, name, a in calls]
    reason = {"stop": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}[stop]
    content = {"role": "model", "parts": [*([{"text": text}] if text else []), *used]}
    return {
        "candidates": [{"content": content, "finishReason": reason, "index": 0}], "modelVersion": "m",
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}, "responseId": "x",
    }  # fmt: skip


def _stream_google(text: str, calls: Sequence[Call], stop: str) -> str:
    first = _google(text, (), "stop")
    del first["candidates"][0]["finishReason"]
    return str(events(*([first] if text else []), _google("", calls, stop), last="").body)


#: A key, which no error and no record may have.
KEY = "sk-aaaabbbbcccc"


def _form(model: str, key: str, url: str, path: str, write: Any, stream: Any) -> Form:
    return Form(model, {key: KEY, url: f"{{}}{path}"}, write, stream)


FORMS = {
    "openai": _form("openai:m", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1", chat, _stream_chat),
    "responses": _form("openai-responses:m", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1", _responses, _stream_responses),
    "anthropic": _form(
        "anthropic:claude-haiku-5-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "", _anthropic, _stream_anthropic
    ),
    "google": _form("google:gemini-3-pro", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "", _google, _stream_google),
    "ollama": _form("ollama:m", "OLLAMA_API_KEY", "OLLAMA_HOST", "", chat, _stream_chat),
    "vllm": _form("vllm:m", "VLLM_API_KEY", "VLLM_BASE_URL", "/v1", chat, _stream_chat),
}


@contextmanager
def serving(form: Form, monkeypatch: Any, *script: Answering | Reply | dict[str, Any]) -> Iterator[WireServer]:
    """Run a server to which the variables of a protocol point."""
    with WireServer(*script) as server:
        for name, value in form.variables.items():
            monkeypatch.setenv(name, value.format(server.root))
        yield server
