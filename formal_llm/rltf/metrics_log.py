"""The log of a run: a file of JSON lines and, on request, TensorBoard or wandb; the terminal can observe it.

``log.jsonl`` in the folder of a run has one line for each event, in order:

- ``run``: the run starts; ``settings`` has its settings.
- ``resume``: the run continues after step ``step``; ``best`` is the best reward so far on the tasks that select
  adapters and its step, or null.

  For both, ``wandb`` is the id of the run at Weights & Biases if figures are sent there; a resumed run keeps it.
- ``update``: an update was performed; ``figures`` has the measurements.
- ``evaluation``: plans for the tasks of the split ``split`` ("held-out", "validation") were generated and judged.
- ``checkpoint``: the state after ``step`` is in ``name``; ``best`` specifies whether it is the best so far.
- ``end``: the run is over; ``reason`` is the reason ("done", "stopped early", "interrupted", an error).

Every line has ``kind``, ``step`` (the number of updates performed; 0 before the first), ``time`` (UTC) and ``elapsed``,
the working time of the run in seconds, without pauses between a kill and a resume. JSON has no infinity and no NaN;
such figures are written as the texts ``"nan"``, ``"inf"`` and ``"-inf"``, so that none is mistaken for 0.

Figures may have any names. The terminal and the report know the following: for an update ``reward`` (mean over its
plans), ``reward_spread`` (their standard deviation), ``loss``, ``entropy`` (of the choices), ``kl`` (to the base
model), ``seconds``, ``failed`` (plans with a fallback reward); for an evaluation ``reward``,
``exact`` (fraction of plans with exactly the right tools), ``seconds``.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, SupportsFloat
from uuid import uuid4

from formal_llm.errors import MissingDependency, RecordError, ResourceNotFound, TrainingError
from formal_llm.planning.drivers.json_lines import open_exclusively, replace_exclusively, write_line

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter
    from wandb import Run as WandbRun

#: The name of the file in the folder of a run.
LOG = "log.jsonl"
_FORMAT = "formal_llm.rltf.log/1"
_BUSY = "another run is writing this log; give another folder"
_KINDS = ("run", "resume", "update", "evaluation", "checkpoint", "end")
_GOOD_ENDS = ("done", "stopped early", "interrupted")
#: The x-axis at Weights & Biases: its own steps only increase, while a resumed run goes back.
_UPDATE = "update"
#: The split on which a run is evaluated, and the split that determines the best adapters if there is one.
HELD_OUT, VALIDATION = "held-out", "validation"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of a log.

    Attributes:
        kind: the kind of event; see the module.
        step: the number of updates performed by then.
        elapsed: the working time of the run by then, in seconds.
        data: everything else in the line.
    """

    kind: str
    step: int
    elapsed: float
    figures: Mapping[str, float] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


class View(Protocol):
    """An observer of a run."""

    def note(self, entry: LogEntry) -> None:
        """Process a line of the log; called when it is written."""

    def close(self) -> None:
        """Release resources; called when the log is closed."""


class RunLog:
    """The log of a run in progress; no other process can write it in the meantime.

    Each line is written completely and immediately, so a run that is killed loses nothing; a last line that was written
    only partly is removed when the log is opened again.

    Args:
        folder: the folder of the run; created if it does not exist.
        settings: the settings of the run, as JSON data; written into the first line of a new log.
        resume: the step of the checkpoint from which the run continues: lines of later steps are dropped, and so is the
                ``end`` of the earlier part. 0 keeps what precedes the first update. None for a new run.
        views: the observers: a :class:`~formal_llm.rltf.run_view.RunView` or a similar object. They are closed with the
            log.
        tensorboard: whether figures are also sent to TensorBoard, in the folder ``tensorboard``.
        wandb: the project at Weights & Biases that also receives the figures, via the folder ``wandb``; empty for none.

    Raises:
        RecordError: the folder has a log already and ``resume`` is None, or has none and ``resume`` is given; another
            run is writing it; it is not writable; or one of its lines is invalid. The file is left unchanged.
        MissingDependency: TensorBoard or wandb is requested and not installed.
        TrainingError: wandb does not start a run.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        settings: Mapping[str, object] | None = None,
        resume: int | None = None,
        views: tuple[View, ...] = (),
        tensorboard: bool = False,
        wandb: str = "",
    ) -> None:
        self.folder = Path(folder)
        self.path = self.folder / LOG
        self._views = views
        self._board: SummaryWriter | None = None
        self._online: WandbRun | None = None
        self._failed = True  # until its end is recorded
        self._before = 0.0
        self._file = self._open_file()
        try:
            kept = self._keep_entries(resume)
            if tensorboard:
                self._board = _open_tensorboard(self.folder, resume)
            if wandb:
                earlier = [entry.data["wandb"] for entry in kept if "wandb" in entry.data]
                self._online = _open_wandb(
                    self.folder, wandb, earlier[-1] if earlier else uuid4().hex[:12], settings or {}
                )
        except BaseException:
            self._file.close()
            raise
        self._start = time.monotonic()
        online = {} if self._online is None else {"wandb": self._online.id}
        if resume is None:
            self._write_entry("run", 0, {"format": _FORMAT, "settings": dict(settings or {}), **online})
        else:
            self._before = max((entry.elapsed for entry in kept), default=0.0)
            judged = [entry for entry in kept if entry.kind == "evaluation"]
            split = VALIDATION if any(entry.data.get("split") == VALIDATION for entry in judged) else HELD_OUT
            best = best_of(entry for entry in judged if entry.data.get("split") == split)
            best_reward = None if best is None else [best.figures["reward"], best.step]
            self._write_entry("resume", resume, {"best": best_reward, **online})

    @property
    def elapsed(self) -> float:
        """The working time of the run so far in seconds, including that before it was resumed."""
        return self._before + time.monotonic() - self._start

    def update(self, step: int, figures: Mapping[str, SupportsFloat]) -> None:
        """Record the measurements of an update; ``step`` is its number, from 1."""
        self._write_entry("update", step, {}, _to_floats(figures))

    def evaluation(self, step: int, figures: Mapping[str, SupportsFloat], split: str = HELD_OUT) -> None:
        """Record what plans for the tasks of a split are worth after ``step`` updates."""
        self._write_entry("evaluation", step, {"split": split}, _to_floats(figures))

    def checkpoint(self, step: int, name: str, *, best: bool = False) -> None:
        """Record that the state after ``step`` updates was saved under a name in the folder of the run."""
        self._write_entry("checkpoint", step, {"name": name, "best": best})

    def end(self, step: int, reason: str = "done") -> None:
        """Record that the run is over."""
        self._failed = reason not in _GOOD_ENDS
        self._write_entry("end", step, {"reason": reason})

    def close(self) -> None:
        """Close the file and the views, and release the lock on the file."""
        if not self._file.closed:
            with suppress(OSError):
                os.fsync(self._file.fileno())
            self._file.close()
            if self._board is not None:
                self._board.close()
            if self._online is not None:
                self._online.finish(exit_code=int(self._failed))
            for view in self._views:
                view.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_entry(
        self, kind: str, step: int, data: Mapping[str, object], figures: Mapping[str, float] | None = None
    ) -> None:
        elapsed = round(self.elapsed, 3)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"kind": kind, "step": step, "time": now, "elapsed": elapsed, **data}
        if figures is not None:
            line["figures"] = {name: _to_json(value) for name, value in figures.items()}
        write_line(self._file, self.path, line, "a line", allow_nan=False)
        room = "train" if kind == "update" else str(data.get("split"))
        placed = {f"{room}/{name}": value for name, value in (figures or {}).items()}
        if self._board is not None and placed:
            for name, value in placed.items():
                self._board.add_scalar(name, value, step)
            self._board.flush()
        if self._online is not None and placed:
            self._online.log({_UPDATE: step, **placed})
        entry = LogEntry(kind, step, elapsed, figures or {}, data)
        for view in self._views:
            view.note(entry)

    # -- opening ------------------------------------------------------------------------------------------------

    def _open_file(self) -> FileIO:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(f"the log cannot be written: {error.strerror}", file=str(self.path)) from None
        return open_exclusively(self.path, what="log", busy=_BUSY)

    def _keep_entries(self, resume: int | None) -> list[LogEntry]:
        """Return the lines to keep and remove the others from the file."""
        self._file.seek(0)
        text = self._file.read()
        lines = list(_read_lines(self.path, text))
        if resume is None:
            if lines:
                raise RecordError(
                    "this folder has the log of a run; resume that run, or give another folder", file=str(self.path)
                )
            self._file.truncate(0)  # a partly written first line
            return []
        if not lines:
            raise RecordError("there is no log of a run to resume", file=str(self.path))
        kept = [(raw, entry) for raw, entry in lines if entry.step <= resume and entry.kind != "end"]
        content = b"".join(raw + b"\n" for raw, _ in kept)
        if content != text:
            if text.startswith(content):
                self._file.truncate(len(content))  # the usual case: the dropped lines are at the end
            else:
                self._file = replace_exclusively(self._file, self.path, [content], busy=_BUSY)
        return [entry for _, entry in kept]


def read_log(folder: str | os.PathLike[str]) -> list[LogEntry]:
    """Read the lines of a run's log, in order, without a last line that is still being written.

    Raises:
        ResourceNotFound: the folder has no log.
        RecordError: a line is invalid; the error specifies which.
    """
    path = Path(folder) / LOG
    if not path.is_file():
        raise ResourceNotFound("log of a run", str(path))
    return [entry for _, entry in _read_lines(path, path.read_bytes())]


def best_of(evaluations: Iterable[LogEntry]) -> LogEntry | None:
    """Return the first evaluation with the highest reward, or None if no reward is finite."""
    finite = [entry for entry in evaluations if math.isfinite(entry.figures.get("reward", math.nan))]
    return max(finite, key=lambda entry: (entry.figures["reward"], -entry.step), default=None)


def _read_lines(path: Path, text: bytes) -> Iterator[tuple[bytes, LogEntry]]:
    """Return the lines of a log, each as raw bytes and parsed."""
    whole, newline, rest = text.rpartition(b"\n")
    for number, raw in enumerate(whole.split(b"\n") if newline else (), 1):
        entry = _parse_line(raw)
        if entry is None or (number == 1) != (entry.kind == "run"):
            raise RecordError("this is not a line of a run's log; mend or remove it", file=str(path), line=number)
        yield raw, entry
    if rest and not newline and not rest.startswith(b'{"kind"'[: len(rest)]):
        raise RecordError("this is no log of a run; give another folder", file=str(path))


def _parse_line(raw: bytes) -> LogEntry | None:
    try:
        line: dict[str, Any] = json.loads(raw)
        kind, step, elapsed = line.pop("kind"), line.pop("step"), line.pop("elapsed")
        figures = {name: float(value) for name, value in line.pop("figures", {}).items()}
        if kind not in _KINDS or (kind == "run" and line["format"] != _FORMAT):
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    good = type(step) is int and isinstance(elapsed, (int, float))
    return LogEntry(kind, step, elapsed, figures, line) if good else None


def _to_floats(figures: Mapping[str, SupportsFloat]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items()}


def _to_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _open_tensorboard(folder: Path, resume: int | None) -> SummaryWriter:
    """Return a writer of TensorBoard's event files."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingDependency(
            f"TensorBoard was asked for and cannot be used ({error}): pip install 'formal-llm[rltf]', "
            "or leave it off; log.jsonl has the same figures"
        ) from None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=None if resume is None else resume + 1)


def _open_wandb(folder: Path, project: str, identity: str, settings: Mapping[str, object]) -> WandbRun:
    """Start or continue a run at Weights & Biases; data to be sent is kept in the folder ``wandb`` until it is sent."""
    try:
        import wandb
    except ImportError as error:
        raise MissingDependency(
            f"wandb was asked for and cannot be used ({error}): pip install 'formal-llm[wandb]', or leave it off; "
            "log.jsonl has the same figures"
        ) from None
    try:
        run = wandb.init(
            project=project, id=identity, name=folder.resolve().name, resume="allow", dir=folder, config=dict(settings),
            settings=wandb.Settings(console="off"),  # this program writes to the terminal
        )  # fmt: skip
    except wandb.Error as error:
        raise TrainingError(
            f"wandb does not begin a run in the project {project!r}: {error} Without a network WANDB_MODE=offline "
            "keeps the figures for wandb sync; log.jsonl has them, too"
        ) from None
    run.define_metric(_UPDATE)
    run.define_metric("*", step_metric=_UPDATE)
    return run
