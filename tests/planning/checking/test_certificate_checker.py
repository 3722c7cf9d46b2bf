"""The checker of certificates: what it proves is true, whatever is written in a certificate, and it is small."""

from __future__ import annotations

import ast
import copy
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Budget, Limits, Planner, RandomLLM, Walk, constraint
from formal_llm.automata.models.product import product
from formal_llm.errors import BudgetExceeded, NoValidPlan
from formal_llm.planning.plans.certificates import compiled_rules
from tests import oracles, strategies
from tests.certifying import CHECKER, Refused, check, counted, stranger

RULES = CFG.from_string(
    "%limit 2 a\n%limit cost <= 2.5\n%require 1 b\nS -> a S c | b T\nT -> b T | ε\na cost=1\nb cost=0.5"
)
BOTH = RULES & constraint("(eventually a)", RULES)


def proved(rules: Any, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compiled rules and the certificate of a plan, as they come out of files."""
    plan = Planner(rules, RandomLLM(seed), budget=Budget(steps=60)).plan("t")
    return stranger(compiled_rules(rules)), stranger(plan.certificate())


# -- the file ---------------------------------------------------------------------------------------------------------


def test_the_checker_is_short_and_imports_the_standard_library_only() -> None:
    text = CHECKER.read_text()
    assert text.count("\n") <= 120
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert imported <= sys.stdlib_module_names


def test_it_runs_by_itself_wherever_it_is_copied(tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(CHECKER.read_text())
    rules, certificate = proved(BOTH)

    def run(*names: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "check.py", *names]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    for name, data in (("rules", rules), ("good", certificate), ("bad", {**certificate, "word": ["b"]}), ("list", [])):
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    good = run("rules.json", "good.json")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout == f"proved: this plan follows the rules: {' '.join(certificate['word'])}\n"
    bad = run("rules.json", "bad.json")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr.startswith("refused: the run reads")
    for names in (("rules.json", "missing.json"), ("rules.json",), ("rules.json", "list.json")):
        assert run(*names).returncode == 1
    (tmp_path / "deep.json").write_text("[" * 100_000)
    assert "refused" in run("rules.json", "deep.json").stderr


def test_each_plan_that_tests_look_at_is_proved() -> None:
    before = counted["all"]
    walk = Walk(CFG.from_string("S -> a | b"))
    walk.answer(1)
    assert walk.plan.word == ("a",)
    assert counted["all"] > before


# -- what it refuses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": "formal_llm.certificate/2"}, "unknown formats"),
        ({"rules": "0" * 64}, "about other rules"),
        ({"claim": "no plan"}, "unknown claim"),
        ({"run": [0, 0, 1]}, "not finished"),
        ({"run": [-1]}, "no row of numbers"),
        ({"run": [True]}, "no row of numbers"),
        ({"run": [99]}, "not as it should be"),
        ({"run": [2]}, "does not expand the leftmost symbol"),
        ({"sums": []}, "not as it should be"),
        ({"sums": ["abc"]}, "not as it should be"),
        ({"sums": [0, 0, 0]}, "the sum is"),
        ({"sums": [1.0, 0, 0]}, "no exact number"),
        ({"sums": ["1e999999999", 0, 0]}, "no exact number"),  # it would take for ever to write out
        ({"constraints": []}, "not as it should be"),
        ({"constraints": [[]]}, "which does not accept"),
        ({"word": ["a", "b"]}, "the run reads"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], why: str) -> None:
    rules, certificate = proved(BOTH)
    with pytest.raises(Refused, match=why):
        check(rules, {**certificate, **change})


def test_a_limit_that_is_broken_is_named() -> None:
    rules, certificate = proved(RULES.with_limits(Limits()), 1)
    tight = {**rules, "limits": [{"name": "%limit 0 b", "weights": {"b": 1}, "at_most": 0}]}
    told = {**certificate, "rules": claimed_for(tight), "sums": [certificate["word"].count("b")]}
    with pytest.raises(Refused, match="%limit 0 b is broken"):
        check(tight, told)


def claimed_for(rules: dict[str, Any]) -> str:
    """What rules are known by, computed as the checker's page says."""
    import hashlib

    return hashlib.sha256(json.dumps(rules, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


# -- changed in one place ---------------------------------------------------------------------------------------------


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changes(data: Any, others: list[str]) -> Iterator[Any]:
    """Each change of data in a single place: another value, one more, one less, left out."""
    for path in places(data):
        if not path:
            continue
        old: Any = data
        for part in path:
            old = old[part]
        new: list[Any] = [None, -1, 0, "x", [], True]
        if isinstance(old, int) and not isinstance(old, bool):
            new += [old + 1, old - 1, float(old), str(old)]
        if isinstance(old, str):
            new += [f"{old}1", *others]
        if isinstance(old, list):
            new += [old[:-1], old[1:], old[::-1], [*old, *old[-1:]]]
        for value in new:
            changed = copy.deepcopy(data)
            at = changed
            for part in path[:-1]:
                at = at[part]
            at[path[-1]] = value
            yield changed
        if isinstance(path[-1], str):
            changed = copy.deepcopy(data)
            at = changed
            for part in path[:-1]:
                at = at[part]
            del at[path[-1]]
            yield changed


def follows(cfg: CFG, word: list[str], needed: str = "") -> bool:
    """Whether a word follows the rules, found the slow way."""
    return (
        tuple(word) in oracles.language(cfg, len(word))
        and oracles.keeps(word, cfg.limits, cfg.terminals, cfg.symbols)
        and needed in ("", *word)
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_certificate_that_is_changed_in_one_place_is_refused_or_still_true(seed: int) -> None:
    rules, certificate = proved(BOTH, seed)
    refused = 0
    for changed in changes(certificate, sorted(RULES.terminals)):
        try:
            check(rules, changed)
        except Refused:
            refused += 1
        else:
            assert follows(RULES, changed["word"], "a")
            # Only what says the same in other words passes: a sum as a text.
            assert (changed["word"], changed["run"]) == (certificate["word"], certificate["run"])
    assert refused > 100


@strategies.examples(40)
@given(strategies.limited_grammars(), st.integers(0, 1 << 30))
def test_what_is_proved_of_changed_rules_and_plans_is_true(cfg: CFG, seed: int) -> None:
    rng = random.Random(seed)
    try:
        rules, certificate = proved(cfg, seed)
    except (NoValidPlan, BudgetExceeded):
        assume(False)
    assume(len(certificate["word"]) <= 7)
    for changed in rng.sample(found := list(changes(certificate, sorted(cfg.terminals))), min(len(found), 60)):
        try:
            check(rules, changed)
        except Refused:
            continue
        assert follows(cfg, changed["word"])


@strategies.examples(40)
@given(strategies.automata(), strategies.automata(finite=True), st.integers(0, 99))
def test_products_by_hand_are_proved(pda: Any, finite: Any, seed: int) -> None:
    both = product(pda, finite)
    try:
        rules, certificate = proved(both, seed)
    except (NoValidPlan, BudgetExceeded):
        assume(False)
    assert len(rules["constraints"]) == 1
    assert check(rules, certificate)
    word = certificate["word"]
    if len(word) <= 6:
        assert oracles.runs(pda, word) is not False
        assert oracles.runs(finite, word) is not False


# -- against rules read the slow way ----------------------------------------------------------------------------------


def test_a_negative_weight_is_refused() -> None:
    rules, certificate = proved(RULES)
    rules["limits"].append({"name": "odd", "weights": {"a": -1}, "at_most": 5})
    with pytest.raises(Refused, match="a weight is negative"):
        check(rules, {**certificate, "rules": claimed_for(rules)})


def random_automaton(rng: random.Random) -> dict[str, Any]:
    def transition() -> list[Any]:
        pushed = rng.choices("XYZ", k=rng.choice([0, 0, 1, 2, 2]))
        return [rng.choice("pq"), rng.choice(["a", "b", None]), rng.choice(["X", "Y", None]), rng.choice("pq"), pushed]

    return {
        "start": "p", "stack": rng.choice([[], ["X"], ["X", "Y"]]), "accepting": rng.choice([["p"], ["q"], ["q"]]),
        "transitions": [transition() for _ in range(rng.randint(2, 5))],
    }  # fmt: skip


def test_a_run_is_taken_exactly_where_it_is_one() -> None:
    counts = {True: 0, False: 0}
    for seed in range(3000):
        rng = random.Random(seed)
        automaton = random_automaton(rng)
        rules = {"format": "formal_llm.rules/1", "automaton": automaton, "constraints": [], "limits": []}
        state, stack = automaton["start"], tuple(automaton["stack"])
        word, run, holds = [], [], True
        for _ in range(rng.randint(0, 6)):
            possible = [
                number for number, (source, _, popped, _, _) in enumerate(automaton["transitions"])
                if source == state and (popped is None or stack[:1] == (popped,))
            ]  # fmt: skip
            legal = bool(possible) and rng.random() < 0.95
            number = rng.choice(possible) if legal else rng.randrange(len(automaton["transitions"]))
            holds = holds and number in possible
            _, step, popped, state, pushed = automaton["transitions"][number]
            stack = (*pushed, *(stack if popped is None else stack[1:]))
            word += [] if step is None else [step]
            run.append(number)
        certificate = {
            "format": "formal_llm.certificate/1", "rules": claimed_for(rules), "claim": "plan", "constraints": [],
            "sums": [], "word": word, "run": run,
        }  # fmt: skip
        holds = holds and state in automaton["accepting"]
        counts[holds] += 1
        if holds:
            assert check(rules, certificate) == f"proved: this plan follows the rules: {' '.join(word)}"
        else:
            with pytest.raises(Refused):
                check(rules, certificate)
    assert min(counts.values()) > 300
