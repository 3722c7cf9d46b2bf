"""A local HTTP server that speaks what the adapters use of their providers' protocols, and misbehaves on demand."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any

from tests.llms.hosted import protocols


@dataclass(frozen=True)
class Behaviour:
    """How one request is answered.

    Attributes:
        numbers: what is chosen, written as the protocol writes it; no number has to be an option.
        text: what the model writes instead, where models write.
        stop: why it stopped: ``done``, ``refusal``, ``truncated`` or ``filtered``.
        probabilities: of the options, where a protocol has them as such.
        logprobs: of the tokens, where a protocol has them.
        changes: what is different in the response at its top.
        status: the HTTP status.
        headers: further HTTP headers.
        message: what an error says.
        page: this body as it stands, instead of an answer.
        cut: hang up without an answer.
        cut_body: hang up after this many bytes of the body.
        drip: seconds to wait between the tenths of the body.
        delay: wait this many seconds first.
        together: wait until this many requests are being answered together.
    """

    numbers: tuple[int, ...] = ()
    text: str | None = None
    stop: str = "done"
    probabilities: Mapping[int, Any] | None = None
    logprobs: Any = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "said by the server"
    page: str | bytes | None = None
    cut: bool = False
    cut_body: int | None = None
    drip: float = 0
    delay: float = 0
    together: int = 0


def ok(*numbers: int, **more: Any) -> Behaviour:
    """The answer with this number, or these."""
    return Behaviour(numbers, **more)


def text(written: str, **more: Any) -> Behaviour:
    """An answer with this text, which need not keep to any schema."""
    return Behaviour(text=written, **more)


def failing(status: int, **more: Any) -> Behaviour:
    """An error status. The client is told to wait a hundredth of a second, so that its retries are quick."""
    return Behaviour(status=status, headers={"retry-after": "0.01"}, **more)


EMPTY = text("")
REFUSAL = text("I can't help with that.", stop="refusal")
TRUNCATED = text('{"choi', stop="truncated")
FILTERED = text("", stop="filtered")
CUT = Behaviour(cut=True)
CUT_BODY = ok(2, cut_body=20)
SLOW = Behaviour(cut=True, delay=0.3)
HTML = Behaviour(page="<html>Welcome</html>", headers={"content-type": "text/html"})
BROKEN_JSON = Behaviour(page='{"id": ')
OTHER_JSON = ["{}", "null", "[]", "7", '"2"', '{"choices": [], "content": 3, "answers": 4}', '{"choices": [7]}']
DEEP_JSON = Behaviour(page="[" * 200_000)
HUGE_NUMBER = Behaviour(page='{"usage": ' + "9" * 5000 + "}")
NO_UNICODE = Behaviour(page=b'{"id": "\xff\xfe"}')


class _Http(ThreadingHTTPServer):
    # Not daemons: closing the server waits for them, so no socket outlives a test.
    daemon_threads = False
    # Many may ask at once.
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.held = 0
        self.changed = Condition()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.changed:
            self.held += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self.changed:
            self.held -= 1
            self.changed.notify_all()


class ProtocolServer:
    """The server; it runs in a thread between ``start`` and ``stop``.

    Args:
        keep: whether a connection stays open for further requests; its client must close it before ``stop``.

    Attributes:
        script: how the next requests are answered, in turn; a request beyond them is an error.
        paths: the paths of the requests so far.
        bodies: their JSON bodies.
        headers: their headers, names in lower case.
        connections: the ports of the clients that they came from.
        most_at_once: how many were being answered together, at most.
        answering: those that are being answered now.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.changed = Condition()
        self.reset()
        self._http = _Http(("127.0.0.1", 0), _handler(self, keep=keep))
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def reset(self) -> None:
        """Forget all requests."""
        self.script: list[Behaviour] = []
        self.paths: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: list[int] = []
        self.most_at_once = 0
        # A new set: a request of before, whose client has gone, may still be being answered, and counts no more.
        self.answering: set[BaseHTTPRequestHandler] = set()

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

    def wait_until_left(self) -> None:
        """Wait until the server's ends of all connections are closed, which it does when its clients have left."""
        with self._http.changed:
            assert self._http.changed.wait_for(lambda: not self._http.held, timeout=10)

    def next(self) -> Behaviour:
        """How to answer the request that has just come."""
        # 418 is not retried by the clients, so a test with too short a script fails at once.
        return self.script.pop(0) if self.script else Behaviour(status=418)


def _handler(server: ProtocolServer, *, keep: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # HTTP/1.0, the default, is one request for each connection, so nothing is left open.
        protocol_version = "HTTP/1.1" if keep else "HTTP/1.0"

        def do_POST(self) -> None:
            server.paths.append(self.path)
            server.connections.append(self.client_address[1])
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            server.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            speak = protocols.PATHS.get(self.path)
            behaviour = server.next() if speak else Behaviour(status=404)
            with server.changed:
                answering = server.answering
                answering.add(self)
                server.most_at_once = max(server.most_at_once, len(answering))
                server.changed.notify_all()
                server.changed.wait_for(lambda: server.most_at_once >= behaviour.together, timeout=10)
            time.sleep(behaviour.delay)
            with server.changed:
                answering.discard(self)
            if behaviour.cut:
                return
            if behaviour.page is not None:
                page = behaviour.page
            elif behaviour.status != 200 or speak is None:
                page = json.dumps(protocols.error(self.path, behaviour.message))
            elif server.bodies[-1].get("stream"):
                page = protocols.streamed(self.path, speak(behaviour, server.bodies[-1]))
            else:
                page = json.dumps({**speak(behaviour, server.bodies[-1]), **behaviour.changes})
            body = page.encode() if isinstance(page, str) else page
            self.send_response(behaviour.status)
            length = {"content-length": str(len(body))}
            for name, value in {"content-type": "application/json", **length, **behaviour.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self._write(body, behaviour)
            except OSError:
                # The client has gone; that is its right.
                self.close_connection = True

        def _write(self, body: bytes, behaviour: Behaviour) -> None:
            if not behaviour.drip:
                self.wfile.write(body[: behaviour.cut_body])
                return
            step = len(body) // 10 + 1
            for start in range(0, len(body), step):
                time.sleep(behaviour.drip)
                self.wfile.write(body[start : start + step])
                self.wfile.flush()

        def log_message(self, *args: Any) -> None:
            """Say nothing on stderr."""

    return Handler
