"""The report of a run, from the folder of the run alone."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import MissingDependency, ResourceNotFound, ResultsError
from formal_llm.rltf.metrics_log import LOG, RunLog, read_log
from formal_llm.rltf.report import (
    COLOURS,
    Chart,
    LoggedRun,
    Point,
    Series,
    charts_of,
    line_style,
    smooth_points,
    thin_series,
    write_report,
)
from tests import strategies
from tests.strategies import examples


def train(folder: Path, updates: int = 60, every: int = 20) -> None:
    """A run whose figures are known: the best held-out reward is at the evaluation before the last."""
    with RunLog(folder, settings={"model": "a|b", "adam": {"lr": 0.001}, "note": "two\nlines `x`", "no": {}}) as log:
        for step in range(updates + 1):
            if step:
                figures = {
                    "reward": step / updates,
                    "entropy": 1 / step,
                    "kl": 0.001 * step,
                    "loss": -0.5,
                    "seconds": 2,
                }
                log.update(step, figures)
            if step % every == 0:
                reward = 0.25 if step == updates else 0.2 + step / 1000
                log.evaluation(step, {"reward": reward if updates else 0.2, "exact": 0.1, "seconds": 4})
                log.checkpoint(step, f"checkpoints/{step}", best=step < updates)
        log.end(updates)


def rows(text: str, section: str) -> list[list[str]]:
    """The cells of the table in a section."""
    part = text.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_a_report(tmp_path: Path) -> None:
    train(tmp_path)
    path = write_report(tmp_path)
    assert path == tmp_path / "report.md"
    text = path.read_text()
    assert "60 updates in" in text
    assert "It ended: done." in text
    assert "Held-out reward: 0.200 after update 0, 0.250 after update 60, at best **0.250** after update 60." in text
    assert rows(text, "Before, during and after") == [
        ["when", "update", "reward", "share of right tool sets", "seconds"],
        ["---", "---:", "---:", "---:", "---:"],
        ["before", "0", "0.200", "0.100", "4.000"],
        ["during", "20", "0.220", "0.100", "4.000"],
        ["during", "40", "0.240", "0.100", "4.000"],
        ["after", "60", "0.250", "0.100", "4.000"],
    ]
    assert "`checkpoints/40`, after update 40, held-out reward 0.240." in text
    updates = rows(text, "Updates")
    assert updates[0] == ["mean of updates", "first: 1 to 6", "middle: 28 to 33", "last: 55 to 60"]
    assert updates[2] == ["reward", "0.058", "0.508", "0.958"]
    assert [row[0] for row in updates[2:]] == ["reward", "entropy", "KL to the base model", "loss", "seconds"]
    assert rows(text, "Durations")[3:] == [
        ["updates", "2 min 0 s", "2 s, 60 times"],
        ["evaluations", "16.0 s", "4 s, 4 times"],
    ]
    assert rows(text, "Settings")[2:] == [
        ["`model`", "`a\\|b`"], ["`adam.lr`", "`0.001`"], ["`note`", "`two lines 'x'`"], ["`no`", "`{}`"],
    ]  # fmt: skip
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert pictures == [f"curves/{name}.svg" for name in ("held_out", "training_reward", "entropy", "kl", "loss")]
    for name in pictures:
        ElementTree.fromstring((tmp_path / name).read_text())
    assert not list(tmp_path.rglob("*.new"))


def test_the_folder_alone_is_enough_and_the_report_is_always_the_same(tmp_path: Path) -> None:
    train(tmp_path / "one")
    first = write_report(tmp_path / "one").read_bytes()
    assert write_report(tmp_path / "one").read_bytes() == first
    (tmp_path / "two").mkdir()
    shutil.copy(tmp_path / "one" / LOG, tmp_path / "two")
    assert write_report(tmp_path / "two").read_bytes() == first


def test_the_curves_show_the_figures(tmp_path: Path) -> None:
    train(tmp_path)
    charts = charts_of(LoggedRun.from_entries(read_log(tmp_path)))
    held_out = charts["held_out"]
    assert [(one.name, one.points[0], one.points[-1]) for one in held_out.series] == [
        ("reward", (0, 0.2), (60, 0.25)), ("share of right tool sets", (0, 0.1), (60, 0.1)),
    ]  # fmt: skip
    assert held_out.marks == ((60, "best: 0.250"),)
    assert held_out.y_range == (0, 1)
    (reward,) = charts["training_reward"].series
    assert len(reward.points) == len(reward.low) == len(reward.high) == 60
    assert reward.points[-1][1] == pytest.approx(sum(range(56, 61)) / 5 / 60)


def test_a_short_run_is_drawn_as_it_was(tmp_path: Path) -> None:
    train(tmp_path, updates=3, every=3)
    (reward,) = charts_of(LoggedRun.from_entries(read_log(tmp_path)))["training_reward"].series
    assert reward.points == ((1, 1 / 3), (2, 2 / 3), (3, 1.0))
    assert not reward.low


def test_a_run_that_is_under_way(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        text = write_report(tmp_path).read_text()
        assert "0 updates in" in text
        assert "It has not ended yet." in text
        for section in ("Curves", "Before", "Best", "Updates", "Settings"):
            assert f"## {section}" not in text
        log.evaluation(0, {"reward": 0.5})
        log.update(1, {"reward": 0.5})
        text = write_report(tmp_path).read_text()
        assert "1 update in" in text
        assert rows(text, "Before, during and after")[2:] == [["before", "0", "0.500"]]


def test_a_run_that_was_resumed_and_other_splits(tmp_path: Path) -> None:
    train(tmp_path)
    with RunLog(tmp_path, resume=40) as log:
        log.evaluation(40, {"reward": 0.9})
        log.evaluation(40, {"reward": 0.7}, split="training")
        log.end(40, "interrupted")
    text = write_report(tmp_path).read_text()
    assert "It ended: interrupted." in text
    assert "The run was resumed after update 40; pauses are not counted." in text
    assert rows(text, "Before, during and after")[2:] == [
        ["held-out", "before", "0", "0.200", "0.100", "4.000"],
        ["held-out", "during", "20", "0.220", "0.100", "4.000"],
        ["held-out", "after", "40", "0.900", "", ""],
        ["training", "after", "40", "0.700", "", ""],
    ]


def test_an_evaluation_before_the_last_update_is_not_called_after(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.evaluation(0, {"reward": 0.2})
        for step in range(1, 4):
            log.update(step, {"reward": 0.5})
            if step == 2:
                log.evaluation(step, {"reward": 0.4})
        log.end(3, "interrupted")
    table = rows(write_report(tmp_path).read_text(), "Before, during and after")[2:]
    assert table == [["before", "0", "0.200"], ["during", "2", "0.400"]]


def test_figures_that_are_no_numbers_are_told_as_such(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.evaluation(0, {"reward": math.nan})
        log.update(1, {"reward": math.inf, "loss": math.nan})
        log.evaluation(1, {"reward": -math.inf})
        log.end(1, "the loss is nan")
    text = write_report(tmp_path).read_text()
    assert [row[2] for row in rows(text, "Before, during and after")[2:]] == ["nan", "-inf"]
    assert [row[1] for row in rows(text, "Updates")[2:]] == ["inf", "nan"]
    assert "It ended: the loss is nan." in text
    assert LoggedRun.from_entries(read_log(tmp_path)).best is None
    assert "nothing was measured" in (tmp_path / "curves" / "loss.svg").read_text()


def test_of_many_evaluations_some_are_in_the_table(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        for step in range(201):
            log.evaluation(step, {"reward": 1.0 if step == 77 else 0.5})
        log.end(200)
    table = rows(write_report(tmp_path).read_text(), "Before, during and after")[2:]
    assert len(table) <= 23
    assert ["during", "77", "1.000"] in table
    assert table[0] == ["before", "0", "0.500"]
    assert table[-1] == ["after", "200", "0.500"]
    assert f"{201 - len(table)} more are in the log" in (tmp_path / "report.md").read_text()


FIGURES = st.dictionaries(st.sampled_from(["reward", "loss", "kl", "odd name", "seconds"]), st.floats(), max_size=5)
LINES = st.lists(st.tuples(st.sampled_from(["update", "evaluation", "checkpoint", "end"]), st.integers(0, 9), FIGURES))


@given(LINES)
@examples(40)
def test_any_log_has_a_report(tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, int, Any]]) -> None:
    folder = tmp_path_factory.mktemp("run")
    with RunLog(folder) as log:
        for kind, step, figures in lines:
            if kind in ("update", "evaluation"):
                getattr(log, kind)(step, figures)
            elif kind == "checkpoint":
                log.checkpoint(step, "x", best=step % 2 == 0)
            else:
                log.end(step)
    text = write_report(folder).read_text()
    for name in re.findall(r"\]\(([^)]+)\)", text):
        ElementTree.fromstring((folder / name).read_text())


def test_without_matplotlib_the_report_says_what_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib", None)
        text = write_report(tmp_path).read_text()
    assert "## Curves\n\nThey are not here: curves are drawn by matplotlib: pip install 'formal-llm[rltf]'" in text
    assert "![" not in text
    assert "Held-out reward: 0.200 after update 0" in text
    assert not list(tmp_path.rglob("*.svg"))
    assert "![Held-out tasks](curves/held_out.svg)" in write_report(tmp_path).read_text()


def test_folders_without_a_report(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound):
        write_report(tmp_path)
    (tmp_path / LOG).write_text(json.dumps({"kind": "dance"}) + "\n")
    with pytest.raises(ResultsError):
        write_report(tmp_path)
    other = tmp_path / "other"
    train(other)
    (other / "curves").touch()
    with pytest.raises(ResultsError, match="cannot be written"):
        write_report(other)


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


def test_a_mark_is_a_line_from_the_bottom_to_the_top() -> None:
    series = (Series("a", ((0, 1), (4, 2))),)
    plain, marked = (
        [path for path in drawn(Chart("t", series, marks=marks)).iter(f"{SVG}path") if "dash" in path.get("style", "")]
        for marks in ((), ((2, "best"),))
    )
    assert plain == [] and len(marked) == 1
    left, bottom, right, top = map(float, re.findall(r"[\d.]+", marked[0].attrib["d"]))
    assert left == right and bottom - top > 100
    assert "stroke-width: 0" not in marked[0].attrib["style"]


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
