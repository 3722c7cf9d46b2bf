"""The log of a run: whole lines, resumed where a checkpoint stands."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import MissingDependency, RecordError, ResourceNotFound
from formal_llm.rltf.metrics_log import LOG, LogEntry, RunLog, best_of, read_log
from tests.strategies import examples


class Watching:
    """A view that keeps what it is told."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.closed = 0

    def note(self, entry: LogEntry) -> None:
        self.entries.append(entry)

    def close(self) -> None:
        self.closed += 1


def kinds(folder: Path) -> list[tuple[str, int]]:
    return [(entry.kind, entry.step) for entry in read_log(folder)]


def run(folder: Path, last: int, resume: int | None = None) -> None:
    """Updates until ``last``, an evaluation and a checkpoint at every third."""
    with RunLog(folder, settings={"seed": 1}, resume=resume) as log:
        if resume is None:
            log.evaluation(0, {"reward": 0.25})
        for step in range((resume or 0) + 1, last + 1):
            log.update(step, {"reward": step / 10, "loss": -1})
            if step % 3 == 0:
                log.evaluation(step, {"reward": 0.25 + step / 100})
                log.checkpoint(step, f"checkpoints/{step}", best=True)
        log.end(last)


# -- lines ---------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    watching = Watching()
    with RunLog(folder, settings={"model": "tiny", "adam": {"lr": 0.001}, "path": Path("x")}, views=(watching,)) as log:
        log.evaluation(0, {"reward": 0.5}, split="training")
        log.update(1, {"reward": 1, "loss": math.nan, "up": math.inf, "down": -math.inf})
        log.checkpoint(1, "one", best=True)
        log.end(1, "interrupted")
    lines = [json.loads(line) for line in (folder / LOG).read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["run", "evaluation", "update", "checkpoint", "end"]
    assert lines[0]["settings"] == {"model": "tiny", "adam": {"lr": 0.001}, "path": "x"}
    assert lines[2]["figures"] == {"reward": 1.0, "loss": "nan", "up": "inf", "down": "-inf"}
    entries = read_log(folder)
    assert entries[1].data["split"] == "training"
    figures = entries[2].figures
    assert (figures["reward"], figures["up"], figures["down"]) == (1.0, math.inf, -math.inf)
    assert math.isnan(figures["loss"])
    assert entries[3].data["best"] is True
    assert entries[4].data["reason"] == "interrupted"
    assert [entry.kind for entry in watching.entries] == [entry.kind for entry in entries]
    assert watching.closed == 1
    elapsed = [entry.elapsed for entry in entries]
    assert elapsed == sorted(elapsed)


def test_figures_of_numpy_and_torch(tmp_path: Path) -> None:
    numpy, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    with RunLog(tmp_path) as log:
        log.update(1, {"a": numpy.float32(0.5), "b": torch.tensor(0.25)})
    assert read_log(tmp_path)[-1].figures == {"a": 0.5, "b": 0.25}


def test_a_folder_with_a_log_is_not_written_over(tmp_path: Path) -> None:
    run(tmp_path, 2)
    before = (tmp_path / LOG).read_bytes()
    with pytest.raises(RecordError, match="resume that run"):
        RunLog(tmp_path)
    assert (tmp_path / LOG).read_bytes() == before


def test_there_is_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no log of a run to resume"):
        RunLog(tmp_path, resume=3)
    with pytest.raises(ResourceNotFound):
        read_log(tmp_path / "other")


def test_two_runs_in_one_folder(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.update(1, {})
        with pytest.raises(RecordError, match="another run is writing"):
            RunLog(tmp_path, resume=0)
        log.update(2, {})
    assert kinds(tmp_path) == [("run", 0), ("update", 1), ("update", 2)]
    log.close()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="cannot be written"):
        RunLog(tmp_path / "file" / "run")


@pytest.mark.parametrize(
    "text",
    [
        "Milk, eggs\n", "Milk", "{}\n", '{"kind": "update", "step": 1, "elapsed": 0}\n', "[]\n", "\n",
        '{"kind": "run", "step": 0, "elapsed": 0, "format": "formal_llm.rltf.log/9"}\n', "[" * 100_000 + "\n",
    ],
)  # fmt: skip
def test_what_is_no_log_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / LOG).write_text(text)
    for open_it in (lambda: RunLog(tmp_path), lambda: RunLog(tmp_path, resume=0), lambda: read_log(tmp_path)):
        with pytest.raises(RecordError, match=r"no log of a run|not a line of a run's log"):
            open_it()
    assert (tmp_path / LOG).read_text() == text


@pytest.mark.parametrize(
    "line",
    [
        "hm", "{}", '{"kind": "dance", "step": 1, "elapsed": 0}', '{"kind": "update", "step": 1.5, "elapsed": 0}',
        '{"kind": "update", "step": true, "elapsed": 0}', '{"kind": "update", "step": 1}',
        '{"kind": "update", "step": 1, "elapsed": 0, "figures": {"a": "b"}}',
        '{"kind": "update", "step": 1, "elapsed": 0, "figures": 5}',
    ],
)  # fmt: skip
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    run(tmp_path, 1)
    path = tmp_path / LOG
    path.write_text(path.read_text() + line + "\n" + '{"kind": "end", "step": 1, "elapsed": 0}\n')
    with pytest.raises(RecordError, match=f"{LOG}:5: this is not a line"):
        read_log(tmp_path)


# -- going on ------------------------------------------------------------------------------------------------------


def test_lines_after_the_checkpoint_are_dropped(tmp_path: Path) -> None:
    run(tmp_path, 5)
    elapsed = read_log(tmp_path)[-1].elapsed
    run(tmp_path, 7, resume=3)
    done = [("update", 1), ("update", 2), ("update", 3), ("evaluation", 3), ("checkpoint", 3), ("resume", 3)]
    more = [
        ("update", 4),
        ("update", 5),
        ("update", 6),
        ("evaluation", 6),
        ("checkpoint", 6),
        ("update", 7),
        ("end", 7),
    ]
    assert kinds(tmp_path) == [("run", 0), ("evaluation", 0), *done, *more]
    assert read_log(tmp_path)[7].data["best"] == [0.28, 3]
    assert read_log(tmp_path)[-1].elapsed >= 0
    assert elapsed >= 0
    assert not list(tmp_path.glob("*.new"))


def test_going_on_at_the_end_drops_only_the_end(tmp_path: Path) -> None:
    run(tmp_path, 3)
    before = (tmp_path / LOG).read_bytes().splitlines()
    RunLog(tmp_path, resume=3).close()
    after = (tmp_path / LOG).read_bytes().splitlines()
    assert after[:-1] == before[:-1]
    assert kinds(tmp_path)[-1] == ("resume", 3)


def test_lines_to_drop_in_the_middle(tmp_path: Path) -> None:
    run(tmp_path, 3)
    RunLog(tmp_path, resume=3).close()
    with RunLog(tmp_path, resume=3) as log:  # the end of the first part is gone, its resume is not
        log.update(4, {})
    path = tmp_path / LOG
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[-1], *lines[2:-1]]))
    with RunLog(tmp_path, resume=3) as log:
        with pytest.raises(RecordError, match="another run"):
            RunLog(tmp_path, resume=3)  # the file that took the place of the other is locked as well
        log.update(4, {"a": 1})
    assert [entry.figures for entry in read_log(tmp_path) if entry.step == 4] == [{"a": 1.0}]
    assert not list(tmp_path.glob("*.new"))


def test_time_goes_on_from_where_it_stood(tmp_path: Path) -> None:
    run(tmp_path, 3)
    path = tmp_path / LOG
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["elapsed"] = 1000.0
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with RunLog(tmp_path, resume=2) as log:
        assert log.elapsed >= 1000


@given(st.floats(0, 1), st.integers(0, 4))
@examples(40)
def test_cut_off_anywhere_a_log_is_resumed_with_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, share: float, step: int
) -> None:
    folder = tmp_path_factory.mktemp("run")
    run(folder, 4)
    path = folder / LOG
    text = path.read_bytes()
    cut = round(share * len(text))
    path.write_bytes(text[:cut])
    whole = text[:cut].count(b"\n")
    assert len(read_log(folder)) == whole
    if not whole:
        with pytest.raises(RecordError, match="no log of a run to resume"):
            RunLog(folder, resume=0)
        RunLog(folder).close()  # a run that had not begun begins anew
        assert kinds(folder) == [("run", 0)]
        return
    kept = [entry for entry in read_log(folder) if entry.step <= step and entry.kind != "end"]
    RunLog(folder, resume=step).close()
    assert [(e.kind, e.step) for e in read_log(folder)] == [*((e.kind, e.step) for e in kept), ("resume", step)]


WRITER = """
import sys
from formal_llm.rltf.metrics_log import RunLog
step = int(sys.argv[2])
with RunLog(sys.argv[1], resume=step or None) as log:
    while True:
        step += 1
        log.update(step, {"reward": 1 / step})
        print(step, flush=True)
"""


@pytest.mark.slow
def test_killing_the_writer_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    done = 0
    for lines in (1, 3, 30, 300):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(done)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(lines):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            said = [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        steps = [entry.step for entry in read_log(tmp_path) if entry.kind == "update"]
        assert steps == list(range(1, len(steps) + 1))
        assert len(steps) >= max(said, default=done + lines)
        done = steps[-1]
    assert done >= 334


# -- TensorBoard ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tensorboard_has_the_same_figures(tmp_path: Path) -> None:
    pytest.importorskip("torch.utils.tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with RunLog(tmp_path, tensorboard=True) as log:
        log.evaluation(0, {"reward": 0.25})
        for step in (1, 2, 3):
            log.update(step, {"reward": step / 4})
    with RunLog(tmp_path, tensorboard=True, resume=1) as log:
        log.update(2, {"reward": 0.875})
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"train/reward", "held-out/reward"}
    assert [(event.step, event.value) for event in events.Scalars("train/reward")] == [(1, 0.25), (2, 0.875)]


def test_tensorboard_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingDependency, match=r"formal-llm\[rltf\].*log.jsonl has the same figures"):
        RunLog(tmp_path, tensorboard=True)
    run(tmp_path, 1)  # nothing is in its way


# -- wandb ---------------------------------------------------------------------------------------------------------


def sent(run: Path) -> list[Any]:
    """The records that wandb keeps offline, once the run has ended: its service may write after ``finish`` returns."""
    found = records(run)
    while not any(record.WhichOneof("record_type") == "exit" for record in found):
        time.sleep(0.05)  # the test's own time limit ends this
        found = records(run)
    return found


def records(run: Path) -> list[Any]:
    """The records that are written so far: a log in blocks as LevelDB's, of which these fit the first."""
    from wandb.proto.wandb_internal_pb2 import Record

    (file,) = run.glob("*.wandb")
    data, at, found = file.read_bytes(), 7, []
    assert len(data) < 32_768
    while at + 7 <= len(data):
        length = int.from_bytes(data[at + 4 : at + 6], "little")
        if at + 7 + length > len(data):
            break  # it is being written
        found.append(Record.FromString(data[at + 7 : at + 7 + length]))
        at += 7 + length
    return found


def history(run: Path) -> list[dict[str, float]]:
    """The figures of a run, row by row."""
    rows = [record.history.item for record in sent(run) if record.WhichOneof("record_type") == "history"]
    named = [{item.key or item.nested_key[0]: json.loads(item.value_json) for item in row} for row in rows]
    return [{name: value for name, value in row.items() if not name.startswith("_")} for row in named]


@pytest.mark.slow
def test_wandb_has_the_same_figures_under_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    # Its service is waited for until it answers, and nothing is written every few seconds beside the figures.
    patience = {"WANDB__SERVICE_WAIT": "600", "WANDB_INIT_TIMEOUT": "600", "WANDB__DISABLE_STATS": "true"}
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", **patience}.items():
        monkeypatch.setenv(name, value)
    with RunLog(tmp_path, settings={"seed": 3}, wandb="plans") as log:
        log.evaluation(0, {"reward": 0.25})
        for step in (1, 2, 3):
            log.update(step, {"reward": step / 4, "loss": math.nan})
        identity = read_log(tmp_path)[0].data["wandb"]
    with RunLog(tmp_path, wandb="plans", resume=1) as log:
        log.update(2, {"reward": 0.875})
        log.end(2)
    assert read_log(tmp_path)[-3].data["wandb"] == identity
    first, second = sorted(
        (tmp_path / "wandb").glob(f"offline-run-*-{identity}"), key=lambda run: len(history(run)), reverse=True
    )
    assert history(first) == [
        {"update": 0, "held-out/reward": 0.25},
        *({"update": n, "train/reward": n / 4, "train/loss": pytest.approx(math.nan, nan_ok=True)} for n in (1, 2, 3)),
    ]
    assert history(second) == [{"update": 2, "train/reward": 0.875}]
    (begun,) = (record.run for record in sent(first) if record.WhichOneof("record_type") == "run")
    assert (begun.run_id, begun.project, begun.display_name) == (identity, "plans", tmp_path.name)
    assert {item.key: item.value_json for item in begun.config.update}["seed"] == "3"
    ended = [[r.exit.exit_code for r in sent(run) if r.WhichOneof("record_type") == "exit"] for run in (first, second)]
    assert ended == [[1], [0]]  # the first part never said that it was over


@pytest.mark.slow
def test_wandb_without_a_key_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": str(tmp_path), "NETRC": str(tmp_path / "netrc")}.items():
        monkeypatch.setenv(name, value)
    begins = f"from formal_llm.rltf.metrics_log import RunLog; RunLog({str(tmp_path)!r}, wandb='plans')"
    # In a process of its own: wandb remembers for the whole of one that it was offline.
    done = subprocess.run([sys.executable, "-c", begins], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert re.search(r"TrainingError: .*'plans'.*wandb login.*WANDB_MODE=offline", done.stderr)
    run(tmp_path, 1)


def test_wandb_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingDependency, match=r"formal-llm\[wandb\].*log.jsonl has the same figures"):
        RunLog(tmp_path, wandb="plans")
    run(tmp_path, 1)  # nothing is in its way


def test_the_best_is_the_first_of_the_highest_finite_rewards() -> None:
    rewards = [0.1, math.nan, 0.7, math.inf, 0.7]
    entries = [LogEntry("evaluation", step, 0.0, {"reward": reward}) for step, reward in enumerate(rewards)]
    assert best_of(reversed(entries)) is entries[2]
    assert best_of([LogEntry("evaluation", 0, 0.0, {"exact": 1.0}), entries[1]]) is None
