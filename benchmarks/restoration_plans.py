"""What plans are worth on pictures: SSIM after the builtin planner's plan, for all 15 image-to-image tasks.

Beside it: the degraded input, and 100 plans drawn uniformly from all plans of the task that the classical tools can
carry out: the best of them in the mean over the pictures, and their mean. The last columns say how the plan compares.

Run: python benchmarks/restoration_plans.py [PICTURES [PLANS]]
"""

from __future__ import annotations

import random
import sys
import tempfile
from time import perf_counter

from rich.console import Console
from rich.table import Table

from formal_llm import TaskPack
from formal_llm.automata import Lookahead
from formal_llm.packs.openagi.data.making import make_data
from formal_llm.packs.openagi.data.samples import read_data
from formal_llm.packs.openagi.scores.choice import Scores
from formal_llm.packs.openagi.scores.images import SSIM
from formal_llm.packs.openagi.scores.judging import PlanJudge
from formal_llm.packs.openagi.scores.text import ChrF
from formal_llm.packs.openagi.toolkits import classical
from formal_llm.tools import Executor

#: The longer side of the pictures, before their resolution is lowered.
SIDE = 192
SEED = 0


def main() -> int:
    pictures = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    plans = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    begin = perf_counter()
    pack = TaskPack.load("openagi")
    numbers = [number for number, task in enumerate(pack.tasks) if task.group == "Task 3"]
    ssim = SSIM()
    sums = [0.0] * 4
    above_input = above_mean = at_best = distinct = 0
    table = Table(title=f"mean SSIM over {pictures} pictures, longer side {SIDE}; {plans} plans drawn for each task")
    for name in ("given", "the builtin planner's plan", "input", "plan", "best drawn", "mean drawn", "plan is"):
        table.add_column(
            name, justify="left" if name in ("given", "the builtin planner's plan", "plan is") else "right"
        )
    with tempfile.TemporaryDirectory() as folder:
        make_data(f"{folder}/data", tasks=numbers, samples=pictures, seed=SEED, side=SIDE)
        data = read_data(f"{folder}/data")
        executor = Executor(classical(), cache=f"{folder}/cache", workers=1)
        judge = PlanJudge(executor, data, Scores(ChrF(), ssim))
        planner = pack.planner("builtin")
        for number in numbers:
            task = judge.get_task(number)
            degraded = ssim.compute_mean((sample.inputs["images"], sample.outputs["images"]) for sample in data[number])
            plan = planner.plan(task)
            planned = judge(number, plan)
            # Exactly uniform over the words of the task's language; the tools that are not there have limit 0.
            lookahead = Lookahead(planner.table(task).automaton)
            rng = random.Random(f"{SEED} {number}")
            words = [lookahead.sample(rng) for _ in range(plans)]
            drawn = [judge(number, word or ()) for word in words]
            best, mean = max(drawn), sum(drawn) / len(drawn)
            figures = (degraded, planned, best, mean)
            sums = [one + other for one, other in zip(sums, figures, strict=True)]
            distinct += len(set(words))
            above_input += planned > degraded
            above_mean += planned > mean
            at_best += planned >= best
            said = [
                "better than the input" if planned > degraded else "WORSE than the input",
                "at the best" if planned >= best else "" if planned > mean else "WORSE than the mean",
            ]
            given = task.description.removeprefix("Given ").partition(" image")[0]
            tools = " ".join(step.name for step in plan.steps)
            table.add_row(given, tools, *(f"{figure:.3f}" for figure in figures), ", ".join(filter(None, said)))
    table.add_section()
    table.add_row("mean of 15", "", *(f"{total / len(numbers):.3f}" for total in sums), "")
    Console(width=200).print(table)
    stats = executor.stats
    print(
        f"the plan is better than the input in {above_input} of {len(numbers)} tasks, than the mean of the drawn in "
        f"{above_mean}, and as good as the best of them or better in {at_best}"
    )
    print(f"{distinct} distinct plans drawn, {stats.executed} calls of tools, {perf_counter() - begin:.0f} seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
