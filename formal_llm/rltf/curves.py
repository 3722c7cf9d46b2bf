"""Curves as SVG: line charts with axes, several series, bands of spread, marks and a legend. No library is needed.

The picture stands on a card of its own and follows the reader's light or dark scheme. Series differ by colour and by
dash, so they can be told apart without colours; the colours are those of Okabe and Ito (2008), which people with any
kind of colour vision can tell apart, darkened or lightened until they stand out from the card.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape, quoteattr

#: A point: x and y. A y that is no finite number is a gap in the line.
Point = tuple[float, float]

_LIGHT = ("#0067a5", "#c2500a", "#007a5a", "#a3488a", "#8a6500", "#3f6f8f")
_DARK = ("#56b4e9", "#f5874f", "#2fc499", "#e08fc0", "#e6b422", "#a8c8dd")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2")
#: Room around the plot, in the units of the picture: left, right, top, bottom.
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 24.0, 46.0, 50.0
#: The height of a row of the legend, and the room that an entry takes besides its text.
_ROW, _KEY = 20.0, 50.0
#: A line of more points than this is thinned; the eye sees no difference.
_MOST = 600

_STYLE = """\
text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#4a4f57}
.title{font-size:15px;font-weight:600;fill:#1b1f24}
.card{fill:#ffffff;stroke:#d5d9de}
.grid{stroke:#e7eaee;stroke-width:1}
.axis{stroke:#8a9099;stroke-width:1}
.mark{stroke:#8a9099;stroke-width:1;stroke-dasharray:3 3}
.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.band{stroke:none;fill-opacity:.16}
"""
_STYLE_DARK = """\
text{fill:#b4bac3}.title{fill:#f0f2f5}.card{fill:#15181d;stroke:#353a42}.grid{stroke:#2a2f36}
.axis,.mark{stroke:#757c86}.band{fill-opacity:.22}
"""


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes:
        name: what the legend calls it.
        points: its points, x ascending.
        low, high: a band around the line, from one to the other, for the same x; empty for none.
        dots: whether its points are marked, for lines of few.
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
        title: what it shows.
        series: its lines.
        x_label, y_label: what the axes are, with the unit where there is one.
        marks: vertical lines, each an x and what is said of it.
        y_range: the least range of the y axis, whatever the points are; None to follow the points.
        width, height: the size, in pixels at its natural scale.
    """

    title: str
    series: tuple[Series, ...]
    x_label: str = "update"
    y_label: str = ""
    marks: tuple[tuple[float, str], ...] = ()
    y_range: tuple[float, float] | None = None
    width: int = 720
    height: int = 320

    def svg(self) -> str:
        """The chart as a text of SVG. The same chart is the same text, always."""
        return "\n".join(_Drawing(self).parts()) + "\n"


class _Drawing:
    """One chart with its scales."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.series = [thinned(one) for one in chart.series]
        lines = [part for one in chart.series for part in (one.points, one.low, one.high)]
        xs = [point[0] for points in lines for point in points if _drawable(point)]
        ys = [point[1] for points in lines for point in points if _drawable(point)]
        self.empty = not xs
        self.x_ticks = ticks(min(xs, default=0.0), max(xs, default=1.0), 8, whole=all(x == int(x) for x in xs))
        self.x_from, self.x_to = min(xs, default=0.0), max(xs, default=1.0)
        if self.x_from == self.x_to:
            self.x_from, self.x_to = self.x_ticks[0], self.x_ticks[-1]
        self.y_ticks = ticks(min([*ys, *(chart.y_range or ())], default=0.0),
                             max([*ys, *(chart.y_range or ())], default=1.0), 5)  # fmt: skip
        self.y_from, self.y_to = self.y_ticks[0], self.y_ticks[-1]
        self.right, self.bottom = chart.width - _RIGHT, chart.height - _BOTTOM
        self.legend = self._rows()
        # The first row of the legend stands beside the title where there is room for it.
        self.beside = 20 + 1.2 * _width(chart.title) + 16 <= self.right - sum(map(self._entry, self.legend[0]))
        self.top = _TOP + _ROW * (len(self.legend) - self.beside) if self.legend[0] else _TOP

    def x(self, value: float) -> float:
        return _LEFT + (value - self.x_from) / (self.x_to - self.x_from) * (self.right - _LEFT)

    def y(self, value: float) -> float:
        return self.bottom - (value - self.y_from) / (self.y_to - self.y_from) * (self.bottom - self.top)

    def parts(self) -> Iterator[str]:
        chart = self.chart
        size = f'viewBox="0 0 {chart.width} {chart.height}" width="{chart.width}" height="{chart.height}"'
        yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(chart.title)}>'
        yield f"<title>{escape(chart.title)}</title>"
        yield f"<desc>{escape(self._described())}</desc>"
        yield f"<style>\n{_STYLE}{_colours(_LIGHT)}@media (prefers-color-scheme:dark){{\n{_STYLE_DARK}"
        yield f"{_colours(_DARK)}}}\n</style>"
        yield f'<rect class="card" x=".5" y=".5" width="{chart.width - 1}" height="{chart.height - 1}" rx="8"/>'
        yield _text(20, 28, chart.title, "title")
        if not self.empty:
            yield from self._axes()
            yield from self._marks()
        else:
            yield _text((_LEFT + self.right) / 2, (self.top + self.bottom) / 2, "nothing was measured", anchor="middle")
        for number, one in enumerate(self.series):
            yield from self._line(number, one)
        yield from self._legend()
        yield "</svg>"

    def _described(self) -> str:
        """The chart in words, for those who do not see it."""
        told = []
        for one in self.chart.series:
            finite = [point for point in one.points if _drawable(point)]
            if finite:
                (x, y), (last, end) = finite[0], finite[-1]
                told.append(f"{one.name}: {y:.4g} at {self.chart.x_label} {x:g}, {end:.4g} at {last:g}")
        return "; ".join(told) or "nothing was measured"

    def _axes(self) -> Iterator[str]:
        for value in self.y_ticks:
            y = self.y(value)
            yield f'<line class="grid" x1="{_LEFT:g}" y1="{y:.1f}" x2="{self.right:g}" y2="{y:.1f}"/>'
            yield _text(_LEFT - 8, y + 4, tick_text(value, self.y_ticks), anchor="end")
        for value in self.x_ticks:
            if self.x_from <= value <= self.x_to:
                x = self.x(value)
                yield f'<line class="axis" x1="{x:.1f}" y1="{self.bottom:g}" x2="{x:.1f}" y2="{self.bottom + 5:g}"/>'
                yield _text(x, self.bottom + 19, tick_text(value, self.x_ticks), anchor="middle")
        yield f'<line class="axis" x1="{_LEFT:g}" y1="{self.bottom:g}" x2="{self.right:g}" y2="{self.bottom:g}"/>'
        yield _text((_LEFT + self.right) / 2, self.chart.height - 13, self.chart.x_label, anchor="middle")
        middle = (self.top + self.bottom) / 2
        yield (
            f'<text x="20" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 20 {middle:.1f})">'
            f"{escape(self.chart.y_label)}</text>"
        )

    def _marks(self) -> Iterator[str]:
        for value, said in self.chart.marks:
            if self.x_from <= value <= self.x_to:
                x = self.x(value)
                yield f'<line class="mark" x1="{x:.1f}" y1="{self.top:.1f}" x2="{x:.1f}" y2="{self.bottom:g}"/>'
                left = x > (_LEFT + self.right) / 2  # the text stands where there is room
                yield _text(x - 6 if left else x + 6, self.bottom - 8, said, anchor="end" if left else "start")

    def _line(self, number: int, one: Series) -> Iterator[str]:
        colour = number % len(_LIGHT)
        for low, high in zip(_runs(one.low), _runs(one.high), strict=False):
            if len(low) > 1:
                edge = " ".join(self._at(point) for point in (*high, *reversed(low)))
                yield f'<polygon class="band f{colour}" points="{edge}"/>'
        for run in _runs(one.points):
            if len(run) > 1:
                yield f'<polyline class="line s{colour}"{_dash(number)} points="{" ".join(map(self._at, run))}"/>'
            if one.dots or len(run) == 1:
                for x, y in run:
                    yield f'<circle class="f{colour}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3.5"/>'

    def _at(self, point: Point) -> str:
        return f"{self.x(point[0]):.1f},{self.y(point[1]):.1f}"

    def _rows(self) -> list[list[int]]:
        """The numbers of the series that have a name, in the rows of the legend."""
        rows: list[list[int]] = [[]]
        room = self.right - 20
        for number, one in enumerate(self.series):
            if one.name:
                if rows[-1] and sum(map(self._entry, [*rows[-1], number])) > room:
                    rows.append([])
                rows[-1].append(number)
        return rows

    def _entry(self, number: int) -> float:
        return _width(self.series[number].name) + _KEY

    def _legend(self) -> Iterator[str]:
        """Rows that end at the right edge."""
        for place, row in enumerate(self.legend):
            x = self.right - sum(map(self._entry, row)) + _KEY - 36
            y = 28 + _ROW * (place + (not self.beside))
            for number in row:
                one, colour = self.series[number], number % len(_LIGHT)
                ends = f'x1="{x:.1f}" y1="{y - 4:g}" x2="{x + 26:.1f}" y2="{y - 4:g}"'
                yield f'<line class="line s{colour}"{_dash(number)} {ends}/>'
                if one.dots:
                    yield f'<circle class="f{colour}" cx="{x + 13:.1f}" cy="{y - 4:g}" r="3.5"/>'
                yield _text(x + 34, y, one.name)
                x += self._entry(number)


# -- scales -----------------------------------------------------------------------------------------------------------


def ticks(low: float, high: float, about: int, *, whole: bool = False) -> list[float]:
    """Round numbers at equal distances that reach from ``low`` or below to ``high`` or above; two or more.

    Args:
        low: a finite number.
        high: a finite number, not below ``low``.
        about: how many are wanted; there may be some fewer or more.
        whole: whether only whole numbers make sense.

    The distance is 1, 2 or 5 times a power of 10 (Heckbert 1990, *Nice numbers for graph labels*).
    """
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # one value; a line through the middle
        apart = abs(low) * 0.1 or 0.5
        low, high = low - apart, high + apart
    if whole:
        low, high = math.floor(low), math.ceil(high)
    rough = (high - low) / max(about - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next((nice for nice, below in ((1, 1.5), (2, 3), (5, 7)) if rough / power < below), 10)
    if whole:
        step = max(round(step), 1)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def tick_text(value: float, among: Sequence[float]) -> str:
    """A tick's number with as many places as tell it from its neighbours."""
    step = among[1] - among[0]
    if value and (abs(value) >= 1e6 or step < 1e-5):
        return f"{value:.3g}"
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{value:,.{places}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text.replace(",", "")) else f"{0:.{places}f}"


# -- what lines are made of -------------------------------------------------------------------------------------------


def smoothed(name: str, points: Sequence[Point], window: int) -> Series:
    """The moving mean of points, with a band of one standard deviation to each side.

    Args:
        name: of the series.
        points: the points, x ascending. Those that are no finite numbers are left out of the means, and are gaps.
        window: over how many points, of which the last one is the point itself; at the start over those there are.
    """
    middle: list[Point] = []
    low: list[Point] = []
    high: list[Point] = []
    for place, (x, y) in enumerate(points):
        if not math.isfinite(y):
            rows = (middle, low, high)
            for row in rows:
                row.append((x, math.nan))
            continue
        values = [value for _, value in points[max(0, place - window + 1) : place + 1] if math.isfinite(value)]
        mean, spread = statistics.fmean(values), statistics.pstdev(values)
        middle.append((x, mean))
        low.append((x, mean - spread))
        high.append((x, mean + spread))
    return Series(name, tuple(middle), tuple(low), tuple(high))


def mean_of(name: str, runs: Iterable[Sequence[Point]], *, dots: bool = False) -> Series:
    """The mean of several runs at each x that all of them have, with a band of one standard deviation (of a sample).

    Raises:
        ValueError: there is no run, or no x that all have.
    """
    tables = [dict(run) for run in runs]
    if not tables:
        raise ValueError("a mean of no runs is none")
    xs = sorted(set(tables[0]).intersection(*tables))
    if not xs:
        raise ValueError("the runs have no x in common")
    columns = [[table[x] for table in tables] for x in xs]
    means = [statistics.fmean(column) for column in columns]
    spreads = [statistics.stdev(column) if len(column) > 1 else 0.0 for column in columns]
    rows = list(zip(xs, means, spreads, strict=True))
    band = len(tables) > 1
    return Series(
        name,
        tuple((x, mean) for x, mean, _ in rows),
        tuple((x, mean - spread) for x, mean, spread in rows) if band else (),
        tuple((x, mean + spread) for x, mean, spread in rows) if band else (),
        dots=dots,
    )


def thinned(series: Series, most: int = _MOST) -> Series:
    """A series of at most about ``most`` points: every n-th, and the last."""
    count = len(series.points)
    every = math.ceil(count / most)
    if every <= 1:
        return series

    def kept(points: tuple[Point, ...]) -> tuple[Point, ...]:
        return points[::every] if not points or (len(points) - 1) % every == 0 else (*points[::every], points[-1])

    return replace(series, points=kept(series.points), low=kept(series.low), high=kept(series.high))


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """The parts of a line between its gaps."""
    return [list(run) for good, run in itertools.groupby(points, key=_drawable) if good]


def _drawable(point: Point) -> bool:
    """Whether both numbers are finite, and so is the distance between any two of them."""
    return all(abs(value) <= 1e300 for value in point)


def _width(text: str) -> float:
    """How wide a text of 12 pixels is at most, about; the fonts that readers have differ by a fifth."""
    return sum(4.2 if c in "iljtfrI.,:;'|!()[] " else 10.5 if c in "mwMW" or ord(c) > 0x2E80 else 7.3 for c in text)


def _colours(colours: Sequence[str]) -> str:
    return "".join(f".s{n}{{stroke:{colour}}}.f{n}{{fill:{colour}}}\n" for n, colour in enumerate(colours))


def _dash(number: int) -> str:
    """The dash of a series; those that share a colour do not share a dash."""
    dash = _DASHES[(number + number // len(_LIGHT)) % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text{style} x="{x:.1f}" y="{y:.1f}"{where}>{escape(text)}</text>'
