"""Hosted models against a server on this machine, in the protocols of six providers."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from formal_llm.errors import (
    InvalidAnswer,
    MissingDependency,
    MissingKey,
    ProviderError,
    UnknownProvider,
    UnreadableResponse,
    WritesNoText,
)
from formal_llm.llms import HostedLLM, Message, Question, TokenUsage, ask, resolve
from formal_llm.llms.hosted.connecting import set_request_defaults
from formal_llm.llms.objects import ask_object
from formal_llm.llms.question import Answer, CallRequest
from formal_llm.llms.text_request import CUT_OFF, FILTERED, REFUSED, TextGrammar, TextRequest, ToolOffer
from tests.llms.hosted.wire_server import FORMS, KEY, Asked, Form, Reply, WireServer, chat, delta, events, serving

QUESTION = Question("Which one?", ["red", "green", "blue"], messages=[Message("system", "Be quick.")])
SEVERAL = Question("Which?", ["red", "green", "blue"], several=True)
SPENT = TokenUsage(1, 5, 2)
ADD = ToolOffer("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    if request.param == "google" and importlib.util.find_spec("google.genai") is None:
        pytest.skip("the protocol of Google needs the package google-genai")
    return FORMS[request.param]


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as made:
        yield made


def openai(server: WireServer, *script: Any, **settings: Any) -> HostedLLM:
    server.script = list(script)
    kept = {"max_retries": 0, "deadline": 5, **settings}
    return HostedLLM("openai:m", base_url=f"{server.root}/v1", api_key=KEY, **kept)


def find_schema(body: Any) -> dict[str, Any]:
    """The schema of an object in a request, wherever the protocol has it."""
    if isinstance(body, dict):
        if body.get("type") in ("object", "OBJECT") and "properties" in body:
            return body
        return next((found for one in body.values() if (found := find_schema(one))), {})
    return next((found for one in body if (found := find_schema(one))), {}) if isinstance(body, list) else {}


# -- all protocols ----------------------------------------------------------------------------------------------------


def test_a_choice(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(form, monkeypatch, form.reply('{"choice": 2}')) as server:
        llm = form.make()
        answer = llm.ask(QUESTION)
        assert (answer.numbers, answer.usage) == ((2,), SPENT)
        assert asyncio.run(llm.aask(QUESTION)) == answer
        schema = find_schema(server.asked[0].body)
        assert schema["properties"]["choice"]["enum"] == [1, 2, 3]
        assert "Be quick." in str(server.asked[0].body)
        assert KEY in str(server.asked[0].headers)


def test_several(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(form, monkeypatch, form.reply('{"choices": [1, 3]}')):
        assert form.make().ask(SEVERAL).numbers == (1, 3)


@pytest.mark.parametrize(("stop", "problem"), [("length", CUT_OFF), ("filter", None)])
def test_an_answer_that_is_not_whole(
    form: Form, stop: str, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(form, monkeypatch, form.reply('{"choi', (), stop)):
        llm = form.make()
        with pytest.raises(InvalidAnswer) as caught:
            llm.ask(QUESTION)
        assert caught.value.problem in ([problem] if problem else [FILTERED, REFUSED])
        assert caught.value.usage == SPENT
        made = llm.ask(TextRequest("Say."))
        assert made.stopped == caught.value.problem


def test_a_text_whole_and_streamed(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    async def astream(llm: HostedLLM) -> list[Any]:
        return [part async for part in llm.astream(TextRequest("Say.", stop=["END"]))]

    with serving(form, monkeypatch, form.reply("Hello. END rest")):
        llm = form.make()
        assert llm.ask(TextRequest("Say.")) == Answer((), text="Hello. END rest", usage=SPENT, ended="")
        assert llm.ask(TextRequest("Say.", stop=["END"])) == Answer((), text="Hello. ", usage=SPENT, ended="END")
        *pieces, last = llm.stream(TextRequest("Say.", max_tokens=9))
        assert "".join(pieces) == last.text == "Hello. END rest"
        assert (last.usage, last.ended) == (SPENT, "")
        for parts in (list(llm.stream(TextRequest("Say.", stop=["END"]))), asyncio.run(astream(llm))):
            *pieces, last = parts
            assert "".join(pieces) == last.text == "Hello. "
            assert last.ended == "END"


def test_a_turn_with_tools(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [("c1", "add", {"a": 1}), ("c2", "add", {"a": 2})]
    past = [
        Message("user", "Add."), Message("assistant", "I add.", (CallRequest("c0", "add", '{"a": 0}'),)),
        Message("tool", "0", answers="c0"),
    ]  # fmt: skip

    with serving(form, monkeypatch, form.reply("So:", calls)) as server:
        llm = form.make()
        assert "call" in llm.can
        *_, streamed = llm.stream(TextRequest(past, tools=[ADD]))
        for made in (llm.ask(TextRequest(past, tools=[ADD], must_call=True)), streamed):
            assert made.text == "So:"
            assert [(call.id, call.name, json.loads(call.arguments)) for call in made.calls] == calls
        body = json.dumps(server.asked[-1].body)
        assert "Adds." in body and "I add." in body and "c0" in body
        llm.ask(TextRequest(past, tools=[]))  # nothing may be called any more


def test_an_object(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {
        "type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}, "required": ["name"],
        "additionalProperties": False,
    }  # fmt: skip
    bodies = (form.reply('{"name": "Ada"}'), form.reply('{"name": "Adam"}'))
    with serving(form, monkeypatch, *bodies) as server:
        llm = form.make()
        assert ask_object(llm, "Who?", schema).value == {"name": "Ada"}
        with pytest.raises(InvalidAnswer):  # whatever the provider promises
            ask_object(llm, "Who?", schema, tries=1)
        assert "name" in find_schema(server.asked[0].body)["properties"]


# -- misbehaviour -----------------------------------------------------------------------------------------------------

HOSTILE: dict[str, Reply] = {
    "429": Reply({"error": {"message": f"slow down {KEY}"}}, 429, {"retry-after": "0.01"}),
    "500": Reply({"error": {"message": f"broken {KEY}"}}, 500, {"x-echo": KEY}),
    "401": Reply({"error": {"message": f"bad key {KEY}"}}, 401),
    "400": Reply({"error": {"message": "no"}}, 400),
    "error in a 200": Reply({"error": {"message": f"overloaded {KEY}"}}),
    "hangs up": Reply("lost", cut=0),
    "cut": Reply('{"id": "x", "choices": [' + " " * 1000, cut=30),
    "slow": Reply({}, delay=0.8),
    "dripping": Reply(" " * 100, drip=0.1),
    "html": Reply(f"<html>{KEY}</html>", headers={"content-type": "text/html"}),
    "half of JSON": Reply('{"id": "x", '),
    "other JSON": Reply([1]),
    "null": Reply("null"),
    "empty object": Reply({}),
    "wrong types": Reply({"id": 3, "choices": 7, "content": 3, "candidates": 4, "output": "x", "error": None}),
    "deep JSON": Reply("[" * 50_000),
    "no UTF-8": Reply(b'{"id": "\xff\xfe"}'),
    "huge": Reply(b" " * 300_000),
    "asks for a day": Reply({"error": {"message": "later"}}, 429, {"retry-after": "86400"}),
    "redirects": Reply("", 302, {"location": "http://127.0.0.1:9/"}),
}


@pytest.mark.parametrize("awaited", [False, True], ids=["waited", "awaited"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_server_that_misbehaves(form: Form, name: str, awaited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes, the error is ours, comes in time, and has no key."""
    with serving(form, monkeypatch, HOSTILE[name]):
        llm = form.make(deadline=0.5, max_bytes=200_000)
        begun = asyncio.new_event_loop()
        try:
            start = begun.time()
            with pytest.raises((ProviderError, InvalidAnswer)) as caught:
                begun.run_until_complete(llm.aask(QUESTION)) if awaited else llm.ask(QUESTION)
            seconds = begun.time() - start
        finally:
            begun.close()
        assert seconds < 0.5 * 1.1 + 0.2  # the last part is for a machine under load
        assert_no_key(caught.value)
        if name in ("slow", "dripping"):
            assert seconds > 0.45
            assert "within 0.5 seconds" in str(caught.value)


def assert_no_key(error: BaseException) -> None:
    below: BaseException | None = error
    for _ in range(10):
        if below is None:
            return
        for text in (str(below), repr(below), str(getattr(below, "__dict__", ""))):
            assert KEY not in text
        below = below.__cause__ or below.__context__


def test_a_key_is_nowhere(server: WireServer) -> None:
    llm = openai(server, chat("x"), extra_headers={"x-token": KEY}, temperature=0.5)
    for shown in (repr(llm), str(llm.identity), llm.name):
        assert KEY not in shown
    assert llm.identity == {"llm": "openai:m", "address": f"{server.root}/v1", "temperature": 0.5}
    assert HostedLLM("vllm:m", base_url="http://user:secret@localhost:1/v1?key=secret").identity == {
        "llm": "vllm:m", "address": "http://localhost:1/v1",
    }  # fmt: skip


# -- what compatible servers send, after public reports -------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "model overloaded", "code": 502}}, "status 502: model overloaded"),
        ({"error": "model overloaded"}, "status 502: model overloaded"),
        ({**chat("2"), "choices": []}, "cannot be read"),
        ({**chat("2"), "choices": None}, "cannot be read"),
        (
            {**chat("2"), "choices": [{"finish_reason": "error", "error": {"message": "upstream died"}}]},
            "upstream died",
        ),
        (chat("", stop="error"), "the provider broke off with an error"),
    ],
)
def test_errors_inside_of_a_good_status(server: WireServer, body: Any, said: str) -> None:
    with pytest.raises(ProviderError, match=said):
        openai(server, body).ask(QUESTION)


@pytest.mark.parametrize(
    ("status", "message", "heading"),
    [
        (400, "maximum context length is 4096 tokens", "longer than the model can read"),
        (402, "Insufficient credits", "no credit left"),
        (401, "Incorrect key", "the key was refused"),
        (404, "no such model", "there is no such model"),
        (429, "slow down", "too many requests"),
        (503, "busy", "the server failed"),
        (418, "tea", "the request was refused"),
    ],
)
def test_an_error_is_headed_by_its_cause(server: WireServer, status: int, message: str, heading: str) -> None:
    with pytest.raises(ProviderError, match=heading) as caught:
        openai(server, Reply({"error": {"message": message}}, status)).ask(QUESTION)
    assert f"(status {status}: {message})" in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        chat("<think>\nmaybe 1?\n</think>\n\n2"),
        chat('<think>\nmaybe 1?\n</think>\n\n{"choice": 2}'),
        chat('maybe 1?</think>{"choice": 2}'),
        chat(None, reasoning_content='{"choice": 2}'),
        chat([{"type": "text", "text": '{"choice": 2}'}]),  # type: ignore[arg-type]
        chat(None, [("a", "answer", {"choice": 2})]),
        {**chat('{"choice": 2}'), "usage": {"prompt_tokens": 5.0, "completion_tokens": None}},
        {"choices": chat('{"choice": 2}')["choices"]},
        chat('{"choice": 2}', logprobs={"content": None}),
        chat('{"choice": 2}', logprobs={"content": [{"token": "2", "logprob": None, "top_logprobs": None}]}),
    ],
)
def test_answers_in_other_shapes(server: WireServer, body: dict[str, Any]) -> None:
    assert openai(server, body).ask(QUESTION).numbers == (2,)


def test_an_answer_that_is_thoughts_alone_is_asked_for_again_with_more_room(server: WireServer) -> None:
    only = chat("", stop="length", reasoning_content="hm")
    made = openai(server, only, chat("Done.")).ask(TextRequest("Say.", max_tokens=100))
    assert (made.text, made.usage) == ("Done.", TokenUsage(2, 10, 4))
    assert [asked.body["max_completion_tokens"] for asked in server.asked] == [100, 400]
    assert ask(openai(server, only, chat("2")), QUESTION, tries=1).numbers == (2,)
    with pytest.raises(InvalidAnswer, match="cut off"):
        openai(server, only).ask(QUESTION)


def test_a_message_that_is_null(server: WireServer) -> None:
    choice = {"index": 0, "finish_reason": "content_filter", "message": None}
    with pytest.raises(InvalidAnswer, match="content filter"):
        openai(server, {**chat("2"), "choices": [choice]}).ask(QUESTION)


def call(name: Any, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ([call("add", {"a": 1}, id="x")], [("x", '{"a": 1}')]),
        ([call("add", None, id="")], [("call_0", "")]),
        ([call("add", '{"a": 1}', id="x"), call("add", "{}", id="x")], [("x", '{"a": 1}'), ("x_1", "{}")]),
        ([{"function": {"name": "add", "arguments": "{"}}], [("call_0", "{")]),
        ([{"id": "x", "type": "custom", "custom": {"name": "add", "input": "4"}}], [("x", "4")]),
    ],
)
def test_calls_in_other_shapes(server: WireServer, sent: list[Any], read: list[Any]) -> None:
    made = openai(server, chat(None, stop="tool_calls", tool_calls=sent)).ask(TextRequest("Add.", tools=[ADD]))
    assert [(one.id, one.arguments) for one in made.calls] == read


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ([("x", 0, "add", '{"a": 1}'), ("y", 0, "note", "{}")], [("x", "add", '{"a": 1}'), ("y", "note", "{}")]),
        ([("x", None, "add", '{"a": 1}'), ("y", None, "add", "{}")], [("x", "add", '{"a": 1}'), ("y", "add", "{}")]),
        ([(None, 0, "add", "{}"), (None, 0, "note", "{}")], [("call_0", "add", "{}"), ("call_1", "note", "{}")]),
        ([("x", 0, "add", '{"a"'), ("x", 0, "add", ": 1}")], [("x", "add", '{"a": 1}')]),
        ([("x", 1, "add", '{"a"'), (None, 1, None, ": 1}")], [("x", "add", '{"a": 1}')]),
        ([("x", 0, "add", {"a": 1})], [("x", "add", '{"a": 1}')]),
    ],
)  # fmt: skip
def test_streamed_calls_are_told_apart(server: WireServer, sent: list[Any], read: list[Any]) -> None:
    parts = []
    for name, index, function, arguments in sent:
        of: dict[str, Any] = {key: one for key, one in (("id", name), ("index", index)) if one is not None}
        said = (("name", function), ("arguments", arguments))
        parts.append(delta(tool_calls=[{**of, "function": {key: one for key, one in said if one is not None}}]))
    *_, last = openai(server, events(*parts, delta("tool_calls"))).stream(TextRequest("Add.", tools=[ADD]))
    assert [(one.id, one.name, one.arguments) for one in last.calls] == read


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (events(delta(content="It is "), last=""), "the stream broke off"),
        (events(delta(content="It"), {"error": {"message": "fell over", "code": 502}}), "fell over"),
        (
            events({**delta(), "choices": [{"index": 0, "delta": {}, "error": {"message": "upstream died"}}]}),
            "upstream",
        ),
        (Reply({"error": {"message": "overloaded"}}), "overloaded"),
        (Reply(chat("Done.")), "cannot be read"),
    ],
)
def test_streams_that_break_off(server: WireServer, reply: Reply, said: str) -> None:
    with pytest.raises(ProviderError, match=said):
        list(openai(server, reply).stream(TextRequest("Say.")))


@pytest.mark.parametrize(
    "odd", [{**delta(), "choices": None}, {**delta(), "choices": []}, {"choices": [{"index": 0, "delta": None}]}]
)
def test_odd_parts_of_streams(server: WireServer, odd: dict[str, Any]) -> None:
    *_, last = openai(server, events(odd, delta(content="Done."), delta("stop"))).stream(TextRequest("Say."))
    assert last.text == "Done."


# -- settings that are refused, retries, deadlines --------------------------------------------------------------------


def refuse(word: str) -> Any:
    def answer(asked: Asked) -> Reply:
        if word in str(asked.body):
            return Reply({"error": {"message": f"unsupported: {word}"}}, 400)
        calls = [("c", "answer", {"choice": 2})] if "tools" in asked.body else []
        return Reply(chat(None if calls else '{"choice": 2}', calls))

    return answer


def test_probabilities_that_are_refused_are_not_asked_for_again(server: WireServer) -> None:
    llm = openai(server, refuse("logprobs"))
    with pytest.warns(UserWarning, match="gives no token probabilities"):
        assert llm.ask(QUESTION).probabilities is None
    llm.ask(QUESTION)
    assert ["logprobs" in asked.body for asked in server.asked] == [True, False, False]
    with pytest.raises(ProviderError, match="unsupported: logprobs"):
        openai(server, refuse("logprobs"), logprobs=True).ask(QUESTION)


def test_settings_that_are_refused_are_left_out(server: WireServer) -> None:
    with pytest.warns(UserWarning, match="takes no temperature"):
        openai(server, refuse("temperature")).ask(TextRequest("Say."))
    assert openai(server, refuse("'stop'")).ask(TextRequest("Say.", stop=["2"])).text == '{"choice": '


def test_without_structured_output_a_tool_is_forced(server: WireServer) -> None:
    llm = openai(server, refuse("json_schema"))
    assert [llm.ask(QUESTION).numbers for _ in range(2)] == [(2,), (2,)]
    assert ["tools" in asked.body for asked in server.asked] == [False, True, True]
    assert server.asked[-1].body["tool_choice"] in ("required", {"type": "function", "function": {"name": "answer"}})


def test_failures_that_may_pass(server: WireServer) -> None:
    busy, broken = Reply({}, 429, {"retry-after": "0.05"}), Reply({}, 500, {"retry-after": "0"})
    assert openai(server, busy, broken, Reply("lost", cut=0), chat("2"), max_retries=3).ask(QUESTION).numbers == (2,)
    assert len(server.asked) == 4
    for final in (Reply({}, 500, {"x-should-retry": "false"}), Reply({"error": {"code": "insufficient_quota"}}, 429)):
        before = len(server.asked)
        with pytest.raises(ProviderError):
            openai(server, final, max_retries=3).ask(QUESTION)
        assert len(server.asked) == before + 1


def test_probabilities(server: WireServer) -> None:
    top = [{"token": str(n), "logprob": math.log(share)} for n, share in ((1, 0.2), (2, 0.7), (3, 0.1))]
    tokens = [
        {"token": '{"choice": ', "logprob": 0.0, "top_logprobs": []},
        {"token": "2", "logprob": math.log(0.7), "top_logprobs": top},
        {"token": "}", "logprob": 0.0, "top_logprobs": []},
    ]
    answer = openai(server, chat('{"choice": 2}', logprobs={"content": tokens})).ask(QUESTION)
    assert answer.probabilities == pytest.approx({1: 0.2, 2: 0.7, 3: 0.1})
    assert server.asked[0].body["top_logprobs"] == 20


def test_models_that_think_are_asked_for_nothing_that_they_refuse(server: WireServer) -> None:
    server.script = [chat("2")]
    llm = HostedLLM("openai:gpt-5", base_url=f"{server.root}/v1", api_key=KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        llm.ask(QUESTION)
        llm.ask(TextRequest("Say."))
    assert not {"logprobs", "temperature"} & {name for asked in server.asked for name in asked.body}


def test_the_prompt_is_cached_as_far_as_later_questions_share_it(
    server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = FORMS["anthropic"]
    with serving(form, monkeypatch, form.reply('{"choice": 2}')) as asked:
        llm = form.make()
        llm.ask(QUESTION)
        assert asked.asked[0].body["system"][0]["cache_control"]["type"] == "ephemeral"
        assert "cache_control" not in json.dumps(asked.asked[0].body["messages"])
        assert "cache_control" not in asked.asked[0].body
        past = [Message("user", "First?"), Message("assistant", "1")]
        llm.ask(Question("Next?", ["a", "b"], messages=past))
        assert "cache_control" in json.dumps(asked.asked[1].body)


# -- continued texts, grammars, decisions -----------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["vllm", "llamacpp", "sglang"])
def test_a_text_is_continued(server: WireServer, provider: str) -> None:
    def part(text: str, finish: str | None = None) -> dict[str, Any]:
        return {
            "id": "x",
            "object": "text_completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "text": text, "finish_reason": finish}],
        }

    usage = {**part(""), "choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}}
    server.script = [events(part(" look"), part(" it"), part(" up", "stop"), usage)]
    llm = HostedLLM(f"{provider}:m", base_url=f"{server.root}/v1", max_retries=0)
    assert "continue" in llm.can
    assert llm.ask(TextRequest("I", continues=True)) == Answer(
        (), text=" look it up", usage=TokenUsage(1, 4, 3), ended=""
    )
    assert llm.ask(TextRequest("I", continues=True, stop=["t u"])).text == " look i"
    assert llm.ask(TextRequest("I", continues=True, stop=["t u"])).ended == "t u"
    assert list(llm.stream(TextRequest("I", continues=True)))[:-1] == [" look", " it", " up"]
    assert server.asked[0].path == "/v1/completions"
    assert server.asked[0].body["prompt"] == "I"
    assert "authorization" not in server.asked[0].headers
    server.script = [events(part(" look", "length"))]
    assert asyncio.run(llm.aask(TextRequest("I", continues=True))).stopped == CUT_OFF  # type: ignore[attr-defined]
    server.script = [events(part(" look"), last="")]
    with pytest.raises(UnreadableResponse, match="broke off"):
        llm.ask(TextRequest("I", continues=True))
    assert "continue" not in openai(server, chat("x")).can


def test_a_text_by_a_grammar(server: WireServer) -> None:
    grammar = TextGrammar('start: "a"', 'root ::= "a"')
    fields: dict[str, Any] = {
        "vllm": {"structured_outputs": {"grammar": grammar.gbnf}}, "sglang": {"ebnf": grammar.gbnf},
        "llamacpp": {"grammar": grammar.gbnf},
    }  # fmt: skip
    for provider, field in fields.items():
        server.script = [chat("a")]
        llm = HostedLLM(f"{provider}:m", base_url=f"{server.root}/v1")
        assert llm.ask(TextRequest("Plan.", grammar=grammar)).text == "a"
        assert field.items() <= server.asked[-1].body.items()
    custom = {"id": "c", "type": "custom", "custom": {"name": "answer", "input": "a"}}
    assert openai(server, chat(None, tool_calls=[custom])).ask(TextRequest("Plan.", grammar=grammar)).text == "a"
    (tool,) = server.asked[-1].body["tools"]
    assert tool["custom"]["format"]["grammar"] == {"syntax": "lark", "definition": grammar.lark}
    with pytest.raises(ProviderError, match="takes no grammar"):
        HostedLLM("ollama:m", base_url=server.root).ask(TextRequest("Plan.", grammar=grammar))


def test_a_decision_model(server: WireServer) -> None:
    from pydantic_ai.models.decision import ChoiceAnswer, DecisionModel, DecisionRequest, DecisionResponse, NoulAnswer

    class Double(DecisionModel):  # type: ignore[type-arg]
        model_name, system, base_url = "double", "double", None  # type: ignore[assignment]

        def __init__(self) -> None:
            super().__init__()

        async def decide(self, request: DecisionRequest, model_settings: Any) -> DecisionResponse:
            if "choice" in request.questions:
                shares = {"1": 0.25, "2": 0.75, "3": 0.0}
                answer = ChoiceAnswer(choice=chosen, confidence=1.0, probabilities=shares)
                return DecisionResponse(answers={"choice": answer}, model_name="double")
            likely = {name: NoulAnswer(noul=0.9 if name != "2" else 0.1) for name in request.questions}
            return DecisionResponse(answers=dict(likely), model_name="double")

    llm, chosen = HostedLLM(Double()), "2"
    answer = llm.ask(QUESTION)
    assert (answer.numbers, answer.probabilities) == ((2,), {1: 0.25, 2: 0.75, 3: 0.0})
    assert llm.ask(SEVERAL).numbers == (1, 3)
    chosen = "9"
    with pytest.raises(InvalidAnswer, match="'9' is not the number"):
        llm.ask(QUESTION)
    with pytest.raises(WritesNoText):
        llm.ask(TextRequest("Say."))
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(llm)


# -- threads, event loops, processes ----------------------------------------------------------------------------------


def test_any_thread_and_any_event_loop_may_ask(server: WireServer) -> None:
    llm, found = openai(server, chat("2")), []

    async def ask_many() -> None:
        found.extend(await asyncio.gather(*(llm.aask(QUESTION) for _ in range(10))))

    workers = [Thread(target=lambda: asyncio.run(ask_many())) for _ in range(3)]
    workers += [Thread(target=lambda: found.append(llm.ask(QUESTION))) for _ in range(10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [answer.numbers for answer in found] == [(2,)] * 40

    async def ask_blocking() -> Any:
        return llm.ask(QUESTION)  # a coroutine may block, too

    assert asyncio.run(ask_blocking()).numbers == (2,)


def test_what_is_given_up_is_ended(server: WireServer) -> None:
    llm = openai(server, Reply(chat("2"), delay=0.3))

    async def give_up() -> None:
        asking = [asyncio.create_task(llm.aask(QUESTION)) for _ in range(64)]
        await asyncio.sleep(0.1)
        for one in asking:
            one.cancel()
        assert all(
            isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*asking, return_exceptions=True)
        )

    asyncio.run(give_up())
    stream = llm.stream(TextRequest("Say."))
    server.script = [events(delta(content="a"), delta(content="b"), delta("stop"))]
    assert next(stream) == "a"
    stream.close()
    server.script = [chat("2")]
    assert llm.ask(QUESTION).numbers == (2,)


CHILD = """
import os, signal, sys, threading
from formal_llm.llms import HostedLLM, Question
llm, question = HostedLLM("vllm:m", base_url=sys.argv[1]), Question("?", ["a", "b"])
assert llm.ask(question).numbers == (2,)
child = os.fork()
if child == 0:
    os._exit(0 if llm.ask(question).numbers == (2,) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    HostedLLM("vllm:slow", base_url=sys.argv[1]).ask(question)
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.slow
def test_a_forked_process_begins_anew_and_ctrl_c_ends_a_question(server: WireServer) -> None:
    server.script = [lambda asked: Reply(chat("2"), delay=30 if asked.body["model"] == "slow" else 0)]
    made = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", CHILD, f"{server.root}/v1"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (made.returncode, made.stdout, made.stderr) == (0, "stopped\n", "")


def test_a_pickle_begins_anew(server: WireServer) -> None:
    llm = openai(server, chat("2"), temperature=0.5)
    again = pickle.loads(pickle.dumps(llm))
    assert again.ask(QUESTION).numbers == (2,)
    assert again.identity == llm.identity
    assert type(pickle.loads(pickle.dumps(HostedLLM("vllm:m")))) is type(HostedLLM("vllm:m"))


# -- provider strings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("localhost", "http://localhost:11434/v1"), ("10.0.0.1:81", "http://10.0.0.1:81/v1"), ("::1", "http://[::1]:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"), ("https://a.b/x/", "https://a.b/x/v1"), ("http://a:1/v1", "http://a:1/v1"),
    ],
)  # fmt: skip
def test_hosts_of_ollama(host: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert resolve("ollama:m").identity["address"] == address  # type: ignore[attr-defined]


def test_addresses_that_are_none() -> None:
    for url in ("localhost:8000", "ftp://a", "http://", "http://a b/v1", "http://a:0/v1", "http://" + "a" * 3_000):
        with pytest.raises(ProviderError, match="is no address of a server"):
            HostedLLM("vllm:m", base_url=url)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY"), ("openrouter:m", "OPENROUTER_API_KEY"),
        ("deepseek:m", "DEEPSEEK_API_KEY"), ("openai-responses:m", "OPENAI_API_KEY"),
    ],
)  # fmt: skip
def test_a_missing_key_is_named(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(MissingKey, match=variable):
        resolve(name)


def test_providers_of_pydantic_ai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    assert resolve("deepseek:m").identity["address"] == "https://api.deepseek.com"  # type: ignore[attr-defined]
    with pytest.raises(UnknownProvider):
        HostedLLM("nobody:m")
    if importlib.util.find_spec("mistralai") is None:
        with pytest.raises(MissingDependency, match="mistral"):
            resolve("mistral:m")


def test_defaults_of_requests(server: WireServer) -> None:
    with set_request_defaults(max_retries=1, deadline=None):
        llm = HostedLLM("vllm:m", base_url=f"{server.root}/v1")
    server.script = [Reply({}, 500, {"retry-after": "0"})]
    with pytest.raises(ProviderError):
        llm.ask(QUESTION)
    assert len(server.asked) == 2
    with pytest.raises(ValueError, match="deadline"):
        HostedLLM("vllm:m", deadline=0)
