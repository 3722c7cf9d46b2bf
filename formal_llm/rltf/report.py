"""The report of a training run: its settings, its results and its curves.

``report.md`` and the images in ``curves/`` are produced from ``log.jsonl`` alone, so a report can be written while the
run is in progress, and again when only its folder remains.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from formal_llm.errors import MissingDependency, ResultsError
from formal_llm.planning.drivers.json_lines import write_atomically
from formal_llm.rltf.metrics_log import HELD_OUT, VALIDATION, LogEntry, best_of, read_log
from formal_llm.rltf.run_view import format_duration, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A point: x and y. A y that is not finite is a gap in the line.
Point: TypeAlias = tuple[float, float]

#: The colours and dashes of the series, in turn; a dash is the lengths of line and gap, in line widths.
COLOURS = ("#0067a5", "#c2500a", "#007a5a", "#a3488a", "#8a6500", "#3f6f8f")
_DASHES = (None, (3.5, 2), (1, 1.5), (4.5, 1.5, 1, 1.5), (6, 2), (2, 1))
_TITLE, _TEXT, _AXIS, _GRID = "#1b1f24", "#4a4f57", "#8a9099", "#e7eaee"
#: The settings of matplotlib: texts remain texts, equal charts give equal files, and no text is read as mathematics.
_RULES = {
    "svg.fonttype": "none", "svg.hashsalt": "formal_llm", "text.parse_math": False, "font.family": "sans-serif",
    "font.size": 9, "text.color": _TEXT, "axes.labelcolor": _TEXT, "xtick.labelcolor": _TEXT, "ytick.labelcolor": _TEXT,
    "axes.edgecolor": _AXIS, "xtick.color": _AXIS, "ytick.color": _AXIS, "axes.spines.top": False,
    "axes.spines.right": False, "axes.spines.left": False, "ytick.left": False, "axes.grid": True,
    "axes.grid.axis": "y", "grid.color": _GRID, "axes.axisbelow": True, "figure.facecolor": "white",
    "figure.constrained_layout.w_pad": 0.1, "figure.constrained_layout.h_pad": 0.1,
}  # fmt: skip
#: The size of an image in inches: 720 by 340 pixels of SVG, at its natural scale.
_SIZE = (720 / 96, 340 / 96)
#: The maximum number of points of a line before it is thinned without visible difference.
_MOST = 600
#: The largest number that a point in an image may have.
_LARGEST = 1e100


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes:
        name: its label in the legend.
        points: its points, x ascending.
        low, high: the bounds of a band around the line, for the same x; empty for none.
        dots: whether its points are marked, for lines with few points.
    """

    name: str
    points: tuple[Point, ...]
    low: tuple[Point, ...] = ()
    high: tuple[Point, ...] = ()
    dots: bool = False


@dataclass(frozen=True)
class Chart:
    """A line chart.

    Attributes:
        series: its lines.
        x_label, y_label: the labels of the axes, with the unit if there is one.
        marks: vertical lines, each an x and its text.
        y_range: the minimum range of the y axis, whatever the points are; None to follow the points.
    """

    title: str
    series: tuple[Series, ...]
    x_label: str = "update"
    y_label: str = ""
    marks: tuple[tuple[float, str], ...] = ()
    y_range: tuple[float, float] | None = None

    def draw_svg(self) -> str:
        """Return the chart as SVG text, always the same for the same chart.

        Raises:
            MissingDependency: matplotlib is not installed.
        """
        try:
            import matplotlib
        except ImportError as error:
            raise MissingDependency("curves are drawn by matplotlib: pip install 'formal-llm[rltf]'") from error
        text = StringIO()
        info = {"Title": self.title, "Description": self._describe_chart(), "Date": None, "Creator": None}
        with matplotlib.rc_context(_RULES):  # type: ignore[arg-type]  # names of settings, and no other texts, are known
            self._make_figure().savefig(text, format="svg", metadata=info)
        return text.getvalue()

    def _make_figure(self) -> Figure:
        from matplotlib.figure import Figure

        figure = Figure(_SIZE, layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(self.title, loc="left", color=_TITLE, fontsize=11, fontweight="bold", pad=10)
        self._draw_axes(axes)
        handles, names = axes.get_legend_handles_labels()
        if handles:
            columns = min(len(handles), 3)
            figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, handlelength=3)
        return figure

    def _draw_axes(self, axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        drawn = [point for one in self.series for point in (*one.points, *one.low, *one.high) if _is_drawable(point)]
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        axes.margins(x=0.02, y=0.05)
        if not drawn:
            axes.text(0.5, 0.5, "nothing was measured", transform=axes.transAxes, ha="center", va="center")
            axes.set(xticks=(), yticks=())
            return
        if max(abs(y) for _, y in drawn) < 1e6:  # the ticks of larger numbers share an exponent or an offset
            axes.ticklabel_format(axis="y", useOffset=False)
        if all(x == int(x) for x, _ in drawn):
            axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        for number, one in enumerate(map(thin_series, self.series)):
            _draw_series(axes, number, one)
        if self.y_range is not None:
            axes.update_datalim([(drawn[0][0], y) for y in self.y_range], updatex=False)
            axes.autoscale_view()
        first, last = axes.get_xlim()
        for x, label in self.marks:
            if first <= x <= last:
                left = x > (first + last) / 2  # put the text where there is room
                axes.axvline(x, color=_AXIS, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
                text = axes.annotate(
                    label, (x, 0), (-6 if left else 6, 6), xycoords=axes.get_xaxis_transform(),
                    textcoords="offset points", ha="right" if left else "left",
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85},  # over the lines
                )  # fmt: skip
                text.set_in_layout(False)  # a long text must not shrink the plot

    def _describe_chart(self) -> str:
        """Describe the chart in words, for those who cannot see it."""
        parts = []
        for one in self.series:
            finite = [point for point in one.points if _is_drawable(point)]
            if finite:
                (x, y), (last, end) = finite[0], finite[-1]
                parts.append(f"{one.name}: {y:.4g} at {self.x_label} {x:g}, {end:.4g} at {last:g}")
        return "; ".join(parts) or "nothing was measured"


def _draw_series(axes: Axes, number: int, one: Series) -> None:
    """Draw a series, its band first; a point between two gaps is a dot."""
    colour, dash = line_style(number)
    if one.low:
        xs, (low, high) = [x for x, _ in one.low], (_heights_of(one.low), _heights_of(one.high))
        axes.fill_between(xs, low, high, color=colour, alpha=0.16, linewidth=0)
    heights = _heights_of(one.points)
    line = axes.plot(
        [x for x, _ in one.points], heights, color=colour, linewidth=1.8, linestyle="-" if dash is None else (0, dash),
        label=one.name or None, gid=f"line-{number}",
    )[0]  # fmt: skip
    around = [math.nan, *heights, math.nan]
    alone = [n for n, y in enumerate(heights) if math.isnan(around[n]) and math.isnan(around[n + 2]) and y == y]
    if one.dots or alone:
        line.set(marker="o", markersize=5, markevery=None if one.dots else alone)


def line_style(number: int) -> tuple[str, tuple[float, ...] | None]:
    """Return the colour and the dash of a series, by its number from 0; series of the same colour differ in dash."""
    return COLOURS[number % len(COLOURS)], _DASHES[(number + number // len(COLOURS)) % len(_DASHES)]


# -- data of lines ----------------------------------------------------------------------------------------------------


def smooth_points(name: str, points: Sequence[Point], window: int) -> Series:
    """Return the moving mean of points, with a band of one standard deviation to each side.

    Args:
        name: the name of the series.
        points: the points, x ascending. Points that are not finite are gaps and do not enter the means.
        window: the number of points per mean, ending with the point itself; fewer at the start.
    """
    rows: list[tuple[float, float, float]] = []  # x, mean, spread
    for place, (x, y) in enumerate(points):
        if math.isfinite(y):
            values = [value for _, value in points[max(0, place - window + 1) : place + 1] if math.isfinite(value)]
            rows.append((x, statistics.fmean(values), statistics.pstdev(values)))
        else:
            rows.append((x, math.nan, math.nan))
    return Series(
        name,
        tuple((x, mean) for x, mean, _ in rows),
        tuple((x, mean - spread) for x, mean, spread in rows),
        tuple((x, mean + spread) for x, mean, spread in rows),
    )


def thin_series(series: Series, most: int = _MOST) -> Series:
    """Thin a series to about ``most`` points: every n-th, and the last."""
    count = len(series.points)
    every = math.ceil(count / most)
    if every <= 1:
        return series

    def keep_points(points: tuple[Point, ...]) -> tuple[Point, ...]:
        return points[::every] if not points or (len(points) - 1) % every == 0 else (*points[::every], points[-1])

    return replace(
        series, points=keep_points(series.points), low=keep_points(series.low), high=keep_points(series.high)
    )


def _heights_of(points: Sequence[Point]) -> list[float]:
    """Return the y of points; nan for gaps."""
    return [point[1] if _is_drawable(point) else math.nan for point in points]


def _is_drawable(point: Point) -> bool:
    """Return whether both numbers are finite and small enough for their differences to be finite."""
    return all(abs(value) <= _LARGEST for value in point)


#: The names of the report and of the folder with its images, in the folder of the run.
REPORT, CURVES = "report.md", "curves"
#: The approximate maximum number of evaluations in a table.
_ROWS = 20
#: The labels of figures in tables and charts.
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

    def points_of(self, name: str) -> tuple[Point, ...]:
        """Return a figure of the updates that have it, by their numbers."""
        return tuple((entry.step, entry.figures[name]) for entry in self.updates if name in entry.figures)


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write ``report.md`` and its images into the folder of a run, from its log alone; return the report's path.

    Raises:
        ResourceNotFound: the folder has no log.
        ResultsError: the log is damaged, or the report cannot be written.
    """
    home = Path(folder)
    run = LoggedRun.from_entries(read_log(home))
    charts = charts_of(run)
    try:
        pictures = {name: chart.draw_svg() for name, chart in charts.items()}
        missing = ""
    except MissingDependency as error:
        pictures, missing = {}, f"They are not here: {error}, then write the report again (`write_report`)."
    try:
        (home / CURVES).mkdir(exist_ok=True)
        for name, picture in pictures.items():
            write_atomically(home / CURVES / f"{name}.svg", [picture.encode()])
        write_atomically(home / REPORT, [report_text(run, charts, missing).encode()])
    except OSError as error:
        raise ResultsError(f"{home}: the report cannot be written: {error.strerror}") from None
    return home / REPORT


def charts_of(run: LoggedRun) -> dict[str, Chart]:
    """Return the charts of a run, by file name, without those of figures that were not measured."""
    charts: dict[str, Chart] = {}
    best = run.best
    if run.held_out:
        lines = [
            Series(
                _label_of(name), tuple((e.step, e.figures[name]) for e in run.held_out if name in e.figures), dots=True
            )
            for name in dict.fromkeys(n for e in run.held_out for n in e.figures if n in ("reward", "exact"))
        ]
        if VALIDATION in run.evaluations:
            points = tuple((e.step, e.figures["reward"]) for e in run.judging if "reward" in e.figures)
            lines.append(Series("reward, validation", points, dots=True))
        marks = () if best is None else ((best.step, f"best: {_format_figure(best.figures['reward'])}"),)
        between_0_and_1 = all(0 <= y <= 1 for line in lines for _, y in line.points)
        charts["held_out"] = Chart(
            "Held-out tasks", tuple(lines), y_label="mean", marks=marks, y_range=(0, 1) if between_0_and_1 else None
        )
    window = max(len(run.updates) // 25, 5)
    for name, title in (
        ("reward", "Training reward"), ("entropy", "Entropy of the choices"), ("kl", "KL to the base model"),
        ("loss", "Loss"), ("drift", "How far the server that made the plans was from the trainer"),
    ):  # fmt: skip
        measured = run.points_of(name)
        if measured:
            line = smooth_points(f"mean of {window} updates, ±1 standard deviation", measured, window)
            if len(measured) <= 2 * window:  # too few for means to be informative
                line = Series("", measured)
            unit = {"entropy": "nats", "kl": "nats", "drift": "nats"}.get(name, name)
            charts[{"reward": "training_reward"}.get(name, name)] = Chart(title, (line,), y_label=unit)
    return charts


def report_text(run: LoggedRun, charts: Mapping[str, Chart], missing: str = "") -> str:
    """Return the text of a report, in Markdown; ``missing`` specifies why there are no images of its charts."""
    parts = ["# Training run", _write_summary(run)]
    if run.held_out:
        parts += ["## Before, during and after", _write_evaluations(run)]
    if best := _write_best(run):
        parts += ["## Best checkpoint", best]
    if charts:
        parts.append("## Curves")
        parts += [missing] if missing else [f"![{chart.title}]({CURVES}/{name}.svg)" for name, chart in charts.items()]
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
    return f"{text}\n\n{left_out} more are in the log and in the curve." if left_out else text


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
