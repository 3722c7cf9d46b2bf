"""The display of a training run in the terminal: a progress bar, or periodic lines if there is no terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from formal_llm.rltf.metrics_log import HELD_OUT, VALIDATION, LogEntry

#: The weight of the last update in the moving average of update times, which is shown and gives the remaining time.
_FRESH = 0.2


class RunView:
    """Shows updates as they are performed, with evaluations and checkpoints as lines above.

    Args:
        updates: the total number of updates of the run.
        console: the console; default: standard error.
        every: without a terminal, the seconds between two lines for updates.
    """

    def __init__(self, updates: int, *, console: Console | None = None, every: float = 30.0) -> None:
        self._updates = updates
        self._console = console or Console(stderr=True, markup=False, highlight=False)
        self._every = every
        self._step = 0
        self._figures: Mapping[str, float] = {}
        self._by = HELD_OUT
        self._best: tuple[float, int] | None = None
        self._pace: float | None = None
        self._last = self._reported_at = monotonic()
        self._started = False
        self._progress = Progress(
            TextColumn("update"), MofNCompleteColumn(), BarColumn(bar_width=24), TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(), _Left(self), console=self._console, disable=not self._console.is_terminal,
        )  # fmt: skip
        self._bar = self._progress.add_task("", total=updates, status="")

    @property
    def left(self) -> float | None:
        """The estimated remaining seconds of the run, from its last updates; None before the first one."""
        return None if self._pace is None else self._pace * max(self._updates - self._step, 0)

    def note(self, entry: LogEntry) -> None:
        """Show a line of the log."""
        if not self._started:
            self._started = True
            self._progress.start()
        if entry.kind in ("run", "resume"):
            self._step, self._last = entry.step, monotonic()
            self._progress.update(self._bar, completed=entry.step)
            if entry.kind == "resume":
                if entry.data.get("best"):
                    reward, step = entry.data["best"]
                    self._best = (reward, step)
                self._print_line(f"going on after update {entry.step}")
        elif entry.kind == "update":
            self._show_update(entry)
        elif entry.kind == "evaluation":
            self._show_evaluation(entry)
        elif entry.kind == "checkpoint":
            self._print_line(
                f"update {entry.step}: saved {entry.data.get('name', '')}{' (best)' * bool(entry.data['best'])}"
            )
        elif entry.kind == "end":
            reason = entry.data.get("reason", "done")
            self._print_line(f"{reason} after {entry.step} of {self._updates} updates: {self._progress_text()}")

    def close(self) -> None:
        """Remove the progress bar."""
        if self._started:
            self._progress.stop()

    def _show_update(self, entry: LogEntry) -> None:
        now = monotonic()
        # The time since the last update includes evaluations, of which one may also precede the first update.
        passed = now - self._last
        self._pace = passed if self._pace is None else _FRESH * passed + (1 - _FRESH) * self._pace
        self._step, self._last, self._figures = entry.step, now, entry.figures
        self._progress.update(self._bar, completed=entry.step, status=self._progress_text())
        if self._progress.disable and now - self._reported_at >= self._every:
            self._reported_at = now
            self._print_line(
                f"update {self._step} of {self._updates}: {self._progress_text()}, {format_duration(self.left)} left"
            )

    def _show_evaluation(self, entry: LogEntry) -> None:
        reward = entry.figures.get("reward")
        split = entry.data.get("split")
        if split == VALIDATION != self._by:
            self._by, self._best = VALIDATION, None
        is_relevant = split == self._by and reward is not None and math.isfinite(reward)
        if is_relevant and reward is not None and (not self._best or reward > self._best[0]):
            self._best = (reward, entry.step)
        values = ", ".join(f"{name} {value:.3f}" for name, value in entry.figures.items() if name != "seconds")
        self._print_line(f"update {entry.step}: {entry.data.get('split', '')} tasks: {values}")

    def _progress_text(self) -> str:
        names = {"reward": "reward", "entropy": "entropy", "kl": "KL", "loss": "loss"}
        parts = [f"{label} {self._figures[name]:.3f}" for name, label in names.items() if name in self._figures]
        if self._best is not None:
            parts.insert(1, f"best {self._by} {self._best[0]:.3f} at {self._best[1]}")
        if self._figures.get("failed"):
            parts.append(f"{self._figures['failed']:g} failed")
        if self._pace is not None:
            parts.append(f"{format_seconds(self._figures.get('seconds', self._pace))}/update")
        return ", ".join(parts)

    def _print_line(self, text: str) -> None:
        self._console.print(text, markup=False)


class _Left(ProgressColumn):
    """The remaining time; the column of rich ignores updates that an earlier process performed."""

    def __init__(self, view: RunView) -> None:
        super().__init__()
        self._view = view

    def render(self, task: Task) -> Text:  # noqa: ARG002
        return Text(f"{format_duration(self._view.left)} left", style="progress.remaining")


def format_seconds(seconds: float) -> str:
    """Format seconds with three digits, or all digits before the point: ``0.0412 s``, ``104 s``."""
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"


def format_duration(seconds: float | None) -> str:
    """Format a duration for a person: ``8.4 s``, ``3 min 20 s``, ``2 h 5 min``; ``?`` if it is unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "?"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"
