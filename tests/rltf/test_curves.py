"""Curves: pictures that are well-formed, always the same, and show the points where they lie."""

from __future__ import annotations

import math
import re
import statistics
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import MissingDependency
from formal_llm.rltf.curves import COLOURS, Chart, Point, Series, line_style, smooth_points, thin_series
from tests import strategies

SVG = "{http://www.w3.org/2000/svg}"
FINITE = st.floats(-1e9, 1e9)
ANY = st.floats(allow_nan=True, allow_infinity=True)
POINTS = st.lists(ANY, max_size=30).map(lambda ys: tuple((float(x), y) for x, y in enumerate(ys)))


def drawn(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(chart.draw_svg())


def texts(chart: Chart) -> list[str]:
    return [(element.text or "").replace("\N{MINUS SIGN}", "-") for element in drawn(chart).iter(f"{SVG}text")]


def lines(root: ElementTree.Element) -> list[ElementTree.Element]:
    """The groups of the series."""
    return [group for group in root.iter(f"{SVG}g") if group.attrib.get("id", "").startswith("line-")]


def corners(group: ElementTree.Element) -> list[list[tuple[float, float]]]:
    """The points of a line, part by part between its gaps."""
    path = group.find(f"{SVG}path")
    if path is None:  # one point, or none inside the frame
        return []
    parts = [part for part in path.attrib.get("d", "").split("M") if part.strip()]
    return [[(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", part)] for part in parts]


# -- pictures ------------------------------------------------------------------------------------------------------


@strategies.examples(25)
@given(st.lists(POINTS, max_size=5), st.text(max_size=20), st.booleans(), st.floats(-10, 40))
def test_any_chart_is_well_formed_and_inside_its_frame(
    series: list[tuple[Point, ...]], name: str, dots: bool, mark: float
) -> None:
    name = "".join(c for c in name if (c.isalnum() and c.isascii()) or c in " <&>\"'$\\^")
    low = [tuple((x, y - 1) for x, y in points) for points in series]
    made = tuple(Series(name, points, below, points, dots) for points, below in zip(series, low, strict=True))
    chart = Chart(name, made, name, name, ((mark, name),))
    written = chart.draw_svg()
    assert chart.draw_svg() == written
    root = ElementTree.fromstring(written)
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    for part in (part for group in lines(root) for part in corners(group)):
        assert all(0 <= x <= width and 0 <= y <= height for x, y in part)
    assert "nan" not in re.sub(r"<(title|dc:title|dc:description|text)[^>]*>[^<]*", "", written)


def test_the_points_lie_where_the_axes_say() -> None:
    chart = Chart("t", (Series("a", ((0.0, 0.0), (10.0, 1.0))),))
    [[(x0, y0), (x1, y1)]] = corners(lines(drawn(chart))[0])
    # A tick's text is set under its place on the x axis; the grid has a line at each tick of the y axis.
    ticks = {e.text: e.attrib for e in drawn(chart).iter(f"{SVG}text")}
    assert float(ticks["0"]["x"]) == pytest.approx(x0, abs=0.1)
    assert float(ticks["10"]["x"]) == pytest.approx(x1, abs=0.1)
    heights = sorted(
        float(path.attrib["d"].split()[2])
        for group in drawn(chart).iter(f"{SVG}g")
        if group.attrib.get("id", "").startswith("ytick")
        for path in group.iter(f"{SVG}path")
        if path.attrib.get("d", "").startswith("M ") and "clip-path" in path.attrib
    )
    assert heights[0] == pytest.approx(y1, abs=0.1)
    assert heights[-1] == pytest.approx(y0, abs=0.1)
    assert {"0.0", "1.0"} <= ticks.keys()
    assert x0 < x1
    assert y0 > y1


def test_updates_are_counted_in_whole_numbers() -> None:
    said = texts(Chart("t", (Series("", ((0, 0.5), (1, 0.25), (2, 0.75))),)))
    assert [text for text in said if text in ("0", "1", "2")] == ["0", "1", "2"]
    assert "0.5" not in said[: said.index("update")]


@pytest.mark.parametrize("y", [1e88, -1e99, 123456789.0, 1e-90, 1 + 1e-9, 0.0])
def test_one_number_of_any_size_has_room(y: float) -> None:
    chart = Chart("t", (Series("a", ((0, y), (1, y))),), y_label="loss", marks=((1, f"best: {y:.3f}"),))
    (line,) = lines(drawn(chart))
    [[(x0, _), (x1, _)]] = corners(line)
    assert x1 - x0 > 350  # of 540


def test_what_is_written_on_a_chart() -> None:
    series = (Series("first <&>", ((0, 1), (4, 2))), Series("second", ((0, 2), (4, 3)), dots=True))
    chart = Chart('A "title" & $more$', series, "update", "reward", ((4, "best"), (9, "beyond")))
    said = texts(chart)
    assert {'A "title" & $more$', "first <&>", "second", "update", "reward", "best"} <= set(said)
    assert "beyond" not in said
    assert drawn(chart).findtext(f"{SVG}title") == 'A "title" & $more$'
    described = "first <&>: 1 at update 0, 2 at 4; second: 2 at update 0, 3 at 4"
    assert described in (element.text for element in drawn(chart).iter())


def test_gaps_and_lonely_points() -> None:
    chart = Chart("t", (Series("a", ((0, 1), (1, 2), (2, math.nan), (3, 4), (4, math.inf), (5, 1), (6, 1))),))
    (line,) = lines(drawn(chart))
    assert [len(part) for part in corners(line) if len(part) > 1] == [2, 2]
    assert len(list(line.iter(f"{SVG}use"))) == 1
    assert "nothing was measured" in texts(Chart("t", (Series("a", ((0, math.nan),)),)))
    assert "nothing was measured" in texts(Chart("t", ()))


def test_dots_are_at_the_points() -> None:
    chart = Chart("t", (Series("a", ((0, 1), (1, 2), (2, 0)), dots=True),))
    (line,) = lines(drawn(chart))
    dots = [(float(use.attrib["x"]), float(use.attrib["y"])) for use in line.iter(f"{SVG}use")]
    assert dots == corners(line)[0]


def test_a_range_is_the_least_that_is_shown() -> None:
    narrow, wide = (Chart("t", (Series("", ((0, 0.4), (1, 0.5))),), y_range=y) for y in (None, (0, 1)))
    assert {"0.0", "1.0"} <= set(texts(wide))
    assert not {"0.0", "1.0"} & set(texts(narrow))


def test_series_differ_without_colours() -> None:
    assert len({line_style(number) for number in range(12)}) == 12
    assert len({dash for _, dash in map(line_style, range(6))}) == 6
    series = tuple(Series(str(n), ((0, n), (1, n))) for n in range(6))
    looks = [path.attrib["style"] for group in lines(drawn(Chart("t", series))) for path in group.iter(f"{SVG}path")]
    assert len({re.search("stroke-dasharray: ([^;]*)", look)[0] if "dash" in look else "" for look in looks}) == 6  # type: ignore[index]


def test_a_legend_stands_below_the_axes_and_has_every_name() -> None:
    names = [f"a series with a long name {n}" for n in range(7)]
    chart = Chart("A title", tuple(Series(name, ((0, 1), (1, 2))) for name in names))
    places = {
        e.text: (float(e.attrib["x"]), float(e.attrib["y"])) for e in drawn(chart).iter(f"{SVG}text") if "x" in e.attrib
    }
    rows = {places[name][1] for name in names}
    assert len(rows) > 1
    assert min(rows) > places["update"][1]
    assert all(0 < places[name][0] < 540 for name in names)  # points, of which there are 3 to 4 pixels


def test_without_matplotlib_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependency, match=r"drawn by matplotlib: pip install 'formal-llm\[rltf\]'"):
        Chart("t", ()).draw_svg()


def test_settings_of_matplotlib_stay_as_they_were() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    Chart("t", (Series("a", ((0, 1), (1, 2))),)).draw_svg()
    assert dict(matplotlib.rcParams) == before


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as the Web Content Accessibility Guidelines 2.2 define it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_texts_and_lines_stand_out_from_the_ground() -> None:
    chart = Chart("t", (Series("a", ((0, 1), (1, 2))),), y_label="y")
    text = chart.draw_svg()
    written = set(re.findall(r"<text style=\"[^\"]*fill: (#\w+)", text))
    assert "fill: #ffffff" in text  # the ground, whatever the page has
    assert written
    assert all(contrast(colour, "#ffffff") >= 4.5 for colour in (*COLOURS, *written))


# -- what lines are made of ----------------------------------------------------------------------------------------


@given(st.lists(FINITE, min_size=1, max_size=30), st.integers(1, 10))
def test_a_moving_mean(ys: list[float], window: int) -> None:
    points = [(float(x), y) for x, y in enumerate(ys)]
    series = smooth_points("a", points, window)
    for place, (x, y) in enumerate(series.points):
        seen = ys[max(0, place - window + 1) : place + 1]
        assert x == place
        assert y == pytest.approx(sum(seen) / len(seen), abs=1e-3)
        assert series.high[place][1] - y == pytest.approx(statistics.pstdev(seen), abs=1e-3)
        assert y - series.low[place][1] == pytest.approx(statistics.pstdev(seen), abs=1e-3)


def test_a_moving_mean_leaves_gaps_where_they_are() -> None:
    series = smooth_points("a", [(0, 1.0), (1, math.nan), (2, 3.0)], 3)
    assert math.isnan(series.points[1][1])
    assert series.points[2] == (2, 2.0)


@given(st.integers(0, 5000), st.integers(2, 700))
def test_thinning_keeps_both_ends(count: int, most: int) -> None:
    points = tuple((float(x), x * 2.0) for x in range(count))
    series = thin_series(Series("a", points, points, points), most)
    assert len(series.points) <= most + 1
    assert series.points[:1] == points[:1]
    assert series.points[-1:] == points[-1:]
    assert series.low == series.high == series.points
    if count <= most:
        assert series.points == points
