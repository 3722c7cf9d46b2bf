from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import openai
import protocol_server as ps
import pytest

from formal_llm.errors import InvalidAnswer, MissingKey, ProviderError
from formal_llm.llms.llm import ask, resolve
from formal_llm.llms.openai import OpenAILLM
from formal_llm.llms.question import Question, TokenUsage

MakeQuestion = Callable[..., Question]
ONE = TokenUsage(1, ps.INPUT_TOKENS, ps.OUTPUT_TOKENS)


@pytest.fixture
def client(server: ps.ProtocolServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="dummy", max_retries=1, timeout=5) as client:
        yield client


@pytest.fixture
def llm(client: openai.OpenAI) -> OpenAILLM:
    return OpenAILLM("test-model", client=client)


def test_a_right_answer_and_what_was_sent_for_it(
    server: ps.ProtocolServer, llm: OpenAILLM, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(2)]
    answer = llm.choose(make_question())
    assert answer.number == 2
    assert json.loads(answer.text) == {"choice": 2}
    assert answer.usage == ONE
    # The whole body: a model that takes no temperature must not be sent one.
    assert server.bodies == [
        {
            "model": "test-model",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "1: a"},
                {"role": "assistant", "content": "1"},
                {"role": "user", "content": "Which one?"},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "choice",
                    "strict": True,
                    "schema": {
                        "type": "object",
                        "properties": {"choice": {"type": "integer", "enum": [1, 2, 3]}},
                        "required": ["choice"],
                        "additionalProperties": False,
                    },
                },
            },
        }
    ]


def test_several(server: ps.ProtocolServer, llm: OpenAILLM, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(3, 1, several=True)]
    assert llm.choose(make_question(several=True)).numbers == (3, 1)
    assert server.bodies[0]["response_format"]["json_schema"]["schema"] == {
        "type": "object",
        "properties": {"choices": {"type": "array", "items": {"type": "integer", "enum": [1, 2, 3]}}},
        "required": ["choices"],
        "additionalProperties": False,
    }


def test_settings_are_sent_when_they_are_given(
    server: ps.ProtocolServer, client: openai.OpenAI, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(1)]
    OpenAILLM("test-model", client=client, temperature=0.0, max_completion_tokens=50).choose(make_question())
    assert server.bodies[0]["temperature"] == 0
    assert server.bodies[0]["max_completion_tokens"] == 50


@pytest.mark.parametrize("written", ["2", " Option 2.", '\n{ "choice" : 2 }\n', "2: green"])
def test_what_is_read_as_an_answer(
    written: str, server: ps.ProtocolServer, llm: OpenAILLM, make_question: MakeQuestion
) -> None:
    # A server that does not keep to the schema may still answer.
    server.script = [ps.text(written)]
    assert llm.choose(make_question()).numbers == (2,)


@pytest.mark.parametrize(
    "written",
    [
        '{"choice": 0}',
        '{"choice": 4}',
        '{"choice": "2"}',
        '{"choice": 2.0}',
        '{"choice": true}',
        '{"choice": null}',
        '{"choice": [2]}',
        '{"choice": 1, "choice": 2}',
        '{"choice": 2, "other": 3}',
        '{"choices": [2]}',
        '[["choice", 2]]',
        "{}",
        '{"choice": 2',
        '{"choice": ' + "9" * 5000 + "}",
        "[" * 100_000,
        "I would take 2, or perhaps 3",
        "   ",
    ],
)
def test_what_is_no_answer(
    written: str, server: ps.ProtocolServer, llm: OpenAILLM, make_question: MakeQuestion
) -> None:
    server.script = [ps.text(written)]
    with pytest.raises(InvalidAnswer) as caught:
        llm.choose(make_question())
    assert caught.value.transcript == (("Which one?", written),)
    assert caught.value.usage == ONE


@pytest.mark.parametrize("written", ['{"choices": []}', '{"choices": [1, 1]}', '{"choices": [1, 4]}', '{"choices": 1}'])
def test_what_is_no_answer_where_several_may_be_chosen(
    written: str, server: ps.ProtocolServer, llm: OpenAILLM, make_question: MakeQuestion
) -> None:
    server.script = [ps.text(written)]
    with pytest.raises(InvalidAnswer) as caught:
        llm.choose(make_question(several=True))
    assert caught.value.usage == ONE


@pytest.mark.parametrize(
    ("behaviour", "problem", "said"),
    [
        (ps.REFUSAL, "it was refused", "I can't help with that."),
        (ps.TRUNCATED, "it was cut off at the limit of tokens", '{"choi'),
        (ps.FILTERED, "it was stopped by the content filter", ""),
        (ps.EMPTY, "it was empty", ""),
    ],
)
def test_an_answer_that_did_not_come_to_its_end(
    behaviour: ps.Behaviour,
    problem: str,
    said: str,
    server: ps.ProtocolServer,
    llm: OpenAILLM,
    make_question: MakeQuestion,
) -> None:
    server.script = [behaviour]
    with pytest.raises(InvalidAnswer) as caught:
        llm.choose(make_question())
    assert caught.value.problem == problem
    assert caught.value.transcript == (("Which one?", said),)
    assert caught.value.usage == ONE


def test_a_bad_answer_is_asked_again_with_the_complaint(
    server: ps.ProtocolServer, llm: OpenAILLM, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(7), ps.REFUSAL, ps.ok(3)]
    answer = ask(llm, make_question())
    assert answer.number == 3
    assert answer.usage == ONE + ONE + ONE
    prompts = [body["messages"][-1]["content"] for body in server.bodies]
    assert prompts[0] == "Which one?"
    assert "7 is not one of the numbers from 1 to 3" in prompts[1]
    assert "it was refused" in prompts[2]


def test_asking_again_is_bounded(server: ps.ProtocolServer, llm: OpenAILLM, make_question: MakeQuestion) -> None:
    server.script = [ps.text("green, please"), ps.EMPTY, ps.ok(9), ps.ok(1)]
    with pytest.raises(InvalidAnswer) as caught:
        ask(llm, make_question(), tries=3)
    assert [said for _, said in caught.value.transcript] == ["green, please", "", '{"choice": 9}']
    assert caught.value.usage == ONE + ONE + ONE
    assert len(server.bodies) == 3


@pytest.mark.parametrize("failure", [ps.failing(500), ps.failing(429), ps.CUT])
def test_a_passing_failure_is_retried_by_the_sdk(
    failure: ps.Behaviour, server: ps.ProtocolServer, llm: OpenAILLM, make_question: MakeQuestion
) -> None:
    server.script = [failure, ps.ok(2)]
    answer = llm.choose(make_question())
    assert answer.number == 2
    assert answer.usage == ONE
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("behaviour", "words", "cause"),
    [
        (ps.failing(400), "structured output.*status 400: said by the server", openai.BadRequestError),
        (ps.failing(401), "key was refused.*OPENAI_API_KEY.*status 401", openai.AuthenticationError),
        (ps.failing(404), "no such model.*OPENAI_BASE_URL.*status 404", openai.NotFoundError),
        (ps.failing(429), "too many requests.*max_retries.*status 429", openai.RateLimitError),
        (ps.failing(503), "server failed.*status 503", openai.InternalServerError),
        (ps.CUT, "cannot be reached.*OPENAI_BASE_URL", openai.APIConnectionError),
        (ps.HTML, "cannot be read.*OPENAI_BASE_URL", AttributeError),
        (ps.EMPTY_JSON, "cannot be read.*OPENAI_BASE_URL", (AttributeError, TypeError)),
        (ps.BROKEN_JSON, "cannot be read.*OPENAI_BASE_URL", json.JSONDecodeError),
    ],
)
def test_a_lasting_failure_is_a_provider_error(
    behaviour: ps.Behaviour,
    words: str,
    cause: type[Exception],
    server: ps.ProtocolServer,
    client: openai.OpenAI,
    make_question: MakeQuestion,
) -> None:
    server.script = [behaviour]
    with pytest.raises(ProviderError, match=f"^openai:test-model: .*{words}") as caught:
        ask(OpenAILLM("test-model", client=client.with_options(max_retries=0)), make_question())
    assert isinstance(caught.value.cause, cause)
    assert caught.value.__cause__ is caught.value.cause
    # A failure of the provider is no bad answer: it is not asked again.
    assert len(server.bodies) == 1


def test_nobody_listens(make_question: MakeQuestion) -> None:
    stopped = ps.ProtocolServer()
    stopped.start()
    stopped.stop()
    with (
        openai.OpenAI(base_url=stopped.url, api_key="dummy", max_retries=0, timeout=5) as client,
        pytest.raises(ProviderError, match="cannot be reached"),
    ):
        OpenAILLM("test-model", client=client).choose(make_question())


def test_a_slow_server(server: ps.ProtocolServer, client: openai.OpenAI, make_question: MakeQuestion) -> None:
    server.script = [ps.SLOW]
    with pytest.raises(ProviderError, match="no answer came in time"):
        OpenAILLM("test-model", client=client.with_options(max_retries=0, timeout=0.05)).choose(make_question())


def test_the_sdk_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, formal_llm.llms.openai as adapter; assert 'openai' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("no_credentials")
@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_missing_key(key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "not for this")
    if key is not None:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(MissingKey, match=r"openai:test-model.*OPENAI_API_KEY.*'builtin'") as caught:
        resolve("openai:test-model")
    assert caught.value.variable == "OPENAI_API_KEY"


@pytest.mark.usefixtures("no_credentials")
def test_key_and_address_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    server.script = [ps.ok(3)]
    llm = resolve("openai:test-model")
    assert isinstance(llm, OpenAILLM)
    with llm.client:
        assert llm.choose(make_question()).number == 3
    assert server.headers[0]["authorization"] == "Bearer from-the-environment"
