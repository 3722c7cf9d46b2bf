"""A test double of a server that misbehaves: floods, bombs, single bytes, refusals, silence.

It serves on this machine, on plain sockets, since no library for servers would send these things::

    with HostileServer(refusal(), flood(600)) as server:
        llm = HostedLLM("openai:any", base_url=server.url, api_key="none")

The first request gets the first fault, the next one the next, and all others the last. A fault is a function that sends
what it likes. What is sent is made as it is sent, and ends when the client hangs up.
"""

from __future__ import annotations

import contextlib
import gzip
import socketserver
import zlib
from collections.abc import Callable
from threading import Event, Thread
from typing import Self, TypeAlias

MILLION = 1_000_000
#: Bytes that a client may leave unread although they were sent: the buffers of the system on both sides.
BUFFERS = 20 * MILLION
_END = b"\r\n\r\n"

#: Sends bytes to the client.
Send: TypeAlias = Callable[[bytes], object]
#: Answers a request: with what sends, and an event that is set when the server stops.
Fault: TypeAlias = Callable[[Send, Event], object]


class HostileServer(socketserver.ThreadingTCPServer):
    """The server; it runs between ``with``.

    Args:
        faults: how requests are answered, in turn; the last one also answers all others.

    Attributes:
        requests: the number of requests so far.
        sent: the number of bytes that were sent.
    """

    daemon_threads = False
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, *faults: Fault) -> None:
        self._faults = faults
        self.requests = self.sent = 0
        self.stopped = Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, send: Send) -> None:
        """Answer the request that has come."""
        fault = self._faults[min(self.requests, len(self._faults) - 1)]
        self.requests += 1
        fault(send, self.stopped)

    def __enter__(self) -> Self:
        self._thread = Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(socketserver.StreamRequestHandler):
    server: HostileServer

    def handle(self) -> None:
        length = 0
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        self.rfile.read(length)
        with contextlib.suppress(OSError):  # the client has hung up
            self.server.answer(self._send)

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()

    def _send(self, data: bytes) -> None:
        if self.server.stopped.is_set():
            raise ConnectionAbortedError
        self.request.sendall(data)
        self.server.sent += len(data)


def make_head(status: int = 200, **headers: object) -> bytes:
    """Return the head of a response, without the empty line that ends it."""
    lines = [f"HTTP/1.1 {status} Status", "content-type: application/json", "connection: close"]
    return "\r\n".join([*lines, *(f"{name}: {value}".replace("_", "-") for name, value in headers.items())]).encode()


def page(body: bytes, status: int = 200, **headers: object) -> Fault:
    """Respond with a page, whole."""
    return lambda send, _: send(make_head(status, content_length=len(body), **headers) + _END + body)


def refusal(header: str = "retry-after: 0.01", status: int = 429) -> Fault:
    """Refuse, with a header that asks to wait."""
    body = b'{"error": {"message": "said by the server"}}'
    head = f"HTTP/1.1 {status} No\r\n{header}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return lambda send, _: send(head.encode() + body)


def flood(millions: int = 600, *, declared: bool = False) -> Fault:
    """Respond with that many million bytes, with or without a header that declares the length."""

    def send_flood(send: Send, _stopped: Event) -> None:
        send((make_head(content_length=millions * MILLION) if declared else make_head()) + _END)
        for _ in range(millions):
            send(b" " * MILLION)

    return send_flood


def bomb(millions: int = 400, *, layers: int = 1) -> Fault:
    """Respond with a small body that is that many million bytes large when it is decompressed."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    body = packer.compress(b"\n" * MILLION) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush, what follows does not depend on what was before: one packed million represents all.
    body += (packer.compress(b"\n" * MILLION) + packer.flush(zlib.Z_FULL_FLUSH)) * (millions - 1)
    for _ in range(layers - 1):
        body = gzip.compress(body)
    return page(body, content_encoding=", ".join(["gzip"] * layers))


def drip(*, head_too: bool = True, seconds: float = 0.02, count: int = 1_000) -> Fault:
    """Send a byte, and another byte, ..., each in good time; the last one ends a good response."""

    def send_slowly(send: Send, stopped: Event) -> None:
        body = b'{"error": "nobody should have waited for this"}'.rjust(count)
        whole = make_head(content_length=len(body), x=count * "x") + _END + body
        start = 0 if head_too else len(whole) - count
        send(whole[:start])
        for number in range(start, len(whole)):
            send(whole[number : number + 1])
            if stopped.wait(seconds):
                return

    return send_slowly


def endless_head(send: Send, _: Event) -> None:
    """Send headers without end."""
    send(make_head())
    for number in range(1_000_000):
        send(f"\r\nx-{number}: {'x' * 100}".encode())


def endless_interim(send: Send, _stopped: Event) -> None:
    """Report without end that the request is being processed."""
    for _ in range(10_000_000):
        send(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)


def silence(_: Send, stopped: Event) -> None:
    """Send nothing for a minute."""
    stopped.wait(60)
