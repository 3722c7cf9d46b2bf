"""The results file: every task once, whatever happens to the one who writes it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Answer, Budget, Limits, Planner, Question, Task, WeightedLLM, Wording
from formal_llm.errors import InvalidAnswer, ProviderError, ResultsError
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.drivers.batch import Outcome
from formal_llm.planning.drivers.planner import Search
from formal_llm.planning.drivers.results import FAILED, PLANNED, STATUS, STOPPED, LinePlaces, Results, record, run_of
from formal_llm.planning.plans.usage import Usage
from tests.planning.wandering import CHAIN
from tests.strategies import examples

TASKS = [f"task {number}" for number in range(12)]
RUN = run_of(Planner(CHAIN, WeightedLLM(3)))


def outcomes() -> list[Outcome]:
    def answer(question: Question) -> Answer | int:
        return 99 if question.task == "task 5" else WeightedLLM(3).choose(question)

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
        with pytest.raises(ResultsError, match="another run is writing"):
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
    with pytest.raises(ResultsError, match=problem):
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
        with pytest.raises(ResultsError, match=problem):
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
        (Planner(CHAIN.with_order("forward"), WeightedLLM(3)), "not the same"),
        (Planner(CFG([replace(p, text="A text") for p in CHAIN.productions]), WeightedLLM(3)), "not the same"),
    ):
        with pytest.raises(ResultsError, match=why):
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
        with pytest.raises(ResultsError, match="another run"):
            Results(path, RUN)
        results.add(MADE[5])
        # What was asked before the failure is kept, as a task that is stopped; then comes the line of the second try.
        assert [line["status"] for line in lines(path) if line["index"] == 5] == ["stopped", "failed"]
    assert sorted(line["index"] for line in lines(path)) == [n for n in range(12) if n != 7]  # type: ignore[type-var]
    with Results(path, RUN) as results:
        assert (results.failed, results.stopped) == ([5], {})


@pytest.mark.parametrize("how", ["replaced", "deleted"])
def test_a_file_that_was_replaced_meanwhile_is_left_as_it_is(tmp_path: Path, how: str) -> None:
    path, other = tmp_path / "out.jsonl", b"somebody else's\n"
    with Results(path, RUN) as results:
        for outcome in MADE[:8]:
            results.add(outcome)
        if how == "replaced":
            (tmp_path / "moved").write_bytes(other)
            (tmp_path / "moved").replace(path)
        else:
            path.unlink()
        with pytest.raises(ResultsError, match="replaced, moved or deleted"):
            results.forget_failed()
        with pytest.raises(ResultsError, match="replaced, moved or deleted"):  # and nothing is written to nowhere
            results.add(MADE[8])
    assert (path.read_bytes() if how == "replaced" else path.exists()) == (other if how == "replaced" else False)


def test_nobody_gets_the_file_while_its_failures_are_taken_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others try at every step that the file system sees."""
    path = tmp_path / "out.jsonl"
    tried = []

    def trying(name: str) -> None:
        real = getattr(Path, name)

        def method(self: Path, *given: object, **more: object) -> object:
            done = real(self, *given, **more)
            monkeypatch.setattr(Path, name, real)
            with pytest.raises(ResultsError, match="another run is writing"):
                Results(path, RUN)
            monkeypatch.setattr(Path, name, method)
            tried.append(name)
            return done

        monkeypatch.setattr(Path, name, method)

    with Results(path, RUN) as results:
        for outcome in MADE:
            results.add(outcome)
        for name in ("replace", "stat"):
            trying(name)
        assert results.forget_failed() == 2
        monkeypatch.undo()
        results.add(MADE[5])
    assert set(tried) == {"stat", "replace"}
    assert tried[-1] == "replace"
    assert len(lines(path)) == 11
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]


def test_failures_with_odd_texts_can_be_taken_out(tmp_path: Path) -> None:
    half = Outcome(40, Task("half \ud800"), MADE[0].plan, None, Usage())
    with Results(tmp_path / "out.jsonl", RUN) as results:
        results.add(half)
        results.add(MADE[5])
        assert results.forget_failed() == 1
    with Results(tmp_path / "out.jsonl", RUN) as results:
        assert results.done[40]["task"] == "half \ud800"


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="cannot be written"):
        Results(tmp_path / "no" / "such" / "folder", RUN)
    with pytest.raises(ResultsError, match="cannot be written"):
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
            with pytest.raises(ResultsError, match=why):
                results.check_tasks([changed, tasks[1]])
        with pytest.raises(ResultsError, match="task 1 with other limits"):
            results.check_tasks([tasks[0], Task("u", limits=Limits(default=1))])
        with pytest.raises(ResultsError, match="another task 1"):
            results.check_tasks(tasks[:1])


class Server:
    """Answers 1 as often as said, then gives bad answers, then is down; counts what it was asked."""

    name = "server"

    def __init__(self, answers: int, bad: int = 0) -> None:
        self.answers, self.bad, self.asked = answers, bad, 0

    def choose(self, question: Question) -> Answer:
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
    with pytest.raises(ResultsError, match="task 0 stands there twice"):
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
