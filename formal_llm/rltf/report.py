"""The report of a training run: its settings and its results.

``report.md`` is produced from ``log.jsonl`` alone, so a report can be written while the run is in progress, and again
when only its folder remains. Curves are drawn by TensorBoard and Weights & Biases.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from formal_llm.errors import RecordError
from formal_llm.planning.drivers.json_lines import write_atomically
from formal_llm.rltf.metrics_log import HELD_OUT, VALIDATION, LogEntry, best_of, read_log
from formal_llm.rltf.run_view import format_duration, format_seconds

#: The name of the report in the folder of the run.
REPORT = "report.md"
#: The approximate maximum number of evaluations in a table.
_ROWS = 20
#: The labels of figures in tables.
_CALLED = {"reward": "reward", "exact": "share of right tool sets", "seconds": "seconds", "kl": "KL to the base model"}


@dataclass(frozen=True)
class LoggedRun:
    """The contents of the log of a run.

    Attributes:
        evaluations: the evaluations by split, in order; after each update only the last.
        checkpoints: the saved checkpoints.
        end: why the run is over; empty while it is not.
        elapsed: the working time in seconds.
        resumes: the updates after which the run was resumed.
    """

    settings: Mapping[str, object]
    updates: tuple[LogEntry, ...]
    evaluations: Mapping[str, tuple[LogEntry, ...]]
    checkpoints: tuple[LogEntry, ...]
    end: str
    elapsed: float
    resumes: tuple[int, ...]

    @classmethod
    def from_entries(cls, entries: Iterable[LogEntry]) -> LoggedRun:
        """Build the run from the lines of a log."""
        rows = list(entries)
        updates = {entry.step: entry for entry in rows if entry.kind == "update"}
        evaluations: dict[str, dict[int, LogEntry]] = {}
        for entry in rows:
            if entry.kind == "evaluation":
                evaluations.setdefault(entry.data["split"], {})[entry.step] = entry
        ends = [entry.data["reason"] for entry in rows if entry.kind == "end"]
        return cls(
            next((entry.data["settings"] for entry in rows if entry.kind == "run"), {}),
            tuple(updates[step] for step in sorted(updates)),
            {split: tuple(by[step] for step in sorted(by)) for split, by in evaluations.items()},
            tuple(entry for entry in rows if entry.kind == "checkpoint"),
            str(ends[-1]) if ends else "",
            max((entry.elapsed for entry in rows), default=0.0),
            tuple(entry.step for entry in rows if entry.kind == "resume"),
        )

    @property
    def held_out(self) -> tuple[LogEntry, ...]:
        """The evaluations on held-out tasks; if there are none, those of the first split."""
        others = (entries for split, entries in self.evaluations.items() if split != VALIDATION)
        return self.evaluations.get(HELD_OUT) or next(others, ())

    @property
    def judging(self) -> tuple[LogEntry, ...]:
        """The evaluations that determine the best adapters: on the validation tasks, else on the held-out tasks."""
        return self.evaluations.get(VALIDATION) or self.held_out

    @property
    def best(self) -> LogEntry | None:
        """The first of these with the highest reward; None if there is none."""
        return best_of(self.judging)


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write ``report.md`` into the folder of a run, from its log alone; return the report's path.

    Raises:
        ResourceNotFound: the folder has no log.
        RecordError: the log is damaged, or the report cannot be written.
    """
    home = Path(folder)
    run = LoggedRun.from_entries(read_log(home))
    try:
        write_atomically(home / REPORT, [report_text(run).encode()])
    except OSError as error:
        raise RecordError(f"the report cannot be written: {error.strerror}", file=str(home)) from None
    return home / REPORT


def report_text(run: LoggedRun) -> str:
    """Return the text of a report, in Markdown."""
    parts = ["# Training run", _write_summary(run)]
    if run.held_out:
        parts += ["## Before, during and after", _write_evaluations(run)]
    if best := _write_best(run):
        parts += ["## Best checkpoint", best]
    if run.updates:
        parts += ["## Updates", _write_updates(run)]
    parts += ["## Durations", _write_durations(run)]
    if run.settings:
        rows = [(f"`{name}`", f"`{_format_value(value)}`") for name, value in _flatten_settings(run.settings)]
        parts += ["## Settings", _write_table(("setting", "value"), rows, left=2)]
    return "\n\n".join(parts) + "\n"


def _write_summary(run: LoggedRun) -> str:
    performed = run.updates[-1].step if run.updates else 0
    state = f"It ended: {run.end}." if run.end else "It has not ended yet."
    sentences = [f"{performed} update{'s' * (performed != 1)} in {format_duration(run.elapsed)}. {state}"]
    for split in (HELD_OUT, VALIDATION):
        entries = run.held_out if split == HELD_OUT else run.evaluations.get(split, ())
        best = best_of(entries)
        if best is None or len(entries) < 2:
            continue
        first, last = entries[0], entries[-1]
        sentences.append(
            f"{split.capitalize()} reward: {_format_figure(first.figures.get('reward'))} after update {first.step}, "
            f"{_format_figure(last.figures.get('reward'))} after update {last.step}, at best "
            f"**{_format_figure(best.figures['reward'])}** after update {best.step}."
        )
    return " ".join(sentences)


def _write_evaluations(run: LoggedRun) -> str:
    names = list(dict.fromkeys(name for entries in run.evaluations.values() for e in entries for name in e.figures))
    several = len(run.evaluations) > 1
    rows = []
    for split, entries in run.evaluations.items():
        for entry in _select_entries(entries, run.best):
            last = entry is entries[-1] and all(update.step <= entry.step for update in run.updates[-1:])
            when = "before" if entry.step == 0 else "after" if run.end and last else "during"
            figures = [_format_figure(entry.figures.get(name)) for name in names]
            rows.append((*([split] if several else []), when, str(entry.step), *figures))
    text = _write_table((*(["tasks"] if several else []), "when", "update", *map(_label_of, names)), rows)
    left_out = sum(map(len, run.evaluations.values())) - len(rows)
    return f"{text}\n\n{left_out} more are in the log." if left_out else text


def _select_entries(entries: Sequence[LogEntry], best: LogEntry | None) -> list[LogEntry]:
    """Select a readable number of evaluations: the first, the last, the best, and some between."""
    every = math.ceil(len(entries) / _ROWS)
    return [e for n, e in enumerate(entries) if n % every == 0 or e is entries[-1] or e is best]


def _write_best(run: LoggedRun) -> str:
    marked = [entry for entry in run.checkpoints if entry.data.get("best")]
    if not marked:
        return ""
    saved = marked[-1]
    splits = ((HELD_OUT, run.held_out), (VALIDATION, run.evaluations.get(VALIDATION, ())))
    judged = [(split, entry) for split, entries in splits for entry in entries if entry.step == saved.step]
    worth = "".join(f", {split} reward {_format_figure(entry.figures.get('reward'))}" for split, entry in judged)
    return f"`{_format_value(saved.data['name'])}`, after update {saved.step}{worth}."


def _write_updates(run: LoggedRun) -> str:
    """Return the mean figures of the first, the middle and the last tenth of the updates."""
    count = len(run.updates)
    size = max(count // 10, 1)
    middle = (count - size) // 2
    thirds = {"first": run.updates[:size], "middle": run.updates[middle : middle + size], "last": run.updates[-size:]}
    names = list(dict.fromkeys(name for entry in run.updates for name in entry.figures))
    rows = []
    for name in names:
        means = [_mean_of([entry.figures[name] for entry in part if name in entry.figures]) for part in thirds.values()]
        rows.append((_label_of(name), *map(_format_figure, means)))
    heads = [f"{which}: {_format_span(part)}" for which, part in thirds.items()]
    return _write_table(("mean of updates", *heads), rows)


def _write_durations(run: LoggedRun) -> str:
    updating = [entry.figures["seconds"] for entry in run.updates if "seconds" in entry.figures]
    judging = [e.figures["seconds"] for es in run.evaluations.values() for e in es if "seconds" in e.figures]
    rows = [("the whole run", format_duration(run.elapsed), "")]
    for label, seconds in (("updates", updating), ("evaluations", judging)):
        if seconds:
            each = f"{format_seconds(sum(seconds) / len(seconds))}, {len(seconds)} times"
            rows.append((label, format_duration(sum(seconds)), each))
    text = _write_table(("what", "time", "each"), rows)
    if run.resumes:
        text += f"\n\nThe run was resumed after update {', '.join(map(str, run.resumes))}; pauses are not counted."
    return text


# -- Markdown ---------------------------------------------------------------------------------------------------------


def _write_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table whose first columns are texts and the others numbers."""
    lines = [head, ["---"] * left + ["---:"] * (len(head) - left), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _flatten_settings(settings: Mapping[str, object], before: str = "") -> Iterable[tuple[str, object]]:
    """Return the settings of all tables as ``table.name`` and value."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten_settings(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _format_value(value: object) -> str:
    """Format a value on one line, for a code span."""
    return " ".join(str(value).split()).replace("`", "'") or " "


def _format_figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value == 0 or 0.001 <= abs(value) < 1e6 else f"{value:.3g}"


def _mean_of(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _format_span(part: Sequence[LogEntry]) -> str:
    first, last = part[0].step, part[-1].step
    return str(first) if first == last else f"{first} to {last}"


def _label_of(name: str) -> str:
    return _CALLED.get(name, name.replace("_", " "))
