"""Journals: what was answered is answered again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formal_llm.agents.modular.journal import RunJournal
from formal_llm.errors import RecordError
from formal_llm.planning.json_data import JSON


def answer(journal: RunJournal, what: str, asked: JSON, give: Callable[[], dict[str, Any]]) -> Any:
    """The answer that is written down, else a new one, which is written down."""
    known = journal.replay_answer(what, asked)
    return journal.record_answer(what, asked, give()) if known is None else known


def test_answers_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with RunJournal(file, "run", "r") as journal:
        assert answer(journal, "planner", [1], lambda: {"a": 1}) == {"a": 1} and not journal.is_replaying
        with pytest.raises(OSError, match="no"):
            answer(journal, "tool", [2], fails)
        with pytest.raises(RecordError, match="another run is writing"):
            RunJournal(file, "run", "r")
    with RunJournal(file, "run", "r") as journal:
        assert journal.is_replaying and answer(journal, "planner", [1], fails) == {"a": 1} and not journal.is_replaying
        assert answer(journal, "tool", [2], lambda: {"b": "ü"}) == {"b": "ü"}
    assert len(file.read_text().splitlines()) == 3


def fails() -> dict[str, int]:
    raise OSError("no")


def test_other_runs_other_questions_and_damage(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with RunJournal(file, "run", "how long?") as journal:
        answer(journal, "planner", [1], lambda: {"a": 1})
    with pytest.raises(RecordError, match="of the request 'how long"):
        RunJournal(file, "other", "r")
    for what, asked in [("caller", [1]), ("planner", [2])]:
        with (
            RunJournal(file, "run", "r") as journal,
            pytest.raises(RecordError, match="jsonl:2: here planner was asked"),
        ):
            answer(journal, what, asked, fails)
    text = file.read_text()
    for wrong, said in [("x\n", ":1: this line"), (f"{text}[]\n", ":3: this is no line"), ("{}\n", ":1: this is no")]:
        file.write_text(wrong)
        with pytest.raises(RecordError, match=said):
            RunJournal(file, "run", "r")


def test_a_line_that_was_cut_is_done_again(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with RunJournal(file, "run", "r") as journal:
        answer(journal, "planner", [1], lambda: {"a": 1})
    whole = file.read_bytes()
    for end in range(len(whole)):
        file.write_bytes(whole[:end])
        with RunJournal(file, "run", "r") as journal:
            answer(journal, "planner", [1], lambda: {"a": 1})
        assert file.read_bytes() == whole


def test_without_a_file() -> None:
    with RunJournal(None, None, "r") as journal:
        assert answer(journal, "tool", [], lambda: {"a": 1}) == {"a": 1} and not journal.is_replaying
