"""``formal-llm count`` and ``formal-llm sample``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.inside import invoke
from tests.cli.program import run


def test_count_prints_the_number_alone_on_its_last_line(tmp_path: Path) -> None:
    assert run("count", "openagi", "15", "--limit", "input_image=1").stdout.splitlines()[-1] == "2617716"
    (tmp_path / "g.cfg").write_text("S -> S S | a\n", encoding="utf-8")
    done = run("count", "g.cfg", cwd=tmp_path)
    assert done.returncode == 2
    assert "(--max-length)" in done.stderr
    assert "max_length" not in done.stderr
    assert run("count", "g.cfg", "--max-length", "5", cwd=tmp_path).stdout == "5\n"
    done = run("count", "g.cfg", "--max-length", "5", "--of", "derivations", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"count": 23, "of": "derivations", "max_length": 5}


def test_goals_and_inputs_mean_the_same_to_plan_count_and_sample(tmp_path: Path) -> None:
    given = ("--input", "text", "--goal", "image")
    task = "Given English text, how to generate a image step by step?"
    assert run("count", "openagi", task).stdout == run("count", "openagi", *given).stdout
    assert run("count", "openagi", "15", *given).stdout == run("count", "openagi", *given).stdout
    drawn = run("sample", "openagi", task, "--number", "3", "--seed", "1").stdout
    assert run("sample", "openagi", *given, "--number", "3", "--seed", "1").stdout == drawn
    assert "input_image" not in drawn
    (tmp_path / "g.cfg").write_text("Day -> eat Night | skip Night\nNight -> sleep | dance\n", encoding="utf-8")
    assert run("count", "g.cfg", "--goal", "Night", cwd=tmp_path).stdout == "2\n"
    assert run("sample", "g.cfg", "--goal", "Night", cwd=tmp_path).stdout in ("sleep\n", "dance\n")


def test_samples_are_reproducible() -> None:
    once = run("sample", "openagi", "0", "--number", "3", "--seed", "5", "--json")
    assert once.stdout == run("sample", "openagi", "0", "--number", "3", "--seed", "5", "--json").stdout
    assert len(json.loads(once.stdout)) == 3
    assert run("sample", "openagi", "0", "--max-length", "1").returncode == 1


def diff(*arguments: str):
    return invoke("diff", *arguments)


@pytest.fixture
def write(tmp_path: Path):
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_equal_languages_end_with_0(write) -> None:
    done = diff(write("one.cfg", "S -> a T\nT -> b | c\n"), write("two.cfg", "S -> a b | a c\n"))
    assert (done.exit_code, done.stderr) == (0, "")
    first, head, row = done.stdout.splitlines()
    assert first == "equal: they have the same plans"
    assert head.split()[0] == "plans"
    assert row.split() == ["of", "length", "2", "2", "2"]


def test_equal_up_to_a_length(write) -> None:
    one, two = write("one.cfg", "S -> a S b | ε\n"), write("two.cfg", "S -> a S b | a b | ε\n")
    done = diff(one, two, "--max-length", "6")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == "equal up to 6 terminals; longer plans were not compared"
    data = json.loads(diff(one, two, "--max-length", "6", "--json").stdout)
    assert (data["equal"], data["exact"], data["up_to"], data["only_a"]) == (True, False, 6, None)


def test_a_shortest_plan_of_each_ends_with_1(write) -> None:
    one = write("one.cfg", "S -> a S | b\n%limit 2 a\n")
    two = write("two.pda", "%start p\n%accept q\np, a, ε -> p, ε\np, c, ε -> q, ε\n")
    done = diff(one, two)
    assert done.exit_code == 1
    assert done.stdout.splitlines()[:3] == ["different", f"only in {one}: b", f"only in {two}: c"]
    data = json.loads(diff(one, two, "--json").stdout)
    assert (data["equal"], data["exact"], data["only_a"], data["only_b"]) == (False, True, ["b"], ["c"])
    assert data["counts"] == [{"length": 1, "a": 1, "b": 1}]


def test_one_way(write) -> None:
    one, two = write("one.cfg", "S -> a S b | ε | c\n"), write("two.cfg", "S -> a S b | c\n")
    done = diff(one, two, "--max-length", "3")
    assert done.stdout.splitlines()[1:3] == [
        f"only in {one}: ε (the empty plan)",
        f"only in {two}: nothing of at most 3 terminals",
    ]


def test_packs_with_constraints_and_other_rules(write) -> None:
    done = diff("daily", "daily")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "equal: they have the same plans")
    assert diff("react", "rewoo").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(("nowhere.cfg", "daily"), "no such file"), (("daily", "dialy"), "Did you mean 'daily'?")],
)
def test_bad_input_ends_with_2(arguments: tuple[str, ...], told: str) -> None:
    done = diff(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
