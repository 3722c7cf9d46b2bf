"""The cache of answers: on real files, with real threads, processes and event loops."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import (
    Answer,
    AnswerFileError,
    AsyncLLM,
    BatchLLM,
    CachedLLM,
    InvalidAnswer,
    LLMError,
    Planner,
    ProviderError,
    Question,
    TaskPack,
    WeightedLLM,
)
from formal_llm.llms import Message, TokenUsage, ask
from formal_llm.llms.recorded.answer_data import answer_from_data, answer_to_data, read_json

QUESTION = Question("Which?", ["a", "b", "c"])
COST = TokenUsage(1, 100, 2, 30, 4)


class Model:
    """Answers 2, and counts."""

    def __init__(self, numbers: tuple[int, ...] = (2,), **settings: object) -> None:
        self.asked: list[Question] = []
        self.numbers = numbers
        self.identity = {"llm": "test:model", **settings}

    def choose(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(self.numbers, {1: 0.25, 2: 0.7500000000000001}, "Option 2", COST)


class AsyncModel(Model):
    """Answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self.let_go = asyncio.Event()

    async def achoose(self, question: Question) -> Answer:
        answer = self.choose(question)
        await self.let_go.wait()
        return answer

    async def aclose(self) -> None:
        self.closed = True


class BatchModel(Model):
    """Answers many together."""

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | InvalidAnswer]:
        self.batches = [*getattr(self, "batches", []), len(questions)]
        return [self.choose(question) for question in questions]


class BothModel(AsyncModel, BatchModel):
    """Can do both."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.db"


def integrity(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()


# -- what it keeps ----------------------------------------------------------------------------------------------------


def test_an_answer_is_paid_for_once_and_outlives_the_process(path: Path) -> None:
    model = Model()
    with CachedLLM(model, path) as llm:
        assert llm.choose(QUESTION) == Answer((2,), {1: 0.25, 2: 0.7500000000000001}, "Option 2", COST)
        again = llm.choose(QUESTION)
        assert again == Answer((2,), {1: 0.25, 2: 0.7500000000000001}, "Option 2", TokenUsage())
        assert (llm.stats.hits, llm.stats.misses, llm.stats.saved, len(llm)) == (1, 1, COST, 1)
    assert len(model.asked) == 1
    with CachedLLM(Model(), path) as llm:
        assert llm.choose(QUESTION) == again
        assert (llm.stats.hits, llm.stats.misses, llm.stats.saved) == (1, 0, COST)


@pytest.mark.parametrize(
    "other",
    [
        Question("Which one?", ["a", "b", "c"]),
        Question("Which?", ["a", "b", "d"]),
        Question("Which?", ["a", "b", "c"], several=True),
        Question("Which?", ["a", "b", "c"], messages=[Message("system", "Be brief.")]),
        QUESTION.again("it was empty"),
    ],
)
def test_another_question_is_asked(path: Path, other: Question) -> None:
    with CachedLLM(model := Model(), path) as llm:
        llm.choose(QUESTION)
        llm.choose(other)
    assert len(model.asked) == 2


def test_who_asks_does_not_matter(path: Path) -> None:
    with CachedLLM(model := Model(), path) as llm:
        llm.choose(QUESTION)
        llm.choose(Question("Which?", ["a", "b", "c"], walk="7", task="something"))
    assert len(model.asked) == 1


def test_another_model_other_settings_or_another_name_are_asked(path: Path) -> None:
    models = [Model(), Model(temperature=0), Model(temperature=1), Model(), Model()]
    names = [None, None, None, "first", "second"]
    for model, name in zip(models, names, strict=True):
        with CachedLLM(model, path, name=name) as llm:
            llm.choose(QUESTION)
            assert llm.stats.misses == 1
    with CachedLLM(models[0], path) as llm:
        assert len(llm) == 5


def test_an_llm_without_an_identity_needs_a_name(path: Path) -> None:
    with pytest.raises(ValueError, match=r"FunctionLLM has no identity.*name="):
        CachedLLM(lambda question: 1, path)
    assert not path.exists()
    with CachedLLM(lambda question: 1, path, name="first") as llm:
        assert llm.choose(QUESTION).number == 1
        assert llm.identity == {"name": "first"}


def test_bad_answers_are_not_kept(path: Path) -> None:
    with CachedLLM(model := Model((4,)), path) as llm:
        for asked in (1, 2):
            with pytest.raises(InvalidAnswer, match="4 is not one") as caught:
                llm.choose(QUESTION)
            assert caught.value.usage == COST
            assert (len(model.asked), len(llm)) == (asked, 0)


def test_what_is_asked_again_after_a_bad_answer_is_another_question(path: Path) -> None:
    replies = iter(["hm", "2"])
    with CachedLLM(lambda question: question.read(next(replies)), path, name="f") as llm:
        assert ask(llm, QUESTION).number == 2
        assert (llm.stats.misses, len(llm)) == (2, 1)


def test_an_answer_to_which_this_question_objects_is_asked_anew(path: Path) -> None:
    model = Model((1, 2))
    with CachedLLM(model, path) as llm:
        llm.choose(Question("Which?", ["a", "b"], several=True))
        model.numbers = (1,)
        objecting = Question("Which?", ["a", "b"], several=True, objection=lambda n: "no" if len(n) > 1 else "")
        assert llm.choose(objecting).numbers == (1,)


def test_failures_go_through_and_are_not_kept(path: Path) -> None:
    class Down(Model):
        def choose(self, question: Question) -> Answer:
            raise ProviderError("the line is dead")

    with CachedLLM(Down(), path) as llm:
        for _ in range(2):
            with pytest.raises(ProviderError):
                llm.choose(QUESTION)
        assert (llm.stats.misses, len(llm)) == (2, 0)


def test_texts_of_all_kinds(path: Path) -> None:
    question = Question("Welche? \ud800 \x00 \u2028 日本", ["ä", "😀"])
    with CachedLLM(lambda _: Answer((2,), None, "\udc80 \x00 ü"), path, name="f") as llm:
        assert llm.choose(question) == llm.choose(question)
        assert llm.stats.hits == 1


@pytest.mark.parametrize("model", [Model, AsyncModel, BatchModel, BothModel])
def test_it_can_be_asked_in_the_ways_of_the_one_behind(path: Path, model: type[Model]) -> None:
    behind = model()
    with CachedLLM(behind, path) as llm:
        assert isinstance(llm, AsyncLLM) == isinstance(behind, AsyncLLM)
        assert isinstance(llm, BatchLLM) == isinstance(behind, BatchLLM)
        assert hasattr(llm, "aclose") == isinstance(behind, AsyncLLM)


def test_plans_are_the_same_with_a_cache(path: Path) -> None:
    pack = TaskPack.load("openagi")
    plain = [Planner(pack.cfg, WeightedLLM(3)).plan(pack.task(number)).word for number in range(10)]
    for misses in (True, False):
        with CachedLLM(WeightedLLM(3), path, name="weighted 3") as llm:
            planner = Planner(pack.cfg, llm)
            assert [planner.plan(pack.task(number)).word for number in range(10)] == plain
            assert bool(llm.stats.misses) == misses


# -- one flight --------------------------------------------------------------------------------------------------------


def test_coroutines_with_the_same_question_wait_for_one_answer(path: Path) -> None:
    async def main() -> None:
        model = AsyncModel()
        with CachedLLM(model, path) as llm:
            asking = [asyncio.create_task(llm.achoose(QUESTION)) for _ in range(50)]
            other = asyncio.create_task(llm.achoose(Question("And?", ["a", "b"])))
            await asyncio.sleep(0.01)
            assert len(model.asked) == 2
            model.let_go.set()
            answers = await asyncio.gather(*asking)
            assert [answer.usage for answer in answers] == [COST, *[TokenUsage()] * 49]
            assert {answer.number for answer in answers} == {(await other).number} == {2}
            assert (llm.stats.hits, llm.stats.misses, llm.stats.saved.requests) == (49, 2, 49)
            await llm.aclose()
            assert model.closed

    asyncio.run(main())


def test_when_the_one_who_asks_is_cancelled_another_one_asks(path: Path) -> None:
    async def main() -> None:
        model = AsyncModel()
        with CachedLLM(model, path) as llm:
            asking = [asyncio.create_task(llm.achoose(QUESTION)) for _ in range(3)]
            await asyncio.sleep(0.01)
            asking[0].cancel()
            asking[1].cancel()
            await asyncio.sleep(0.01)
            assert len(model.asked) == 2
            model.let_go.set()
            assert (await asking[2]).number == 2
            assert not llm._flights

    asyncio.run(main())


def test_a_bad_answer_is_shared_and_paid_for_once(path: Path) -> None:
    async def main() -> None:
        model = AsyncModel()
        model.numbers = (9,)
        with CachedLLM(model, path) as llm:
            asking = [asyncio.create_task(llm.achoose(QUESTION)) for _ in range(3)]
            await asyncio.sleep(0.01)
            model.let_go.set()
            errors = await asyncio.gather(*asking, return_exceptions=True)
            assert [type(error) for error in errors] == [InvalidAnswer] * 3
            costs = [error.usage for error in errors if isinstance(error, InvalidAnswer)]
            assert costs == [COST, None, None]
            assert len(model.asked) == 1

    asyncio.run(main())


def test_threads_with_the_same_question_wait_for_one_answer(path: Path) -> None:
    class Slow(Model):
        def choose(self, question: Question) -> Answer:
            time.sleep(0.05)
            return super().choose(question)

    with CachedLLM(model := Slow(), path) as llm, ThreadPoolExecutor(16) as pool:
        questions = [Question(f"Which {number % 4}?", ["a", "b"]) for number in range(64)]
        answers = list(pool.map(llm.choose, questions))
        assert len(model.asked) == 4
        assert sum((answer.usage for answer in answers), TokenUsage()).requests == 4
        assert (llm.stats.hits, llm.stats.misses) == (60, 4)


def test_a_batch_asks_what_is_not_known_and_each_question_once(path: Path) -> None:
    model = BatchModel()
    others = [Question(f"{number}?", ["a", "b"]) for number in range(3)]
    with CachedLLM(model, path) as llm:
        llm.choose(others[0])
        answers = llm.choose_many([others[0], others[1], others[1], QUESTION])
        assert [answer.usage.requests for answer in answers if isinstance(answer, Answer)] == [0, 1, 0, 1]
        assert model.batches == [2]
        assert len(llm.choose_many(others[:2])) == 2
        assert model.batches == [2]  # nothing was left to ask
        model.numbers = (9,)
        bad = llm.choose_many([others[2], others[2]])
        assert [type(error) for error in bad] == [InvalidAnswer] * 2
        assert [error.usage for error in bad] == [COST, None]
        assert len(llm) == 3


# -- damage ------------------------------------------------------------------------------------------------------------

DAMAGE: list[Any] = [
    None, 7, 2.5, "", "{", "null", "[]", "7", '{"numbers": "2"}', '{"numbers": [true]}', '{"numbers": []}',
    '{"numbers": [4]}', '{"numbers": [2], "probabilities": [1]}', '{"numbers": [2], "probabilities": {"x": 1}}',
    '{"numbers": [2], "probabilities": {"1": 1' + "0" * 400 + "}}", '{"numbers": [2], "text": 5}',
    '{"numbers": [2], "usage": {"requests": -1}}', '{"numbers": [2], "usage": {"pages": 1}}', b"\xff\xfe", b"",
    "[" * 100_000, '{"numbers": [' + "9" * 5_000 + "]}",
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: repr(damage)[:40])
def test_a_damaged_entry_counts_as_none_and_is_replaced(path: Path, damage: Any) -> None:
    with CachedLLM(Model(), path) as llm:
        llm.choose(QUESTION)
    for value in (damage, sqlite3.Binary(damage.encode()) if isinstance(damage, str) else damage):
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE answers SET answer = ?", (value,))
        connection.close()
        with CachedLLM(model := Model(), path) as llm:
            assert llm.choose(QUESTION).usage == COST
            assert llm.choose(QUESTION).usage == TokenUsage()
            assert (len(model.asked), len(llm)) == (1, 1)


KEYS = st.sampled_from(["numbers", "probabilities", "text", "usage", "requests", "1"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@given(JSON)
def test_reading_an_answer_fails_with_nothing_but_a_value_error(data: object) -> None:
    try:
        answer = answer_from_data(data)
    except ValueError:
        return
    assert answer_from_data(answer_to_data(answer)) == answer or answer.probabilities  # which may hold a NaN


def test_json_that_is_none_is_a_value_error() -> None:
    for text in ("", "{", b"\xff", "[" * 200_000):
        with pytest.raises(ValueError):
            read_json(text)


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_text("Milk, eggs, bread\n" * 100)
    with pytest.raises(AnswerFileError, match="no SQLite database") as caught:
        CachedLLM(Model(), path)
    assert isinstance(caught.value, LLMError)
    assert caught.value.file == str(path)
    assert path.read_text() == "Milk, eggs, bread\n" * 100


def test_a_database_of_something_else_is_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE answers (key, answer)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(AnswerFileError, match="belongs to something else"):
        CachedLLM(Model(), path)
    assert path.read_bytes() == before


def test_a_cache_of_a_later_version(path: Path) -> None:
    CachedLLM(Model(), path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(AnswerFileError, match="version 9"):
        CachedLLM(Model(), path)


def test_an_empty_file_is_a_new_cache(path: Path) -> None:
    path.touch()
    with CachedLLM(Model(), path) as llm:
        assert len(llm) == 0


@pytest.mark.parametrize("name", ["", "missing/answers.db"])
def test_a_place_where_no_file_can_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(AnswerFileError, match="cannot be opened"):
        CachedLLM(Model(), tmp_path / name)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder in which nothing can be written, with a cache in it; also where root runs the tests."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        CachedLLM(Model(), folder / "answers.db").close()
        (folder / "answers.db").chmod(0o444)
        folder.chmod(0o555)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o700)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have other rights here")
def test_a_place_that_cannot_be_written_to(read_only: Path) -> None:
    with pytest.raises(AnswerFileError, match="cannot be opened"):
        CachedLLM(Model(), read_only / "new.db")
    with pytest.raises(AnswerFileError, match="writable"):
        CachedLLM(Model(), read_only / "answers.db")


def test_a_file_that_is_damaged_while_it_is_used(path: Path) -> None:
    with CachedLLM(Model(), path) as llm:
        for number in range(200):
            llm.choose(Question(f"{number}?" * 50, ["a", "b"]))
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    with CachedLLM(Model(), path) as llm, pytest.raises(AnswerFileError, match="damaged; delete it"):
        llm.choose(QUESTION)


def test_a_closed_cache_says_so_and_a_forgotten_one_is_closed(path: Path) -> None:
    llm = CachedLLM(Model(), path)
    llm.close()
    llm.close()
    with pytest.raises(AnswerFileError, match="closed"):
        llm.choose(QUESTION)
    forgotten = CachedLLM(Model(), path)
    forgotten.choose(QUESTION)
    log = Path(f"{path}-wal")
    assert log.exists()
    del forgotten
    gc.collect()
    assert not log.exists()


# -- processes ---------------------------------------------------------------------------------------------------------

WRITER = """
import sys
from formal_llm import Answer, CachedLLM, Question
from formal_llm.llms import TokenUsage

path, first, last, name = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with CachedLLM(lambda question: Answer((2,), text=name, usage=TokenUsage(1, 7)), path, name="model") as llm:
    for number in range(first, last):
        llm.choose(Question(f"Question {number}? " * 20, ["a", "b"]))
        print(number, flush=True)
"""


def question(number: int) -> Question:
    return Question(f"Question {number}? " * 20, ["a", "b"])


def refuse(question: Question) -> Answer:
    raise AssertionError(f"this was answered and kept: {question.prompt[:20]}")


@pytest.fixture
def write(path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A function that starts a process that answers questions and says which ones are answered."""
    started: list[subprocess.Popen[str]] = []

    def start(first: int, last: int, name: str = "x") -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", WRITER, str(path), str(first), str(last), name]
        started.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        with process:
            process.kill()


def test_processes_that_write_at_once(path: Path, write: Callable[..., subprocess.Popen[str]]) -> None:
    # All make the file at the same time, and each asks what another one asks too.
    writers = [write(200 * number, 200 * number + 400) for number in range(4)]
    assert [(writer.communicate()[0].count("\n"), writer.returncode) for writer in writers] == [(400, 0)] * 4
    assert integrity(path) == "ok"
    with CachedLLM(refuse, path, name="model") as llm:
        assert len(llm) == 1_000
        assert all(llm.choose(question(number)).number == 2 for number in range(1_000))


def test_killing_the_writer_at_any_moment_loses_nothing(
    path: Path, write: Callable[..., subprocess.Popen[str]]
) -> None:
    answered = 0
    for lines in (0, 1, 3, 10, 31, 100, 316, 1_000):
        process = write(answered, answered + 1_000_000)
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        said += process.communicate()[0].splitlines(keepends=True)
        # The last line may have been cut off as it was printed; its answer was kept all the same.
        answered += sum(line.endswith("\n") for line in said)
        if path.exists():
            assert integrity(path) == "ok"
        with CachedLLM(refuse, path, name="model") as llm:
            assert len(llm) >= answered
            for number in range(answered):
                assert llm.choose(question(number)) == Answer((2,), text="x")
    assert answered >= 1_461


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_connection_of_its_own(path: Path) -> None:
    program = (
        "import os, sys; from formal_llm import CachedLLM, Question\n"
        "llm = CachedLLM(lambda question: 1, sys.argv[1], name='f')\n"
        "ask = lambda number: llm.choose(Question(f'{number}?', ['a', 'b']))\n"
        "ask(0)\n"
        "children = []\n"
        "for child in range(4):\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        [ask(number) for number in range(100 * child, 100 * child + 100)]\n"
        "        sys.exit(0)\n"
        "    children.append(pid)\n"
        "[ask(number) for number in range(400, 500)]\n"
        "assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)\n"
        "assert len(llm) == 500, len(llm)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program, str(path)], check=True, timeout=60)
    assert integrity(path) == "ok"


def test_another_process_that_keeps_the_file_locked_is_waited_for(path: Path) -> None:
    with CachedLLM(Model(), path) as llm:
        locking = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        locking.execute("BEGIN IMMEDIATE")
        freeing = threading.Timer(0.2, locking.execute, ["ROLLBACK"])
        freeing.start()
        begun = time.monotonic()
        llm.choose(QUESTION)
        assert time.monotonic() - begun > 0.1
        freeing.join()
        locking.close()


def test_a_lock_that_is_never_freed_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formal_llm.llms.recorded.answer_store._PATIENCE", 0.05)
    with CachedLLM(Model(), path) as llm:
        locking = sqlite3.connect(path, isolation_level=None)
        locking.execute("BEGIN IMMEDIATE")
        with pytest.raises(AnswerFileError, match="locked"):
            llm.choose(QUESTION)
        locking.close()
        assert llm.choose(QUESTION).number == 2
