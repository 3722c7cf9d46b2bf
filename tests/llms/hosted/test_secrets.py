"""No failure shows a key: not in messages, tracebacks with local variables, exceptions before it, or the log."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from formal_llm.errors import ProviderError
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import ADAPTERS, Adapter, each_adapter

KEY = "sk-secret-0123456789"
#: What a server does that repeats what it was sent, or that fails in a way that leads through many libraries.
FAILURES = {
    "401": ps.failing(401, message=f"wrong key: {KEY}"),
    "429": ps.failing(429, message=f"too many for {KEY}"),
    "500": ps.failing(500, message=f"failed for {KEY}"),
    "html": ps.Behaviour(page=f"<html>{KEY}</html>", headers={"content-type": "text/html"}),
    "other json": ps.Behaviour(page=json.dumps({"echo": KEY})),
    "list": ps.Behaviour(page=json.dumps([KEY])),
    "cut json": ps.Behaviour(page=f'{{"echo": "{KEY}"'),
    "no unicode": ps.Behaviour(page=b'{"echo": "' + KEY.encode() + b'\xff\xfe"}'),
    "silent": ps.ok(1, delay=1.0),
    "cut": ps.CUT,
    "cut body": ps.CUT_BODY,
    "redirect": ps.Behaviour(status=307, headers={"location": f"http://{KEY}.example/"}),
    "redirect to no address": ps.Behaviour(status=307, headers={"location": "http://[::1/"}),
}
HELD = ("request", "response", "request_info", "headers")


def chained(error: BaseException | None) -> Iterator[BaseException]:
    if error is not None:
        yield error
        for one in (error.__cause__, error.__context__):
            yield from chained(one)


def check_clean(error: ProviderError) -> None:
    whole = traceback.TracebackException.from_exception(error, capture_locals=True)
    # The frames of this test know the key.
    for one in (whole, whole.__cause__):
        if one is not None:
            kept = [frame for frame in one.stack if "/tests/" not in frame.filename]
            assert KEY not in str([frame.locals for frame in kept if "/asyncio/" not in frame.filename])
    assert whole.__context__ is None
    for found in chained(error):
        assert KEY not in f"{found} {found!r} {vars(found)}"
        assert not [name for name in HELD if vars(found).get(name) is not None]
        assert found is error or found.__traceback__ is None


@pytest.mark.parametrize("failure", FAILURES)
def test_no_failure_shows_a_key(
    failure: str,
    adapter: Adapter,
    choose: Any,
    loop: asyncio.Runner,
    server: ps.ProtocolServer,
    make_question: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    llm = adapter.make(server.url, api_key=KEY, timeout=0.5)
    server.script = [FAILURES[failure]]
    try:
        with caplog.at_level(logging.DEBUG), pytest.raises(ProviderError) as caught:
            choose(llm, make_question())
        check_clean(caught.value)
        # The library below the SDKs logs the headers of responses at its lowest level.
        assert KEY not in str([one.getMessage() for one in caplog.records if not one.name.startswith("httpcore2")])
    finally:
        loop.run(llm.aclose())
        llm.client.close()


@each_adapter
def test_no_adapter_shows_a_key(
    adapter: Adapter,
    choose: Any,
    loop: asyncio.Runner,
    server: ps.ProtocolServer,
    make_question: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    test_no_failure_shows_a_key("401", adapter, choose, loop, server, make_question, caplog)


@pytest.mark.parametrize("adapter", [one for one in ADAPTERS if not one.needs_key], ids=str)
def test_a_client_without_a_key_hides_no_words(adapter: Adapter, server: ps.ProtocolServer, make_question: Any) -> None:
    llm = adapter.make(server.url, api_key=None)
    server.script = [ps.failing(400, message="there is none")]
    with pytest.raises(ProviderError, match="there is none"):
        llm.choose(make_question())
    llm.client.close()
