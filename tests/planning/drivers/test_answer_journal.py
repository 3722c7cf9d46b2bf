"""The journal of paid answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from formal_llm import CFG, Answer, Planner, Question
from formal_llm.errors import InvalidAnswer, LLMError, ResultsError, RunStopped
from formal_llm.llms import TokenUsage
from formal_llm.planning.drivers.answer_journal import AnswerJournal
from formal_llm.planning.drivers.batch import Keeping

PAID = TokenUsage(1, 10, 2)
RULES = CFG.from_string("S -> wash S | iron S | fold\n%limit 1")
ONE, OTHER = Question("1: a\n2: b", ["a", "b"]), Question("1: c\n2: d", ["c", "d"])


class Paid:
    """Takes the first option for a request, and fails after some."""

    def __init__(self, most: int = 1_000, illegal: int = 0) -> None:
        self.asked, self.most, self.illegal = 0, most, illegal

    def choose(self, question: Question) -> Answer:
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
        assert path.read_bytes() == b""
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
        assert [json.loads(line)["index"] for line in path.read_text().splitlines()] == [0, 2]
        done |= {0, 2}
    assert not path.exists()


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_half_written_last_line_is_dropped(path: Path, cut: int) -> None:
    with closing(AnswerJournal(path, "r")) as journal:
        journal.record(0, ONE, Answer((1,), usage=PAID))
        journal.record(0, OTHER, Answer((2,), usage=PAID))
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:cut])
    with closing(AnswerJournal(path, "r")) as journal:
        assert path.read_bytes() == first
        assert journal.take(0, ONE) is not None and journal.take(0, OTHER) is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [(b"{}", ":2: this is not a line of a journal"), (b"[1]", ":2: this is not"), (b"x", ":2: this is not"),
     (b'{"format": "formal_llm.journal/1", "run": "r", "index": 0, "question": "q", "answer": {}}', ":2: this is not"),
     (b'{"format": "formal_llm.journal/1", "run": "s", "index": 0, "question": "q", "answer": {"numbers": [1]}}',
      ":2: the journal belongs to another run")],
)  # fmt: skip
def test_files_of_something_else_are_left_as_they_are(path: Path, line: bytes, problem: str) -> None:
    with closing(AnswerJournal(path, "r")) as journal:
        journal.record(0, ONE, Answer((1,), usage=PAID))
    path.write_bytes(content := path.read_bytes() + line + b"\n")
    with pytest.raises(ResultsError, match=problem):
        AnswerJournal(path, "r")
    assert path.read_bytes() == content


def test_two_runs_cannot_write_it(path: Path) -> None:
    with closing(AnswerJournal(path, "r")), pytest.raises(ResultsError, match="another run is writing this file"):
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
        def choose(self, question: Question) -> Answer:
            if self.asked == 2:
                keeping.stop.set()
            return super().choose(question)

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
