"""SGLang's decisions: what is sent over HTTP, and what is read of what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from formal_llm.errors import InvalidAnswer, ProviderError
from formal_llm.llms import resolve
from formal_llm.llms.hosted.sglang import SGLangLLM
from formal_llm.llms.question import Question
from tests.llms.hosted import protocol_server as ps

MakeQuestion = Callable[..., Question]


@pytest.fixture
def llm(server: ps.ProtocolServer) -> Iterator[SGLangLLM]:
    made = SGLangLLM("test-model", base_url=server.url, api_key="dummy-key", timeout=5, max_retries=0)
    yield made
    made.client.close()


def page(*answers: dict[str, Any], usage: object = None) -> ps.Behaviour:
    return ps.Behaviour(page=json.dumps({"answers": answers, "usage": usage}))


def chose(name: str, choice: str, shares: object, **more: object) -> dict[str, Any]:
    return {"id": name, "type": "choice", "choice": choice, "probabilities": shares, "confidence": 0.4, **more}


def test_one_question(llm: SGLangLLM, server: ps.ProtocolServer, make_question: MakeQuestion) -> None:
    shares = {"1": 0.2, "2": 0.7, "3": 0.1}
    server.script = [page(chose("choice", "2", shares, label_mass=0.83), usage={"input_tokens": 9})]
    answer = llm.choose(make_question())
    assert (answer.number, answer.label_mass, answer.usage.input_tokens) == (2, 0.83, 9)
    assert answer.probabilities == pytest.approx({1: 0.2, 2: 0.7, 3: 0.1})
    assert server.paths == ["/v1/decisions"]
    body = server.bodies[0]
    assert body["model"] == "test-model" and body["input"][-1] == {"role": "user", "content": "Which one?"}
    (asked,) = body["questions"]
    assert asked["type"] == "choice" and asked["id"] == "choice"
    assert asked["options"][0] == {"name": "1", "description": "red"}
    assert server.headers[0]["authorization"] == "Bearer dummy-key"


def test_probabilities_as_a_list_and_awaited(llm: SGLangLLM, server: ps.ProtocolServer) -> None:
    pairs = [{"name": "1", "probability": 0.25}, {"name": "2", "probability": 0.75}]
    server.script = [page(chose("choice", "2", pairs))]

    async def ask() -> Any:
        try:
            return await llm.achoose(Question("Which?", ["a", "b"]))
        finally:
            await llm.aclose()

    answer = asyncio.run(ask())
    assert answer.probabilities == {1: 0.25, 2: 0.75} and answer.label_mass is None


@pytest.mark.parametrize("count", [27, 60, 676])
def test_two_levels(llm: SGLangLLM, server: ps.ProtocolServer, count: int) -> None:
    question = Question("Which?", [f"tool {number}" for number in range(count)])
    sizes, answers, wanted = -(-count // 26), [], {}
    for group in range(1, sizes + 1):
        members = range(count * (group - 1) // sizes + 1, count * group // sizes + 1)
        shares = {
            str(number): 2 * (place + 1) / (len(members) * (len(members) + 1)) for place, number in enumerate(members)
        }
        answers.append(chose(f"g{group}", str(members[-1]), shares, label_mass=0.5 + group / 100))
        for number in members:
            wanted[number] = shares[str(number)] * 2 * group / (sizes * (sizes + 1))
    outer = {f"g{group}": 2 * group / (sizes * (sizes + 1)) for group in range(1, sizes + 1)}
    server.script = [page(chose("group", f"g{sizes}", outer, label_mass=0.9), *answers)]
    found = llm.choose(question)
    assert found.probabilities == pytest.approx(wanted) and found.number == max(wanted, key=wanted.__getitem__)
    assert found.label_mass == min(0.9, 0.5 + sizes / 100) and len(server.paths) == 1
    asked = server.bodies[0]["questions"]
    assert len(asked) == sizes + 1 and all(2 <= len(one["options"]) <= 26 for one in asked)
    assert [o["name"] for one in asked[1:] for o in one["options"]] == [str(n) for n in range(1, count + 1)]


def test_several(llm: SGLangLLM, server: ps.ProtocolServer, make_question: MakeQuestion) -> None:
    said = [chose(str(n), "yes", {"yes": share, "no": 1 - share}) for n, share in ((1, 0.1), (2, 0.7), (3, 0.8))]
    server.script = [page(*said)]
    assert llm.choose(make_question(several=True)).numbers == (2, 3)
    assert "option 3: blue" in server.bodies[0]["questions"][2]["question"]


def test_refusals_and_nonsense(llm: SGLangLLM, server: ps.ProtocolServer, make_question: MakeQuestion) -> None:
    server.script = [page({"id": "choice", "type": "refusal"})]
    with pytest.raises(InvalidAnswer, match="refused"):
        llm.choose(make_question())
    server.script = [page(chose("choice", "7", {}))]
    with pytest.raises(InvalidAnswer, match="not the number of an option"):
        llm.choose(make_question())
    for strange in ([], [{"id": "other", "type": "choice"}], [7]):
        server.script = [ps.Behaviour(page=json.dumps({"answers": strange}))]
        with pytest.raises(ProviderError, match="cannot be read"):
            llm.choose(make_question())
    server.script = [page(chose("choice", "2", {"1": 0.9}, label_mass="x"))]
    answer = llm.choose(make_question())
    assert answer.probabilities is None and answer.label_mass is None


def test_too_many_options(llm: SGLangLLM) -> None:
    for count, several in ((1, False), (677, False), (129, True)):
        with pytest.raises(ProviderError, match="options"):
            llm.choose(Question("Which?", ["x"] * count, several=several))


def test_the_provider_string() -> None:
    made = resolve("sglang:a/b")
    assert isinstance(made, SGLangLLM) and made.name == "sglang:a/b"
    made.client.close()
