"""Answers that are kept for runs which are not finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.agents.kept_calls import AnswerJournal
from formal_llm.errors import ResultsError
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage

A, B, C = (Question(text, ["x", "y"]) for text in "abc")


def test_answers_come_back_in_their_order_as_long_as_the_same_is_asked(tmp_path: Path) -> None:
    with AnswerJournal(tmp_path / "calls", "r") as kept:
        assert kept.replay_answer(0, A) is None
        kept.record_answer(0, A, Answer((1,), {1: 0.5}, usage=TokenUsage(1, 2, 3)))
        kept.record_answer(1, A, Answer((2,)))
        kept.record_answer(0, A, Answer((2,)))
        kept.record_answer(0, B, Answer((1,)))
    with AnswerJournal(tmp_path / "calls", "r", done=[1]) as kept:
        assert kept.replay_answer(0, A) == Answer((1,), {1: 0.5}, usage=TokenUsage(1, 2, 3))
        assert kept.replay_answer(0, C) is None  # something else is asked: what came after it counts no more
        assert kept.replay_answer(0, B) is None
        kept.record_answer(0, C, Answer((2,)))
        assert kept.replay_answer(1, A) is None
    with AnswerJournal(tmp_path / "calls", "r") as kept:
        assert [kept.replay_answer(0, one) for one in (A, C, B)] == [
            Answer((1,), {1: 0.5}, usage=TokenUsage(1, 2, 3)), Answer((2,)), None,
        ]  # fmt: skip


def test_a_line_that_was_half_written_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "calls"
    with AnswerJournal(path, "r") as kept:
        kept.record_answer(0, A, Answer((1,)))
        kept.record_answer(0, B, Answer((2,)))
    path.write_bytes(path.read_bytes()[:-5])
    with AnswerJournal(path, "r") as kept:
        assert kept.replay_answer(0, A) == Answer((1,))
        assert kept.replay_answer(0, B) is None


def test_the_file_of_another_agent_is_begun_anew(tmp_path: Path) -> None:
    with AnswerJournal(tmp_path / "calls", "r") as kept:
        kept.record_answer(0, A, Answer((1,)))
    with AnswerJournal(tmp_path / "calls", "s") as kept:
        assert kept.replay_answer(0, A) is None
    with AnswerJournal(tmp_path / "calls", "r") as kept:
        assert kept.replay_answer(0, A) is None
        with pytest.raises(ResultsError, match="another run is writing"):
            AnswerJournal(tmp_path / "calls", "r")
        kept.delete_file()
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize("line", ["no json", "{}", '{"index": 0, "at": 0, "asked": "x", "answer": {"numbers": "1"}}'])
def test_a_damaged_line_is_told(tmp_path: Path, line: str) -> None:
    with AnswerJournal(tmp_path / "calls", "r"):
        pass
    with (tmp_path / "calls").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(ResultsError, match=r"calls:2: this line is damaged"):
        AnswerJournal(tmp_path / "calls", "r")
