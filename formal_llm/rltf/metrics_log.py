"""Where a run's figures go: a file of JSON lines, the terminal, and TensorBoard or wandb where they are asked for.

``log.jsonl`` in the folder of a run has one line for each thing that happened, in order:

- ``run``: the run begins; ``settings`` has what it was asked to do.
- ``resume``: it went on after step ``step``; ``best`` is the best reward by which it is judged until then and its step,
  or null.

  Of both ``wandb`` is the id of the run at Weights & Biases, where figures go there; a run that goes on keeps it.
- ``update``: an update was made; ``figures`` has what was measured.
- ``evaluation``: plans were made for tasks of the split ``split`` ("held-out", "validation") and judged.
- ``checkpoint``: the state after ``step`` is in ``name``; ``best`` says whether it is the best so far.
- ``end``: the run is over; ``reason`` says why ("done", "stopped early", "interrupted", an error).

Every line has ``kind``, ``step`` (how many updates were made; 0 before the first), ``time`` (UTC) and ``elapsed``, the
seconds that the run has worked so far, pauses between a kill and a resume not counted. JSON has no infinity and no NaN;
figures that are none are written as the texts ``"nan"``, ``"inf"`` and ``"-inf"``, so that nothing is taken for a 0.

Figures may have any names. Those that the terminal and the report know: of an update ``reward`` (mean over its plans),
``reward_spread`` (their standard deviation), ``loss``, ``entropy`` (of the choices), ``kl`` (to the base model),
``seconds``, ``failed`` (plans with a stated reward), ``drift`` (of a server that made the plans, in nats); of an
evaluation ``reward``, ``exact`` (share of plans with just the right tools), ``seconds``.
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

from formal_llm.errors import MissingDependency, ResourceNotFound, ResultsError, TrainingError
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
#: What figures are drawn over at Weights & Biases: its own steps only go up, and a resumed run goes back.
_UPDATE = "update"
#: The split on which a run is judged, and the one that tells which adapters are best where there is one.
HELD_OUT, VALIDATION = "held-out", "validation"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of a log.

    Attributes:
        kind: what happened; see the module.
        step: how many updates were made by then.
        elapsed: seconds that the run had worked by then.
        figures: what was measured.
        data: everything else of the line.
    """

    kind: str
    step: int
    elapsed: float
    figures: Mapping[str, float] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


class View(Protocol):
    """Somebody who watches a run."""

    def note(self, entry: LogEntry) -> None:
        """Called with each line when it is written."""

    def close(self) -> None:
        """Called when the log is closed."""


class RunLog:
    """The log of a run that is under way; nobody else can write it in the meantime.

    A line is written at once and whole, so a run that is killed loses nothing; a last line that was only half written
    is taken away when the log is opened again.

    Args:
        folder: the folder of the run; made if it is not there.
        settings: what the run was asked to do, as JSON data; written into the first line of a new log.
        resume: the step of the checkpoint from which the run goes on: lines of later steps are dropped, and so is the
            ``end`` of the earlier part. 0 keeps what came before the first update. None for a new run.
        views: who watches: a :class:`~formal_llm.rltf.run_view.RunView` or anything like it. They are closed with the
            log.
        tensorboard: whether figures go to TensorBoard as well, into the folder ``tensorboard``.
        wandb: the project at Weights & Biases that gets them as well, by way of the folder ``wandb``; empty: none.

    Raises:
        ResultsError: the folder has a log already and ``resume`` is None; or it has none, and it is not; another run is
            writing it; it cannot be written to, or a line of it is none of a log. The file is left as it is.
        MissingDependency: TensorBoard or wandb are asked for and not installed.
        TrainingError: wandb does not begin a run.
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
        self._failed = True  # until it is told how it ended
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
            by = VALIDATION if any(entry.data.get("split") == VALIDATION for entry in judged) else HELD_OUT
            best = best_of(entry for entry in judged if entry.data.get("split") == by)
            told = None if best is None else [best.figures["reward"], best.step]
            self._write_entry("resume", resume, {"best": told, **online})

    @property
    def elapsed(self) -> float:
        """Seconds that the run has worked so far, those before it was resumed included."""
        return self._before + time.monotonic() - self._start

    def update(self, step: int, figures: Mapping[str, SupportsFloat]) -> None:
        """Note what was measured in an update; ``step`` is its number, from 1."""
        self._write_entry("update", step, {}, _to_floats(figures))

    def evaluation(self, step: int, figures: Mapping[str, SupportsFloat], split: str = HELD_OUT) -> None:
        """Note what plans for the tasks of a split are worth after ``step`` updates."""
        self._write_entry("evaluation", step, {"split": split}, _to_floats(figures))

    def checkpoint(self, step: int, name: str, *, best: bool = False) -> None:
        """Note that the state after ``step`` updates was saved under a name in the folder of the run."""
        self._write_entry("checkpoint", step, {"name": name, "best": best})

    def end(self, step: int, reason: str = "done") -> None:
        """Note that the run is over."""
        self._failed = reason not in _GOOD_ENDS
        self._write_entry("end", step, {"reason": reason})

    def close(self) -> None:
        """Close the file and the views, and let others have the file."""
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

    # -- writing ------------------------------------------------------------------------------------------------

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
            raise ResultsError(f"{self.path}: the log cannot be written: {error.strerror}") from None
        return open_exclusively(self.path, what="log", busy=_BUSY)

    def _keep_entries(self, resume: int | None) -> list[LogEntry]:
        """The lines that stay; the others are taken out of the file."""
        self._file.seek(0)
        text = self._file.read()
        lines = list(_read_lines(self.path, text))
        if resume is None:
            if lines:
                raise ResultsError(
                    f"{self.path}: this folder has the log of a run; resume that run, or give another folder"
                )
            self._file.truncate(0)  # a first line that was half written
            return []
        if not lines:
            raise ResultsError(f"{self.path}: there is no log of a run to resume")
        kept = [(raw, entry) for raw, entry in lines if entry.step <= resume and entry.kind != "end"]
        wanted = b"".join(raw + b"\n" for raw, _ in kept)
        if wanted != text:
            if text.startswith(wanted):
                self._file.truncate(len(wanted))  # the usual case: what goes is at the end
            else:
                self._file = replace_exclusively(self._file, self.path, [wanted], busy=_BUSY)
        return [entry for _, entry in kept]


def read_log(folder: str | os.PathLike[str]) -> list[LogEntry]:
    """The lines of a run's log, in their order; a last line that is being written is left out.

    Args:
        folder: the folder of the run.

    Raises:
        ResourceNotFound: the folder has no log.
        ResultsError: a line is none of a log; says which.
    """
    path = Path(folder) / LOG
    if not path.is_file():
        raise ResourceNotFound("log of a run", str(path))
    return [entry for _, entry in _read_lines(path, path.read_bytes())]


def best_of(evaluations: Iterable[LogEntry]) -> LogEntry | None:
    """The evaluation with the highest reward, of equal ones the first; None where none has a finite one."""
    finite = [entry for entry in evaluations if math.isfinite(entry.figures.get("reward", math.nan))]
    return max(finite, key=lambda entry: (entry.figures["reward"], -entry.step), default=None)


def _read_lines(path: Path, text: bytes) -> Iterator[tuple[bytes, LogEntry]]:
    """The lines of a log, each as it is written and as it is read."""
    whole, newline, rest = text.rpartition(b"\n")
    for number, raw in enumerate(whole.split(b"\n") if newline else (), 1):
        entry = _parse_line(raw)
        if entry is None or (number == 1) != (entry.kind == "run"):
            raise ResultsError(f"{path}:{number}: this is not a line of a run's log; mend or remove it")
        yield raw, entry
    if rest and not newline and not rest.startswith(b'{"kind"'[: len(rest)]):
        raise ResultsError(f"{path}: this is no log of a run; give another folder")


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
    """A writer of TensorBoard's event files."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingDependency(
            f"TensorBoard was asked for and cannot be used ({error}): pip install 'formal-llm[rltf]', "
            "or leave it off; log.jsonl has the same figures"
        ) from None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=None if resume is None else resume + 1)


def _open_wandb(folder: Path, project: str, identity: str, settings: Mapping[str, object]) -> WandbRun:
    """A run at Weights & Biases, or one that goes on; what is sent lies in the folder ``wandb`` until it is."""
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
            settings=wandb.Settings(console="off"),  # the terminal is ours
        )  # fmt: skip
    except wandb.Error as error:
        raise TrainingError(
            f"wandb does not begin a run in the project {project!r}: {error} Without a network WANDB_MODE=offline "
            "keeps the figures for wandb sync; log.jsonl has them, too"
        ) from None
    run.define_metric(_UPDATE)
    run.define_metric("*", step_metric=_UPDATE)
    return run
