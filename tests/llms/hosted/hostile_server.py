"""A local server that sends what no server should: floods, bombs, single bytes, waits without end.

It is written on plain sockets, since no library for servers would send these things. What it sends is made as it goes,
and it ends when the client hangs up.
"""

from __future__ import annotations

import contextlib
import gzip
import socketserver
import zlib
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Self

MILLION = 1_000_000
#: Bytes that a client may leave unread although they were sent: the buffers of the system on both sides.
BUFFERS = 20 * MILLION

Send = Callable[[bytes], object]
Behaviour = Callable[[Send, Event], object]


class HostileServer(socketserver.ThreadingTCPServer):
    """The server; it runs between ``with``.

    Attributes:
        behave: how a request is answered.
        requests: how many there were.
        sent: how many bytes were sent.
    """

    daemon_threads = False
    allow_reuse_address = True

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.requests = self.sent = 0
        self.stopped = Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

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
        self.server.requests += 1
        with contextlib.suppress(OSError):  # the client has hung up
            self.server.behave(self._send, self.server.stopped)

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()

    def _send(self, data: bytes) -> None:
        if self.server.stopped.is_set():
            raise ConnectionAbortedError
        self.request.sendall(data)
        self.server.sent += len(data)


def head(**headers: Any) -> bytes:
    """The head of a good response."""
    lines = ["HTTP/1.1 200 OK", "content-type: application/json", "connection: close"]
    return "\r\n".join([*lines, *(f"{name}: {value}".replace("_", "-") for name, value in headers.items())]).encode()


END = b"\r\n\r\n"


def flood(millions: int, *, told: bool) -> Behaviour:
    """A body of so many million bytes, its length told beforehand or not."""

    def behave(send: Send, _: Event) -> None:
        send((head(content_length=millions * MILLION) if told else head()) + END)
        for _ in range(millions):
            send(b" " * MILLION)

    return behave


def bomb(millions: int, *, layers: int = 1) -> Behaviour:
    """A small body that is so many million bytes large when it is decompressed."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    body = packer.compress(b"\n" * MILLION) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush, what follows does not depend on what was before: one packed million stands for all.
    body += (packer.compress(b"\n" * MILLION) + packer.flush(zlib.Z_FULL_FLUSH)) * (millions - 1)
    for _ in range(layers - 1):
        body = gzip.compress(body)

    def behave(send: Send, _: Event) -> None:
        send(head(content_length=len(body), content_encoding=", ".join(["gzip"] * layers)) + END + body)

    return behave


def drip(*, head_too: bool, seconds: float = 0.02, count: int = 1_000) -> Behaviour:
    """A byte, and another byte, ..., each in good time; the last one ends a good response."""

    def behave(send: Send, stopped: Event) -> None:
        body = b'{"error": "nobody should have waited for this"}'.rjust(count)
        whole = head(content_length=len(body), x=count * "x") + END + body
        start = 0 if head_too else len(whole) - count
        send(whole[:start])
        for number in range(start, len(whole)):
            send(whole[number : number + 1])
            if stopped.wait(seconds):
                return

    return behave


def head_without_end(send: Send, _: Event) -> None:
    send(head())
    for number in range(1_000_000):
        send(f"\r\nx-{number}: {'x' * 100}".encode())


def interim_without_end(send: Send, stopped: Event) -> None:
    """It is being worked on, it is being worked on, ..."""
    for _ in range(10_000_000):
        send(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)


def silence(_: Send, stopped: Event) -> None:
    stopped.wait(60)


def asks_to_wait(header: str, status: int = 429) -> Behaviour:
    """Too many requests; come again when the header says."""

    def behave(send: Send, _: Event) -> None:
        page = b'{"error": {"message": "said by the server"}}'
        send(
            f"HTTP/1.1 {status} No\r\n{header}\r\ncontent-length: {len(page)}\r\nconnection: close\r\n\r\n".encode()
            + page
        )

    return behave
