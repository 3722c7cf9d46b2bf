"""``formal-llm bench PACK``: a pack that ``formal-llm new`` made, and shipped ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inside import runner

run, new = runner("bench"), runner("new")


@pytest.fixture
def laundry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    assert new("laundry")[0] == 0
    return tmp_path


def test_methods_side_by_side(laundry: Path) -> None:
    (laundry / "tasks.txt").write_text("Do the laundry\nWash and iron\n", encoding="utf-8")
    (laundry / "plans.txt").write_text("# good ones\nwash dry fold\nwash / iron / fold\n", encoding="utf-8")
    common = ("./laundry", "--tasks", "tasks.txt", "--references", "plans.txt", "--out", "b", "--prices", "1,2")
    code, printed, said = run(*common, "--llm", "test:random", "--repeats", "3")
    assert code == 0, said
    assert printed.startswith("laundry: an order of steps: 2 tasks, 3 repeats; average: F1 with plans.txt@")
    assert "not asked: test:random draft: it writes no free text" in printed
    table: dict[str, Any] = json.loads((laundry / "b" / "table.json").read_text())
    figures = {column["method"]: column for column in table["columns"]}
    assert list(figures) == ["typed", "formal", "look"]
    assert (figures["formal"]["valid"], figures["look"]["valid"]) == (1, 1)
    assert 0 < figures["formal"]["average"] <= 1
    assert {column["plans"] for column in table["columns"]} == {6}
    assert "| valid plans |" in (laundry / "b" / "table.md").read_text()

    # More LLMs are added, and nothing is made again.
    before = (laundry / "b" / "plans.jsonl").read_bytes()
    code, printed, said = run(*common, "--llm", "builtin", "--method", "formal", "--show", "markdown")
    assert code == 0, said
    assert (laundry / "b" / "plans.jsonl").read_bytes().startswith(before)
    assert "| builtin formal |" in printed

    # Another file of references is another benchmark.
    (laundry / "plans.txt").write_text("wash dry fold\nwash fold\n", encoding="utf-8")
    code, _, said = run(*common)
    assert (code, "another setting (quality" in said) == (2, True)


@pytest.mark.parametrize("like", ["pipeline", "schedule"])
def test_other_templates(laundry: Path, like: str) -> None:
    new("other", "--like", like)
    code, printed, said = run("./other", "--method", "formal", "--out", "b", "--show", "json")
    assert code == 0, said
    (column,) = json.loads(printed)["columns"]
    assert (column["valid"], column["average"]) == (1, None)


@pytest.mark.parametrize("pack", ["cooking", "daily", "risk"])
def test_shipped_packs(laundry: Path, pack: str) -> None:
    code, printed, said = run(pack, "--method", "formal", "--method", "typed", "--out", "b", "--show", "json")
    assert code == 0, said
    columns = {column["method"]: column["valid"] for column in json.loads(printed)["columns"]}
    # A day is planned backwards under constraints: what looks no step ahead does not get through it.
    assert columns == {"typed": 0 if pack == "daily" else 1, "formal": 1}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("./laundr",), "no benchmark or task pack './laundr'"),
        (("./laundry", "--references", "none.txt"), "none.txt: there is no such file"),
        (("./laundry", "--references", "two.txt"), "two.txt: it holds 2 plans for 1 task"),
        (("./laundry", "--references", "odd.txt"), "odd.txt:2: unknown step: wahs"),
        (("./laundry", "--prices", "much"), "--prices takes IN,OUT"),
        (("./laundry", "--tasks", "none.txt"), "none.txt"),
        (("./laundry", "--method", "draft"), "nobody can be asked: builtin draft: it writes no free text"),
        (("./empty",), "./empty: the pack has no tasks; name a file with a task on each line: --tasks FILE"),
    ],
)
def test_what_cannot_be(laundry: Path, given: tuple[str, ...], problem: str) -> None:
    (laundry / "two.txt").write_text("wash dry fold\nwash fold\n", encoding="utf-8")
    (laundry / "odd.txt").write_text("\nwahs dry fold\n", encoding="utf-8")
    (laundry / "empty").mkdir()
    (laundry / "empty" / "go.cfg").write_text("S -> a", encoding="utf-8")
    (laundry / "empty" / "pack.toml").write_text('title = "Empty"\nrules = "go.cfg"', encoding="utf-8")
    code, printed, said = run(*given, "--out", "b")
    assert (code, printed) == (2, "")
    assert problem in said


def test_a_reference_that_breaks_the_rules_is_reported(laundry: Path) -> None:
    (laundry / "plans.txt").write_text("dry wash fold\n", encoding="utf-8")
    code, _, said = run("./laundry", "--references", "plans.txt", "--method", "formal", "--out", "b")
    assert code == 0
    assert "warning: plans.txt:1: this plan is not valid: dry cannot stand at place 1" in said
