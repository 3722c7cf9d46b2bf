"""What a failure names: its cause, the address, and what was spent."""

from __future__ import annotations

import asyncio
import json
import socket
from threading import Event
from typing import Any

import pytest

from formal_llm.errors import ProviderError, UnreadableResponse
from formal_llm.llms.hosted import transport
from formal_llm.llms.llm import ask
from formal_llm.llms.question import Message
from tests import servers as hs
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import ADAPTERS, BY_NAME, Adapter

OF_EACH_SDK = pytest.mark.parametrize("name", ["openai-chat", "anthropic-schema"])
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
REPORTED = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "no memory"}}\n\n'


def stall(send: hs.Send, stopped: Event) -> None:
    send(STREAM + b": wait\n\n")
    stopped.wait(30)


def break_error_page(send: hs.Send, _: Event) -> None:
    send(b"HTTP/1.1 400 No\r\ncontent-length: 1000\r\ncontent-type: application/json\r\n\r\n{")


@OF_EACH_SDK
@pytest.mark.parametrize(
    ("behave", "words"),
    [
        (stall, "no answer came in time from the server at URL"),
        (lambda send, _: send(STREAM + REPORTED), "the server at URL.* reported an error in its stream: no memory"),
        (break_error_page, "the server at URL.* cannot be reached, or it hung up"),
    ],
    ids=["stall", "error inside", "broken error page"],
)
def test_streams_that_fail(name: str, behave: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with hs.HostileServer(behave) as server:
        llm = BY_NAME[name].make(server.url, timeout=0.3)

        async def read() -> None:
            try:
                async for _ in llm.astream([Message("user", "x")]):
                    pass
            finally:
                await llm.aclose()

        for ask_it in (lambda: list(llm.stream([Message("user", "x")])), lambda: asyncio.run(read())):
            with pytest.raises(ProviderError, match=words.replace("URL", server.url)) as caught:
                ask_it()
            assert not isinstance(caught.value, UnreadableResponse)  # which would be asked again
        llm.client.close()


def test_what_is_unreadable_keeps_its_usage(adapter: Adapter, server: ps.ProtocolServer, make_question: Any) -> None:
    counts = {"prompt_tokens": 7, "input_tokens": 7, "completion_tokens": 2, "output_tokens": 2}
    body = {"usage": counts, "prompt_eval_count": 7, "eval_count": 2, "choices": [], "content": 3, "answers": 4}
    llm = adapter.make(server.url)
    server.script = [ps.Behaviour(page=json.dumps(body))]
    with pytest.raises(UnreadableResponse) as caught:
        llm.choose(make_question())
    assert (caught.value.usage.requests, caught.value.usage.input_tokens, caught.value.usage.output_tokens) == (1, 7, 2)
    server.script = [ps.Behaviour(page=json.dumps(body)), ps.ok(2)]
    answer = ask(llm, make_question())
    assert answer.usage is not None
    assert (answer.usage.requests, answer.usage.input_tokens) == (2, 7 + adapter.one.input_tokens)
    llm.client.close()


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A resolver that finds nothing until it is released; the names that it was asked for."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(transport, "_NAMES", {})
    real, release, asked = socket.getaddrinfo, Event(), list[str]()

    def look_up(host: Any, *more: Any, **settings: Any) -> Any:
        if host != "slow.example":
            return real(host, *more, **settings)
        asked.append(host)
        release.wait(30)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield release, asked
    release.set()


def test_a_resolver_that_takes_too_long_is_left_alone(
    resolver: Any, choose: Any, make_question: Any, loop: Any
) -> None:
    release, asked = resolver
    llm = BY_NAME["openai-chat"].make("http://slow.example", deadline=0.3)
    with pytest.raises(ProviderError, match=r"within 0\.3 seconds.*http://slow\.example"):
        choose(llm, make_question())
    assert not release.is_set()  # the question ended before the resolver did
    assert asked == ["slow.example"]
    loop.run(llm.aclose())
    llm.client.close()


def test_a_name_is_resolved_once_by_who_waits(resolver: Any, server: ps.ProtocolServer, make_question: Any) -> None:
    release, asked = resolver
    release.set()
    llm = BY_NAME["openai-chat"].make(server.url.replace("127.0.0.1", "slow.example"))
    for _ in range(2):
        server.script = [ps.ok(2)]
        assert llm.choose(make_question()).number == 2
    assert asked == ["slow.example"]
    llm.client.close()


def test_a_proxy_resolves_the_names(
    resolver: Any, monkeypatch: pytest.MonkeyPatch, choose: Any, make_question: Any, loop: Any
) -> None:
    _, asked = resolver
    head = b"HTTP/1.1 401 No\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
    with hs.HostileServer(lambda send, _: send(head)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        llm = BY_NAME["openai-chat"].make("http://slow.example")
        with pytest.raises(ProviderError, match="key was refused"):
            choose(llm, make_question())
        assert (proxy.requests, asked) == (1, [])
        loop.run(llm.aclose())
        llm.client.close()


@OF_EACH_SDK
def test_private_names_that_are_used_exist(name: str) -> None:
    llm = BY_NAME[name].make("http://127.0.0.1:9")
    # httpx2 has no public way to give its pool a network backend; without it the deadline bounds no single wait.
    assert isinstance(llm.client._client._transport._pool._network_backend, transport._Punctual)
    # The SDKs have no public name for the user's headers without those that they add.
    assert llm.client._custom_headers == {}
    llm.client.close()


@pytest.mark.parametrize(
    "url", ["http://exämple..de/", "http://☃.net/", "http://a\x01b/", "http://" + "a" * 64 + ".de"]
)
def test_addresses_that_no_client_accepts(url: str) -> None:
    for adapter in ADAPTERS:
        with pytest.raises(ProviderError, match="is no address of a server"):
            adapter.type("m", base_url=url, api_key="dummy-key")  # type: ignore[call-arg]
