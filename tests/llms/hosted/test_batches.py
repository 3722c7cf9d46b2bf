"""Questions in batches, against servers of both protocols, spoken to by the SDKs' own clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Planner, Prices
from formal_llm.errors import AnswerFileError, InvalidAnswer, LLMError, ProviderError, RunStopped
from formal_llm.llms import Answer, CachedLLM, Question, RecordingLLM
from formal_llm.llms.generation import Writing
from formal_llm.llms.hosted.anthropic import AnthropicLLM
from formal_llm.llms.hosted.batches import TRIES, AnthropicBatches, BatchedLLM, BatchWatch, OpenAIBatches
from formal_llm.llms.hosted.openai import OpenAILLM
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.drivers.answer_journal import AnswerJournal
from formal_llm.planning.drivers.batch import Keeping
from tests.llms.hosted.batch_server import CANCELLED, EXPIRED, LOST, BatchServer, Fate
from tests.llms.hosted.protocol_server import ProtocolServer, failing, ok, text
from tests.llms.hosted.protocols import FROM_CACHE, INPUT_TOKENS, INTO_CACHE, OUTPUT_TOKENS

ONE = TokenUsage(1, INPUT_TOKENS, OUTPUT_TOKENS, FROM_CACHE, INTO_CACHE)
QUICK = (0.01, 0.02)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def make_adapter(provider: str, url: str, **more: Any) -> OpenAILLM | AnthropicLLM:
    settings: dict[str, Any] = {"api_key": "dummy-key-of-tests", "max_retries": 0, **more}
    if provider == "openai":
        return OpenAILLM("test-model", base_url=f"{url}/v1", **settings)
    return AnthropicLLM("test-model", base_url=url, **settings)


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make(provider: str) -> Callable[..., BatchedLLM]:
    """A function that makes a model in batches on a server."""

    def make(server: BatchServer, file: Path | None = None, **more: Any) -> BatchedLLM:
        adapter = make_adapter(provider, server.url, **more)
        return BatchedLLM(adapter, BatchWatch(file, interval=QUICK))

    return make


def questions(count: int) -> list[Question]:
    return [Question(f"Which one of {n}?", ["red", "green", "blue"], walk=str(n)) for n in range(count)]


def third_by_number(body: dict[str, Any], _: int) -> Fate:
    """The answer depends on the question."""
    number = int(json.dumps(body["messages"]).split(" of ")[1].split("?")[0])
    return ok(number % 3 + 1)


def test_a_round_is_one_batch(make: Callable[..., BatchedLLM]) -> None:
    with BatchServer(third_by_number, looks=3) as server, make(server) as llm:
        seen: list[str] = []
        llm.watch.report = seen.append
        answers = llm.choose_many(questions(20))
        assert [answer.numbers for answer in answers] == [(n % 3 + 1,) for n in range(20)]  # type: ignore[union-attr]
        assert {answer.usage for answer in answers} == {ONE}  # type: ignore[union-attr]
        assert len(server.batches) == 1
        assert len(seen) == 2
        assert "20 of 20 answered" in seen[-1]
        assert "batch 1 of 1" in seen[-1]


def test_requests_are_those_without_batches(provider: str, server: ProtocolServer) -> None:
    asked = [
        Question("Which?", ["a", "b"]),
        Question("Which of these?", ["a", "b", "c"], several=True),
        Writing("Write this.", max_tokens=17, stop=("END",), temperature=0.5),
        Writing("Write that.", schema=SCHEMA),
    ]
    llm = make_adapter(provider, server.url)
    server.script = [ok(1), ok(1, 2), text("done END of it"), text('{"a": "b"}')]
    expected = [llm.choose(one) if not isinstance(one, Writing) else one.written_by(llm) for one in asked]
    fates = [*(ok(1), ok(1, 2), text("done END of it"), text('{"a": "b"}'))]

    def answer(body: dict[str, Any], _: int) -> Fate:
        return fates[[json.dumps(one) for one in server.bodies].index(json.dumps(body))]

    with BatchServer(answer) as batches:
        adapter = make_adapter(provider, batches.url)
        with closing(BatchedLLM(adapter, BatchWatch(interval=QUICK))) as batched:
            found = batched.choose_many(asked)
            assert batched.identity == {**llm.identity, "address": batched.identity["address"]}
        assert batches.bodies == server.bodies
    assert found == expected
    llm.client.close()
    adapter.client.close()


def test_only_what_failed_is_asked_again(make: Callable[..., BatchedLLM]) -> None:
    fates: list[Fate] = [EXPIRED, failing(429), failing(529), LOST, ok(2)]

    def answer(body: dict[str, Any], before: int) -> Fate:
        number = third_by_number(body, 0).numbers[0]  # type: ignore[union-attr]
        return fates[int(json.dumps(body["messages"]).split(" of ")[1].split("?")[0])] if before == 0 else ok(number)

    with BatchServer(answer) as server, make(server) as llm:
        answers = llm.choose_many(questions(5))
        assert [answer.numbers[0] for answer in answers] == [1, 2, 3, 1, 2]  # type: ignore[union-attr]
        assert [len(batch.requests) for batch in server.batches.values()] == [5, 4]


def test_what_fails_again_and_again_fails(make: Callable[..., BatchedLLM]) -> None:
    def answer(body: dict[str, Any], _: int) -> Fate:
        said = json.dumps(body["messages"])
        return EXPIRED if " of 0?" in said else failing(500) if " of 1?" in said else ok(3)

    with BatchServer(answer) as server, make(server) as llm:
        expired, failed, answered = llm.choose_many(questions(3))
        assert isinstance(expired, ProviderError)
        assert "expired" in str(expired)
        assert isinstance(failed, ProviderError)
        assert "said by the server" in str(failed)
        assert isinstance(answered, Answer)
        assert len(server.batches) == TRIES


def test_refusals_are_not_asked_again(make: Callable[..., BatchedLLM]) -> None:
    """A request that is refused, one that was cancelled, and one whose answer is no option."""
    fates: list[Fate] = [failing(400, message="no such model"), CANCELLED, ok(9), text("hm", stop="refusal")]

    def answer(body: dict[str, Any], _: int) -> Fate:
        return fates[int(json.dumps(body["messages"]).split(" of ")[1].split("?")[0])]

    with BatchServer(answer) as server, make(server) as llm:
        refused, cancelled, illegal, declined = llm.choose_many(questions(4))
        assert isinstance(refused, ProviderError)
        assert "no such model" in str(refused)
        assert "cancelled" in str(cancelled)
        assert isinstance(illegal, InvalidAnswer)
        assert illegal.usage == ONE
        assert isinstance(declined, InvalidAnswer)
        assert len(server.batches) == 1


def test_a_batch_that_is_refused_as_a_whole() -> None:
    with BatchServer() as server:
        server.refuse = "Enqueued token limit reached"
        with closing(BatchedLLM(make_adapter("openai", server.url), BatchWatch(interval=QUICK))) as llm:
            for outcome in llm.choose_many(questions(2)):
                assert "Enqueued token limit reached" in str(outcome)
                assert "give a concurrency" in str(outcome)
        assert len(server.batches) == 1


def test_probabilities_that_are_refused_are_left_out() -> None:
    def answer(body: dict[str, Any], _: int) -> Fate:
        return failing(400, message="logprobs are not supported") if "logprobs" in body else ok(2)

    with BatchServer(answer) as server:
        llm = BatchedLLM(make_adapter("openai", server.url), BatchWatch(interval=QUICK))
        with pytest.warns(UserWarning, match="no token probabilities"):
            answers = llm.choose_many(questions(3))
        assert [answer.numbers for answer in answers] == [(2,)] * 3  # type: ignore[union-attr]
        assert [len(batch.requests) for batch in server.batches.values()] == [3, 3]
        llm.choose_many(questions(1))
        assert len(server.batches) == 3
        llm.close()


GARBLED = [lambda _: b"<html>", lambda content: content[:-40], lambda _: b'[]\n7\n{"custom_id": 3}\n{}']


@pytest.mark.parametrize("garble", GARBLED)
def test_replies_that_cannot_be_read_are_asked_for_again(make: Callable[..., BatchedLLM], garble: Any) -> None:
    with BatchServer(third_by_number) as server, make(server) as llm:
        server.garble = garble
        asked = 0

        def answer(body: dict[str, Any], before: int) -> Fate:
            nonlocal asked
            asked += 1
            if before:
                server.garble = lambda content: content
            return third_by_number(body, before)

        server.answer = answer
        answers = llm.choose_many(questions(4))
        assert all(isinstance(answer, Answer) for answer in answers), answers
        assert len(server.batches) == 2


def test_large_rounds_are_split(make: Callable[..., BatchedLLM], monkeypatch: pytest.MonkeyPatch) -> None:
    for service in (OpenAIBatches, AnthropicBatches):
        monkeypatch.setattr(service, "most_requests", 3)
    with BatchServer(third_by_number) as server, make(server) as llm:
        assert llm.together == 3
        assert [one.numbers[0] for one in llm.choose_many(questions(7))] == [1, 2, 3, 1, 2, 3, 1]  # type: ignore[union-attr]
        assert [len(batch.requests) for batch in server.batches.values()] == [3, 3, 1]
        size = max(len(line) for line in server.files.values()) if server.files else 2_000
        for service in (OpenAIBatches, AnthropicBatches):
            monkeypatch.setattr(service, "most_bytes", max(size // 2, 700))
        llm.choose_many(questions(4))
        assert len(server.batches) > 4


def test_a_single_question_and_texts(make: Callable[..., BatchedLLM]) -> None:
    with BatchServer(lambda body, _: text("written") if "Write" in json.dumps(body) else ok(2)) as server:
        with make(server) as llm:
            assert llm.choose(questions(1)[0]).numbers == (2,)
            assert llm.generate("Write!").text == "written"
            assert repr(llm).endswith("test-model>")
        with pytest.raises(InvalidAnswer):
            make(server).generate_object("Write!", SCHEMA)


def test_who_is_not_asked_in_batches() -> None:
    with pytest.raises(LLMError, match="is not asked in batches: openai:MODEL and anthropic:MODEL are"):
        BatchedLLM("test:first")


# -- stopped, killed, continued -----------------------------------------------------------------------------------


def test_a_stopped_run_fetches_its_answers_later(make: Callable[..., BatchedLLM], tmp_path: Path) -> None:
    file = tmp_path / "ids"
    with BatchServer(third_by_number, looks=10_000) as server:
        first = make(server, file)
        first.watch.report = lambda _: first.watch.stop.set()
        with first, pytest.raises(RunStopped):
            first.choose_many(questions(6))
        assert json.loads(file.read_text())["batches"] == ["batch_1"]
        server.batches["batch_1"].looks = server.looks = 0
        with make(server, file) as second:
            answers = second.choose_many(questions(4))  # the others are asked later
            assert [one.numbers[0] for one in answers] == [1, 2, 3, 1]  # type: ignore[union-attr]
            assert file.exists()
            assert [one.numbers[0] for one in second.choose_many(questions(7)[4:])] == [2, 3, 1]  # type: ignore[union-attr]
        assert not file.exists()
        # The seventh question is new.
        assert [len(batch.requests) for batch in server.batches.values()] == [6, 1]


def test_ids_are_kept_until_their_answers_are_used(make: Callable[..., BatchedLLM], tmp_path: Path) -> None:
    file = tmp_path / "ids"
    with BatchServer() as server:
        llm = make(server, file)
        llm.choose_many(questions(2))
        assert json.loads(file.read_text())["batches"] == ["batch_1"]  # the caller may not have kept them yet
        llm.choose_many(questions(1))
        assert json.loads(file.read_text())["batches"] == ["batch_2"]
        with pytest.raises(ZeroDivisionError), llm:
            _ = 1 / 0
        assert file.exists()
        llm.close()
        assert not file.exists()


def test_a_batch_that_is_gone_is_asked_anew(make: Callable[..., BatchedLLM], tmp_path: Path) -> None:
    file = tmp_path / "ids"
    file.write_text('{"format": "formal_llm.batches/1", "batches": ["batch_77"]}')
    with (
        BatchServer() as server,
        make(server, file) as llm,
        pytest.warns(UserWarning, match="batch_77 of an earlier run is gone"),
    ):
        assert all(isinstance(one, Answer) for one in llm.choose_many(questions(2)))


NO_IDS = ["", "[]", '{"format": "other", "batches": []}', '{"format": "formal_llm.batches/1", "batches": [3]}']


@pytest.mark.parametrize("content", NO_IDS)
def test_a_file_of_something_else(content: str, tmp_path: Path) -> None:
    file = tmp_path / "ids"
    file.write_text(content)
    with pytest.raises(AnswerFileError, match="no file of batches"):
        BatchedLLM(make_adapter("openai", "http://127.0.0.1:9"), BatchWatch(file))


def test_cancelling(make: Callable[..., BatchedLLM], tmp_path: Path) -> None:
    def answer(body: dict[str, Any], before: int) -> Fate:
        return EXPIRED if " of 1?" in json.dumps(body) and not before else third_by_number(body, 0)

    with BatchServer(answer, looks=10_000) as server:
        llm = make(server, tmp_path / "ids")
        llm.watch.report = lambda _: llm.watch.stop.set()
        with pytest.raises(RunStopped):
            llm.choose_many(questions(3))
        llm.cancel()
        assert server.batches["batch_1"].cancelled
        server.batches["batch_1"].looks = 0
        llm.watch.stop.clear()
        answered, cancelled, other = llm.choose_many(questions(3))
        assert isinstance(answered, Answer)
        assert isinstance(other, Answer)
        assert "cancelled" in str(cancelled)
        assert len(server.batches) == 1
        llm.close()


# -- failures around a batch --------------------------------------------------------------------------------------


def test_looks_that_fail_for_good_end_the_run(make: Callable[..., BatchedLLM], tmp_path: Path) -> None:
    with BatchServer(third_by_number) as server:
        llm = make(server, tmp_path / "ids")
        creations = 2 if "Open" in type(llm._service).__name__ else 1
        server.statuses = [*[200] * creations, 401]
        with llm, pytest.raises(ProviderError, match="key was refused") as failure:
            llm.choose_many(questions(2))
        assert "dummy-key" not in repr(failure.value.cause)
        assert (tmp_path / "ids").exists()
        llm = make(server, tmp_path / "ids")
        server.statuses = [500] * 100
        with llm, pytest.raises(ProviderError, match="status 500"):
            llm.choose_many(questions(2))
        server.statuses = []
        with make(server, tmp_path / "ids") as llm:
            assert len(llm.choose_many(questions(2))) == 2
        assert len(server.batches) == 1


def test_a_batch_is_not_created_twice(make: Callable[..., BatchedLLM]) -> None:
    with BatchServer(third_by_number) as server, make(server, max_retries=2) as llm:
        creation = "POST /v1/batches" if "Open" in type(llm._service).__name__ else "POST /v1/messages/batches"
        before = 1 if creation == "POST /v1/batches" else 0
        server.statuses = [*[200] * before, 500, 500]
        with pytest.raises(ProviderError, match="status 500"):
            llm.choose_many(questions(2))
        assert server.paths.count(creation) == 1


@pytest.mark.parametrize("page", [b"<html>", b"[]", b"{}", b'{"id": 3}', b'{"id": ""}'])
def test_pages_instead_of_a_batch(
    make: Callable[..., BatchedLLM], page: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BatchServer() as server, make(server) as llm:
        monkeypatch.setattr(server, "respond", lambda *_: (200, page))
        with pytest.raises(ProviderError):
            llm.choose_many(questions(1))


# -- planning -----------------------------------------------------------------------------------------------------

RULES = CFG.from_string("S -> wash S | iron S | dry S | fold\n%limit 1")


def test_all_walks_advance_by_one_question_a_batch(make: Callable[..., BatchedLLM]) -> None:
    tasks = [f"shirt of {n}?" for n in range(30)]
    with BatchServer(lambda _, __: ok(1)) as server, make(server) as llm:
        planner = Planner(RULES, llm, prices=Prices(2, 8).scaled(0.5))
        outcomes = planner.plan_all(tasks)
        assert {outcome.unwrap().word for outcome in outcomes} == {("wash", "iron", "dry", "fold")}
        assert [len(batch.requests) for batch in server.batches.values()] == [30, 30, 30]
        usage = outcomes[0].usage
        assert usage.cost == pytest.approx(usage.input_tokens / 1e6 + 4 * usage.output_tokens / 1e6)


def test_a_journal_and_ids_together_lose_nothing(make: Callable[..., BatchedLLM], tmp_path: Path) -> None:
    """Ended in the second round without any notice; the next run asks nothing again."""
    tasks = [f"shirt {n}" for n in range(8)]
    file, journal = tmp_path / "ids", tmp_path / "journal"
    with BatchServer(lambda _, __: ok(1), looks=0) as server:
        llm = make(server, file)

        def die(_: str) -> None:
            if len(server.batches) == 2:
                raise KeyboardInterrupt

        llm.watch.report = die
        with closing(AnswerJournal(journal, "r")) as kept, pytest.raises(KeyboardInterrupt):
            list(Planner(RULES, llm).plan_each(tasks, keeping=Keeping(kept)))
        with closing(AnswerJournal(journal, "r")) as kept, make(server, file) as again:
            outcomes = list(Planner(RULES, again).plan_each(tasks, keeping=Keeping(kept)))
        assert all(outcome.plan is not None for outcome in outcomes)
        assert [len(batch.requests) for batch in server.batches.values()] == [8, 8, 8]
        assert sum(outcome.usage.requests for outcome in outcomes) == 24


def test_caches_and_transcripts_of_batches(make: Callable[..., BatchedLLM], tmp_path: Path) -> None:
    with BatchServer() as server, make(server) as llm:
        with CachedLLM(llm, tmp_path / "cache") as cached, RecordingLLM(cached, tmp_path / "t.jsonl") as recorded:
            assert recorded.together == llm.together
            for _ in range(2):
                outcomes = Planner(RULES, recorded).plan_all(["shirt 0", "shirt 1"])
                assert all(outcome.plan is not None for outcome in outcomes)
            assert cached.stats.misses == 6
        assert len(server.batches) == 3
