"""Weighted rules of the size of OpenAGI's: what sums, best plans, samples and gradients cost, in CPU seconds.

Run: python benchmarks/weighted.py

The first sample, best plan and sum of new scores are timed, as a planner asks for them: nothing is kept from before but
the graph of derivations, which depends on the rules alone. Exactness is a matter of the tests; 40 times as many random
cases against enumeration: FUZZ=40 pytest tests/automata/lookahead/test_weighted.py
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from time import process_time

from rich.console import Console
from rich.table import Table

from formal_llm import CFG, Lookahead, TaskPack, WeightedRules

REPETITIONS = 9


def measure(operation: Callable[[WeightedRules], object], rules: list[WeightedRules]) -> float:
    """The median CPU time of an operation over rules with fresh scores, in milliseconds."""
    times = []
    for one in rules:
        begin = process_time()
        operation(one)
        times.append((process_time() - begin) * 1e3)
    return statistics.median(times)


def main() -> None:
    pack = TaskPack.load("openagi")
    rng = random.Random(0)
    times = []
    for _ in range(REPETITIONS):
        begin = process_time()
        rules = WeightedRules(pack.cfg)
        times.append((process_time() - begin) * 1e3)
    derivations = Lookahead(pack.cfg).count(of="derivations")

    def with_fresh_scores() -> list[WeightedRules]:
        return [rules.with_scores({name: rng.gauss(0, 2) for name in rules.scores}) for _ in range(REPETITIONS)]

    def sum_and_marginals(one: WeightedRules) -> None:
        one.log_partition()
        one.marginals()

    values = {name: rng.gauss(0, 1) for name in rules.scores}
    plan = rules.best_of(1)[0].word
    table = Table(title=f"{derivations:,} plans: each of the fifteen tools at most once, inputs as often as one likes")
    table.add_column("operation")
    table.add_column("CPU, ms", justify="right")
    table.add_row("the graph of all derivations, once for the rules", f"{statistics.median(times):.1f}")
    operations: dict[str, Callable[[WeightedRules], object]] = {
        "sum of all weights": WeightedRules.log_partition,
        "sum and all marginals": sum_and_marginals,
        "best plan": WeightedRules.best,
        "100 best plans": lambda one: one.best_of(100),
        "1,000 exact samples": lambda one: one.sample(rng, 1_000),
        "expectation of an additive reward, with its gradient": lambda one: one.expectation(values),
        "probability of a plan": lambda one: one.log_probability(plan),
        "entropy": WeightedRules.entropy,
    }
    for name, operation in operations.items():
        table.add_row(name, f"{measure(operation, with_fresh_scores()):.2f}")
    console = Console(width=100)
    console.print(table)
    console.print(measure_unlisted())


def measure_unlisted() -> Table:
    """The best plan under random scores, where not all derivations can be listed: tools in two places, used once."""
    table = Table(title="rules with too many states to be listed")
    for column in ("tools", "tried to list, CPU s", "best plan, CPU ms: median", "longest", "effective of 1,000 draws"):
        table.add_column(column, justify="right")
    for count in (24, 30, 40):
        rng = random.Random(count)
        kinds: dict[str, list[str]] = {f"T{number}": [] for number in range(8)}
        for tool in range(count):
            for _ in range(2):
                kinds[rng.choice(list(kinds))].append(f"tool{tool} {rng.choice(list(kinds))}")
        lines = [f"{kind} -> {' | '.join([*ways, 'end'])}" for kind, ways in kinds.items()]
        limit = f"%limit 1 {' '.join(f'tool{tool}' for tool in range(count))}"
        begin = process_time()
        rules = WeightedRules(CFG.from_string("\n".join([limit, *lines])))
        listed = process_time() - begin
        assert not rules.is_listed
        times = []
        for _ in range(REPETITIONS):
            scored = rules.with_scores({f"tool{tool}": rng.gauss(-1, 2) for tool in range(count)})
            begin = process_time()
            scored.best()
            times.append((process_time() - begin) * 1e3)
        effective = scored.estimate_sample(rng, 100, draws=1_000).effective
        table.add_row(
            str(count), f"{listed:.1f}", f"{statistics.median(times):.1f}", f"{max(times):.1f}", f"{effective:.0f}"
        )
    return table


if __name__ == "__main__":
    main()
