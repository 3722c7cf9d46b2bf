"""On how many of the 185 OpenAGI tasks the builtin answerer's plan uses just the tools that the description calls for.

Run: python benchmarks/builtin_accuracy.py
"""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table

from formal_llm import Planner, RandomLLM, TaskPack
from formal_llm.packs.openagi.references import tools_called_for


def main() -> None:
    pack = TaskPack.load("openagi")
    builtin = Planner(pack.cfg, "builtin", wording=pack.wording)
    chance = Planner(pack.cfg, RandomLLM(0), wording=pack.wording)
    right: dict[str, Counter[str]] = {"builtin": Counter(), "test:random": Counter()}
    tasks: Counter[str] = Counter()
    for task in pack.tasks:
        tasks[task.group] += 1
        for name, planner in (("builtin", builtin), ("test:random", chance)):
            used = {tool for tool in planner.plan(task).word if not tool.startswith("input_")}
            right[name][task.group] += used == tools_called_for(task)
    table = Table(title="Plans with just the tools that the description calls for")
    for column in ("task group", "tasks", "builtin", "share", "test:random"):
        table.add_column(column, justify="left" if column == "task group" else "right")
    for group in sorted(tasks):
        share = right["builtin"][group] / tasks[group]
        random_right = str(right["test:random"][group])
        table.add_row(group, str(tasks[group]), str(right["builtin"][group]), f"{share:.1%}", random_right)
    total = right["builtin"].total()
    table.add_section()
    table.add_row(
        "all", str(tasks.total()), str(total), f"{total / tasks.total():.1%}", str(right["test:random"].total())
    )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
