"""The file of the cache and what is written in it: damage, threads, processes and locks; answers as JSON data."""

from __future__ import annotations

import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Answer, CachedLLM, Question
from formal_llm.authored.files import parse_json
from formal_llm.errors import AnswerFileError, LLMError
from formal_llm.llms.recorded.answer_data import (
    answer_from_data,
    answer_to_data,
    usage_from_data,
    usage_to_data,
)
from formal_llm.llms.recorded.answer_store import AnswerStore
from formal_llm.llms.usage import TokenUsage
from tests.llms.recorded.models import QUESTION, Model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.db"


def integrity(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()


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
        freed = threading.Event()

        def free() -> None:
            freed.set()
            locking.execute("ROLLBACK")

        freeing = threading.Timer(0.2, free)
        freeing.start()
        llm.choose(QUESTION)
        assert freed.is_set()
        freeing.join()
        locking.close()


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_plain_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "answers"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(AnswerFileError, match=f"this is a {kind}"):
        AnswerStore(path)


KEYS = st.sampled_from(["numbers", "probabilities", "text", "usage", "requests", "1"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@given(JSON)
def test_reading_an_answer_fails_with_nothing_but_a_value_error(data: object) -> None:
    try:
        answer = answer_from_data(data)
    except ValueError:
        return
    assert answer_from_data(answer_to_data(answer)) == answer


def test_json_that_is_none_is_a_value_error() -> None:
    for text in ("", "{", b"\xff", "[" * 200_000):
        with pytest.raises(ValueError):
            parse_json(text)


ANSWERS = st.builds(
    Answer,
    st.lists(st.integers(1, 99), min_size=1).map(tuple),
    st.none() | st.dictionaries(st.integers(1, 99), st.floats(0, 1)),
    st.text(),
    st.builds(TokenUsage, *[st.integers(0, 10**9)] * 5),
    st.none() | st.text(),
)


@given(ANSWERS)
def test_answers_come_back_from_their_json(answer: Answer) -> None:
    text = json.dumps(answer_to_data(answer))
    assert answer_from_data(parse_json(text)) == answer


def test_numbers_of_an_array_library_are_written() -> None:
    answer = Answer((np.int64(2),), {np.int64(1): np.float32(0.25), np.int64(2): np.float32(0.75)})
    assert answer_from_data(json.loads(json.dumps(answer_to_data(answer)))) == Answer((2,), {1: 0.25, 2: 0.75})


@pytest.mark.parametrize("data", [{"requests": -1}, {"pages": 1}, {"requests": True}, [], 7])
def test_what_is_no_usage(data: object) -> None:
    with pytest.raises(ValueError, match="usage"):
        usage_from_data(data)
    assert usage_from_data(None) == TokenUsage()
    assert usage_to_data(None) == {}
