"""``formal-llm draw`` and ``list``."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from formal_llm import Flowchart, TaskPack
from formal_llm.authored.places import names
from tests.cli.inside import runner
from tests.cli.program import run
from tests.packages import put


def test_all_that_can_be_named_is_listed() -> None:
    listed = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    shipped = {name for kind in ("tasks", "grammars", "gallery", "agents") for name in names(kind)}
    assert listed.keys() >= {"travel", "incident", "refunds", "deploy", *shipped}
    assert listed["deploy"] == {"name": "deploy", "kind": "grammar", "title": "A release to production", "tasks": 0}
    assert all(row["title"] for row in listed.values())


def test_draw(tmp_path: Path) -> None:
    assert "\nflowchart " in run("draw", "openagi").stdout
    assert run("draw", "openagi", "--what", "pda", "--format", "dot").stdout.startswith("digraph")
    assert run("draw", "openagi", "--out", "g.mmd", cwd=tmp_path).returncode == 0
    assert (tmp_path / "g.mmd").read_text(encoding="utf-8").startswith("---\ntitle: ")


def test_draw_a_plan_over_its_rules() -> None:
    plan = run("plan", "daily").stdout
    drawn = run("draw", "daily", "--plan", "-", "--format", "dot", stdin=plan)
    assert drawn.returncode == 0, drawn.stderr
    assert ">8: supper<" in drawn.stdout.replace("<BR/>", "<")
    product = run("draw", "daily", "--what", "pda", "--plan", "-", stdin=plan)
    assert "linkStyle" in product.stdout
    wrong = run("draw", "daily", "--plan", "-", stdin="lunch\nlunch\n")
    assert wrong.returncode == 2
    assert "no plan of these rules" in wrong.stderr


def test_what_is_too_large_to_read_is_not_drawn() -> None:
    done = run("draw", "daily", "--what", "pda", "--max-boxes", "10")
    assert done.returncode == 2
    assert "--what rules" in done.stderr
    assert "--plan FILE" in done.stderr
    done = run("draw", "react-5", "--max-boxes", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the picture would have 25 boxes, too many to read; draw one plan's way through it" in done.stderr


@pytest.mark.parametrize("to", [[], ["--out", "chart.mmd"]])
def test_a_drawn_flowchart_reads_back_equal(tmp_path: Path, to: list[str]) -> None:
    drawn = run("draw", "risk", *to, cwd=tmp_path).stdout
    if to:
        drawn = (tmp_path / "chart.mmd").read_text(encoding="utf-8")
    assert Flowchart.from_mermaid(drawn) == TaskPack.load("risk").rules


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (dot) is not installed")
def test_draw_png(tmp_path: Path) -> None:
    assert run("draw", "react", "--out", "r.png", cwd=tmp_path).returncode == 0
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_svg_without_graphviz_says_what_to_install(tmp_path: Path) -> None:
    done = run("draw", "openagi", "--format", "svg", cwd=tmp_path, PATH=str(tmp_path))
    assert done.returncode == 3
    assert "Graphviz" in done.stderr


def test_packs_tasks_and_llms() -> None:
    packs = json.loads(run("list", "--json").stdout)
    assert {(pack["name"], pack["tasks"]) for pack in packs} >= {("openagi", 185), ("daily", 1), ("risk", 1)}
    assert "daily                  1 task  Daily plan" in run("list").stdout
    assert "You are legal counsel of" in run("list", "risk").stdout
    rows = json.loads(run("list", "openagi", "--split", "test", "--json").stdout)
    assert [row["number"] for row in rows][:3] == [2, 3, 10]
    assert len(run("list", "openagi").stdout.splitlines()) == 185
    said = run("list", "llms").stdout
    assert "builtin" in said
    assert "[key not set]" in said
    assert "[set]" in run("list", "llms", OPENAI_API_KEY="x").stdout


list_ = runner("list")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path of Python."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def test_where_nothing_is_installed_the_page_is_named(packages: Path) -> None:
    code, printed, said = list_("plugins")
    assert (code, said) == (0, "")
    assert "docs/howto/extend.md" in printed
    assert json.loads(list_("plugins", "--json")[1]) == []


def test_the_list_imports_nothing(packages: Path) -> None:
    put(packages, "broken_mill", "formal_llm.toolkits", "mill = broken_mill:mill", "1 / 0")
    code, printed, said = list_("plugins")
    assert (code, said) == (0, "")
    assert printed.splitlines()[1].split() == ["toolkit", "mill", "broken_mill", "1.0", "broken_mill:mill"]
    assert "broken_mill" not in sys.modules


def test_what_cannot_be_imported_is_told_where_it_is_asked_for(packages: Path) -> None:
    put(packages, "broken_mill", "formal_llm.toolkits", "mill = broken_mill:mill", "1 / 0")
    put(packages, "good_mill", "formal_llm.notations", "grind = good_mill:grind", "def grind(text, file): ...")
    code, printed, said = list_("plugins", "--load")
    assert code == 2
    assert "grind" in printed
    assert "cannot be imported: ZeroDivisionError" in said
    assert [bool(row["problem"]) for row in json.loads(list_("plugins", "--load", "--json")[1])] == [True, False]
    del sys.modules["good_mill"]


@pytest.mark.parametrize(
    ("group", "name"),
    [("providers", "builtin"), ("packs", "openagi"), ("toolkits", "classical"), ("notations", "cfg")],
)
def test_the_names_of_formal_llm_are_refused_to_all_kinds(packages: Path, group: str, name: str) -> None:
    put(packages, "thief", f"formal_llm.{group}", f"{name} = thief:make")
    code, _, said = list_("plugins")
    assert code == 2
    assert f"{name!r} of the package thief 1.0 is not used: formal_llm has one" in said.replace("\n", " ")


def test_one_name_of_two_packages_is_told_once(packages: Path) -> None:
    for package in ("one", "two"):
        put(packages, package, "formal_llm.providers", f"mine = {package}:make")
    code, printed, said = list_("plugins")
    assert code == 2
    assert printed.count("mine") == 2
    assert said.count("more than one provider 'mine'") == 1


def test_a_pack_that_cannot_be_used_does_not_hide_the_others(packages: Path) -> None:
    put(packages, "lost", "formal_llm.packs", "attic = lost:folder", "def folder(): return 'attic'")
    code, printed, said = list_()
    assert code == 0
    assert "openagi" in printed
    assert "left out: the task pack 'attic' (lost:folder, of the package lost 1.0) has to give the path" in said
    del sys.modules["lost"]
