"""The endpoint in front of a scripted server: agents around the real clients, which know only its address."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from formal_llm.errors import InputError
from formal_llm.guard import Guard, GuardRules
from formal_llm.guard.endpoint.serving import Endpoint, EndpointSettings, EndpointTelemetry, sign_result
from tests.guard.adapters.scripted_server import ScriptedServer, Step, serving
from tests.guard.adapters.shop import TOOLS, Shop, guard
from tests.guard.endpoint.agents import AGENTS, endpoint_of, running

APIS = list(AGENTS)
CALL = dict[str, Any]
ERRORS = (openai.PermissionDeniedError, anthropic.PermissionDeniedError)


@contextmanager
def guarded(*script: Step, by: Guard | str = "", copies: int = 1, **settings: Any) -> Iterator[tuple[Any, list[str]]]:
    """A scripted server behind copies of an endpoint: the server, and the addresses of the copies."""
    made = Guard(GuardRules.from_string(by), tools=TOOLS) if isinstance(by, str) and by else by or guard()
    assert isinstance(made, Guard)
    with ExitStack() as stack:
        server = stack.enter_context(serving(*script))
        yield server, [stack.enter_context(endpoint_of(made, server.url, **settings)) for _ in range(copies)]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def call(*names: str, **arguments: Any) -> list[tuple[str, Any]]:
    return [(name, {"order": 7, **arguments}) for name in names]


def runner(shop: Shop) -> Callable[[str, Mapping[str, Any], str], str]:
    return lambda name, arguments, _: str(getattr(shop, name)(**arguments))


def offered(server: ScriptedServer) -> list[list[str]]:
    """The names of the tools in each request that arrived."""
    found = []
    for body in server.asked:
        if body.get("tool_choice") in ("none", {"type": "none"}):
            found.append([])
        else:
            found.append([tool.get("name") or tool["function"]["name"] for tool in body["tools"]])
    return found


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_an_agent_goes_on_as_without_a_guard(api: str, stream: bool) -> None:
    shop = Shop()
    with guarded(call("look"), call("approve"), call("pay"), "Paid.") as (server, urls):
        assert AGENTS[api](urls, TOOLS, runner(shop), stream=stream) == "Paid."
    assert shop.done == ["look 7", "approve 7", "pay 7 1"]
    # What is not legal is not offered: payment before approval, and a draft, after which nothing can be approved.
    assert offered(server) == [["approve", "look"], ["approve", "look"], [*TOOLS], [*TOOLS]]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_a_refused_call_is_asked_again_with_the_reason(api: str, stream: bool) -> None:
    shop = Shop()
    with guarded(call("draft"), call("approve"), call("pay"), "Paid.") as (server, urls):
        assert AGENTS[api](urls, TOOLS, runner(shop), stream=stream) == "Paid."
    assert shop.done == ["approve 7", "pay 7 1"]
    assert "draft cannot be called now" in str(server.asked[1])
    assert "draft" not in str(server.asked[2].get("messages", server.asked[2].get("input")))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_of_parallel_calls_only_the_legal_ones_arrive(api: str, stream: bool) -> None:
    shop = Shop()
    with guarded(call("approve", "draft", "look"), call("pay"), "Paid.") as (server, urls):
        AGENTS[api](urls, TOOLS, runner(shop), stream=stream)
    assert shop.done == ["approve 7", "draft 7", "look 7", "pay 7 1"]
    shop = Shop()
    with guarded(call("draft", "approve"), call("pay"), "Paid.") as (server, urls):
        AGENTS[api](urls, TOOLS, runner(shop), stream=stream)
    assert shop.done == ["approve 7", "pay 7 1"]
    assert "draft was not called: draft cannot be called now" in str(server.asked[1])  # the agent's own message has it


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_the_last_answer_is_held_back_while_something_is_owed(api: str, stream: bool) -> None:
    shop = Shop()
    with guarded("All done!", call("approve"), "Now?", call("pay"), "Paid.") as (server, urls):
        assert AGENTS[api](urls, TOOLS, runner(shop), stream=stream) == "Paid."
    assert shop.done == ["approve 7", "pay 7 1"]
    assert "The run cannot end yet" in str(server.asked[1])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_a_stubborn_model_gets_nothing_through(api: str, stream: bool) -> None:
    shop = Shop()
    with guarded(*[call("draft")] * 3) as (server, urls), pytest.raises(ERRORS, match="draft"):
        AGENTS[api](urls, TOOLS, runner(shop), stream=stream)
    assert shop.done == [] and len(server.asked) == 3
    with guarded(*[call("draft")] * 3, by="d: draft\nrule r: never d") as (server, urls):
        assert "draft was not called" in AGENTS[api](urls, TOOLS, runner(shop), stream=stream)
    assert shop.done == []


@pytest.mark.parametrize("api", APIS)
def test_replicas_take_turns(api: str) -> None:
    """The whole conversation comes with each request, so it does not matter who answers."""
    shop = Shop()
    with guarded(call("approve"), call("look"), call("draft", "pay"), "Paid.", copies=2) as (_, urls):
        assert AGENTS[api](urls, TOOLS, runner(shop)) == "Paid."
    assert shop.done == ["approve 7", "look 7", "draft 7", "pay 7 1"]


@pytest.mark.parametrize("api", APIS)
def test_results_are_signed_where_there_is_a_key(api: str) -> None:
    key = b"secret"
    rules = 'good: look.result[value contains "order"]\npay: pay\nrule r: good before pay'
    shop = Shop()

    def run_signed(name: str, arguments: Mapping[str, Any], id_: str) -> str:
        return sign_result(key, id_, runner(shop)(name, arguments, id_))

    with guarded(call("look"), call("pay"), "Paid.", by=rules, key=key) as (server, urls):
        assert AGENTS[api](urls, TOOLS, run_signed) == "Paid."
        server.steps += [call("look")]
        with pytest.raises(ERRORS, match="not signed"):
            AGENTS[api](urls, TOOLS, lambda *_: "order 7")  # a conversation that lies about its past


# -- one request at a time ------------------------------------------------------------------------------------------

USER = {"role": "user", "content": "pay order 7"}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


def tools_of(api: str, *names: str) -> list[CALL]:
    """Tools as each API writes them."""
    if api == "chat":
        return [{"type": "function", "function": {"name": name}} for name in names or TOOLS]
    return [{"type": "function", "name": name} if api == "responses" else {"name": name} for name in names or TOOLS]


def body_of(api: str, **more: Any) -> CALL:
    said = {"input": [USER]} if api == "responses" else {"messages": [USER]}
    return {"model": "m", "tools": tools_of(api), **said, **more}


def post(url: str, api: str, body: Any, **headers: str) -> httpx2.Response:
    return httpx2.post(f"{url}{PATHS[api]}", json=body, headers=headers)


FORCED = {
    "chat": {"type": "function", "function": {"name": "pay"}},
    "responses": {"type": "function", "name": "pay"},
    "messages": {"type": "tool", "name": "pay"},
}


@pytest.mark.parametrize("api", APIS)
def test_a_demand_that_cannot_be_met_is_an_error(api: str) -> None:
    with guarded() as (server, [url]):
        answer = post(url, api, body_of(api, tool_choice=FORCED[api]))
        assert answer.status_code == 403 and "tool_choice demands pay" in answer.text
        demand = {"type": "any"} if api == "messages" else "required"
        answer = post(url, api, body_of(api, tools=tools_of(api, "pay"), tool_choice=demand))
        assert answer.status_code == 403
    assert server.asked == []


def test_the_tools_that_a_choice_lists_are_legal() -> None:
    with guarded("?", "?", by="p: pay\nrule r: never p") as (server, [url]):
        listed = tools_of("chat", "pay", "look")
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": listed}}
        post(url, "chat", body_of("chat", tool_choice=choice))
        choice = {"type": "allowed_tools", "mode": "auto", "tools": tools_of("responses", "pay")}
        post(url, "responses", body_of("responses", tool_choice=choice))
    assert server.asked[0]["tool_choice"]["allowed_tools"]["tools"] == tools_of("chat", "look")
    assert server.asked[1]["tool_choice"] == "none"


@pytest.mark.parametrize(
    ("api", "more", "why"),
    [
        ("chat", {"n": 2}, "several choices"), ("chat", {"functions": [{"name": "pay"}]}, "write them as tools"),
        ("chat", {"web_search_options": {}}, "use web_search of Responses"),
        ("responses", {"previous_response_id": "r"}, "send the whole input"),
        ("responses", {"conversation": "c"}, "send the whole input"),
        ("responses", {"input": [{"type": "function_call_output", "call_id": "i"}]}, "is not among the items"),
        ("responses", {"tools": [{"type": "mcp", "server_label": "s"}]}, "unseen by the guard"),
        ("messages", {"mcp_servers": [{"name": "s"}]}, "unseen by the guard"),
        ("messages", {"messages": "no list"}, "wanted as a list"), ("chat", {"messages": [1]}, "is no object"),
        ("chat", {"messages": None}, "wanted as a list"), ("chat", {"tools": [1]}, "cannot be read"),
    ],
)  # fmt: skip
def test_what_the_guard_cannot_see_is_refused(api: str, more: CALL, why: str) -> None:
    with guarded() as (server, [url]):
        answer = post(url, api, body_of(api, **more))
    assert answer.status_code == 400 and why in answer.text, answer.text
    assert server.asked == []


def test_other_paths_are_closed() -> None:
    """Batches, assistants and stored answers would bring calls past the guard."""
    with guarded() as (server, [url]):
        for path in (
            "/v1/batches",
            "/v1/responses/r_1",
            "/v1/threads/t/runs",
            "/v1/messages/batches",
            "/v1/completions",
        ):
            assert httpx2.post(f"{url}{path}", json={}).status_code == 404
        assert "is not guarded, so it is closed" in httpx2.get(f"{url}/v1/responses/r_1").text
        assert httpx2.post(f"{url}/v1/messages", content=b"[").status_code == 400
    assert server.asked == []


def test_a_long_request_is_refused() -> None:
    with guarded(most_bytes=1_000) as (_, [url]):
        assert post(url, "chat", body_of("chat", padding="x" * 2_000)).status_code == 413
        assert httpx2.post(f"{url}/v1/embeddings", json={"input": "x" * 2_000}).status_code == 413


def test_rules_about_time_need_a_record() -> None:
    with pytest.raises(InputError, match="does not record when"):
        Endpoint(Guard(GuardRules.from_string("pay: pay\nrule r: at most 1 pay within 1h")))


# -- streams and faults ---------------------------------------------------------------------------------------------


class Upstream:
    """A server that sends pieces of a stream, each after the one before it has arrived at the client."""

    def __init__(self, *streams: list[str]) -> None:
        self.streams = list(streams)
        self.headers: list[Mapping[str, str]] = []
        self.go = threading.Semaphore(0)

    async def answer(self, request: Request) -> Response:
        self.headers.append(request.headers)
        pieces = self.streams.pop(0)

        async def send() -> AsyncIterator[str]:
            for piece in pieces:
                if piece == "wait":
                    assert await asyncio.to_thread(self.go.acquire, timeout=5)
                elif piece == "break":
                    raise ConnectionError
                else:
                    yield piece

        if pieces and pieces[0].isdigit():
            return Response('{"error": {"message": "too much"}}', int(pieces[0]), {"retry-after": "7"})
        return StreamingResponse(send(), media_type="text/event-stream")


@contextmanager
def behind(upstream: Upstream, rules: str, **settings: Any) -> Iterator[str]:
    app = Starlette(routes=[Route("/{path:path}", upstream.answer, methods=["POST"])])
    made = Guard(GuardRules.from_string(rules), tools=TOOLS)
    with running(app) as address, endpoint_of(made, address, **settings) as url:
        yield url


def chunk(**delta: Any) -> str:
    reason = delta.pop("reason", None)
    data = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return f"data: {json.dumps(data)}\n\n"


def called(place: int, name: str, arguments: str) -> CALL:
    return {
        "index": place,
        "id": f"call_{place}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


NEVER = "d: draft\nrule r: never d"
OWED = "l: look\nrule r: at least 1 l"
DONE = "data: [DONE]\n\n"


def read_stream(url: str, upstream: Upstream, released: int = 0) -> list[CALL]:
    """The events that arrive at a client; after each of the first ones the server goes on."""
    found = []
    with httpx2.stream("POST", f"{url}/v1/chat/completions", json=body_of("chat", stream=True)) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line[6:]))
                if len(found) <= released:
                    upstream.go.release()
    return found


def texts_of(events: list[CALL]) -> list[str]:
    return [text for one in events for each in one["choices"] if (text := each["delta"].get("content"))]


def test_texts_arrive_before_the_answer_ends() -> None:
    """The server sends the next piece only when the last one has arrived: held back, the test would not end."""
    upstream = Upstream([chunk(content="One"), "wait", chunk(content=" two"), "wait", chunk(reason="stop"), DONE])
    with behind(upstream, NEVER) as url:
        assert texts_of(read_stream(url, upstream, released=2)) == ["One", " two"]


def test_texts_wait_where_they_can_be_refused() -> None:
    """Something is owed: whether the text is the last answer is known at its end, and that is not accepted."""
    texts = [chunk(content="Bye"), chunk(reason="stop"), DONE]
    calls = [chunk(content="So", tool_calls=[called(0, "look", "{}")]), chunk(reason="tool_calls"), DONE]
    whole = {
        "choices": [{"index": 0, "message": {"tool_calls": [called(0, "look", "{}")]}, "finish_reason": "tool_calls"}]
    }
    upstream = Upstream(texts, [json.dumps(whole)])
    with behind(upstream, OWED) as url:
        assert texts_of(read_stream(url, upstream)) == []
    upstream = Upstream(calls)
    with behind(upstream, OWED) as url:
        assert texts_of(read_stream(url, upstream)) == ["So"]
    upstream = Upstream(texts, texts, texts)
    with behind(upstream, 'bad: assistant[text contains "Bye"]\nrule r: never bad') as url:
        answer = httpx2.post(f"{url}/v1/chat/completions", json=body_of("chat", stream=True))
        assert answer.status_code == 502  # asked again without a stream, this server does not understand
    assert "Bye" not in answer.text


def test_a_text_that_arrived_stays_when_a_call_behind_it_is_refused() -> None:
    begun = [chunk(content="Let me"), chunk(content=" see."), chunk(tool_calls=[called(0, "draft", "{")]),
             chunk(tool_calls=[{"index": 0, "function": {"arguments": "}"}}]), chunk(reason="tool_calls"), DONE]  # fmt: skip
    message = {"role": "assistant", "content": "Done."}
    whole = {
        "id": "c2",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"total_tokens": 5},
    }
    upstream = Upstream(begun, [json.dumps(whole)])
    with behind(upstream, NEVER) as url:
        events = read_stream(url, upstream)
    assert texts_of(events) == ["Let me", " see.", "\n\nDone."]
    assert "draft" not in str(events) and events[-2]["choices"][0]["finish_reason"] == "stop"
    assert events[-1]["usage"] == {"total_tokens": 5}


def test_a_call_without_a_text_follows_a_text_that_arrived() -> None:
    begun = [
        chunk(content="Let me see."),
        chunk(tool_calls=[called(0, "draft", "{}")]),
        chunk(reason="tool_calls"),
        DONE,
    ]
    choice = {"index": 0, "message": {"tool_calls": [called(0, "look", "{}")]}, "finish_reason": "tool_calls"}
    upstream = Upstream(begun, [json.dumps({"id": "c2", "choices": [choice]})])
    with behind(upstream, NEVER) as url:
        events = read_stream(url, upstream)
    assert texts_of(events) == ["Let me see."]
    [call] = [one for each in events for one in each["choices"][0]["delta"].get("tool_calls", ())]
    assert call["function"]["name"] == "look"


def test_of_a_stream_with_several_calls_the_legal_ones_arrive_whole() -> None:
    pieces = [chunk(tool_calls=[called(0, "draft", "{}")]), chunk(tool_calls=[called(1, "look", '{"order"')]),
              chunk(tool_calls=[{"index": 1, "function": {"arguments": ": 7}"}}]), chunk(reason="tool_calls"), DONE]  # fmt: skip
    upstream = Upstream(pieces)
    with behind(upstream, NEVER) as url:
        events = read_stream(url, upstream)
    [call] = [one for each in events for one in each["choices"][0]["delta"].get("tool_calls", ())]
    assert call == {**called(0, "look", '{"order": 7}'), "id": "call_1"}
    assert "draft was not called" in texts_of(events)[0]


@pytest.mark.parametrize(
    "names", [("draft",), ("dra", "ft"), ("", "draft"), ("draft", ""), ("draft", "look"), ("lo", "ok")]
)
def test_a_name_in_pieces_is_judged_and_passed_on_whole(names: tuple[str, ...]) -> None:
    first, *others = names
    pieces = [chunk(tool_calls=[called(0, first, "{")])]
    pieces += [chunk(tool_calls=[{"index": 0, "function": {"name": name}}]) for name in others]
    pieces += [chunk(tool_calls=[{"index": 0, "function": {"arguments": "}"}}]), chunk(reason="tool_calls"), DONE]
    upstream = Upstream(pieces)
    with behind(upstream, NEVER, retries=0) as url:
        events = read_stream(url, upstream)
    calls = [one for each in events for one in each["choices"][0]["delta"].get("tool_calls", ())]
    named = [one["function"]["name"] for one in calls if one["function"].get("name")]
    assert named == ([] if "".join(names) == "draft" else ["".join(names)])
    assert calls or "cannot be called" in texts_of(events)[0]


@pytest.mark.parametrize(
    ("pieces", "status", "words"),
    [
        (["429"], 429, "too much"), (["500"], 500, "too much"), ([chunk(content="a"), "break"], 200, "broke off"),
        ([chunk(content="a")], 200, "broke off"), ([], 502, "broke off"), (["data: {\n\n"], 502, "no JSON"),
        (['data: {"error": {"message": "busy"}}\n\n'], 200, "busy"),
        ([chunk(tool_calls=[called(5, "look", "{}")])], 502, "cannot be read"),
        ([chunk(function_call={"name": "draft", "arguments": "{}"})], 502, "cannot be read"),
        ([chunk(content="a").replace('"index": 0', '"index": 1')], 502, "cannot be read"),
        ([chunk(tool_calls=[called(0, "look", "{")]), chunk(reason="tool_calls"), DONE], 502, "cannot be read"),
    ],
)  # fmt: skip
def test_faults_of_the_api_are_errors(pieces: list[str], status: int, words: str) -> None:
    upstream = Upstream(pieces, ["no JSON"])
    with behind(upstream, NEVER) as url:
        answer = httpx2.post(f"{url}/v1/chat/completions", json=body_of("chat", stream=True))
    assert answer.status_code == status
    assert words in answer.text or "is no JSON" in answer.text, answer.text
    assert answer.headers.get("retry-after") == ("7" if status in (429, 500) else None)


def test_an_api_that_cannot_be_reached() -> None:
    with endpoint_of(guard(), "http://127.0.0.1:9") as url:
        assert post(url, "chat", body_of("chat")).status_code == 502


def test_what_is_only_passed_on_is_bounded_too() -> None:
    with behind(Upstream(["[1]"], ["x" * 2_000], ["429"]), NEVER, most_bytes=1_000) as url:
        answers = [httpx2.post(f"{url}/v1/embeddings", json={}) for _ in range(3)]
    assert [one.status_code for one in answers] == [200, 502, 429]
    assert answers[0].text == "[1]" and "more than 1,000 bytes" in answers[1].json()["error"]["message"]


def test_keys_pass_and_are_kept_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    upstream = Upstream([json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})])
    with behind(upstream, NEVER) as url:
        answer = post(url, "chat", body_of("chat"), authorization="Bearer sk-1", **{"x-other": "a"})
    assert answer.json()["choices"][0]["message"]["content"] == "Hi"
    assert upstream.headers[0]["authorization"] == "Bearer sk-1" and upstream.headers[0]["x-other"] == "a"
    assert "sk-1" not in caplog.text


def test_the_usage_of_refused_answers_counts() -> None:
    message = {"tool_calls": [called(0, "draft", "{}")]}
    first = {"choices": [{"message": message, "finish_reason": "tool_calls"}],
             "usage": {"total_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}}}  # fmt: skip
    last = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {"total_tokens": 3}}
    upstream = Upstream([json.dumps(first)], [json.dumps(last)])
    with behind(upstream, NEVER) as url:
        usage = post(url, "chat", body_of("chat")).json()["usage"]
    assert usage == {"total_tokens": 8, "prompt_tokens_details": {"cached_tokens": 2}}


def test_metrics_and_spans_hold_no_texts() -> None:
    spans, metrics = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = EndpointTelemetry(tracers.get_tracer("test"), MeterProvider([metrics]).get_meter("test"))
    with serving(call("draft"), call("approve", secret="s3cret")) as server:
        settings = EndpointSettings(openai=server.url)
        with running(Endpoint(guard(), settings, telemetry).build_app()) as url:
            assert post(url, "chat", body_of("chat")).status_code == 200
    [span] = spans.get_finished_spans()
    assert span.name == "chat m"
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai",
        "formal_llm.guard.attempts": 2, "formal_llm.guard.refused": ("approval", "order", "paid"),
    }  # fmt: skip
    with serving(*[call("draft")] * 3) as server:
        settings = EndpointSettings(openai=server.url)
        with running(Endpoint(guard(), settings, telemetry).build_app()) as url:
            assert post(url, "chat", body_of("chat")).status_code == 403
    assert dict(spans.get_finished_spans()[-1].attributes or {})["formal_llm.guard.attempts"] == 3
    text = metrics.get_metrics_data().to_json()  # type: ignore[union-attr]
    assert '"formal_llm.guard.rule": "order"' in text and "formal_llm.guard.overhead" in text
    assert "s3cret" not in text and "pay order 7" not in text
