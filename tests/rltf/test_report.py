"""What is shown of a run: its report, from its folder alone, and lines or a bar in the terminal."""

from __future__ import annotations

import json
import math
import re
import shutil
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from formal_llm.errors import RecordError, ResourceNotFound
from formal_llm.rltf.metrics_log import LOG, RunLog, read_log
from formal_llm.rltf.report import LoggedRun, write_report
from formal_llm.rltf.run_view import RunView, format_duration, format_seconds
from tests.strategies import examples


def train(folder: Path, updates: int = 60, every: int = 20) -> None:
    """A run whose figures are known: the best held-out reward is at the evaluation before the last."""
    with RunLog(folder, settings={"model": "a|b", "adam": {"lr": 0.001}, "note": "two\nlines `x`", "no": {}}) as log:
        for step in range(updates + 1):
            if step:
                figures = {
                    "reward": step / updates,
                    "entropy": 1 / step,
                    "kl": 0.001 * step,
                    "loss": -0.5,
                    "seconds": 2,
                }
                log.update(step, figures)
            if step % every == 0:
                reward = 0.25 if step == updates else 0.2 + step / 1000
                log.evaluation(step, {"reward": reward if updates else 0.2, "exact": 0.1, "seconds": 4})
                log.checkpoint(step, f"checkpoints/{step}", best=step < updates)
        log.end(updates)


def rows(text: str, section: str) -> list[list[str]]:
    """The cells of the table in a section."""
    part = text.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_a_report(tmp_path: Path) -> None:
    train(tmp_path)
    path = write_report(tmp_path)
    assert path == tmp_path / "report.md"
    text = path.read_text()
    assert "60 updates in" in text
    assert "It ended: done." in text
    assert "Held-out reward: 0.200 after update 0, 0.250 after update 60, at best **0.250** after update 60." in text
    assert rows(text, "Before, during and after") == [
        ["when", "update", "reward", "share of right tool sets", "seconds"],
        ["---", "---:", "---:", "---:", "---:"],
        ["before", "0", "0.200", "0.100", "4.000"],
        ["during", "20", "0.220", "0.100", "4.000"],
        ["during", "40", "0.240", "0.100", "4.000"],
        ["after", "60", "0.250", "0.100", "4.000"],
    ]
    assert "`checkpoints/40`, after update 40, held-out reward 0.240." in text
    updates = rows(text, "Updates")
    assert updates[0] == ["mean of updates", "first: 1 to 6", "middle: 28 to 33", "last: 55 to 60"]
    assert updates[2] == ["reward", "0.058", "0.508", "0.958"]
    assert [row[0] for row in updates[2:]] == ["reward", "entropy", "KL to the base model", "loss", "seconds"]
    assert rows(text, "Durations")[3:] == [
        ["updates", "2 min 0 s", "2 s, 60 times"],
        ["evaluations", "16.0 s", "4 s, 4 times"],
    ]
    assert rows(text, "Settings")[2:] == [
        ["`model`", "`a\\|b`"], ["`adam.lr`", "`0.001`"], ["`note`", "`two lines 'x'`"], ["`no`", "`{}`"],
    ]  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == [LOG, "report.md"]


def test_the_folder_alone_is_enough_and_the_report_is_always_the_same(tmp_path: Path) -> None:
    train(tmp_path / "one")
    first = write_report(tmp_path / "one").read_bytes()
    assert write_report(tmp_path / "one").read_bytes() == first
    (tmp_path / "two").mkdir()
    shutil.copy(tmp_path / "one" / LOG, tmp_path / "two")
    assert write_report(tmp_path / "two").read_bytes() == first


def test_a_run_that_is_under_way(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        text = write_report(tmp_path).read_text()
        assert "0 updates in" in text
        assert "It has not ended yet." in text
        for section in ("Before", "Best", "Updates", "Settings"):
            assert f"## {section}" not in text
        log.evaluation(0, {"reward": 0.5})
        log.update(1, {"reward": 0.5})
        text = write_report(tmp_path).read_text()
        assert "1 update in" in text
        assert rows(text, "Before, during and after")[2:] == [["before", "0", "0.500"]]


def test_a_run_that_was_resumed_and_other_splits(tmp_path: Path) -> None:
    train(tmp_path)
    with RunLog(tmp_path, resume=40) as log:
        log.evaluation(40, {"reward": 0.9})
        log.evaluation(40, {"reward": 0.7}, split="training")
        log.end(40, "interrupted")
    text = write_report(tmp_path).read_text()
    assert "It ended: interrupted." in text
    assert "The run was resumed after update 40; pauses are not counted." in text
    assert rows(text, "Before, during and after")[2:] == [
        ["held-out", "before", "0", "0.200", "0.100", "4.000"],
        ["held-out", "during", "20", "0.220", "0.100", "4.000"],
        ["held-out", "after", "40", "0.900", "", ""],
        ["training", "after", "40", "0.700", "", ""],
    ]


def test_an_evaluation_before_the_last_update_is_not_called_after(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.evaluation(0, {"reward": 0.2})
        for step in range(1, 4):
            log.update(step, {"reward": 0.5})
            if step == 2:
                log.evaluation(step, {"reward": 0.4})
        log.end(3, "interrupted")
    table = rows(write_report(tmp_path).read_text(), "Before, during and after")[2:]
    assert table == [["before", "0", "0.200"], ["during", "2", "0.400"]]


def test_figures_that_are_no_numbers_are_told_as_such(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.evaluation(0, {"reward": math.nan})
        log.update(1, {"reward": math.inf, "loss": math.nan})
        log.evaluation(1, {"reward": -math.inf})
        log.end(1, "the loss is nan")
    text = write_report(tmp_path).read_text()
    assert [row[2] for row in rows(text, "Before, during and after")[2:]] == ["nan", "-inf"]
    assert [row[1] for row in rows(text, "Updates")[2:]] == ["inf", "nan"]
    assert "It ended: the loss is nan." in text
    assert LoggedRun.from_entries(read_log(tmp_path)).best is None


def test_of_many_evaluations_some_are_in_the_table(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        for step in range(201):
            log.evaluation(step, {"reward": 1.0 if step == 77 else 0.5})
        log.end(200)
    table = rows(write_report(tmp_path).read_text(), "Before, during and after")[2:]
    assert len(table) <= 23
    assert ["during", "77", "1.000"] in table
    assert table[0] == ["before", "0", "0.500"]
    assert table[-1] == ["after", "200", "0.500"]
    assert f"{201 - len(table)} more are in the log" in (tmp_path / "report.md").read_text()


FIGURES = st.dictionaries(st.sampled_from(["reward", "loss", "kl", "odd name", "seconds"]), st.floats(), max_size=5)
LINES = st.lists(st.tuples(st.sampled_from(["update", "evaluation", "checkpoint", "end"]), st.integers(0, 9), FIGURES))


@given(LINES)
@examples(40)
def test_any_log_has_a_report(tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, int, Any]]) -> None:
    folder = tmp_path_factory.mktemp("run")
    with RunLog(folder) as log:
        for kind, step, figures in lines:
            if kind in ("update", "evaluation"):
                getattr(log, kind)(step, figures)
            elif kind == "checkpoint":
                log.checkpoint(step, "x", best=step % 2 == 0)
            else:
                log.end(step)
    text = write_report(folder).read_text()
    assert text.startswith("# Training run\n") and "## Durations" in text


def test_folders_without_a_report(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound):
        write_report(tmp_path)
    (tmp_path / LOG).write_text(json.dumps({"kind": "dance"}) + "\n")
    with pytest.raises(RecordError):
        write_report(tmp_path)
    other = tmp_path / "other"
    train(other)
    (other / "report.md").mkdir()
    with pytest.raises(RecordError, match="cannot be written"):
        write_report(other)


# -- in the terminal -------------------------------------------------------------------------------------------------


def shown(terminal: bool, *, every: float = 0.0, last: int = 6, resume: bool = False, tmp_path: Path) -> str:
    text = StringIO()
    console = Console(file=text, force_terminal=terminal, width=160, color_system=None, legacy_windows=False)
    view = RunView(last, console=console, every=every)
    if resume:
        with RunLog(tmp_path) as log:
            log.evaluation(3, {"reward": 0.28})
            log.end(3)
    with RunLog(tmp_path, views=(view,), resume=3 if resume else None) as log:
        assert view.left is None
        if not resume:
            log.evaluation(0, {"reward": 0.25, "exact": 0.125, "seconds": 3})
        log.evaluation(0, {"reward": 0.99}, split="training")
        for step in range(4 if resume else 1, last + 1):
            log.update(step, {"reward": step / 8, "entropy": 0.5, "kl": 0.25, "loss": -1, "seconds": 2, "failed": 1})
        assert view.left == 0
        log.checkpoint(last, "best", best=True)
        log.end(last)
    return text.getvalue()


def test_lines_where_there_is_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formal_llm.rltf.run_view.monotonic", count().__next__)  # a second passes at each look
    text = shown(False, tmp_path=tmp_path)
    assert "update 0: held-out tasks: reward 0.250, exact 0.125\n" in text
    line = "reward 0.500, best held-out 0.250 at 0, entropy 0.500, KL 0.250, loss -1.000, 1 failed, 2 s/update"
    assert f"update 4 of 6: {line}, 2.0 s left\n" in text
    assert "update 6: saved best (best)\n" in text
    assert "done after 6 of 6 updates: reward 0.750, best held-out 0.250 at 0" in text
    assert text.count("\n") == 2 + 6 + 2


def test_lines_are_rare(tmp_path: Path) -> None:
    assert "of 6: reward" not in shown(False, every=1000, tmp_path=tmp_path)


def test_a_bar_in_a_terminal(tmp_path: Path) -> None:
    text = shown(True, tmp_path=tmp_path)
    assert "6/6" in text
    assert "best held-out 0.250 at 0" in text
    assert "0.0 s left" in text


def test_a_run_that_goes_on_knows_its_best(tmp_path: Path) -> None:
    text = shown(False, resume=True, tmp_path=tmp_path)
    assert "going on after update 3\n" in text
    assert "best held-out 0.280 at 3" in text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "?"), (math.inf, "?"), (0, "0.0 s"), (8.44, "8.4 s"), (59.96, "1 min 0 s"), (200, "3 min 20 s"),
        (3599.6, "1 h 0 min"), (7500, "2 h 5 min"),
    ],
)  # fmt: skip
def test_durations(seconds: float | None, said: str) -> None:
    assert format_duration(seconds) == said


def test_a_span_is_never_written_with_an_exponent() -> None:
    spans = {0.04123: "0.0412 s", 2.0: "2 s", 104.2: "104 s", 999.4: "999 s", 1234.5: "1,234 s", 123456.0: "123,456 s"}
    assert {seconds: format_seconds(seconds) for seconds in spans} == spans


def test_the_best_is_that_of_validation_where_there_is_one(tmp_path: Path) -> None:
    text = StringIO()
    view = RunView(2, console=Console(file=text, force_terminal=False, width=160), every=0.0)
    with RunLog(tmp_path, views=(view,)) as log:
        log.evaluation(0, {"reward": 0.9})
        log.evaluation(0, {"reward": 0.2}, split="validation")
        log.evaluation(1, {"reward": 0.95})
        log.update(2, {"reward": 0.5})
    assert "best validation 0.200 at 0" in text.getvalue()
