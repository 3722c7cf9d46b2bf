"""The engine against slow and simple answers, on random rules: words, counts, samples, verdicts, nearest words, walks.

    python benchmarks/against_oracles.py [--languages N] [--sources N] [--seed N]

The oracles (tests/oracles.py) share no algorithm with the library: they write all short words out, solve the costs of
all configurations by iteration, and ask pyformlang whether a grammar derives a word. ``undecided`` counts what the
library did not want to say within its budgets; ``wrong`` counts all else that differs, and ends with exit code 1.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyformlang.cfg import Terminal  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1]))

from formal_llm import CFG, PDA, Lookahead, Planner, RandomLLM
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.errors import BudgetExceeded, InfiniteLanguage, NoValidPlan, Undecided
from formal_llm.planning import Budget
from formal_llm.planning.checking.verify import Verifier
from tests.automata.lookahead.judging import parts, reference, sources
from tests.oracles import INF, Word, alphabet, keeps, language, to_pyformlang
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


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--languages", type=int, default=300)
    options.add_argument("--sources", type=int, default=600)
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

    grammars()
    walks()
    table = Table(
        "subject", "compared", "undecided", "wrong", title=f"{process_time() - begun:,.0f} s of processor time"
    )
    for subject, number in tally.compared.items():
        table.add_row(subject, f"{number:,}", f"{tally.undecided[subject]:,}", f"{tally.wrong[subject]:,}")
    Console().print(table)
    sys.exit(bool(tally.wrong))


if __name__ == "__main__":
    main()
