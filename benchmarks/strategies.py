"""Strategies against two oracles, on random rules with the world's moves, limits and clocks.

    python benchmarks/strategies.py [--rules N] [--seed N]

Rules are grammars, pushdown automata and flowcharts (tests/world_oracles.py). For up to 60 configurations of each it is
compared whether a plan can be finished whatever the world answers: by the library, by an AND-OR recursion over all
plays, and for the start by a fixpoint on the explicit graph (Ramadge and Wonham 1987). Where it can, a strategy is made
with random choices and checked by code that knows nothing of how it was found. Ends with exit code 1 where anything
differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1]))

from formal_llm import Planner, RandomLLM
from formal_llm.control.world import WhateverLookahead
from formal_llm.errors import NoValidPlan
from tests.world_oracles import controllable, places_of, plain_of, random_rules, wins_by_plays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", type=int, default=2_000, help="how many rules")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    differ: list[str] = []

    def count_time(what: str, begin: float) -> float:
        now = process_time()
        seconds[what] += now - begin  # type: ignore[assignment]  # a counter of seconds
        return now

    for seed in range(args.seed, args.seed + args.rules):
        rules = random_rules(seed)
        plain, lookahead = plain_of(rules), WhateverLookahead(rules)
        counts["rules"] += 1
        counts["  with a clock"] += bool(rules.limits.times)
        places = places_of(lookahead, plain)
        for configuration, node in places:
            begin = process_time()
            found = lookahead.completable(configuration).value
            begin = count_time("the library's verdicts", begin)
            expected = "yes" if wins_by_plays(plain, node) else "no"
            count_time("all plays", begin)
            counts["configurations compared"] += 1
            if found != expected:
                differ.append(f"{seed}: {found}, by all plays {expected}, at {node}")
        begin = process_time()
        won = controllable(plain, (*plain.start, ()))
        begin = count_time("the fixpoint", begin)
        if won != (lookahead.completable().value == "yes"):
            differ.append(f"{seed}: the fixpoint differs")
        counts["  lost, and won if the world answers well"] += (
            not won and lookahead.completable_for_some().value == "yes"
        )
        try:
            strategy = Planner(rules, RandomLLM(seed)).strategy("")
        except NoValidPlan:
            strategy = None
        begin = count_time("making strategies", begin)
        if (strategy is not None) != won:
            differ.append(f"{seed}: {'a' if strategy is not None else 'no'} strategy, and the oracles differ")
        if strategy is not None:
            counts["strategies"] += 1
            counts["  with several plans"] += strategy.count() > 1
            counts["  plans in them"] += strategy.count()
            checked = strategy.verify(rules)
            count_time("checking them", begin)
            if not checked.valid:
                differ.append(f"{seed}: {checked.reason}")
    table = Table(title="Strategies against oracles")
    table.add_column("what")
    table.add_column("number", justify="right")
    for name, number in counts.items():
        table.add_row(name, f"{number:,}")
    table.add_row("differences", f"{len(differ):,}")
    for name, time in seconds.items():
        table.add_row(f"seconds: {name}", f"{time:.1f}")
    Console().print(table)
    print(*differ[:20], sep="\n", file=sys.stderr)
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
