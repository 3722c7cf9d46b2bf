"""Curves: scales whose ticks are round, pictures that are well-formed and inside their frame."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.rltf.curves import Chart, Point, Series, mean_of, smoothed, thinned, tick_text, ticks

SVG = "{http://www.w3.org/2000/svg}"
FINITE = st.floats(-1e9, 1e9)
ANY = st.floats(allow_nan=True, allow_infinity=True)
POINTS = st.lists(ANY, max_size=30).map(lambda ys: tuple((float(x), y) for x, y in enumerate(ys)))


def drawn(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(chart.svg())


def texts(chart: Chart) -> list[str]:
    return [element.text or "" for element in drawn(chart).iter(f"{SVG}text")]


# -- scales --------------------------------------------------------------------------------------------------------


@given(FINITE, FINITE, st.integers(2, 10))
def test_ticks_are_round_even_and_reach_from_end_to_end(one: float, other: float, about: int) -> None:
    low, high = min(one, other), max(one, other)
    found = ticks(low, high, about)
    step = found[1] - found[0]
    near = 1e-6 * step
    assert 2 <= len(found) <= 2 * about + 2
    assert found[0] <= low + near
    assert found[-1] >= high - near
    if high - low > 1e-9 * max(abs(low), abs(high)):  # else floats cannot tell the steps apart
        assert all(after - before == pytest.approx(step, rel=1e-3) for before, after in itertools.pairwise(found))
        digit = f"{step:.3e}"[0]
        assert digit in "125" or f"{step:.2e}".startswith("9.99")


@given(st.integers(-1000, 1000), st.integers(0, 1000), st.integers(2, 10))
def test_whole_ticks_are_whole(low: int, apart: int, about: int) -> None:
    found = ticks(low, low + apart, about, whole=True)
    assert all(value == int(value) for value in found)
    assert found[0] <= low
    assert found[-1] >= low + apart


def test_ticks_that_a_person_would_choose() -> None:
    assert ticks(0, 1, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks(1, 300, 8, whole=True) == [0, 50, 100, 150, 200, 250, 300]
    assert ticks(-0.0035, 0.0038, 5) == pytest.approx([-0.004, -0.002, 0, 0.002, 0.004])
    assert ticks(3, 3, 5)[0] < 3 < ticks(3, 3, 5)[-1]


@given(st.integers(-10_000, 10_000), st.sampled_from([1, 2, 5]), st.integers(-4, 5), st.integers(2, 8))
def test_the_texts_of_ticks_are_their_numbers(first: int, digit: int, power: int, count: int) -> None:
    step = digit * 10.0**power
    values = [number * step for number in range(first, first + count)]
    said = [tick_text(value, values) for value in values]
    assert len(set(said)) == len(said) or max(map(abs, values)) >= 1e6
    for value, text in zip(values, said, strict=True):
        number = float(Decimal(text.replace(",", "").replace("\N{MINUS SIGN}", "-")))
        assert number == pytest.approx(value, abs=step / 100, rel=1e-2)


# -- pictures ------------------------------------------------------------------------------------------------------


@given(st.lists(POINTS, max_size=8), st.text(max_size=20), st.booleans(), st.floats(-10, 40))
def test_any_chart_is_well_formed_and_inside_its_frame(
    lines: list[tuple[Point, ...]], name: str, dots: bool, mark: float
) -> None:
    name = "".join(c for c in name if c.isprintable() and ord(c) < 0xD800)
    low = [tuple((x, y - 1) for x, y in points) for points in lines]
    series = tuple(Series(name, points, below, points, dots) for points, below in zip(lines, low, strict=True))
    chart = Chart(name, series, name, name, ((mark, name),))
    root = drawn(chart)
    assert chart.svg() == chart.svg()
    for element in root.iter():
        if element.tag in (f"{SVG}polyline", f"{SVG}polygon"):
            for x, y in (pair.split(",") for pair in element.attrib["points"].split()):
                assert 0 <= float(x) <= chart.width
                assert 0 <= float(y) <= chart.height
        if element.tag == f"{SVG}circle":
            assert 0 <= float(element.attrib["cy"]) <= chart.height
    assert "nan" not in re.sub(r"<(title|desc|text|svg)[^>]*>[^<]*", "", chart.svg())


def test_the_points_lie_where_the_axes_say() -> None:
    chart = Chart("t", (Series("a", ((0.0, 0.0), (10.0, 1.0))),))
    root = drawn(chart)
    line = next(e for e in root.iter(f"{SVG}polyline"))
    (x0, y0), (x1, y1) = (map(float, pair.split(",")) for pair in line.attrib["points"].split())
    labels = {e.text: e.attrib for e in root.iter(f"{SVG}text")}
    assert float(labels["10"]["x"]) == pytest.approx(x1, abs=0.1)
    assert float(labels["1.0"]["y"]) - 4 == pytest.approx(y1, abs=0.1)
    assert float(labels["0.0"]["y"]) - 4 == pytest.approx(y0, abs=0.1)
    assert x0 < x1
    assert y0 > y1


def test_what_is_written_on_a_chart() -> None:
    series = (Series("first <&>", ((0, 1), (4, 2))), Series("second", ((0, 2), (4, 3)), dots=True))
    chart = Chart('A "title" & more', series, "update", "reward", ((4, "best"),))
    assert {'A "title" & more', "first <&>", "second", "update", "reward", "best"} <= set(texts(chart))
    root = drawn(chart)
    assert root.find(f"{SVG}title").text == 'A "title" & more'  # type: ignore[union-attr]
    assert root.find(f"{SVG}desc").text == (  # type: ignore[union-attr]
        "first <&>: 1 at update 0, 2 at 4; second: 2 at update 0, 3 at 4"
    )
    assert root.attrib["role"] == "img"
    assert "prefers-color-scheme:dark" in chart.svg()


def test_gaps_and_lonely_points() -> None:
    chart = Chart("t", (Series("a", ((0, 1), (1, 2), (2, math.nan), (3, 4), (4, math.inf), (5, 1), (6, 1))),))
    root = drawn(chart)
    assert len(list(root.iter(f"{SVG}polyline"))) == 2
    assert len(list(root.iter(f"{SVG}circle"))) == 1
    assert "nothing was measured" in texts(Chart("t", (Series("a", ((0, math.nan),)),)))
    assert "nothing was measured" in texts(Chart("t", ()))


def test_series_differ_without_colours() -> None:
    series = tuple(Series(str(n), ((0, n), (1, n))) for n in range(12))
    lines = [e.attrib for e in drawn(Chart("t", series)).iter(f"{SVG}polyline")]
    assert len({(line["class"], line.get("stroke-dasharray", "")) for line in lines}) == 12
    assert len({line.get("stroke-dasharray", "") for line in lines[:6]}) == 6


def test_a_legend_without_room_beside_the_title_goes_below_it() -> None:
    names = [f"a series with a long name {n}" for n in range(7)]
    chart = Chart("A title", tuple(Series(name, ((0, 1), (1, 2))) for name in names))
    places = {e.text: (float(e.attrib["x"]), float(e.attrib["y"])) for e in drawn(chart).iter(f"{SVG}text")}
    rows = {places[name][1] for name in names}
    assert len(rows) > 1
    assert min(rows) > places["A title"][1]
    assert all(0 < places[name][0] < chart.width for name in names)
    assert min(float(e.attrib["y1"]) for e in drawn(chart).iter(f"{SVG}line") if e.attrib["class"] == "grid") > max(
        rows
    )


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as the Web Content Accessibility Guidelines 2.2 define it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_texts_and_lines_stand_out_from_the_card() -> None:
    light, dark = Chart("t", ()).svg().split("@media", 1)
    for style in (light, dark):
        card = re.search(r"\.card\{fill:(#\w+)", style)[1]  # type: ignore[index]
        colours = re.findall(r"\.s\d\{stroke:(#\w+)", style)
        written = re.findall(r"(?:text\{[^}]*|\.title\{[^}]*)fill:(#\w+)", style)
        assert (len(colours), len(written)) == (6, 2)
        assert all(contrast(colour, card) >= 4.5 for colour in (*colours, *written)), style


# -- what lines are made of ----------------------------------------------------------------------------------------


@given(st.lists(FINITE, min_size=1, max_size=30), st.integers(1, 10))
def test_a_moving_mean(ys: list[float], window: int) -> None:
    points = [(float(x), y) for x, y in enumerate(ys)]
    series = smoothed("a", points, window)
    for place, (x, y) in enumerate(series.points):
        seen = ys[max(0, place - window + 1) : place + 1]
        assert x == place
        assert y == pytest.approx(sum(seen) / len(seen), abs=1e-3)
        assert series.high[place][1] - y == pytest.approx(statistics.pstdev(seen), abs=1e-3)
        assert y - series.low[place][1] == pytest.approx(statistics.pstdev(seen), abs=1e-3)


def test_a_moving_mean_leaves_gaps_where_they_are() -> None:
    series = smoothed("a", [(0, 1.0), (1, math.nan), (2, 3.0)], 3)
    assert math.isnan(series.points[1][1])
    assert series.points[2] == (2, 2.0)


def test_the_mean_of_runs() -> None:
    series = mean_of("a", [[(0, 1.0), (1, 2.0), (2, 9.0)], [(0, 3.0), (1, 2.0)]])
    assert series.points == ((0, 2.0), (1, 2.0))
    assert series.high == ((0, 2 + math.sqrt(2)), (1, 2.0))
    assert series.low == ((0, 2 - math.sqrt(2)), (1, 2.0))
    assert mean_of("a", [[(0, 1.0)]]) == Series("a", ((0, 1.0),))
    for runs in ([], [[]], [[(0, 1.0)], [(1, 1.0)]]):
        with pytest.raises(ValueError, match="no"):
            mean_of("a", runs)


@given(st.integers(0, 5000), st.integers(2, 700))
def test_thinning_keeps_both_ends(count: int, most: int) -> None:
    points = tuple((float(x), x * 2.0) for x in range(count))
    series = thinned(Series("a", points, points, points), most)
    assert len(series.points) <= most + 1
    assert series.points[:1] == points[:1]
    assert series.points[-1:] == points[-1:]
    assert series.low == series.high == series.points
    if count <= most:
        assert series.points == points
