"""What all adapters share: asking, one or many at once, addresses, and servers that fail or misbehave."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Planner
from formal_llm.errors import InvalidAnswer, ProviderError, UnreadableResponse
from formal_llm.llms.llm import AsyncLLM, ask
from formal_llm.llms.question import Question
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import ADAPTERS, Adapter, each_adapter

MakeQuestion = Callable[..., Question]
Choose = Callable[[Any, Question], Any]
Made = Callable[..., Any]


@pytest.mark.parametrize(
    "failure", [ps.failing(500), ps.failing(429), ps.CUT, ps.CUT_BODY], ids=["500", "429", "cut", "cut body"]
)
def test_a_passing_failure_is_retried_by_the_sdk(
    failure: ps.Behaviour,
    adapter: Adapter,
    choose: Choose,
    made: Made,
    server: ps.ProtocolServer,
    make_question: MakeQuestion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What the SDK waits where the server does not say how long.
    monkeypatch.setattr(importlib.import_module(f"{adapter.sdk}._base_client"), "INITIAL_RETRY_DELAY", 0.01)
    server.script = [failure, ps.ok(2)]
    answer = choose(made(adapter, max_retries=1), make_question())
    assert answer.number == 2
    assert answer.usage == adapter.one
    assert len(server.bodies) == 2


def test_a_server_that_says_how_long_to_wait(
    adapter: Adapter,
    made: Made,
    server: ps.ProtocolServer,
    make_question: MakeQuestion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    server.script = [ps.Behaviour(status=429, headers={"retry-after": "0.3"}), ps.ok(2)]
    made(adapter, max_retries=1).choose(make_question())
    assert 0.3 in waited


def test_retries_are_bounded(
    adapter: Adapter, choose: Choose, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    server.script = [ps.failing(503), ps.failing(503), ps.ok(1)]
    with pytest.raises(ProviderError, match=r"server failed.*status 503: said by the server"):
        choose(made(adapter, max_retries=1), make_question())
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("behaviour", "words", "cause"),
    [
        (ps.failing(400), "request was refused; the .* must .*status 400: said by the server", "BadRequestError"),
        (ps.failing(401), "key was refused.*KEY.*status 401: said by the server", "AuthenticationError"),
        (ps.failing(403), "key was refused.*KEY.*status 403: said by the server", "PermissionDeniedError"),
        (ps.failing(404), "no such model.*URL.*status 404: said by the server", "NotFoundError"),
        (ps.failing(422), "request was refused.*status 422: said by the server", "UnprocessableEntityError"),
        (ps.failing(429), "too many requests.*max_retries.*status 429: said by the server", "RateLimitError"),
        (ps.failing(500), "server failed.*status 500: said by the server", "InternalServerError"),
        (ps.Behaviour(status=502, page="<html>Bad gateway"), "server failed.*status 502", None),
        (ps.Behaviour(status=500, page="[1]"), "server failed.*status 500", None),
        (ps.failing(401, message="wrong: dummy-key"), r"status 401: wrong: \*\*\*", None),
        (ps.CUT, "cannot be reached.*URL", "APIConnectionError"),
        (ps.CUT_BODY, "cannot be reached.*URL", "APIConnectionError"),
        (ps.HTML, "cannot be read.*URL", None),
        (ps.BROKEN_JSON, "cannot be read.*URL", "JSONDecodeError"),
        (ps.DEEP_JSON, "cannot be read.*URL", "RecursionError"),
        (ps.HUGE_NUMBER, "cannot be read.*URL", "ValueError"),
        (ps.NO_UNICODE, "cannot be read.*URL", None),
    ],
)
def test_a_lasting_failure_is_a_provider_error(
    behaviour: ps.Behaviour,
    words: str,
    cause: str | None,
    adapter: Adapter,
    choose: Choose,
    made: Made,
    server: ps.ProtocolServer,
    make_question: MakeQuestion,
) -> None:
    server.script = [behaviour]
    words = words.replace("URL", adapter.url).replace("KEY", adapter.key)
    with pytest.raises(ProviderError, match=f"^{adapter.provider}: .*{words}") as caught:
        choose(made(adapter), make_question())
    assert cause is None or type(caught.value.cause).__name__ == cause
    assert caught.value.__cause__ is caught.value.cause
    # A failure of the provider is no bad answer: it is not asked again.
    assert len(server.bodies) == 1


@each_adapter
def test_json_of_another_kind(
    adapter: Adapter, choose: Choose, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    for several in (False, True):
        for page in ps.OTHER_JSON:
            server.script = [ps.Behaviour(page=page)]
            with pytest.raises(ProviderError, match=f"cannot be read.*{adapter.url}"):
                choose(made(adapter), make_question(several=several))


@pytest.mark.parametrize("page", [ps.HTML, ps.BROKEN_JSON, ps.NO_UNICODE], ids=["html", "cut json", "no unicode"])
def test_a_page_that_is_no_answer_is_asked_for_again(
    page: ps.Behaviour, adapter: Adapter, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    server.script = [page, page, ps.ok(2)]
    answer = ask(made(adapter), make_question(), tries=3)
    assert answer.number == 2
    assert len(server.bodies) == 3
    assert server.bodies[0] == server.bodies[2]  # it is the same question: the model did nothing wrong
    server.script = [page, page, ps.ok(2)]
    with pytest.raises(UnreadableResponse, match="cannot be read"):
        ask(made(adapter), make_question(), tries=2)
    assert len(server.bodies) == 5


def test_a_flood(adapter: Adapter, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion) -> None:
    garbage = b"garbage " * 6_250_000
    server.script = [ps.Behaviour(page=garbage), ps.Behaviour(page=garbage, headers=ps.HTML.headers)]
    for _ in range(2):
        with pytest.raises(ProviderError, match="cannot be read") as caught:
            made(adapter, timeout=30, max_bytes=100_000_000).choose(make_question())
        assert len(str(caught.value)) < 500
    server.script = [ps.text("x" * 50_000_000)]
    with pytest.raises(InvalidAnswer, match="it was far longer than an answer") as said:
        made(adapter, timeout=30, max_bytes=100_000_000).choose(make_question())
    assert said.value.transcript == (("Which one?", "x" * 1000 + "..."),)
    assert len(server.bodies) == 3


@pytest.mark.parametrize("behaviour", [ps.SLOW, ps.ok(2, drip=0.3)], ids=["silent", "drips too slowly"])
def test_a_slow_server(
    behaviour: ps.Behaviour,
    adapter: Adapter,
    made: Made,
    server: ps.ProtocolServer,
    make_question: MakeQuestion,
) -> None:
    server.script = [behaviour]
    with pytest.raises(ProviderError, match="no answer came in time"):
        made(adapter, timeout=0.1).choose(make_question())
    assert len(server.bodies) == 1


@each_adapter
def test_nobody_listens(adapter: Adapter, choose: Choose, made: Made, make_question: MakeQuestion) -> None:
    # Port 9 is that of the discard service, which nobody runs.
    llm = made(adapter, base_url="http://127.0.0.1:9" + adapter.prefix + "?secret=1")
    place = rf"the server at http://127\.0\.0\.1:9[^\s?]* cannot be reached.*{adapter.url}"
    with pytest.raises(ProviderError, match=place):
        choose(llm, make_question())


def test_an_error_of_ours_stays_one(adapter: Adapter, choose: Choose, made: Made) -> None:
    def broken() -> str:
        raise ValueError("in the wording")

    with pytest.raises(ValueError, match="in the wording"):
        choose(made(adapter), Question(broken, ["a", "b"]))


def test_many_questions_wait_together(
    adapter: Adapter, made: Made, loop: asyncio.Runner, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(2, together=8)] * 8
    llm = made(adapter)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(llm.achoose(make_question()) for _ in range(8)))

    assert [answer.number for answer in loop.run(all_of_them())] == [2] * 8
    assert server.most_at_once == 8


@each_adapter
def test_an_address_that_is_none(adapter: Adapter) -> None:
    for url in ["ftp://x/y", "http://", "http://a b", "http://h:port", "http://[::1", "local host"]:
        with pytest.raises(ProviderError, match=f"{adapter.provider}: .* is no address of a server.*{adapter.url}"):
            adapter.make(url, base_url=url)


@each_adapter
def test_the_identity_tells_settings_and_no_secrets(adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    identity = made(adapter).identity
    assert identity["llm"] == adapter.provider
    assert identity["address"] == server.url + adapter.prefix
    assert json.loads(json.dumps(identity)) == identity
    assert "dummy-key" not in json.dumps(identity)
    assert isinstance(made(adapter), AsyncLLM)
    assert repr(made(adapter)) == f"<{adapter.kind} {adapter.provider}>"


def test_no_sdk_is_imported_before_it_is_needed() -> None:
    modules = ", ".join(f"formal_llm.llms.hosted.{adapter.module}" for adapter in ADAPTERS)
    code = f"import sys, {modules}; assert not {{'openai', 'anthropic', 'httpx', 'httpx2'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@each_adapter
def test_a_bad_answer_is_asked_again_with_the_complaint(
    adapter: Adapter, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(7), ps.ok(9), ps.ok(3)]
    answer = ask(made(adapter), make_question())
    assert answer.number == 3
    assert answer.usage == adapter.one + adapter.one + adapter.one
    asked = [json.dumps(body) for body in server.bodies]
    assert ["Your last answer" in body for body in asked] == [False, True, True]
    assert "9" in asked[2]


@each_adapter
def test_a_server_that_counts_nonsense(
    adapter: Adapter, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    wrong = {"input_tokens": "many", "prompt_tokens": -5, "output_tokens": True, "completion_tokens": 1.5}
    counts = {"prompt_eval_count": None, "eval_count": [1]} if adapter.module == "ollama" else {"usage": wrong}
    server.script = [ps.ok(2, changes=counts)]
    usage = made(adapter).choose(make_question()).usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (1, 0, 0)


RULES = CFG.from_string("S -> a S | b")


def test_batches_on_one_loop_do_not_close_each_others_connections(adapter: Adapter, server: ps.ProtocolServer) -> None:
    llm = adapter.make(server.url)
    server.script = [ps.ok(2, together=2), ps.ok(1, together=2), ps.ok(1), ps.ok(1), ps.ok(2)]

    async def both() -> None:
        planner = Planner(RULES, llm)
        outcomes = await asyncio.gather(planner.aplan_all(["t"]), planner.aplan_all(["u"]))
        words = [outcome.unwrap().word for (outcome,) in outcomes]
        assert sorted(map(len, words)) == [1, 4]

    asyncio.run(both())
    llm.client.close()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def keeping(running_server: ps.ProtocolServer) -> Iterator[ps.ProtocolServer]:
    """A server that keeps connections open; clients are closed in the test."""
    server = ps.ProtocolServer(keep=True)
    server.start()
    yield server
    server.stop()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not tell what is open")
def test_plans_on_many_event_loops_leave_nothing_open(
    adapter: Adapter, keeping: ps.ProtocolServer, make_question: Any
) -> None:
    llm = adapter.make(keeping.url)
    counts = []
    for _ in range(5):
        keeping.script = [ps.ok(2), ps.ok(1)]

        async def use() -> None:
            assert (await llm.achoose(make_question())).number == 2
            assert (await llm.achoose(make_question())).number == 1

        asyncio.run(use())
        gc.collect()
        keeping.wait_until_left()  # its ends of the connections are descriptors of this process, too
        counts.append(descriptors())
    assert len(llm._lanes._loops) == 0
    assert len(set(keeping.connections)) == 5  # kept open between the questions of a loop
    assert counts[-1] <= counts[0]
    llm.client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_has_connections_of_its_own(
    adapter: Adapter, keeping: ps.ProtocolServer, make_question: Any
) -> None:
    llm = adapter.make(keeping.url)
    question = make_question()
    keeping.script = [ps.ok(2), ps.ok(1), ps.ok(3), ps.ok(2)]
    assert llm.choose(question).number == 2  # now it has a warm connection
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if [llm.choose(question).number, llm.choose(question).number] == [1, 3] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert llm.choose(question).number == 2
    first, *of_child, last = keeping.connections
    assert first == last
    assert len(set(of_child)) == 1
    assert of_child[0] != first
    llm.client.close()


@each_adapter
def test_a_copy_for_another_process(
    adapter: Adapter, choose: Choose, loop: asyncio.Runner, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    llm = adapter.make(server.url)
    llm.name = "renamed"
    copy = pickle.loads(pickle.dumps(llm))
    server.script = [ps.ok(2)]
    assert choose(copy, make_question()).number == 2
    assert (copy.identity, copy.bounds) == (llm.identity, llm.bounds)
    for one in (copy, llm):
        loop.run(one.aclose())
        one.client.close()


def test_a_client_of_the_users_is_not_copied(adapter: Adapter, server: ps.ProtocolServer) -> None:
    llm = adapter.make(server.url)
    own = adapter.type("test-model", client=llm.client, **adapter.arguments)
    with pytest.raises(TypeError, match="has a client of yours, which cannot be pickled"):
        pickle.dumps(own)
    llm.client.close()
