"""A hostile server: whatever it sends, it takes a bounded time and a bounded part of the memory, and is told of."""

from __future__ import annotations

import asyncio
import importlib
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from formal_llm.errors import ProviderError
from formal_llm.llms.hosted.bounds import RequestBounds, seconds_left
from formal_llm.llms.question import Message
from tests import servers as hs
from tests.llms.hosted.adapters import OF_EACH_SDK, Adapter

Asked = Callable[..., hs.HostileServer]


@pytest.fixture
def asked(
    adapter: Adapter, choose: Any, loop: asyncio.Runner, make_question: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Asked]:
    """A function that asks a hostile server, expects the error with these words, and gives the server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(importlib.import_module(f"{adapter.sdk}._base_client"), "INITIAL_RETRY_DELAY", 0.01)

    def ask(behave: hs.Fault, words: str, **settings: Any) -> hs.HostileServer:
        with hs.HostileServer(behave) as server:
            llm = adapter.make(server.url, **{"timeout": 30, "max_retries": 2, **settings})
            try:
                with pytest.raises(ProviderError, match=words) as caught:
                    choose(llm, make_question())
                assert len(str(caught.value)) < 1000
            finally:
                loop.run(llm.aclose())
                llm.client.close()
            return server

    yield ask


@pytest.mark.parametrize("told", [True, False], ids=["length told", "length not told"])
def test_a_flood_is_read_up_to_its_bound_and_not_asked_for_again(told: bool, asked: Asked) -> None:
    server = asked(hs.flood(600, declared=told), "larger than 1,000,000 bytes.*max_bytes", max_bytes=hs.MILLION)
    assert server.requests == 1
    assert server.sent < hs.BUFFERS


def test_the_size_of_a_response_is_bounded_where_nobody_says_how(adapter: Adapter, asked: Asked) -> None:
    server = asked(hs.flood(600, declared=False), "larger than 16,000,000 bytes")
    assert server.sent < 16 * hs.MILLION + hs.BUFFERS


@pytest.mark.parametrize("layers", [1, 2])
def test_a_bomb_is_unpacked_up_to_its_bound(adapter: Adapter, layers: int, asked: Asked) -> None:
    bomb = hs.bomb(400, layers=layers)
    tracemalloc.start()
    try:
        asked(bomb, "larger than 2,000,000 bytes.*max_bytes", max_bytes=2 * hs.MILLION)
        assert tracemalloc.get_traced_memory()[1] < 40 * hs.MILLION
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("head_too", [False, True], ids=["body", "head"])
def test_single_bytes_prolong_nothing(head_too: bool, asked: Asked) -> None:
    server = asked(hs.drip(head_too=head_too), r"within 0\.4 seconds, all tries together.*deadline", deadline=0.4)
    assert server.requests == 1
    assert server.sent < 1_600  # of more than 2,000


@pytest.mark.parametrize(
    ("behave", "words"),
    [(hs.endless_head, "cannot be reached"), (hs.endless_interim, "within 0.8 sec|cannot be reached")],
    ids=["head", "interim responses"],
)
def test_a_head_without_end(adapter: Adapter, behave: hs.Fault, words: str, asked: Asked) -> None:
    asked(behave, words, deadline=0.8, max_retries=0)


def test_silence_is_bounded_over_all_tries(adapter: Adapter, asked: Asked) -> None:
    server = asked(hs.silence, "within 1 seconds, all tries", timeout=0.3, deadline=1, max_retries=50)
    assert 1 < server.requests < 10


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("retry-after: 100000", 429),
        ("retry-after: 20.5", 503),
        ("retry-after: 1e300", 429),
        ("retry-after: inf", 503),
        ("retry-after: Fri, 31 Dec 9999 23:59:59 GMT", 429),
        ("retry-after-ms: 100000000", 503),
    ],
)
def test_a_wait_beyond_the_deadline_is_told_and_not_waited_for(
    adapter: Adapter, header: str, status: int, asked: Asked
) -> None:
    words = rf"asks to wait [0-9,]+ seconds, .*deadline of a question is 20.* \(status {status}: said by the server\)"
    assert asked(hs.refusal(header, status), words, deadline=20).requests == 1


@pytest.mark.parametrize(
    "header",
    [
        "retry-after: -5",
        "retry-after: nan",
        "retry-after: soon",
        "retry-after: Fri, 31 Dec 99999999999999 23:59:59 GMT",
        "retry-after: Thu, 01 Jan 1970 00:00:00 GMT",
        "retry-after: 0.01",
        "retry-after-ms: x\r\nretry-after: 0.01",
    ],
)
def test_a_wait_that_is_none_is_left_to_the_sdk(adapter: Adapter, header: str, asked: Asked) -> None:
    words = r"too many requests.*max_retries \(status 429: said by the server\)"
    assert asked(hs.refusal(header), words, deadline=20).requests == 3


def test_free_text_has_the_same_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for adapter in OF_EACH_SDK:
        with hs.HostileServer(hs.drip(head_too=True)) as server:
            llm = adapter.make(server.url, deadline=0.3)
            with pytest.raises(ProviderError, match=r"within 0\.3 seconds"):
                llm.generate([Message("user", "x")])
            llm.client.close()


def test_bounds() -> None:
    assert RequestBounds.of() == RequestBounds(600, 16_000_000) == RequestBounds.of(timeout=5)
    assert RequestBounds.of(timeout=1_000).deadline == 1_000
    assert RequestBounds.of(3, 5, 1_000) == RequestBounds(3, 5)
    for wrong in ({"deadline": 0.0}, {"deadline": -1}, {"max_bytes": 0}):
        with pytest.raises(ValueError, match="deadline is more than 0"):
            RequestBounds.of(**wrong)  # type: ignore[arg-type]
    assert seconds_left() is None
    with RequestBounds(100).running():
        first = seconds_left()
        assert first is not None
        assert 0 < first <= 100
    assert seconds_left() is None


def test_a_client_brings_its_own_bounds(adapter: Adapter) -> None:
    made = adapter.make("http://127.0.0.1:9")
    for bound in ({"deadline": 3.0}, {"max_bytes": 3}):
        with pytest.raises(ValueError, match=f"brings its own {next(iter(bound))}"):
            adapter.type("m", client=made.client, **bound)
    assert made.bounds == RequestBounds()
    assert adapter.type("m", client=made.client).bounds is None
    made.client.close()
