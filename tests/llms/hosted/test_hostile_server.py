"""The server that misbehaves: what each of its faults sends, seen by clients that are not ours."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from http.client import HTTPConnection, HTTPException

import pytest

from formal_llm.llms import Question
from formal_llm.llms.hosted.anthropic import AnthropicLLM
from formal_llm.llms.hosted.openai import OpenAILLM
from tests.servers import (
    FAULTS,
    MILLION,
    HostileServer,
    answer,
    bomb,
    drip,
    endless_interim,
    flood,
    page,
    refusal,
)


def fetch(server: HostileServer, size: int | None = None, timeout: float = 5) -> tuple[int, dict[str, str], bytes]:
    """Ask once with the client of the standard library."""
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=timeout)
    try:
        connection.request("POST", "/v1/x", body=b"{}")
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read(size)
    finally:
        connection.close()


def test_faults_come_in_turn_and_the_last_one_stays() -> None:
    with HostileServer("no-key", page(b"[1]", 202), "html") as server:
        assert [fetch(server)[0] for _ in range(4)] == [401, 202, 200, 200]
        assert server.requests == 4
        assert fetch(server)[2].startswith(b"<html>")
        assert server.sent > 100


def test_names_of_faults() -> None:
    with pytest.raises(ValueError, match="no fault 'floods'; there are: answer, flood, "):
        HostileServer("answer", "floods")
    with pytest.raises(ValueError, match="there are"):
        HostileServer()


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_ends_with_its_client(name: str) -> None:
    """What is sent without end ends when the client hangs up, and the server can be stopped."""
    with HostileServer(name) as server, socket.create_connection(server.server_address, timeout=5) as client:
        client.sendall(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        client.settimeout(0.5)
        received = b""
        try:
            while len(received) < 8 and (part := client.recv(8 - len(received))):
                received += part
        except TimeoutError:
            received = b"nothing"
    assert received == {"silence": b"nothing", "hang-up": b"", "no-http": b"no http "}.get(name, b"HTTP/1.1")


@pytest.mark.parametrize("declared", [True, False])
def test_a_flood(declared: bool) -> None:
    with HostileServer(flood(2, declared=declared)) as server:
        _, headers, body = fetch(server)
        assert body == b" " * (2 * MILLION)
        assert ("content-length" in headers) == declared
    assert server.sent > 2 * MILLION  # counted after sending, so only complete when the server has ended


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_bomb(layers: int) -> None:
    with HostileServer(bomb(3, layers=layers)) as server:
        _, headers, body = fetch(server)
        assert headers["content-encoding"] == ", ".join(["gzip"] * layers)
        assert len(body) < 20_000
        for _ in range(layers - 1):
            body = gzip.decompress(body)
        assert zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(body) == b"\n" * (3 * MILLION)


@pytest.mark.parametrize("head_too", [True, False])
def test_a_drip_ends_in_a_good_response(head_too: bool) -> None:
    with HostileServer(drip(head_too=head_too, seconds=0, count=60)) as server:
        assert json.loads(fetch(server)[2]) == {"error": "nobody should have waited for this"}


def test_interim_responses_without_end() -> None:
    # The client of the standard library reads only 100 again and again; 102 is a response to it.
    with HostileServer(endless_interim) as server:
        assert fetch(server, 10)[0] == 102


def test_connections_that_end_early() -> None:
    for name in ("hang-up", "cut-head", "cut-body", "no-http"):
        with HostileServer(name) as server, pytest.raises((HTTPException, OSError)):
            fetch(server)


def test_refusals() -> None:
    with HostileServer(refusal("retry-after: 7", 503)) as server:
        status, headers, body = fetch(server)
        assert (status, headers["retry-after"]) == (503, "7")
        assert json.loads(body)["error"]["message"] == "said by the server"


def test_an_answer_is_one_to_both_sdks() -> None:
    """A refusal first: the SDK asks again."""
    with HostileServer("refusal", answer('{"choice": 2}')) as server:
        settings = {"api_key": "none-is-needed", "max_retries": 1}
        question = Question("Which?", ["a", "b"])
        first = OpenAILLM("any", base_url=server.url, **settings)  # type: ignore[arg-type]
        assert first.choose(question).numbers == (2,)
        assert server.requests == 2
        second = AnthropicLLM("any", base_url=server.url, **settings)  # type: ignore[arg-type]
        assert second.choose(question).numbers == (2,)
        assert server.requests == 3
        for llm in (first, second):
            llm.client.close()
