"""What may stand in pack.toml, and what in it cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import CFG, RandomLLM, TaskPack
from formal_llm.automata.models.limits import SumLimit
from formal_llm.errors import NotationError, NoValidPlan
from formal_llm.planning.drivers.results import run_of
from formal_llm.planning.pack_file import SHAPE, apply_limits, compose_texts
from tests.cli.program import run

GRAMMAR = 'S -> fry S | wash S | rest\nfry "Fry" minutes=5\nwash minutes=2\n%limit 4 fry\n'


def pack_of(folder: Path, more: str, rules: str = GRAMMAR, ending: str = ".cfg") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"rules{ending}").write_text(rules, encoding="utf-8")
    (folder / "pack.toml").write_text(f'title = "P"\nrules = "rules{ending}"\n{more}', encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("more", "line", "said"),
    [
        ('[[constraint]]\nname = "n"\nformula = "fry"\n', 3, "did you mean constraints?"),
        ("[limit]\n", 3, "did you mean limits?"),
        ("[limits]\nfry = 1\n", 4, "unknown key in limits: fry"),
        ("[limits]\nat_most = {fyr = 1}\n", 4, "did you mean fry?"),
        ("[limits]\n\nat_least = {fry = -1}\n", 3, "whole number from 0, not -1"),
        ("[limits.sums.minuts]\nat_most = 3\n", 3, "did you mean minutes?"),
        ("[limits.sums.minutes]\nmost = 3\n", 4, "did you mean at_most?"),
        ('[[constraints]]\nname = "n"\nforumla = "fry"\n', 5, "did you mean formula?"),
        ('[[groups]]\nname = "G"\ntext = "t"\nslot = []\n', 6, "did you mean slots?"),
        ('[inputs.x]\nterminal = "fry"\nword = ["a"]\n', 5, "did you mean words?"),
        ('[inputs.x]\nterminal = "fyr"\n', 4, "did you mean fry?"),
        ('[sentence]\npattern = "(?P<given>.)(?P<wanted>.)"\notherwise = "text"\n', 5, "unknown goal: text"),
        ('[kinds]\nfyr = "text"\n', 4, "did you mean fry?"),
        ('task = "Do {it}"\n', 3, "placeholder {it}"),
        ('[names]\nx0 = "(or fry wash)"\n'
         + "".join(f'x{n + 1} = "(or {{x{n}}} {{x{n}}})"\n' for n in range(40)), 20, "1,000,000 are allowed"),
    ],
)  # fmt: skip
def test_nothing_is_passed_over(more: str, line: int, said: str, tmp_path: Path) -> None:
    folder = pack_of(tmp_path / "p", more)
    with pytest.raises(NotationError) as caught:
        TaskPack.load(str(folder))
    assert said in str(caught.value)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{folder / 'pack.toml'}:{line}:")


def test_limits_of_a_pack_narrow_those_of_its_rules(tmp_path: Path) -> None:
    more = '[limits]\ndefault = 3\nat_most = {rest = "*", fry = 9}\nat_least = {wash = 1}\n'
    pack = TaskPack.load(str(pack_of(tmp_path / "p", more + "[limits.sums.minutes]\nat_most = 12\n")))
    limits = pack.source.limits
    assert {name: limits.most(name) for name in ("fry", "wash", "rest")} == {"fry": 4, "wash": 3, "rest": None}
    assert (limits.at_least, limits.sums) == ({"wash": 1}, (SumLimit("minutes", at_most=12),))
    for seed in range(30):
        word = pack.planner(RandomLLM(seed)).plan("cook").word
        assert pack.source.accepts(word)
        assert word.count("wash") >= 1
        assert 5 * word.count("fry") + 2 * word.count("wash") <= 12


def test_limits_of_a_pack_are_known_to_check_verify_and_the_fingerprint(tmp_path: Path) -> None:
    free = pack_of(tmp_path / "free", "")
    bound = pack_of(tmp_path / "bound", "[limits]\nat_least = {fry = 2}\nat_most = {wash = 0}\n")
    told = run("check", str(bound), cwd=tmp_path).stdout
    assert "limit 0 wash" in told
    assert "require 2 fry" in told
    for name, code in (("free", 0), ("bound", 1)):
        (tmp_path / "plan.txt").write_text("rest")
        assert run("verify", name, "plan.txt", cwd=tmp_path).returncode == code
    fingerprints = {run_of(TaskPack.load(str(folder)).planner("test:first"))["run"] for folder in (free, bound)}
    assert len(fingerprints) == 2


def test_limits_that_leave_no_plan(tmp_path: Path) -> None:
    folder = pack_of(tmp_path / "p", "[limits]\nat_least = {fry = 5}\n")
    with pytest.raises(NoValidPlan, match="%require 5 fry"):
        TaskPack.load(str(folder)).planner("test:first").plan("t")
    assert run("check", str(folder), cwd=tmp_path).stdout.count("no valid plan") == 1


@pytest.mark.parametrize(
    ("ending", "rules", "name"),
    [
        (".pda", "p, a, ε -> p, ε\np, b, ε -> q, ε\n%accept q\n", "a"),
        (
            ".mmd",
            "flowchart TD\n  Start([Start]) --> go\n  go --> q{Again?}\n  q -->|yes| go\n  q -->|no| stop_it\n",
            "go",
        ),
        (".agent", '(define d (:states (A (:text "a")) (B (:text "b"))) (:behavior (until A B)))', "A"),
    ],
)
def test_any_rules_can_be_limited(ending: str, rules: str, name: str, tmp_path: Path) -> None:
    folder = pack_of(tmp_path / "p", f"[limits]\nat_least = {{{name} = 2}}\nat_most = {{{name} = 3}}\n", rules, ending)
    pack = TaskPack.load(str(folder))
    for seed in range(20):
        assert pack.planner(RandomLLM(seed)).plan("t").word.count(name) in (2, 3)


def test_the_shipped_packs_have_the_shape() -> None:
    assert set(SHAPE.needed) <= set(SHAPE.known)
    for name in ("openagi", "daily", "cooking", "risk"):
        assert set(TaskPack.load(name).data) <= set(SHAPE.known)


def test_tasks_are_composed_of_slots() -> None:
    assert list(compose_texts("{a}{b}", ["a", "b"], {"a": ["x", "y"], "b": {"subsets": ["1", "2"]}})) == [
        "x1 2", "x2", "x1", "y1 2", "y2", "y1",
    ]  # fmt: skip
    assert isinstance(TaskPack.load("cooking").source, CFG)


def test_limits_of_a_pack_hold_times_and_amounts_as_they_are_written() -> None:
    rules = CFG.from_string("%order forward\nS -> shop S | nap\nshop time=45min cost=€5\nnap time=15min")
    table = {
        "sums": {"time": {"at_most": "2h"}, "cost": {"exactly": "€10"}},
        "times": ["%clock time 8:00-20:00", "%window shop 8:00-9:45"],
    }
    limits = apply_limits(rules, table).limits
    assert limits.lines() == [
        "%limit cost = €10",
        "%limit time <= 2h",
        "%clock time 8:00-20:00",
        "%window shop 8:00-9:45",
    ]
