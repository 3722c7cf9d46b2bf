"""What a run shows of itself: lines, a bar, and how long things take."""

from __future__ import annotations

import math
from io import StringIO
from itertools import count
from pathlib import Path

import pytest
from rich.console import Console

from formal_llm.rltf.metrics_log import RunLog
from formal_llm.rltf.run_view import RunView, format_duration, format_seconds


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
