"""Curves as SVG: line charts with several series, deviation bands and marks, drawn by matplotlib.

The background is white, so the image is readable on light and dark pages. Series differ in both colour and dash, so
they can be distinguished without colours. The colours are those of Okabe and Ito (2008), which are distinguishable with
any kind of colour vision, darkened for contrast with white.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import TYPE_CHECKING, TypeAlias

from formal_llm.errors import MissingDependency

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
        title: the title.
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
