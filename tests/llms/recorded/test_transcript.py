"""Recording what was asked and answered, and answering from it again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import (
    LLM,
    Answer,
    Budget,
    CachedLLM,
    Plan,
    Planner,
    Question,
    RandomLLM,
    RecordingLLM,
    ReplayLLM,
    ScriptedLLM,
    TaskPack,
    WeightedLLM,
)
from formal_llm.errors import AnswerFileError, InvalidAnswer, LLMError, NotRecorded, ProviderError
from formal_llm.llms import Message, TokenUsage, resolve

PACK = TaskPack.load("openagi")
QUESTION = Question("Which?", ["a", "b", "c"])
COST = TokenUsage(1, 100, 2, 30, 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "transcript.jsonl"


def record(path: Path, *given: tuple[Question, object]) -> None:
    """Write a transcript of questions and what is answered."""
    with RecordingLLM(ScriptedLLM(answer for _, answer in given), path) as llm:
        for question, _ in given:
            with suppress(InvalidAnswer):
                llm.choose(question)


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


# -- what is written ---------------------------------------------------------------------------------------------------


def test_a_line_has_the_question_the_answer_and_what_it_cost(path: Path) -> None:
    question = Question("Welche? 日本", ["ä", "b"], messages=[Message("system", "Be brief.")], walk="task 3")
    with RecordingLLM("test:first", path) as llm:
        llm.choose(question)
    record(path, (question, Answer((2,), {1: 0.1, 2: 0.9}, "Option 2", COST)))
    first, second = records(path)
    assert isinstance(first.pop("time"), str)
    assert first == {
        "format": "formal_llm.transcript/1",
        "llm": "test:first",
        "walk": "task 3",
        "messages": [["system", "Be brief."], ["user", "Welche? 日本"]],
        "options": [[1, "ä"], [2, "b"]],
        "several": False,
        "answer": {"numbers": [1], "text": "", "usage": {}},
    }
    assert second["llm"] == "ScriptedLLM"
    assert second["answer"] == {
        "numbers": [2],
        "probabilities": {"1": 0.1, "2": 0.9},
        "text": "Option 2",
        "usage": {"requests": 1, "input_tokens": 100, "output_tokens": 2, "cached_tokens": 30, "cache_write_tokens": 4},
    }
    assert "日本" in path.read_text(encoding="utf-8")


def test_bad_answers_are_recorded_and_failures_are_not(path: Path) -> None:
    def choose(question: Question) -> Answer:
        if next(calls) == 0:
            raise ProviderError("the line is dead")
        raise InvalidAnswer("it was cut off", [(question.prompt, "Opt")], COST)

    calls = count()
    with RecordingLLM(choose, path) as llm:
        with pytest.raises(ProviderError):
            llm.choose(QUESTION)
        with pytest.raises(InvalidAnswer, match="cut off"):
            llm.choose(QUESTION)
    (line,) = records(path)
    assert line["invalid"] == {
        "problem": "it was cut off",
        "texts": ["Opt"],
        "usage": {"requests": 1, "input_tokens": 100, "output_tokens": 2, "cached_tokens": 30, "cache_write_tokens": 4},
    }


def test_an_illegal_answer_is_a_bad_one(path: Path) -> None:
    class Model:
        def choose(self, question: Question) -> Answer:
            return Answer((4,), usage=COST)

    with RecordingLLM(Model(), path) as llm, pytest.raises(InvalidAnswer, match="4 is not one"):
        llm.choose(QUESTION)
    with pytest.raises(InvalidAnswer, match="4 is not one") as caught:
        ReplayLLM(path).choose(QUESTION)
    assert caught.value.usage == COST
    assert caught.value.transcript == (("Which?", "4"),)


def test_threads_write_whole_lines(path: Path) -> None:
    questions = [Question(f"{number}?" * 500, ["a", "b"], walk=str(number)) for number in range(400)]
    with RecordingLLM("test:random", path) as llm, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(llm.choose, questions))
    replay = ReplayLLM(path)
    assert [replay.choose(question) for question in questions] == answers
    assert replay.left == 0


# -- the file ----------------------------------------------------------------------------------------------------------


def test_a_transcript_is_continued(path: Path) -> None:
    record(path, (QUESTION, 1))
    record(path, (QUESTION, 2))
    replay = ReplayLLM(path)
    assert [replay.choose(QUESTION).number for _ in range(2)] == [1, 2]


def test_a_half_written_last_line_is_taken_off_wherever_it_was_cut(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    record(whole, (QUESTION, 1), (Question("Zweite? ü", ["ä", "ö"]), 2))
    text = whole.read_bytes()
    first = text.index(b"\n") + 1
    for cut in range(len(text)):
        path = tmp_path / "cut"
        path.write_bytes(text[:cut])
        kept = (cut >= first - 1) + (cut == len(text) - 1)
        assert ReplayLLM(path).left == kept
        record(path, (QUESTION, 3))
        assert ReplayLLM(path).left == kept + 1
        assert path.read_bytes().startswith(text[: first if kept else 0])


@pytest.mark.parametrize("text", ["Milk, eggs, bread", "Milk\neggs\n", "{}\n", '{"format": "formal_llm.walk/1"}\n'])
def test_a_file_of_something_else_is_left_alone(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(AnswerFileError, match="no transcript"):
        RecordingLLM("test:first", path)
    assert path.read_text() == text
    with pytest.raises(AnswerFileError, match=r":1: this line is no record") as caught:
        ReplayLLM(path)
    assert caught.value.line == 1


DAMAGE = [
    b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"format": "formal_llm.transcript/2"}',
    b'{"format": "formal_llm.transcript/1"}',
    b'{"format": "formal_llm.transcript/1", "messages": [], "options": [], "several": false}',
    b'{"format": "formal_llm.transcript/1", "messages": [], "options": [], "several": false, "walk": 3}',
    b'{"format": "formal_llm.transcript/1", "messages": [], "options": [], "several": false, "answer": 3}',
    b'{"format": "formal_llm.transcript/1", "messages": [], "options": [], "several": false, "invalid": {}}',
    b'{"format": "formal_llm.transcript/1", "messages": [], "options": [], "several": false,'
    b' "invalid": {"problem": "", "texts": [1]}}',
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: repr(damage[-40:]))
def test_a_damaged_line_is_told_with_its_place(path: Path, damage: bytes) -> None:
    record(path, *[(QUESTION, 1)] * 4)
    lines = path.read_bytes().split(b"\n")
    lines[2] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(AnswerFileError) as caught:
        ReplayLLM(path)
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert isinstance(caught.value, LLMError)


def test_files_that_are_not_there_or_cannot_be(tmp_path: Path) -> None:
    for make in (ReplayLLM, lambda name: RecordingLLM("test:first", name)):
        for name in (tmp_path, tmp_path / "missing" / "file"):
            with pytest.raises(AnswerFileError, match="cannot be"):
                make(name)  # type: ignore[operator]


WRITER = """
import sys
from itertools import count
from formal_llm import Question, RecordingLLM

with RecordingLLM("test:first", sys.argv[1]) as llm:
    for number in count(int(sys.argv[2])):
        llm.choose(Question(f"Question {number}? " * 200, ["a", "b"]))
        print(number, flush=True)
"""


def test_killing_the_writer_at_any_moment_loses_nothing(path: Path) -> None:
    answered = 0
    for lines in (0, 1, 7, 50, 500):
        arguments = [sys.executable, "-c", WRITER, str(path), str(answered)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(lines)]
            process.send_signal(signal.SIGKILL)
            said += process.stdout.readlines()
        answered += sum(line.endswith("\n") for line in said)
        if answered:
            replay = ReplayLLM(path)
            for number in range(answered):
                assert replay.choose(Question(f"Question {number}? " * 200, ["a", "b"])).number == 1
            assert replay.left <= 5


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit here")
def test_a_full_disk_leaves_whole_lines(path: Path) -> None:
    program = (
        "import resource, sys; from formal_llm import Question, RecordingLLM\n"
        "from formal_llm.errors import AnswerFileError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "llm = RecordingLLM('test:first', sys.argv[1])\n"
        "for _ in range(10):\n"
        "    try:\n"
        "        llm.choose(Question('Which?', ['a', 'b', 'c']))\n"
        "    except AnswerFileError as error:\n"
        "        print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True).stdout
    lines = records(path)
    assert 0 < len(lines) < 10
    assert told.count(str(path)) == 10 - len(lines)


# -- replaying ---------------------------------------------------------------------------------------------------------


def test_recordings_come_in_their_order_each_one_once(path: Path) -> None:
    record(path, (QUESTION, 3), (Question("And?", ["a", "b"]), 2), (QUESTION, 1), (QUESTION, "hm"), (QUESTION, 2))
    replay = ReplayLLM(path)
    assert [replay.choose(QUESTION).number for _ in range(2)] == [3, 1]
    with pytest.raises(InvalidAnswer, match="'hm' is not a number") as bad:
        replay.choose(QUESTION)
    assert bad.value.transcript == (("Which?", "hm"),)
    assert replay.choose(QUESTION).number == 2
    assert replay.left == 1
    with pytest.raises(NotRecorded, match=r"recorded 4 times and asked more often.*'Which\?'") as caught:
        replay.choose(QUESTION)
    assert (caught.value.question, caught.value.recorded) == (QUESTION, 4)
    assert isinstance(caught.value, LLMError)


def test_a_question_that_is_not_there_is_shown(path: Path) -> None:
    record(path, (QUESTION, 3))
    with pytest.raises(NotRecorded, match=r"walk '7' was not recorded; rules, wording and task .*'Who was it\?'"):
        ReplayLLM(path).choose(Question("Who was it?", ["a", "b"], walk="7"))


def test_each_walk_has_its_own_answers_first(path: Path) -> None:
    one, two, other = (Question("Which?", ["a", "b", "c"], walk=walk) for walk in ("1", "2", "3"))
    record(path, (one, 1), (two, 2), (one, 3), (two, 1))
    replay = ReplayLLM(path)
    assert [replay.choose(question).number for question in (two, one, other, QUESTION)] == [2, 1, 3, 1]
    for question in (one, two, other):
        with pytest.raises(NotRecorded):
            replay.choose(question)


def test_provider_string_and_identity(path: Path, tmp_path: Path) -> None:
    record(path, (QUESTION, 3))
    replay = resolve(f"replay:{path}")
    assert isinstance(replay, ReplayLLM)
    assert replay.name == f"replay:{path}"
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    assert ReplayLLM(copy).identity == replay.identity
    record(copy, (QUESTION, 3))
    assert ReplayLLM(copy).identity != replay.identity
    with CachedLLM(replay, tmp_path / "cache.db") as llm:
        assert llm.choose(QUESTION).number == llm.choose(QUESTION).number == 3


class Unreliable:
    """Another one's answers, with costs; one in seven is bad."""

    def __init__(self, inner: LLM) -> None:
        self._inner = inner
        self._calls = count(1)

    def choose(self, question: Question) -> Answer:
        cost = TokenUsage(1, next(self._calls), 1)
        if cost.input_tokens % 7 == 0:
            raise InvalidAnswer("it was cut off", [(question.prompt, "\ud800")], cost)
        answer = self._inner.choose(question)
        return Answer(answer.numbers, answer.probabilities, f"Option {answer.number}", cost)


def data(plan: Plan) -> dict[str, object]:
    """A plan as data, without the time it took."""
    found: dict[str, object] = json.loads(plan.to_json())
    assert isinstance(found["usage"], dict)
    del found["usage"]["seconds"]
    return found


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(0, 184), min_size=1, max_size=3),
    st.sampled_from(["on", "off"]),
    st.sampled_from(["random", "greedy", "sample", "best-first"]),
)
def test_replaying_a_recording_gives_the_same_plans(
    tmp_path_factory: pytest.TempPathFactory, seed: int, tasks: list[int], lookahead: Any, how: Any
) -> None:
    path = tmp_path_factory.mktemp("replay") / "transcript.jsonl"
    inner = RandomLLM(seed) if how == "random" else WeightedLLM(seed, sharpness=5)
    search: Any = "greedy" if how == "random" else how

    def plans(llm: LLM) -> list[dict[str, object]]:
        planner = Planner(
            PACK.cfg, llm, wording=PACK.wording, search=search, seed=seed, lookahead=lookahead, budget=Budget()
        )  # without lookahead, some plans take more questions than the 200 that a plan has by default
        return [data(planner.plan(PACK.task(number))) for number in tasks]

    with RecordingLLM(Unreliable(inner), path) as llm:
        recorded = plans(llm)
    replay = ReplayLLM(path)
    assert plans(replay) == recorded
    assert replay.left == 0


def test_other_rules_or_another_wording_are_told(path: Path) -> None:
    with RecordingLLM("test:first", path) as llm:
        Planner(PACK.cfg, llm, wording=PACK.wording).plan(PACK.task(3))
    with pytest.raises(NotRecorded, match="rules, wording and task must be those of the recording"):
        Planner(PACK.cfg, ReplayLLM(path), wording=PACK.wording).plan(PACK.task(150))


def test_many_walks_at_once_replay_each_with_its_own_answers(path: Path) -> None:
    rng = random.Random(1)

    async def model(question: Question) -> Answer:
        for _ in range(rng.randrange(20)):  # so that the walks answer in another order than they ask
            await asyncio.sleep(0)
        return Answer((rng.randrange(len(question.options)) + 1,), usage=TokenUsage(1, rng.randrange(1_000), 1))

    tasks = [PACK.task(number) for number in [5, 6, 7, 8] * 10]  # many walks ask the same, and are told otherwise

    def outcomes(llm: LLM) -> list[tuple[object, int]]:
        done = Planner(PACK.cfg, llm, wording=PACK.wording).plan_all(tasks)
        return [(outcome.plan.word, outcome.plan.usage.input_tokens) for outcome in done if outcome.plan is not None]

    with RecordingLLM(model, path) as llm:
        recorded = outcomes(llm)
    assert len(recorded) == 40
    replay = ReplayLLM(path)
    assert outcomes(replay) == recorded
    assert replay.left == 0


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_plain_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "transcript"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(AnswerFileError, match=f"this is a {kind}"):
        ReplayLLM(path)
    with pytest.raises(AnswerFileError, match=f"this is a {kind}"):
        RecordingLLM(ScriptedLLM([1]), path)
