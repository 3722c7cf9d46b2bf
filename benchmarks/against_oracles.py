"""The engine against slow and simple answers, on random rules: words, counts, samples, verdicts, nearest words, walks.

    python benchmarks/against_oracles.py [--languages N] [--sources N] [--totals N] [--clocks N] [--forged N] [--seed N]

The oracles (tests/oracles.py) share no algorithm with the library: they write all short words out, solve the costs of
all configurations by iteration, and ask pyformlang whether a grammar derives a word. ``undecided`` counts what the
library did not want to say within its budgets; ``wrong`` counts all else that differs, and ends with exit code 1.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyformlang.cfg import Terminal  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1]))

from formal_llm import CFG, PDA, Limits, Lookahead, Planner, RandomLLM, SumLimit, Symbol
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.lookahead import lookahead as lookahead_module
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.errors import BudgetExceeded, InfiniteLanguage, NoValidPlan, Undecided
from formal_llm.planning import Budget
from formal_llm.planning.checking.no_plan import no_plan_certificate
from formal_llm.planning.checking.verify import Verifier
from formal_llm.planning.plans.certificates import compiled_rules
from tests.automata.lookahead.judging import parts, reference, sources
from tests.automata.schedules import keeps as on_time
from tests.automata.schedules import schedules
from tests.certifying import Refused, check, stranger
from tests.oracles import INF, Word, alphabet, keeps, language, to_pyformlang
from tests.planning.checking.test_certificate_checker import changes, claimed_for
from tests.strategies import limited_grammars, tool_grammars

#: How long the words are that are written out, and those that are judged.
LONGEST, JUDGED = 5, 2
PLANS, STEPS = 8, 14


class Tally:
    """What was compared, what differed, what was not decided: by subject."""

    def __init__(self) -> None:
        self.compared: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.undecided: Counter[str] = Counter()

    def of(self, subject: str, same: bool | None, what: object = "") -> None:
        """Count one comparison; None where the library did not decide."""
        self.compared[subject] += 1
        if same is None:
            self.undecided[subject] += 1
        elif not same:
            self.wrong[subject] += 1
            print(f"{subject} differ: {what}", file=sys.stderr)


def distance(one: Word, other: Word) -> int:
    """Levenshtein's distance, as the textbooks have it."""
    row = list(range(len(other) + 1))
    for i, x in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def compare_language(cfg: CFG, rng: random.Random, tally: Tally) -> None:
    letters = alphabet(cfg)
    expected = {word for word in language(cfg, LONGEST) if keeps(word, cfg.limits, letters, cfg.symbols)}
    automaton, lookahead = as_automaton(cfg), Lookahead(cfg)
    assert isinstance(automaton, PDA)
    tally.of("languages", sorted(words(automaton, LONGEST)) == sorted(expected), cfg)
    try:
        tally.of("counts", lookahead.count(max_length=LONGEST) == len(expected), cfg)
        drawn = [lookahead.sample(rng, max_length=LONGEST) for _ in range(5)]
        tally.of("samples", all(one in expected if expected else one is None for one in drawn), cfg)
    except (InfiniteLanguage, Undecided):
        tally.of("counts", None)
    verifier = Verifier(cfg)
    for word in {tuple(rng.choices(letters, k=rng.randint(0, JUDGED))) for _ in range(6)} if letters else {()}:
        found = verifier.verify(word)
        tally.of("verdicts", found.valid == (word in expected), (cfg, word))
        least = min((distance(word, other) for other in expected), default=INF)
        if least > LONGEST - JUDGED:  # a nearer word may be longer than those that were written out
            same = found.distance is None or found.distance > LONGEST - JUDGED
        else:
            near = found.nearest
            same = found.distance == least and near in expected and distance(word, near or ()) == least
        decided = found.valid or found.distance is not None
        tally.of("nearest words", same or found.valid if decided else None, (cfg, word))


def compare_plans(cfg: CFG, rng: random.Random, tally: Tally) -> None:
    judge = to_pyformlang(cfg)
    planner = Planner(cfg, RandomLLM(rng.randrange(1 << 30)), budget=Budget(steps=60))
    for _ in range(PLANS):
        try:
            word = planner.plan("any").word
        except NoValidPlan:
            short = language(cfg, LONGEST)
            tally.of("plans", not any(keeps(one, cfg.limits, alphabet(cfg), cfg.symbols) for one in short), cfg)
            return
        except BudgetExceeded:
            continue
        right = judge.contains([Terminal(name) for name in word])
        tally.of("plans", right and keeps(word, cfg.limits, alphabet(cfg), cfg.symbols), (cfg, word))


def compare_walks(source: Any, rng: random.Random, tally: Tally) -> None:
    lookahead = Lookahead(*source)
    truth, automaton = reference(lookahead), lookahead.automaton
    now = automaton.start()
    read: Word = ()
    for _ in range(STEPS):
        alive = []
        for move in automaton.moves(now):
            after = automaton.step(now, move)
            word = (*read, move.read) if move.read is not None else read
            value = lookahead.completable(after).value
            possible = truth.moves(*parts(after), word) < INF
            tally.of("steps", None if value == "unknown" else (value == "yes") == possible, (source, after))
            if possible:
                alive.append((after, word))
        if not alive:
            break
        now, read = rng.choice(alive)


def compare_offers(cfg: CFG, good: list[Word], rng: random.Random, tally: Tally, subject: str) -> None:
    """A walk at random, once more with bounds that are soon over; each body begins with a terminal of its own."""
    few = (rng.randint(2, 50), rng.choice((0.0, 0.001)), -1, f"{subject}, small bounds")
    for max_states, seconds, room, named in ((20_000, None, 25_000, subject), few):
        with patch.object(lookahead_module, "_ROOM", room):
            ahead = Lookahead(cfg, max_states=max_states, solver=False)
        now: Any = ahead.automaton.start()
        read: Word = ()
        for _ in range(3 * STEPS):
            leads = {word[: len(read) + 1] for word in good if word[: len(read)] == read}
            after: list[tuple[Any, Word]] = []
            for move in ahead.automaton.moves(now):
                then = ahead.automaton.step(now, move)
                with ahead.work.limit_seconds(seconds):
                    value = ahead.completable(then).value
                if move.read is None and move.production is None:  # the first move of all, or the last
                    possible = bool(leads) if move.push else read in good
                else:
                    possible = (*read, move.read or move.production.body[0]) in leads
                tally.of(named, None if value == "unknown" else (value == "yes") == possible, (cfg, read, move))
                if possible:
                    after.append((then, read if move.read is None else (*read, move.read)))
            if not after:
                break
            now, read = rng.choice(after)


def compare_totals(rng: random.Random, tally: Tally) -> None:
    """Up to six amounts, each at most once and in any order, under one to three sums of which some are exact."""
    names = [f"t{number}" for number in range(rng.randint(2, 6))]
    numbers = {name: {f"s{k}": rng.randint(0, 9) for k in range(rng.randint(1, 3))} for name in names}
    plan, sums = rng.sample(names, len(names) // 2 + 1), []
    for k in sorted({quantity for one in numbers.values() for quantity in one}):
        least = sum(numbers[name].get(k, 0) for name in plan) + rng.choice((0, 0, 0, 0, 1))
        sums.append(SumLimit(k, at_most=least + rng.choice((0, 0, 0, 3)), at_least=least))
    limits = Limits(dict.fromkeys(names, 1), {plan[0]: 1} if rng.random() < 0.5 else {}, sums=tuple(sums))
    symbols = {name: Symbol(numbers=one) for name, one in numbers.items()}
    cfg = CFG([*(("S", (name, "S")) for name in names), ("S", ("end",))], "S", symbols, limits)
    rows = [row for size in range(len(names) + 1) for row in permutations(names, size)]
    good = [(*row, "end") for row in rows if keeps((*row, "end"), limits, cfg.terminals, symbols)]
    compare_offers(cfg, good, rng, tally, "sums")


def compare_clock(case: Any, rng: random.Random, tally: Tally) -> None:
    """A day by the clock, nested: all its words are short where each step takes time or may be used only so often."""
    table, symbols = case
    limits = Limits({"a": 2, "b": 3, "c": 1}, times=table)
    cfg = CFG(CFG.from_string("S -> a S b | c S | b").productions, "S", symbols, limits, "forward")
    good = [
        word
        for word in language(CFG(cfg.productions), 6)
        if on_time(table, symbols, word) and keeps(word, limits.without_times, cfg.terminals, symbols)
    ]
    compare_offers(cfg, good, rng, tally, "clocks")


def forge(cfg: CFG, rng: random.Random, tally: Tally, most: int) -> None:
    """Certificates changed in one place, or about rules with other bounds: none may prove what is not true."""
    try:
        if Lookahead(cfg).completable().value == "no":
            made = no_plan_certificate(cfg)
        else:
            made = Planner(cfg, RandomLLM(0), budget=Budget(steps=60)).plan("any").certificate()
    except (NoValidPlan, BudgetExceeded, Undecided):
        return
    words = language(cfg, LONGEST)
    for shift in (0, 1):
        rules = stranger(compiled_rules(cfg))
        for limit in rules["limits"]:
            kind, sign = ("at_most", 1) if "at_most" in limit else ("at_least", -1)
            limit[kind] = str(Fraction(limit[kind]) + sign * shift)
        true = {word for word in words if all(_is_kept(limit, word) for limit in rules["limits"])}
        forged = [{**made, "rules": claimed_for(rules)}]
        forged += changes(forged[0], sorted(cfg.terminals))
        for one in rng.sample(forged, min(most, len(forged))):
            try:
                check(rules, one)
                word = tuple(map(str, one.get("word", ())))  # type: ignore[arg-type]
                good = not true if one["claim"] == "no plan" else word in true or len(word) > LONGEST
            except Refused:
                good = True
            tally.of("forged certificates", good, (rules, one))


def _is_kept(limit: Any, word: Word) -> bool:
    total = sum(Fraction(limit["weights"].get(step, 0)) for step in word)
    return Fraction(limit.get("at_least", 0)) <= total <= Fraction(limit.get("at_most", total))


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--languages", type=int, default=300)
    options.add_argument("--sources", type=int, default=600)
    options.add_argument("--totals", type=int, default=200)
    options.add_argument("--clocks", type=int, default=200)
    options.add_argument("--forged", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    tally, rng, begun = Tally(), random.Random(chosen.seed), process_time()

    health = list(HealthCheck)

    def many(number: int) -> settings:
        return settings(
            max_examples=number,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=health,
        )

    @seed(chosen.seed)
    @many(chosen.languages)
    @given(st.one_of(limited_grammars(), tool_grammars()))
    def grammars(cfg: CFG) -> None:
        compare_language(cfg, rng, tally)
        compare_plans(cfg, rng, tally)

    @seed(chosen.seed)
    @many(chosen.sources)
    @given(sources)
    def walks(source: Any) -> None:
        compare_walks(source, rng, tally)

    @seed(chosen.seed)
    @many(chosen.clocks)
    @given(schedules())
    def clocks(case: Any) -> None:
        compare_clock(case, rng, tally)

    @seed(chosen.seed)
    @many(chosen.forged)  # each grammar gives some
    @given(limited_grammars())
    def forgeries(cfg: CFG) -> None:
        if tally.compared["forged certificates"] < chosen.forged:
            forge(cfg, rng, tally, 40)

    grammars()
    walks()
    for _ in range(chosen.totals):
        compare_totals(rng, tally)
    clocks()
    forgeries()
    table = Table(
        "subject", "compared", "undecided", "wrong", title=f"{process_time() - begun:,.0f} s of processor time"
    )
    for subject, number in tally.compared.items():
        table.add_row(subject, f"{number:,}", f"{tally.undecided[subject]:,}", f"{tally.wrong[subject]:,}")
    Console().print(table)
    sys.exit(bool(tally.wrong))


if __name__ == "__main__":
    main()
