"""``formal-llm check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formal_llm.automata import Limits, Lookahead, Source
from formal_llm.cli import check
from tests.cli.program import run


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the grammar is empty"),
        (b"\xff\xfe\x00S", "not a text file"),
        (b"S = a b\n", "write '->' instead of '='"),
        (b"S -> A\nA -> S\n", "the language is empty"),
        (b"S -> a\n%require 2 a\n%limit 1 a\n", "no word keeps %require 2 a"),
        (b"S -> a S | a\n%require 2 a\n%limit 1 a\n", "clash"),
    ],
)
def test_bad_files_are_told_with_their_place(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_bytes(content)
    for command in ("check", "plan"):
        done = run(command, "g.cfg", cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
        assert "g.cfg" in done.stderr
        assert "Traceback" not in done.stderr


def test_check_tells_what_a_grammar_is(tmp_path: Path) -> None:
    done = run("check", "openagi")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "17 terminals" in done.stdout
    assert "185 tasks" in done.stdout
    (tmp_path / "w.cfg").write_text("S -> a | Loop\nLoop -> Loop a\n", encoding="utf-8")
    done = run("check", "w.cfg", cwd=tmp_path)
    assert done.returncode == 0
    assert "no word can be derived from Loop" in done.stderr
    assert run("check", "w.cfg", "--strict", cwd=tmp_path).returncode == 1


def test_a_budget_of_states() -> None:
    done = run("check", "openagi", "--max-states", "1")
    assert (
        "not decided    the shortest word was not found within the budget of states; raise --max-states" in done.stdout
    )
    assert run("plan", "openagi", "15", "--max-states", "1", "--show", "word").returncode == 0


#: Three typed tools, each of which is in some plan, one that no plan has place for.
TYPED = """
%limit 1
S -> T
T -> caption I | translate T | merge T T | text
I -> colorize I | denoise x I | denoise y I | generate T | image | blur I I I I I
"""


def test_terminals_in_plans_that_were_drawn_are_not_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, bool]] = []

    class Told(Lookahead):
        def __init__(self, source: Source, limits: Limits | None = None, **settings: Any) -> None:
            if limits is not None:
                asked.append((*limits.at_least, settings.get("solver", True)))
            super().__init__(source, limits, **settings)

    monkeypatch.setattr(check, "Lookahead", Told)
    (tmp_path / "typed.cfg").write_text(TYPED, encoding="utf-8")
    check.check(str(tmp_path / "typed.cfg"))
    said = capsys.readouterr().out
    drawn = {name for line in said.splitlines() if line.startswith("at random") for name in line.split()[2:]}
    assert len(drawn) > 5
    assert not drawn & {name for name, _ in asked}
    assert not any(solver for _, solver in asked)  # none is hard: nothing is loaded for them
    assert "in no plan     blur (limit 1 generate; limit 1 image)\n" in said


def test_check_counts_and_measures_the_language(tmp_path: Path) -> None:
    (tmp_path / "f.cfg").write_text("S -> a b | a b c d | e\n", encoding="utf-8")
    said = run("check", "f.cfg", cwd=tmp_path).stdout
    assert "plans          3\n" in said
    assert "shortest plan  e\n" in said
    assert said.count("at random") == 3
    data = json.loads(run("check", "f.cfg", "--json", cwd=tmp_path).stdout)
    assert (data["plans"], data["warnings"], len(data["at random"])) == ("3", [], 3)
    (tmp_path / "i.cfg").write_text("S -> a S | b\n", encoding="utf-8")
    assert "infinitely many; 5 of at most 5 terminals" in run("check", "i.cfg", cwd=tmp_path).stdout


def test_terminals_that_lack_a_limited_number_are_listed(tmp_path: Path) -> None:
    (tmp_path / "day.cfg").write_text("%limit time <= 2h\nS -> a S | b | c\na time=30min\nc time=0min\n")
    assert "no time        b: counts as 0\n" in run("check", "day.cfg", cwd=tmp_path).stdout
    (tmp_path / "day.cfg").write_text("%limit time <= 2h\nS -> a S | a\na time=30min\n")
    assert "counts as 0" not in run("check", "day.cfg", cwd=tmp_path).stdout


def test_a_behaviour_with_examples(tmp_path: Path) -> None:
    agent = tmp_path / "pay.agent"
    agent.write_text(
        '(define pay (:states (ask (:text "[Ask]")) (obs (:text "[Obs]") (:flags :env-input)) (pay (:text "[Pay]")))\n'
        '  (:limits "%limit 1 obs" "%require 2 ask") (:behavior (next ask (until_1 obs empty) (until ask pay))))',
        encoding="utf-8",
    )
    done = run("check", "pay.agent", cwd=tmp_path)
    assert "examples" not in done.stdout
    examples = tmp_path / "pay.examples"
    examples.write_text("---\n[Ask] a\n[Ask] b\n[Pay] c\n", encoding="utf-8")
    assert "examples       1, all allowed\n" in run("check", "pay.agent", cwd=tmp_path).stdout
    examples.write_text("---\n[Ask] a\n[Pay] c\n", encoding="utf-8")
    done = run("check", "pay.agent", cwd=tmp_path)
    assert done.returncode == 2
    assert "pay.examples:3:1: [Pay] cannot stand here because of %require 2 ask" in done.stderr
    assert "expected: [Ask], [Obs]" in done.stderr
    told = json.loads(run("check", "react", "--json").stdout)
    assert told["examples"] == "3, all allowed"


def test_plans_beside_rules_are_checked_whatever_their_notation(tmp_path: Path) -> None:
    (tmp_path / "r.cfg").write_text("S -> wash S | dry\n%limit 1 wash\n", encoding="utf-8")
    examples = tmp_path / "r.examples"
    examples.write_text("--- allowed\nwash dry\n--- not allowed\nwash wash dry\n", encoding="utf-8")
    done = run("check", "r.cfg", cwd=tmp_path)
    assert done.returncode == 0
    assert "examples       1 to allow, 1 to refuse, all kept\n" in done.stdout
    examples.write_text("--- not allowed: water is dear\nwash dry\n--- allowed\ndrye\n", encoding="utf-8")
    assert "did you mean dry?" in run("check", "r.cfg", cwd=tmp_path).stderr
    examples.write_text("--- not allowed: water is dear\nwash dry\n", encoding="utf-8")
    done = run("check", "r.cfg", cwd=tmp_path)
    assert done.returncode == 1
    assert "examples       0 to allow, 1 to refuse, 1 not kept\n" in done.stdout
    assert "not kept       line 1: allowed, and should not be: wash dry\n" in done.stdout


def test_runs_of_an_agent_that_must_not_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "pay.agent").write_text(
        '(define pay (:states (ask (:text "[Ask]")) (pay (:text "[Pay]"))) (:behavior (next ask (until ask pay))))'
    )
    examples = tmp_path / "pay.examples"
    examples.write_text("---\n[Ask] a\n[Pay] b\n--- not allowed\n[Pay] b\n--- allowed\nask pay\n", encoding="utf-8")
    done = run("check", "pay.agent", cwd=tmp_path)
    assert "examples       1, all allowed; 1 to allow, 0 to refuse, all kept\n" in done.stdout
    examples.write_text("--- not allowed\n[Ask] a\n[Pay] b\n", encoding="utf-8")
    assert "this run should not be allowed, and the rules allow it" in run("check", "pay.agent", cwd=tmp_path).stderr


def test_facts_for_rules_that_have_none(tmp_path: Path) -> None:
    (tmp_path / "r.cfg").write_text("S -> wash S | dry")
    done = run("check", "r.cfg", "--set", "amount=5", cwd=tmp_path)
    assert done.returncode == 2
    assert "--set amount: r.cfg has no {placeholder}" in done.stderr


def test_rules_for_tool_calls(tmp_path: Path) -> None:
    text = "ok: ask.result[ok]\ntools pay, ask\nrule a: ok before pay\nrule c: at least 1 pay\nrule d: at most 1 ask\n"
    (tmp_path / "shop.guard").write_text(text)
    done = run("check", "shop.guard", "--json", cwd=tmp_path)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["letters"] == "ok, pay, ask" and found["rules"] == "a, c, d"
    assert "for instance ask, then ask.result: a; c; d" in found["conflicts"][0]
    (tmp_path / "never.guard").write_text("tools a\nrule x: at least 1 a\nrule y: never a\n")
    done = run("check", "never.guard", "--strict", cwd=tmp_path)
    assert done.returncode == 1 and "nothing keeps these rules together: x; y" in done.stdout
    (tmp_path / "bad.guard").write_text("tools a\nrule x: at least one a\n")
    done = run("check", "bad.guard", cwd=tmp_path)
    assert done.returncode == 2 and "bad.guard:2" in done.stderr
    done = run("check", "shop.guard", "--rule", "(eventually pay)", cwd=tmp_path)
    assert done.returncode == 2 and "--rule" in done.stderr


def test_several_starts_of_a_chart_are_told_and_are_no_warning(tmp_path: Path) -> None:
    (tmp_path / "c.mmd").write_text("flowchart TD\nA --> C\nB --> C")
    done = run("check", "c.mmd", "--strict", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "with a choice of A or B: no arrow leads to these" in done.stdout
    (tmp_path / "c.mmd").write_text("flowchart TD\nA --> C")
    assert "begins" not in run("check", "c.mmd", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.cfg", "%start S\nS -> deploy roll_back | deploy rollback\n"),
        ("x.mmd", "flowchart TD\n  a[Roll back] --> b[Deploy] --> c[Rollback]\n"),
        ("x.agent", '(define x\n  (:states roll_back rollback)\n  (:behavior (next roll_back rollback)))\n'),
        ("x.pda", "q, roll_back, ε -> r, ε\nr, rollback, ε -> f, ε\n%accept f\n"),
    ],
)  # fmt: skip
def test_names_that_differ_in_spelling_alone_are_a_warning(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    done = run("check", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "differ only in how they are spelled" in " ".join(done.stderr.split())
    assert run("check", name, "--strict", cwd=tmp_path).returncode == 1


def test_names_of_two_labels_are_two_steps(tmp_path: Path) -> None:
    labels = 'get_order "One order"\nget_orders "All orders of a customer"\n'
    (tmp_path / "x.cfg").write_text(f"S -> get_order | get_orders\n\n{labels}", encoding="utf-8")
    assert run("check", "x.cfg", "--strict", cwd=tmp_path).returncode == 0


# -- how many plans, and some at random --


def test_count_prints_the_number_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_text("S -> S S | a\n", encoding="utf-8")
    done = run("check", "g.cfg", "--count", cwd=tmp_path)
    assert done.returncode == 2
    assert "(--max-length)" in done.stderr
    assert "max_length" not in done.stderr
    assert run("check", "g.cfg", "--count", "--max-length", "5", cwd=tmp_path).stdout == "5\n"
    done = run("check", "g.cfg", "--count", "--max-length", "5", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"count": 5, "max_length": 5}
    (tmp_path / "day.cfg").write_text("Day -> eat Day | sleep | dance\n%limit 1\n", encoding="utf-8")
    assert run("check", "day.cfg", "--count", "--limit", "eat=0", cwd=tmp_path).stdout == "2\n"


def test_samples_are_plans_and_the_same_each_time(tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_text("S -> a S b | ε\n", encoding="utf-8")
    command = ("check", "g.cfg", "--sample", "5", "--max-length", "6", "--json")
    once = run(*command, cwd=tmp_path).stdout
    assert once == run(*command, cwd=tmp_path).stdout
    words = json.loads(once)
    assert len(words) == 5
    assert all(word == [*"a" * (len(word) // 2), *"b" * (len(word) // 2)] and len(word) <= 6 for word in words)
    (tmp_path / "long.cfg").write_text("S -> a a\n", encoding="utf-8")
    done = run("check", "long.cfg", "--sample", "1", "--max-length", "1", cwd=tmp_path)
    assert done.returncode == 1
    assert "there is none of at most 1 terminals to draw" in done.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [(("--count", "--sample", "1"), "cannot both"), (("--limit", "a=1"), "are for --count and --sample")],
)
def test_options_of_counts_stand_with_a_count(options: tuple[str, ...], told: str, tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_text("S -> a\n", encoding="utf-8")
    done = run("check", "g.cfg", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
