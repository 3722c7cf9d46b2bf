"""A local HTTP server that speaks what the adapters use of both providers' protocols, and misbehaves on demand."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

#: What every answered request costs, as the server counts it.
INPUT_TOKENS, OUTPUT_TOKENS = 100, 7


@dataclass(frozen=True)
class Behaviour:
    """How one request is answered.

    Attributes:
        text: what the model writes.
        stop: why it stopped: ``done``, ``refusal``, ``truncated`` or ``filtered``.
        status: the HTTP status.
        headers: further HTTP headers.
        page: this body as it stands, instead of an answer.
        cut: hang up without an answer.
        delay: wait this many seconds first.
    """

    text: str = ""
    stop: str = "done"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    page: str | None = None
    cut: bool = False
    delay: float = 0


def ok(*numbers: int, several: bool = False) -> Behaviour:
    """The answer with this number, or these; no number has to be an option."""
    return text(json.dumps({"choices": list(numbers)} if several else {"choice": numbers[0]}))


def text(written: str) -> Behaviour:
    """An answer with this text, which need not keep to any schema."""
    return Behaviour(text=written)


def failing(status: int) -> Behaviour:
    """An error status. The client is told to wait a hundredth of a second, so that its retries are quick."""
    return Behaviour(status=status, headers={"retry-after": "0.01"})


EMPTY = Behaviour()
REFUSAL = Behaviour(text="I can't help with that.", stop="refusal")
TRUNCATED = Behaviour(text='{"choi', stop="truncated")
FILTERED = Behaviour(stop="filtered")
CUT = Behaviour(cut=True)
SLOW = Behaviour(cut=True, delay=0.3)
HTML = Behaviour(page="<html>Welcome</html>", headers={"content-type": "text/html"})
BROKEN_JSON = Behaviour(page='{"id": ')
EMPTY_JSON = Behaviour(page="{}")


class ProtocolServer:
    """The server; it runs in a thread between ``start`` and ``stop``.

    Attributes:
        script: how the next requests are answered, in turn; a request beyond them is an error.
        bodies: the JSON bodies of the requests so far.
        headers: their headers, names in lower case.
    """

    def __init__(self) -> None:
        self.script: list[Behaviour] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        # Not daemons: closing the server waits for them, so no socket outlives a test.
        self._http.daemon_threads = False
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and free the port."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def next(self) -> Behaviour:
        """How to answer the request that has just come."""
        # 418 is not retried by the clients, so a test with too short a script fails at once.
        return self.script.pop(0) if self.script else Behaviour(status=418)


def _handler(server: ProtocolServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # HTTP/1.0, the default: one request for each connection, so nothing is left open.

        def do_POST(self) -> None:
            server.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            speak = {"/v1/chat/completions": _openai, "/v1/messages": _anthropic}.get(self.path)
            behaviour = server.next() if speak else Behaviour(status=404)
            time.sleep(behaviour.delay)
            if behaviour.cut:
                return
            if behaviour.page is not None:
                page = behaviour.page
            elif behaviour.status != 200 or speak is None:
                page = json.dumps({"type": "error", "error": {"type": "some_error", "message": "said by the server"}})
            else:
                page = json.dumps(speak(behaviour))
            self.send_response(behaviour.status)
            for name, value in {"content-type": "application/json", **behaviour.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *args: Any) -> None:
            """Say nothing on stderr."""

    return Handler


def _openai(behaviour: Behaviour) -> dict[str, Any]:
    refused = behaviour.stop == "refusal"
    finish_reason = {"truncated": "length", "filtered": "content_filter"}.get(behaviour.stop, "stop")
    message = {
        "role": "assistant",
        "content": None if refused else behaviour.text,
        "refusal": behaviour.text if refused else None,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def _anthropic(behaviour: Behaviour) -> dict[str, Any]:
    refused = behaviour.stop == "refusal"
    thinking = {"type": "thinking", "thinking": "Is it 3?", "signature": "s"}
    written = [{"type": "text", "text": behaviour.text}] if behaviour.text and not refused else []
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test-model",
        "content": [thinking, *written],
        "stop_reason": {"refusal": "refusal", "truncated": "max_tokens"}.get(behaviour.stop, "end_turn"),
        "stop_details": {"type": "refusal", "category": None, "explanation": behaviour.text} if refused else None,
        "stop_sequence": None,
        # The same total of input tokens, some of them through the cache.
        "usage": {
            "input_tokens": INPUT_TOKENS - 30,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 20,
            "output_tokens": OUTPUT_TOKENS,
        },
    }
