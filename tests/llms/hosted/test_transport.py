"""The HTTP clients inside the SDKs' clients: the same errors and bounds with aiohttp and without it."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from formal_llm.errors import ProviderError
from formal_llm.llms.hosted import transport
from tests import servers as hs
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME, Adapter

#: One SDK with aiohttp, and one as if it were not installed.
pytestmark = pytest.mark.parametrize(
    ("adapter", "ways"),
    [(BY_NAME["openai-chat"], "no aiohttp"), (BY_NAME["anthropic-schema"], "aiohttp")],
    ids=str,
    indirect=["ways"],
)


@pytest.fixture
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """With aiohttp, and as if it were not installed."""

    def forget() -> None:
        transport.has_aiohttp.cache_clear()
        transport._create_classes.cache_clear()

    if request.param == "no aiohttp":
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        forget()
    yield request.param
    monkeypatch.undo()
    forget()


def asked(loop: asyncio.Runner, llm: Any, question: Any) -> Any:
    """What comes of a question that is awaited."""
    try:
        return loop.run(llm.achoose(question))
    finally:
        loop.run(llm.aclose())
        llm.client.close()


def test_which_client_it_is(adapter: Adapter, ways: str, loop: asyncio.Runner, server: ps.ProtocolServer) -> None:
    llm = adapter.make(server.url)

    async def kind() -> type:
        async with llm._lanes.client() as client:
            return type(client._client._transport)

    assert (loop.run(kind()).__name__ == "AiohttpTransport") == (ways == "aiohttp")
    loop.run(llm.aclose())
    llm.client.close()


class WithoutTLS(socketserver.BaseRequestHandler):
    """Answers without encryption, whatever comes."""

    def handle(self) -> None:
        self.request.recv(100)
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize(("status", "way"), [(301, "awaited"), (302, "waiting"), (307, "awaited"), (308, "waiting")])
def test_nothing_is_sent_to_another_host(
    status: int, way: str, adapter: Adapter, ways: str, loop: asyncio.Runner, make_question: Any
) -> None:
    with hs.HostileServer(hs.silence) as other:
        redirect = f"HTTP/1.1 {status} Moved\r\nlocation: {other.url}/v1/x\r\ncontent-length: 0\r\n\r\n".encode()
        with hs.HostileServer(lambda send, _: send(redirect)) as server:
            llm = adapter.make(server.url, max_retries=2)
            with pytest.raises(
                ProviderError, match=f"redirects to another host, {other.url}, and nothing is sent there"
            ):
                asked(loop, llm, make_question()) if way == "awaited" else llm.choose(make_question())
            llm.client.close()
            assert (server.requests, other.requests) == (1, 0)


def test_redirects_on_the_same_host(
    adapter: Adapter, ways: str, loop: asyncio.Runner, make_question: Any, server: ps.ProtocolServer
) -> None:
    def redirect(send: hs.Send, place: str, status: int = 307) -> None:
        send(f"HTTP/1.1 {status} Moved\r\nlocation: {place}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())

    with hs.HostileServer(lambda send, _: redirect(send, "/v1/again")) as going_round:
        with pytest.raises(ProviderError, match="redirects again and again, at last to /v1/again"):
            asked(loop, adapter.make(going_round.url), make_question())
        assert going_round.requests == 6
    with (
        hs.HostileServer(lambda send, _: redirect(send, "/v1/page", 302)) as other,
        pytest.raises(ProviderError, match="redirects to /v1/page and wants it read there"),
    ):
        asked(loop, adapter.make(other.url), make_question())
    server.script = [ps.Behaviour(status=308, headers={"location": adapter.path}, page=b""), ps.ok(2)]
    assert asked(loop, adapter.make(server.url), make_question()).number == 2


@pytest.mark.parametrize("way", ["awaited", "waiting"])
def test_a_name_that_is_not_resolved_in_time(
    way: str, adapter: Adapter, ways: str, loop: asyncio.Runner, make_question: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(60))
    monkeypatch.setattr(transport, "_NAMES", {})
    llm = adapter.make("http://slow.example:9", deadline=0.3)
    with pytest.raises(ProviderError, match=r"no whole answer came within 0\.3 seconds"):
        asked(loop, llm, make_question()) if way == "awaited" else llm.choose(make_question())
    assert not released.is_set()
    released.set()


def test_why_a_server_cannot_be_reached(
    adapter: Adapter, ways: str, loop: asyncio.Runner, make_question: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(ProviderError, match=r"at http://127.0.0.1:9.* hung up: the connection was refused; check"):
        asked(loop, adapter.make("http://127.0.0.1:9"), make_question())
    with socketserver.TCPServer(("127.0.0.1", 0), WithoutTLS) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(ProviderError, match="its certificate or its encryption was not accepted"):
            asked(loop, adapter.make(f"https://127.0.0.1:{server.server_address[1]}"), make_question())
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ProviderError, match="its name is not known"):
        asked(loop, adapter.make("http://nowhere.example:9"), make_question())


@pytest.mark.parametrize(
    ("behave", "words"),
    [
        (hs.flood(600, declared=True), "larger than 1,000,000 bytes"),
        (hs.flood(600, declared=False), "larger than 1,000,000 bytes"),
        (hs.bomb(400), "larger than 1,000,000 bytes"),
        (hs.drip(head_too=True), r"within 0\.6 seconds"),
        (hs.refusal("retry-after: 100000"), "asks to wait 100,000 seconds"),
    ],
    ids=["flood", "flood of unknown length", "bomb", "drip", "wait"],
)
def test_bounds_are_the_same(
    behave: hs.Fault,
    words: str,
    adapter: Adapter,
    ways: str,
    loop: asyncio.Runner,
    make_question: Any,
    running_server: Any,
) -> None:
    with hs.HostileServer(behave) as server:
        with pytest.raises(ProviderError, match=words):
            llm = adapter.make(server.url, max_bytes=hs.MILLION, deadline=0.6 if "within" in words else 60)
            asked(loop, llm, make_question())
        assert server.requests == 1
        assert server.sent < hs.BUFFERS


def test_a_compressed_answer_is_read(
    adapter: Adapter, ways: str, choose: Any, server: ps.ProtocolServer, make_question: Any, loop: asyncio.Runner
) -> None:
    speak = ps.protocols.PATHS[adapter.path]
    llm = adapter.make(server.url)
    server.script = [ps.ok(2)]
    assert choose(llm, make_question()).number == 2
    page = gzip.compress(json.dumps(speak(ps.ok(3), server.bodies[-1])).encode())
    server.script = [ps.Behaviour(page=page, headers={"content-encoding": "gzip"})]
    answer = choose(llm, make_question())
    assert (answer.number, answer.usage) == (3, adapter.one)
    loop.run(llm.aclose())
    llm.client.close()


def test_that_aiohttp_is_missing_is_logged_once(
    adapter: Adapter, ways: str, server: ps.ProtocolServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="formal_llm"):
        for _ in range(2):
            adapter.make(server.url).client.close()
    told = [record.message for record in caplog.records]
    assert len(told) == (ways == "no aiohttp")
    assert all("pip install 'formal-llm[aiohttp]'" in line for line in told)


def test_how_long_a_server_asks_to_wait(adapter: Adapter, ways: str) -> None:
    def told(**headers: str) -> float | None:
        return transport.retry_after(httpx2.Headers({name.replace("_", "-"): text for name, text in headers.items()}))

    assert told() is None
    assert told(retry_after="17") == 17
    assert told(retry_after="17", retry_after_ms="250") == 0.25
    assert told(retry_after="17", retry_after_ms="x") == 17
    assert told(retry_after="1e400") == float("inf")
    for nothing in (
        "",
        "-1",
        "0",
        "nan",
        "soon",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Fri, 31 Dec 999999999999 1:1:1 GMT",
    ):
        assert told(retry_after=nothing) is None
    date = told(retry_after="Fri, 31 Dec 9999 23:59:59 GMT")
    assert date is not None
    assert date > 1e10
