"""The results file: every task once, whatever happens to the one who writes it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from io import FileIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Answer, Budget, Limits, Planner, Question, Task, WeightedLLM, Wording
from formal_llm.errors import InvalidAnswer, LLMError, ProviderError, RecordError, RunStopped
from formal_llm.llms import TokenUsage
from formal_llm.llms.llm import LLM
from formal_llm.planning.drivers.answer_journal import AnswerJournal
from formal_llm.planning.drivers.batch import Keeping, Outcome
from formal_llm.planning.drivers.json_lines import open_exclusively, replace_exclusively, write_atomically, write_line
from formal_llm.planning.drivers.planner import Search
from formal_llm.planning.drivers.results import FAILED, PLANNED, STATUS, STOPPED, LinePlaces, Results, record, run_of
from formal_llm.planning.plans.usage import Usage
from tests.planning.wandering import CHAIN
from tests.strategies import examples

TASKS = [f"task {number}" for number in range(12)]
RUN = run_of(Planner(CHAIN, WeightedLLM(3)))


def outcomes() -> list[Outcome]:
    def answer(question: Question) -> Answer | int:
        return 99 if question.task == "task 5" else WeightedLLM(3).ask(question)

    tasks: list[str | Task] = [*TASKS]
    tasks[7] = Task("task 7", limits=Limits({"c": 0}))
    return Planner(CHAIN, answer).plan_all(tasks)


MADE = outcomes()


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Results(path, RUN) as results:
        assert all(results.add(outcome) for outcome in MADE)
    found = lines(path)
    assert [line["index"] for line in found] == list(range(12))
    assert {line["status"] for line in found} == {"planned", "failed"}
    assert found[0]["word"] == list(MADE[0].unwrap().word)
    assert found[5]["error"] == "InvalidAnswer"
    assert len(found[5]["transcript"]) == 3  # type: ignore[arg-type]
    assert found[7]["error"] == "NoValidPlan"
    with Results(path, RUN) as again:
        assert sorted(again.done) == list(range(12))
        assert again.failed == [5, 7]
        assert again.usage.questions == sum(outcome.usage.questions for outcome in MADE)


def test_failures_that_may_pass_are_not_written(tmp_path: Path) -> None:
    down = Outcome(0, Task("t"), None, ProviderError("the server is down"), Usage())
    (broke,) = Planner(CHAIN, lambda question: 1).plan_all(["t"], budget=Budget(questions=0))
    with Results(tmp_path / "out", RUN) as results:
        assert not results.add(down)
        assert not results.add(broke)
        assert not results.add(Outcome(1, Task("t"), None, OSError("no cable"), Usage()))
    assert (tmp_path / "out").read_bytes() == b""
    (spent,) = Planner(CHAIN, lambda question: 1, budget=Budget(questions=2)).plan_all(["t"])
    found = record(spent)
    assert found is not None
    assert found["partial"]["word"] == ["a", "a"]


@examples(60)
@given(st.data())
def test_a_half_written_last_line_is_repaired(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("results") / "out.jsonl"
    with Results(path, RUN) as results:
        for outcome in MADE:
            results.add(outcome)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    with Results(path, RUN) as results:
        kept = set(results.done)
        assert len(kept) in (whole[:cut].count(b"\n"), whole[:cut].count(b"\n") + 1)
        for outcome in MADE:
            if outcome.index not in kept:
                results.add(outcome)
    assert sorted(int(str(line["index"])) for line in lines(path)) == list(range(12))


def test_two_runs_on_one_file_refuse_each_other(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    other = f"from formal_llm.planning.drivers.results import Results\nResults({str(path)!r}, {RUN!r})"
    with Results(path, RUN) as results:
        results.add(MADE[0])
        with pytest.raises(RecordError, match="another run is writing"):
            Results(path, RUN)
        process = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, timeout=60)
        assert "another run is writing" in process.stderr
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", other], timeout=60).returncode == 0
    assert len(lines(path)) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello", "no results file"),
        ("hello\n", "not a line of a results file"),
        ('{"index": 3}\n', "not a line of a results file"),
        ("\x00\x01\x02", "no results file"),
    ],
)
def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "precious.txt"
    path.write_text(text)
    with pytest.raises(RecordError, match=problem):
        Results(path, RUN)
    assert path.read_text() == text


def test_damage_in_the_middle_and_lines_that_stand_twice(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Results(path, RUN) as results:
        for outcome in MADE:
            results.add(outcome)
    whole = path.read_text().splitlines(keepends=True)
    for changed, problem in (
        ([*whole[:3], "oops\n", *whole[3:]], "out.jsonl:4: this is not a line"),
        ([*whole, whole[2]], "out.jsonl:13: task 2 stands there twice"),
    ):
        path.write_text("".join(changed))
        with pytest.raises(RecordError, match=problem):
            Results(path, RUN)
        assert path.read_text() == "".join(changed)


def test_a_file_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Results(path, RUN) as results:
        results.add(MADE[0])
    for planner, why in (
        (Planner(CHAIN, "test:random"), "there the llm is WeightedLLM"),
        (Planner(CHAIN, WeightedLLM(3), search="sample"), "not the same"),
        (Planner(CHAIN, WeightedLLM(3), limits=Limits({"a": 1})), "not the same"),
        (Planner(CHAIN, WeightedLLM(3), wording=Wording(system="Think.")), "not the same"),
        (Planner(CHAIN.with_labels({"a": "Another label"}), WeightedLLM(3)), "not the same"),
        (Planner(CHAIN.with_labels({"S": "A label of a nonterminal"}), WeightedLLM(3)), "not the same"),
        (Planner(CHAIN.with_order("prefix"), WeightedLLM(3)), "not the same"),
        (Planner(CFG([replace(p, text="A text") for p in CHAIN.productions]), WeightedLLM(3)), "not the same"),
    ):
        with pytest.raises(RecordError, match=why):
            Results(path, run_of(planner))
    same = Planner(CHAIN, WeightedLLM(3), budget=Budget(questions=5), tries=7)
    Results(path, run_of(same)).close()


def test_failures_are_taken_out_to_be_planned_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Results(path, RUN) as results:
        for outcome in MADE:
            results.add(outcome)
        assert results.forget_failed() == 2
        assert results.forget_failed() == 0
        assert sorted(results.done) == [n for n in range(12) if n not in (5, 7)]
        with pytest.raises(RecordError, match="another run"):
            Results(path, RUN)
        results.add(MADE[5])
        # What was asked before the failure is kept, as a task that is stopped; then comes the line of the second try.
        assert [line["status"] for line in lines(path) if line["index"] == 5] == ["stopped", "failed"]
    assert sorted(line["index"] for line in lines(path)) == [n for n in range(12) if n != 7]  # type: ignore[type-var]
    with Results(path, RUN) as results:
        assert (results.failed, results.stopped) == ([5], {})


def test_failures_with_odd_texts_can_be_taken_out(tmp_path: Path) -> None:
    half = Outcome(40, Task("half \ud800"), MADE[0].plan, None, Usage())
    with Results(tmp_path / "out.jsonl", RUN) as results:
        results.add(half)
        results.add(MADE[5])
        assert results.forget_failed() == 1
    with Results(tmp_path / "out.jsonl", RUN) as results:
        assert results.done[40]["task"] == "half \ud800"


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot be written"):
        Results(tmp_path / "no" / "such" / "folder", RUN)
    with pytest.raises(RecordError, match="cannot be written"):
        Results(tmp_path, RUN)


def test_tasks_with_another_goal_or_other_limits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    tasks = [Task("t", limits=Limits({"a": 2, "b": 3}, {"b": 1})), Task("u")]
    planner = Planner(CHAIN, lambda _: 1, budget=Budget(questions=1))
    with Results(path, RUN) as results:
        for outcome in planner.plan_all(tasks):
            results.add(outcome)
    with Results(path, RUN) as results:
        results.check_tasks(tasks)
        results.check_tasks([*tasks, Task("one more")])
        results.check_tasks([replace(tasks[0], limits=Limits({"b": 3, "a": 2}, {"b": 1})), tasks[1]])
        for changed, why in (
            (Task("t", limits=Limits({"a": 2, "b": 3})), "task 0 with other limits"),
            (Task("t", limits=Limits({"a": 3, "b": 3}, {"b": 1})), "task 0 with other limits"),
            (Task("t"), "task 0 with other limits"),
            (replace(tasks[0], goal="S"), "task 0 with another goal"),
            (replace(tasks[0], description="v"), "another task 0 than"),
        ):
            with pytest.raises(RecordError, match=why):
                results.check_tasks([changed, tasks[1]])
        with pytest.raises(RecordError, match="task 1 with other limits"):
            results.check_tasks([tasks[0], Task("u", limits=Limits(default=1))])
        with pytest.raises(RecordError, match="another task 1"):
            results.check_tasks(tasks[:1])


class Server(LLM):
    """Answers 1 as often as said, then gives bad answers, then is down; counts what it was asked."""

    name = "server"

    def __init__(self, answers: int, bad: int = 0) -> None:
        self.answers, self.bad, self.asked = answers, bad, 0

    def answer(self, question: Question) -> Answer:
        self.asked += 1
        if self.asked <= self.answers:
            return Answer((1,), {1: 0.75, 2: 0.25}, usage=TokenUsage(1, 10, 2))
        if self.asked <= self.answers + self.bad:
            raise InvalidAnswer("it was none", [(question.prompt, "?")], TokenUsage(1, 10, 2))
        raise ProviderError("the server is down")


#: Eight questions, if each is answered with 1.
EIGHT = CHAIN.with_limits(Limits({"a": 8, "b": 0}))


@pytest.mark.parametrize("search", ["greedy", "sample", "best-first"])
def test_what_was_spent_before_an_error_is_on_record(tmp_path: Path, search: Search) -> None:
    with Results(tmp_path / "out", RUN) as results:
        (outcome,) = Planner(EIGHT, Server(3, bad=2), search=search, seed=1).plan_all(["t"])
        assert (outcome.usage.questions, outcome.usage.requests) == (3, 5)
        assert not results.add(outcome)
        assert (results.usage.requests, results.usage.input_tokens) == (5, 50)
    (line,) = lines(tmp_path / "out")
    assert (line["status"], line["error"]) == ("stopped", "ProviderError")


def test_a_second_run_begins_with_the_question_at_which_the_first_one_broke(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    tasks = ["one", "two", "three"]
    whole = Server(1_000)
    expected = Planner(EIGHT, whole).plan_all(tasks)
    asked, runs = 0, 0
    for broken in (2, 3, 0, 2, 1_000):
        server = Server(broken, bad=1)
        with Results(path, RUN) as results:
            before = {index: walk["usage"]["questions"] for index, walk in results.begun.items()}
            for outcome in Planner(EIGHT, server).plan_all(tasks, skip=frozenset(results.done), begun=results.begun):
                assert outcome.usage.questions >= before.get(outcome.index, 0)
                results.add(outcome)
        asked += min(server.asked, broken)
        runs += 1
    assert asked == whole.asked  # no question twice
    with Results(path, RUN) as results:
        assert [results.done[index]["word"] for index in range(3)] == [[*outcome.unwrap().word] for outcome in expected]
        assert [results.done[index]["probability"] for index in range(3)] == [o.unwrap().probability for o in expected]
        assert results.stopped == {}
        assert results.usage.requests == whole.asked + runs - 1  # and the bad answers, which are paid for as well


def test_a_failed_plan_is_gone_on_with_where_it_failed(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Results(path, RUN) as results:
        (outcome,) = Planner(EIGHT, Server(5, bad=9)).plan_all(["t"])
        assert results.add(outcome)  # no legal answer: this is no passing failure
        assert results.forget_failed() == 1
    with Results(path, RUN) as results:
        assert results.done == {}
        server = Server(1_000)
        (outcome,) = Planner(EIGHT, server).plan_all(["t"], begun=results.begun)
        assert server.asked == 3
        assert outcome.unwrap().word == ("a",) * 8 + ("c",)
        assert outcome.usage.requests == 5 + 3 + 3
        results.add(outcome)
        assert [line["status"] for line in lines(path)] == ["stopped", "planned"]
    assert [line["status"] for line in lines(path)] == ["planned"]


def test_nothing_new_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    for broken in (2, 0, 0):
        with Results(path, RUN) as results:
            for outcome in Planner(EIGHT, Server(broken)).plan_all(["t"], begun=results.begun):
                assert not results.add(outcome)
    assert len(lines(path)) == 1


def test_what_a_planned_task_has_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Results(path, RUN) as results:
        for outcome in Planner(EIGHT, Server(2)).plan_all(["t"]):
            results.add(outcome)
        stopped = path.read_text()
        for outcome in Planner(EIGHT, Server(99)).plan_all(["t"]):
            results.add(outcome)
        both = path.read_text()
    path.write_text(both)  # as a writer that was killed leaves it
    with Results(path, RUN) as results:
        assert (list(results.done), results.stopped) == ([0], {})
    assert len(lines(path)) == 1
    path.write_text(path.read_text() + stopped)
    with pytest.raises(RecordError, match="task 0 stands there twice"):
        Results(path, RUN)


noted = st.lists(st.tuples(st.integers(0, 30), st.sampled_from([*STATUS.values()]), st.integers(0, 1 << 50)))


@given(noted)
@examples(60)
def test_the_last_that_was_noted_counts(lines: list[tuple[int, int, int]]) -> None:
    places, known = LinePlaces(), dict[int, tuple[int, int]]()
    for index, status, place in lines:
        assert places.record_line(index, status, place) == known.get(index, (0, 0))[0]
        known[index] = status, place
    for status in (PLANNED, FAILED, STOPPED):
        assert list(places.list_tasks(status)) == sorted(index for index, (one, _) in known.items() if one == status)
        assert places.counts[status] == len(list(places.list_tasks(status)))
    assert all(places[index] == place for index, (_, place) in known.items())
    assert [places.has_status(index, (PLANNED, FAILED)) for index in range(-1, 32)] == [
        known.get(index, (0, 0))[0] in (PLANNED, FAILED) for index in range(-1, 32)
    ]
    assert not places.has_status("1", (PLANNED, FAILED, STOPPED))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    first = open_exclusively(path, busy="taken")
    with pytest.raises(RecordError, match=r"lines\.jsonl: taken"):
        open_exclusively(path, busy="taken")
    first.close()
    open_exclusively(path, busy="taken").close()
    with pytest.raises(RecordError, match="the log cannot be written"):
        open_exclusively(tmp_path, what="log", busy="taken")


def test_a_file_is_replaced_by_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    (tmp_path / "lines.jsonl.new").write_text("left by somebody who was killed, and longer")
    first = open_exclusively(path, busy="taken")
    second = replace_exclusively(first, path, [b"1\n", b"2\n"], busy="taken")
    assert first.closed
    with pytest.raises(RecordError, match="taken"):
        open_exclusively(path, busy="taken")
    write_line(second, path, {}, "a line")
    path.unlink()
    with pytest.raises(RecordError, match="replaced, moved or deleted"):
        replace_exclusively(second, path, [b"3\n"], busy="taken")
    with pytest.raises(RecordError, match="replaced, moved or deleted"):
        write_line(second, path, {}, "a line")
    second.close()
    assert not path.exists()


def test_lines_are_appended_and_odd_texts_kept(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    rows = [{"text": "ä\n"}, {"text": "half \ud800"}]
    for row in rows:
        file = open_exclusively(path, busy="taken")
        write_line(file, path, row, "a line")
        file.close()
    assert [json.loads(line) for line in path.read_bytes().splitlines()] == rows


def test_a_line_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    class Small(FileIO):
        """A file on a disk with room for a few more bytes."""

        def write(self, data: bytes) -> int:  # type: ignore[override]
            return super().write(data[:5])

    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    with Small(str(path), "ab+") as file, pytest.raises(RecordError, match="the line of task 3 could not be written"):
        write_line(file, path, {"a": 2}, "the line of task 3")
    assert path.read_bytes() == b'{"a": 1}\n'


def test_numbers_that_json_has_not(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    with open_exclusively(path, busy="taken") as file, pytest.raises(ValueError, match="not JSON compliant"):
        write_line(file, path, {"a": float("nan")}, "a line", allow_nan=False)
    assert path.read_bytes() == b""


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_takes_the_place_of_the_one_before(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, [b"one"], durable=durable)
    write_atomically(path, [b"two", b"three"], durable=durable)
    assert path.read_bytes() == b"twothree"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_what_fails_on_the_way_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise KeyError("the rest")

    path = tmp_path / "a.txt"
    write_atomically(path, [b"one"])
    with pytest.raises(KeyError):
        write_atomically(path, parts())
    assert path.read_bytes() == b"one"


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_plain_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(RecordError, match=r"this is a (pipe|folder|device)"):
        open_exclusively(path, busy="busy")


PAID = TokenUsage(1, 10, 2)
RULES = CFG.from_string("S -> wash S | iron S | fold\n%limit 1")
ONE, OTHER = Question("1: a\n2: b", ["a", "b"]), Question("1: c\n2: d", ["c", "d"])


class Paid(LLM):
    """Takes the first option for a request, and fails after some."""

    def __init__(self, most: int = 1_000, illegal: int = 0) -> None:
        self.asked, self.most, self.illegal = 0, most, illegal

    def answer(self, question: Question) -> Answer:
        if self.asked >= self.most:
            raise LLMError("broken")
        self.asked += 1
        if self.asked == self.illegal:
            raise InvalidAnswer("no number", [(question.prompt, "?")], PAID)
        return Answer((1,), {1: 0.75, 2: 0.25}, usage=PAID)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "o.journal"


def test_answers_come_back_once_in_their_order(path: Path) -> None:
    wrong = InvalidAnswer("no number", [("asked", "?")], PAID)
    given = [Answer((1,), {1: 1.0}, "text", PAID), wrong, Answer((2,), usage=PAID)]
    with closing(AnswerJournal(path, "r")) as journal:
        for answer in given:
            journal.record(3, ONE, answer)
        assert journal.take(3, ONE) is None  # for the next run alone
    with closing(AnswerJournal(path, "r")) as journal:
        assert journal.take(3, OTHER) is None and journal.take(4, ONE) is None
        assert journal.take(3, ONE) == given[0]
        invalid = journal.take(3, ONE)
        assert isinstance(invalid, InvalidAnswer)
        assert (invalid.problem, invalid.transcript, invalid.usage) == ("no number", (("asked", "?"),), PAID)
        assert journal.take(3, ONE) == given[2] and journal.take(3, ONE) is None
    with closing(AnswerJournal(path, "r")) as journal:
        assert journal.take(3, ONE, legal=True) == given[0]
        assert journal.take(3, ONE, legal=True) == given[2]


def test_what_cost_nothing_is_not_written(path: Path) -> None:
    with closing(AnswerJournal(path, "r")) as journal:
        journal.record(0, ONE, Answer((1,)))
        journal.record(0, ONE, LLMError("no connection"))
    assert not path.exists()
    with closing(AnswerJournal(path, "r", paid_only=False)) as journal:
        journal.record(0, ONE, Answer((1,)))
    with closing(AnswerJournal(path, "r")) as journal:
        assert journal.take(0, ONE) == Answer((1,))


def test_answers_of_tasks_that_are_done_are_dropped(path: Path) -> None:
    done = {1}
    with closing(AnswerJournal(path, "r")) as journal:
        for index in range(3):
            journal.record(index, ONE, Answer((1,), usage=PAID))
    with closing(AnswerJournal(path, "r", done.__contains__)) as journal:
        assert journal.take(1, ONE) is None
        assert journal.take(0, ONE) is not None and journal.take(2, ONE) is not None
        done |= {0, 2}
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "problem"),
    [("outcome = '{}'", "row 2: this is not a row"), ("outcome = 7", "row 2: this is not"),
     ("walk = 'x'", "row 2: this is not"), ("model = 's'", "row 2: the journal belongs to another run")],
)  # fmt: skip
def test_a_journal_of_something_else_is_left_as_it_is(path: Path, change: str, problem: str) -> None:
    with closing(AnswerJournal(path, "r")) as journal:
        journal.record(0, ONE, Answer((1,), usage=PAID))
        journal.record(0, OTHER, Answer((2,), usage=PAID))
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE answers SET {change} WHERE id = 2")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(RecordError, match=problem):
        AnswerJournal(path, "r")
    assert path.read_bytes() == content
    path.write_text("Milk, eggs, bread")
    with pytest.raises(RecordError, match="no SQLite database"):
        AnswerJournal(path, "r")


def test_two_runs_cannot_write_it(path: Path) -> None:
    with closing(AnswerJournal(path, "r")), pytest.raises(RecordError, match="another run is writing this file"):
        AnswerJournal(path, "r")


@pytest.fixture
def tasks() -> Iterator[list[str]]:
    yield [f"shirt {number}" for number in range(6)]


@pytest.mark.parametrize("search", ["greedy", "best-first", "sample", "exact"])
@pytest.mark.parametrize("illegal", [0, 2])
def test_a_run_that_breaks_pays_for_no_answer_twice(path: Path, tasks: list[str], search: str, illegal: int) -> None:
    whole = Paid(illegal=illegal)
    expected = list(Planner(RULES, whole, search=search).plan_each(tasks))  # type: ignore[arg-type]
    for most in range(1, whole.asked):
        first = Paid(most, illegal)
        with closing(AnswerJournal(path, "r")) as journal:
            list(Planner(RULES, first, search=search).plan_each(tasks, keeping=Keeping(journal)))  # type: ignore[arg-type]
        second = Paid(illegal=max(illegal - most, 0))
        with closing(AnswerJournal(path, "r")) as journal:
            planner = Planner(RULES, second, search=search)  # type: ignore[arg-type]
            outcomes = list(planner.plan_each(tasks, keeping=Keeping(journal)))
        assert first.asked + second.asked == whole.asked
        assert [outcome.unwrap().word for outcome in outcomes] == [outcome.unwrap().word for outcome in expected]
        assert [outcome.usage.token_usage for outcome in outcomes] == [o.usage.token_usage for o in expected]
        path.unlink()


def test_a_run_that_is_stopped_hands_out_what_is_under_way(path: Path, tasks: list[str]) -> None:
    class Stopping(Paid):
        def answer(self, question: Question) -> Answer:
            if self.asked == 2:
                keeping.stop.set()
            return super().answer(question)

    with closing(AnswerJournal(path, "r")) as journal:
        keeping = Keeping(journal)
        outcomes = list(Planner(RULES, Stopping()).plan_each(tasks, keeping=keeping))
    assert [type(outcome.error) for outcome in outcomes] == [type(None), RunStopped]
    assert outcomes[1].walk is not None and outcomes[1].usage.questions == 1
    rest = Paid()
    with closing(AnswerJournal(path, "r")) as journal:
        begun = {1: outcomes[1].walk.snapshot()}
        left = list(Planner(RULES, rest).plan_each(tasks[:2], skip=[0], begun=begun, keeping=Keeping(journal)))
    assert left[0].unwrap().word == outcomes[0].unwrap().word and rest.asked == 1
