from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import anthropic
import protocol_server as ps
import pytest

from formal_llm.errors import InvalidAnswer, MissingKey, ProviderError
from formal_llm.llms.anthropic import AnthropicLLM
from formal_llm.llms.llm import ask, resolve
from formal_llm.llms.question import Question, TokenUsage

MakeQuestion = Callable[..., Question]
ONE = TokenUsage(1, ps.INPUT_TOKENS, ps.OUTPUT_TOKENS)


@pytest.fixture
def client(server: ps.ProtocolServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="dummy", max_retries=1, timeout=5) as client:
        yield client


@pytest.fixture
def llm(client: anthropic.Anthropic) -> AnthropicLLM:
    return AnthropicLLM("test-model", client=client, max_tokens=500)


def test_a_right_answer_and_what_was_sent_for_it(
    server: ps.ProtocolServer, llm: AnthropicLLM, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(2)]
    answer = llm.choose(make_question())
    assert answer.number == 2
    assert json.loads(answer.text) == {"choice": 2}
    # Tokens that went through the cache are counted too.
    assert answer.usage == ONE
    # The whole body: no sampling parameter, no system message among the messages, nothing begun for the assistant.
    assert server.bodies == [
        {
            "model": "test-model",
            "max_tokens": 500,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": "1: a"},
                {"role": "assistant", "content": "1"},
                {"role": "user", "content": "Which one?"},
            ],
            "output_config": {
                "format": {
                    "type": "json_schema",
                    "schema": {
                        "type": "object",
                        "properties": {"choice": {"type": "integer", "enum": [1, 2, 3]}},
                        "required": ["choice"],
                        "additionalProperties": False,
                    },
                }
            },
        }
    ]


def test_several(server: ps.ProtocolServer, llm: AnthropicLLM, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(3, 1, several=True)]
    assert llm.choose(make_question(several=True)).numbers == (3, 1)
    assert server.bodies[0]["output_config"]["format"]["schema"]["properties"] == {
        "choices": {"type": "array", "items": {"type": "integer", "enum": [1, 2, 3]}}
    }


def test_no_system_message_sends_none(server: ps.ProtocolServer, llm: AnthropicLLM) -> None:
    server.script = [ps.ok(1)]
    llm.choose(Question("Which one?", ["red"]))
    assert "system" not in server.bodies[0]


@pytest.mark.parametrize(
    ("behaviour", "problem", "said"),
    [
        (ps.REFUSAL, "it was refused", "I can't help with that."),
        (ps.TRUNCATED, "it was cut off at the limit of tokens", '{"choi'),
        (ps.EMPTY, "it was empty", ""),
        (ps.ok(4), "4 is not one of the numbers from 1 to 3", '{"choice": 4}'),
    ],
)
def test_what_is_no_answer(
    behaviour: ps.Behaviour,
    problem: str,
    said: str,
    server: ps.ProtocolServer,
    llm: AnthropicLLM,
    make_question: MakeQuestion,
) -> None:
    server.script = [behaviour]
    with pytest.raises(InvalidAnswer) as caught:
        llm.choose(make_question())
    assert caught.value.problem == problem
    assert caught.value.transcript == (("Which one?", said),)
    assert caught.value.usage == ONE


def test_a_bad_answer_is_asked_again_with_the_complaint(
    server: ps.ProtocolServer, llm: AnthropicLLM, make_question: MakeQuestion
) -> None:
    server.script = [ps.text("the green one"), ps.TRUNCATED, ps.ok(3)]
    answer = ask(llm, make_question())
    assert answer.number == 3
    assert answer.usage == ONE + ONE + ONE
    prompts = [body["messages"][-1]["content"] for body in server.bodies]
    assert prompts[0] == "Which one?"
    assert "'the green one' is not a number" in prompts[1]
    assert "it was cut off" in prompts[2]


def test_asking_again_is_bounded(server: ps.ProtocolServer, llm: AnthropicLLM, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(7), ps.REFUSAL, ps.ok(1)]
    with pytest.raises(InvalidAnswer) as caught:
        ask(llm, make_question(), tries=2)
    assert [said for _, said in caught.value.transcript] == ['{"choice": 7}', "I can't help with that."]
    assert caught.value.usage == ONE + ONE
    assert len(server.bodies) == 2


@pytest.mark.parametrize("failure", [ps.failing(500), ps.failing(429), ps.CUT])
def test_a_passing_failure_is_retried_by_the_sdk(
    failure: ps.Behaviour, server: ps.ProtocolServer, llm: AnthropicLLM, make_question: MakeQuestion
) -> None:
    server.script = [failure, ps.ok(2)]
    answer = llm.choose(make_question())
    assert answer.number == 2
    assert answer.usage == ONE
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("behaviour", "words", "cause"),
    [
        (ps.failing(400), "structured output.*status 400: said by the server", anthropic.BadRequestError),
        (ps.failing(401), "key was refused.*ANTHROPIC_API_KEY.*status 401", anthropic.AuthenticationError),
        (ps.failing(404), "no such model.*ANTHROPIC_BASE_URL.*status 404", anthropic.NotFoundError),
        (ps.failing(429), "too many requests.*max_retries.*status 429", anthropic.RateLimitError),
        (ps.failing(529), "server failed.*status 529", anthropic.InternalServerError),
        (ps.CUT, "cannot be reached.*ANTHROPIC_BASE_URL", anthropic.APIConnectionError),
        (ps.HTML, "cannot be read.*ANTHROPIC_BASE_URL", AttributeError),
        (ps.EMPTY_JSON, "cannot be read.*ANTHROPIC_BASE_URL", (AttributeError, TypeError)),
        (ps.BROKEN_JSON, "cannot be read.*ANTHROPIC_BASE_URL", json.JSONDecodeError),
    ],
)
def test_a_lasting_failure_is_a_provider_error(
    behaviour: ps.Behaviour,
    words: str,
    cause: type[Exception],
    server: ps.ProtocolServer,
    client: anthropic.Anthropic,
    make_question: MakeQuestion,
) -> None:
    server.script = [behaviour]
    with pytest.raises(ProviderError, match=f"^anthropic:test-model: .*{words}") as caught:
        ask(AnthropicLLM("test-model", client=client.with_options(max_retries=0)), make_question())
    assert isinstance(caught.value.cause, cause)
    assert caught.value.__cause__ is caught.value.cause
    # A failure of the provider is no bad answer: it is not asked again.
    assert len(server.bodies) == 1


def test_a_slow_server(server: ps.ProtocolServer, client: anthropic.Anthropic, make_question: MakeQuestion) -> None:
    server.script = [ps.SLOW]
    with pytest.raises(ProviderError, match="no answer came in time"):
        AnthropicLLM("test-model", client=client.with_options(max_retries=0, timeout=0.05)).choose(make_question())


def test_the_sdk_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, formal_llm.llms.anthropic as adapter; assert 'anthropic' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("no_credentials")
@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_missing_key(key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if key is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    with pytest.raises(MissingKey, match=r"anthropic:test-model.*ANTHROPIC_API_KEY.*'builtin'") as caught:
        resolve("anthropic:test-model")
    assert caught.value.variable == "ANTHROPIC_API_KEY"


@pytest.mark.usefixtures("no_credentials")
def test_a_credential_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_PROFILE", "there-is-none")
    with pytest.raises(ProviderError, match="anthropic:test-model") as caught:
        AnthropicLLM("test-model")
    assert isinstance(caught.value.cause, anthropic.AnthropicError)


@pytest.mark.usefixtures("no_credentials")
def test_key_and_address_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    server.script = [ps.ok(3)]
    llm = resolve("anthropic:test-model")
    assert isinstance(llm, AnthropicLLM)
    with llm.client:
        assert llm.choose(make_question()).number == 3
    assert server.headers[0]["authorization"] == "Bearer from-the-environment"
