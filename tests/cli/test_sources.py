"""What SOURCE and the options for rules mean."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from formal_llm import CFG, PDA, Limits, Lookahead, SumLimit, authored
from formal_llm.cli.sources import load, read_facts, read_limits, read_plan
from formal_llm.errors import FormalLLMError, NotationError, ResourceNotFound
from tests.cli.program import run


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "g.cfg"
    path.write_text("Day -> eat Night | skip Night | Loop\nNight -> sleep | dance\nLoop -> Loop x\n", encoding="utf-8")
    return str(path)


def test_packs_files_and_authored_names_are_found(rules: str) -> None:
    pack = load("openagi")
    assert pack.pack is not None
    assert pack.source is pack.pack.source
    assert pack.wording is pack.pack.wording
    mine = load(rules)
    assert mine.pack is None
    assert isinstance(mine.source, CFG)
    assert [warning for warning in mine.warnings if "Loop" in warning]
    assert isinstance(load("react").source, PDA)
    with pytest.raises(ResourceNotFound, match="Did you mean 'openagi'"):
        load("opnagi")
    with pytest.raises(NotationError, match="there is no such file"):
        load("none.cfg")


def test_a_folder_hides_nothing_that_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("openagi", "deploy", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pack.toml").write_text('title = "Own"\nrules = "g.cfg"\n', encoding="utf-8")
        (tmp_path / name / "g.cfg").write_text("S -> a\n", encoding="utf-8")
    own = [load(name).pack for name in ("./openagi", "./deploy", str(tmp_path / "openagi"), "mine")]
    assert [pack and pack.title for pack in own] == ["Own"] * 4
    shipped = load("openagi").pack
    assert shipped is not None
    assert len(shipped.tasks) == 185
    assert load("deploy").file == authored.find("gallery", "deploy", (".cfg",))


def test_the_language_of_a_task_and_the_whole_one(rules: str) -> None:
    mine = load(rules)
    language, limits = mine.language("", goal="Night", limit=["sleep=0"], require=["dance=1"])
    assert Lookahead(language, limits).count() == 1
    assert Lookahead(mine.whole).count() == 4
    with pytest.raises(ResourceNotFound, match="Did you mean 'Night'"):
        mine.language("", goal="Nigth")
    with pytest.raises(FormalLLMError, match="--input is for task packs"):
        mine.language("", inputs=["image"])


@pytest.mark.parametrize("rule", ["(not (eventually dance))", "never dance"])
def test_rules_of_options_hold_in_both(rules: str, rule: str) -> None:
    mine = load(rules, rules=[rule])
    assert Lookahead(mine.whole).count() == Lookahead(mine.language("")[0]).count() == 2


def test_tasks_of_packs() -> None:
    pack = load("openagi")
    assert pack.task("3") == pack.pack.task("3")  # type: ignore[union-attr]
    other = pack.task("3", inputs=["text"], goal="image")
    assert other.description == pack.task("3").description
    assert (other.inputs, other.goal) != (pack.task("3").inputs, pack.task("3").goal)


def test_limits_of_options() -> None:
    assert read_limits(["a=2", "b = c=0"], ["a=1"]) == Limits({"a": 2, "b = c": 0}, at_least={"a": 1})
    assert read_limits(None, None) == Limits()
    for wrong in ("a", "a=", "a=-1", "a=x"):
        with pytest.raises(FormalLLMError, match=r"--limit takes NAME=N, as in --limit colorization=2; not "):
            read_limits([wrong], None)
    rules = CFG.from_string("%order forward\nS -> a S | b\na cost=€1.50\nb time=1h30 cost=€2")
    made = read_limits(["cost=€5", "a=2", "time = 2h"], ["cost=€3", "b=1"], rules)
    assert made == Limits({"a": 2}, {"b": 1}, sums=(SumLimit("cost", "€5", "€3"), SumLimit("time", "2h")))
    with pytest.raises(FormalLLMError, match="--limit cost=much: 'much' is not a number"):
        read_limits(["cost=much"], None, rules)


def test_facts_of_options(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text('buyer = "X"\nyear = 3\n')
    assert read_facts([f"@{tmp_path}/f.toml", "buyer=Y=Z"]) == {"buyer": "Y=Z", "year": "3"}
    for wrong in ("buyer", "=x"):
        with pytest.raises(FormalLLMError, match="--set takes NAME=VALUE"):
            read_facts([wrong])


def test_plans_of_files_and_of_standard_input(rules: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = load(rules)
    (tmp_path / "plan.txt").write_text("eat sleep")
    assert read_plan(str(tmp_path / "plan.txt"), mine.whole) == ("eat", "sleep")
    monkeypatch.setattr("sys.stdin", io.StringIO("skip dance"))
    assert read_plan("-", mine.whole) == ("skip", "dance")
    with pytest.raises(NotationError, match="there is no such file"):
        read_plan("none.txt", mine.whole)


@pytest.mark.parametrize(
    "command",
    [
        ("check", "{}.cfg"), ("check", "{}.mmd"), ("verify", "cooking", "{}"), ("draw", "cooking", "--plan", "{}"),
        ("plan", "cooking", "--set", "@{}"), ("plan", "openagi", "0", "--llm", "replay:{}"),
        ("plan", "cooking", "--tasks", "{}", "--out", "o"), ("plan", "openagi", "--tasks", "test", "--out", "{}"),
        ("train", "{}.toml", "--out", "o"), ("check", "pack"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_plain_file_is_told_and_not_waited_for(command: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    (tmp_path / "pack").mkdir()
    for name in (
        place,
        *(place.with_suffix(ending) for ending in (".cfg", ".mmd", ".toml")),
        tmp_path / "pack/pack.toml",
    ):
        if kind == "pipe":
            os.mkfifo(name)
        else:
            name.symlink_to("/dev/zero")
    done = run(*(part.format(place) for part in command), cwd=tmp_path)
    assert done.returncode in (2, 3)
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
