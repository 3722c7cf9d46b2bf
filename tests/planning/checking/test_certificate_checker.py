"""The checker of certificates: what it proves is true, whatever is written in a certificate, and it is small."""

from __future__ import annotations

import ast
import copy
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Budget, Limits, Planner, RandomLLM, Walk, constraint
from formal_llm.automata.models.product import product
from formal_llm.errors import BudgetExceeded, NoValidPlan
from formal_llm.planning.plans.certificates import compiled_rules, pda_of, write_claim_head
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
    assert text.count("\n") <= 200
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
        ({"claim": "both"}, "not as it should be"),
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


# -- no plan ----------------------------------------------------------------------------------------------------------


def test_a_claim_that_there_is_no_plan_needs_a_proof_that_holds() -> None:
    end = [0, None, -1, 0]  # the stack is empty: a plan
    cfg = CFG([("S", ("a", "S")), ("S", ("b",))], limits=Limits({"b": 0}))
    rules = stranger(compiled_rules(cfg))
    head = write_claim_head(pda_of(cfg, None), "no plan")
    proof = {"multipliers": [0], "states": [[0]], "prices": [[0, "a", 0, 0], end], "how": "reachability"}
    assert check(rules, {**head, **proof}) == "proved: no plan follows the rules"
    for change, why in (
        ({"how": "search"}, "found by search"),
        ({"prices": []}, "costs"),
        ({"prices": [[0, "a", 0, 1], end]}, "costs 0, not 1"),
        ({"states": []}, "not as it should be"),
        ({"states": [[1]]}, "begin elsewhere"),
        ({"multipliers": []}, "not as it should be"),
        ({"prices": [[0, "a", 0, 0], [0, "S", 0, 0], end]}, "a plan may cost 0"),
    ):
        with pytest.raises(Refused, match=why):
            check(rules, {**head, **proof, **change})
    loose = cfg.with_limits(Limits({"b": 1}))
    with pytest.raises(Refused, match="other rules"):
        check(stranger(compiled_rules(loose)), {**head, **proof})
    with pytest.raises(Refused, match="costs"):
        check(stranger(compiled_rules(loose)), {**write_claim_head(pda_of(loose, None), "no plan"), **proof})


def test_a_negative_weight_is_refused() -> None:
    rules, certificate = proved(RULES)
    rules["limits"].append({"name": "odd", "weights": {"a": -1}, "at_most": 5})
    with pytest.raises(Refused, match="a weight is negative"):
        check(rules, {**certificate, "rules": claimed_for(rules)})


# -- against rules read the slow way ----------------------------------------------------------------------------------
# Small rules at random, with silent moves everywhere, several constraints, and limits of both kinds. What is claimed
# about them is computed here from the page of the checker alone.


def random_automaton(rng: random.Random) -> dict[str, Any]:
    def transition() -> list[Any]:
        pushed = rng.choices("XYZ", k=rng.choice([0, 0, 1, 2, 2]))
        return [rng.choice("pq"), rng.choice(["a", "b", None]), rng.choice(["X", "Y", None]), rng.choice("pq"), pushed]

    return {
        "start": "p", "stack": rng.choice([[], ["X"], ["X", "Y"]]), "accepting": rng.choice([["p"], ["q"], ["q"]]),
        "transitions": [transition() for _ in range(rng.randint(2, 5))],
    }  # fmt: skip


def random_grammar(rng: random.Random) -> dict[str, Any]:
    productions = [[rng.choice("ST"), rng.choices("STaab", k=rng.choice([0, 1, 2, 3]))] for _ in range(3)]
    return {"start": "S", "productions": productions}


def random_rules(rng: random.Random) -> dict[str, Any]:
    def constraint_(number: int) -> dict[str, Any]:
        rows = [[rng.choice("uv"), rng.choice(["a", "b", None]), rng.choice("uv")] for _ in range(rng.randint(2, 5))]
        return {"name": str(number), "start": "u", "accepting": rng.choice([["u"], ["v"]]), "transitions": rows}

    def limit(number: int) -> dict[str, Any]:
        weights = {step: rng.choice([1, 2, "1/2"]) for step in "ab" if rng.random() < 0.8}
        kind = rng.choice(["at_most", "at_least"])
        return {"name": f"limit {number}", "weights": weights, kind: rng.choice([0, 1, 3])}

    base = {"automaton": random_automaton(rng)} if rng.random() < 0.7 else {"grammar": random_grammar(rng)}
    constraints = [constraint_(number) for number in range(rng.choice([0, 0, 1, 2]))]
    limits = [limit(number) for number in range(rng.choice([0, 1, 2]))]
    return {"format": "formal_llm.rules/1", **base, "constraints": constraints, "limits": limits}


def moves_of(rules: dict[str, Any], state: tuple[Any, ...], stack: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """(step, state, stack) after each move; the stack's top is its first symbol. A grammar has the one state 0."""
    for place, one in enumerate(rules["constraints"], 1):
        for source, step, target in one["transitions"]:
            if step is None and source == state[place]:
                yield None, (*state[:place], target, *state[place + 1 :]), stack
    if "grammar" in rules:
        productions = rules["grammar"]["productions"]
        heads = {head for head, _ in productions}
        rows = [(0, None, head, 0, body) for head, body in productions]
        rows += [(0, stack[0], stack[0], 0, [])] if stack and stack[0] not in heads else []
    else:
        rows = rules["automaton"]["transitions"]
    for source, step, popped, target, pushed in rows:
        if source == state[0] and (popped is None or stack[:1] == (popped,)):
            after = (*pushed, *(stack if popped is None else stack[1:]))
            ends = [()]
            for place, one in enumerate(rules["constraints"], 1):
                following = {state[place]} if step is None else {
                    after for before, read, after in one["transitions"] if (before, read) == (state[place], step)
                }  # fmt: skip
                ends = [(*end, q) for end in ends for q in sorted(following)]
            for end in ends:
                yield step, (target, *end), after


def count_as_constraint(limit: dict[str, Any]) -> dict[str, Any]:
    """The sum so far, by halves, as an automaton: within an upper bound, and up to a lower one."""
    most, least = limit.get("at_most"), limit.get("at_least")
    values = [Fraction(half, 2) for half in range(2 * (most if least is None else least) + 1)]
    rows = [
        [value, step, value + weight if least is None else min(value + weight, Fraction(least))]
        for value in values
        for step in "abST"
        if (weight := Fraction(limit["weights"].get(step, 0))) + value <= (most if least is None else 99)
    ]
    return {"start": Fraction(0), "accepting": values if least is None else values[-1:], "transitions": rows}


def start_of(rules: dict[str, Any]) -> tuple[Any, ...]:
    return (0 if "grammar" in rules else rules["automaton"]["start"], *(one["start"] for one in rules["constraints"]))


def accepts(rules: dict[str, Any], state: tuple[Any, ...]) -> bool:
    accepting = [[0] if "grammar" in rules else rules["automaton"]["accepting"]]
    accepting += [one["accepting"] for one in rules["constraints"]]
    return all(q in some for q, some in zip(state, accepting, strict=True))


def prices_of(rules: dict[str, Any], multipliers: list[int]) -> tuple[list[tuple[Any, ...]], dict[Any, dict[int, Any]]]:
    """All states, and the least price of taking a symbol off: of runs, written down as the checker's page says."""
    cost = {
        step: sum(m * Fraction(one["weights"].get(step, 0)) * (1 if "at_most" in one else -1)
                  for m, one in zip(multipliers, rules["limits"], strict=True))
        for step in "abST"
        if all(Fraction(one["weights"].get(step, 0)) <= one.get("at_most", 99) for one in rules["limits"])
    }  # fmt: skip
    if "grammar" in rules:
        used = {"S", *(name for head, body in rules["grammar"]["productions"] for name in [head, *body])}
    else:  # those that may come to lie on the stack, or are taken off it
        rows = rules["automaton"]["transitions"]
        used = {*rules["automaton"]["stack"], *(name for row in rows for name in [row[2], *row[4]])} - {None}
    symbols = sorted(used)
    states, table = [start_of(rules)], {}

    def ways(at: int, stack: tuple[str | None, ...]) -> dict[int, Any]:
        if at < 0 or not stack:
            return {at: 0}
        found: dict[int, Any] = {}
        for end, price in table.get((at, stack[0]), {}).items():
            for last, more in ways(end, stack[1:]).items():
                found[last] = min(found.get(last, price + more), price + more)
        return found

    def rows_of(at: int, symbol: str | None) -> Iterator[tuple[int, Any]]:
        """Where taking a symbol off may lead, and for how much."""
        if accepts(rules, states[at]) and (symbol is None or "automaton" in rules):
            yield -1, Fraction(0)
        for step, after, stack in moves_of(rules, states[at], () if symbol is None else (symbol,)):
            if step is None or step in cost:
                states.extend([] if after in states else [after])
                # What was not looked at is still there: the end of the stack, too.
                for end, price in ways(states.index(after), (*stack, *([None] if symbol is None else []))).items():
                    yield end, price + (0 if step is None else cost[step])

    turns = 40
    for turn in range(2 * turns):
        before = {key: dict(ends) for key, ends in table.items()}
        for at, _ in enumerate(states):
            for symbol in [*symbols, None]:
                for end, price in rows_of(at, symbol):
                    ends = table.setdefault((at, symbol), {})
                    if end not in ends or price < ends[end]:
                        ends[end] = price if turn < turns else float("-inf")
        if table == before:
            return states, table
    raise AssertionError("the prices do not come to rest")


def test_a_proof_that_there_is_no_plan_is_taken_exactly_where_its_prices_prove_it() -> None:
    proved_, refused = 0, 0
    for seed in range(400):
        rng = random.Random(seed)
        rules = random_rules(rng)
        multipliers = [rng.choice([0, 1, 2]) for _ in rules["limits"]]
        counted = [number for number, _ in enumerate(rules["limits"]) if rng.random() < 0.4]
        counters = [count_as_constraint(rules["limits"][number]) for number in counted]
        followed = {**rules, "constraints": [*rules["constraints"], *counters]}
        states, table = prices_of(followed, multipliers)
        base = 1 + len(rules["constraints"])
        rows = [
            [at, symbol, end, None if price == float("-inf") else str(price)]
            for (at, symbol), ends in table.items() for end, price in ends.items()
        ]  # fmt: skip
        certificate = {
            "format": "formal_llm.certificate/1", "rules": claimed_for(rules), "claim": "no plan", "how": "linear",
            "multipliers": [m or rng.choice([0, -1]) for m in multipliers], "prices": rows, "counted": counted,
            "states": [[*one[:base], *map(str, one[base:])] for one in states],
        }  # fmt: skip
        # The start's whole stack, then the end of it.
        stack = [rules["grammar"]["start"]] if "grammar" in rules else rules["automaton"]["stack"]
        reached = {0: 0}
        for symbol in [*stack, None]:
            following: dict[int, Any] = {-1: reached[-1]} if -1 in reached else {}
            for at, price in reached.items():
                for end, more in table.get((at, symbol), {}).items() if at >= 0 else ():
                    following[end] = min(following.get(end, price + more), price + more)
            reached = following
        bound = sum(
            m * one["at_most"] if "at_most" in one else -m * one["at_least"]
            for m, one in zip(multipliers, rules["limits"], strict=True)
        )
        if -1 in reached and reached[-1] <= bound:
            refused += 1
            with pytest.raises(Refused, match="a plan may cost"):
                check(rules, certificate)
            continue
        proved_ += 1
        assert check(rules, certificate) == "proved: no plan follows the rules"
        # Each price is the least: one more, and it is not proved; nor without it.
        for place in rng.sample(range(len(rows)), min(len(rows), 12)):
            at, symbol, end, price = rows[place]
            raised = [] if price is None else [[at, symbol, end, str(Fraction(price) + 1)]]
            for instead in ([], raised) if raised else ([],):
                with pytest.raises(Refused, match="costs"):
                    check(rules, {**certificate, "prices": [*rows[:place], *instead, *rows[place + 1 :]]})
    assert proved_ > 50
    assert refused > 50


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("number", [0.0, False])
def test_a_state_in_a_price_is_a_whole_number(place: int, number: Any) -> None:
    cfg = CFG([("S", ("a", "S"))])
    row: list[Any] = [0, "a", 0, 0]
    row[place] = number
    proof = {"multipliers": [], "states": [[0]], "prices": [row, [0, None, -1, 0]], "how": "reachability"}
    with pytest.raises(Refused, match="the number of a state is no number"):
        check(stranger(compiled_rules(cfg)), {**write_claim_head(pda_of(cfg, None), "no plan"), **proof})


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
