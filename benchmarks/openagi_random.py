"""Random answers on all 185 OpenAGI tasks: questions, choices taken without one, dead ends, with lookahead and without.

Run: python benchmarks/openagi_random.py [--seeds N]
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Literal

from rich.console import Console
from rich.table import Table

from formal_llm import Budget, Planner, RandomLLM, TaskPack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50, help="plans for each task")
    seeds = parser.parse_args().seeds
    pack = TaskPack.load("openagi")
    table = Table(title=f"{seeds} plans for each of {len(pack.tasks)} tasks, random answers")
    columns = ("lookahead", "plans", "valid", "questions", "of them wasted", "dead ends", "taken unasked", "seconds")
    for column in columns:
        table.add_column(column, justify="right")
    for lookahead in ("on", "off"):
        table.add_row(lookahead, *measure(pack, lookahead, seeds))
    Console(width=120).print(table)


def measure(pack: TaskPack, lookahead: Literal["on", "off"], seeds: int) -> list[str]:
    """One row of the table."""
    planner = Planner(pack.cfg, "test:first", wording=pack.wording, lookahead=lookahead, budget=Budget())
    plans = valid = questions = wasted = dead_ends = forced = 0
    begin = perf_counter()
    made = []
    for seed in range(seeds):
        for task in pack.tasks:
            planner.llm = RandomLLM(seed)
            plan = planner.plan(task)
            made.append((task, plan.word))
            questions += plan.usage.questions
            wasted += plan.usage.wasted
            dead_ends += plan.usage.backtracks
            forced += plan.usage.forced
    seconds = perf_counter() - begin
    for task, word in made:
        plans += 1
        valid += planner.table(task).automaton.accepts(word)
    return [f"{n:,}" for n in (plans, valid, questions, wasted, dead_ends, forced)] + [f"{seconds:.1f}"]


if __name__ == "__main__":
    main()
