"""What lookahead saves: questions and prompt characters per plan with and without it, for all task packs.

Run: python benchmarks/lookahead.py [--seeds N]

Answers are random. Without lookahead, whatever the automaton allows next is offered and dead ends are left by going
back, as the paper's scripts do; a plan that is not found within the budget of questions is counted as given up.
"""

from __future__ import annotations

import argparse
import statistics
from itertools import cycle, islice
from typing import Literal

from rich.console import Console
from rich.table import Table

from formal_llm import Answer, Budget, Plan, Question, RandomLLM, TaskPack, authored
from formal_llm.errors import BudgetExceeded

QUESTIONS = 20_000


class Counted:
    """A random answerer that looks at every prompt."""

    def __init__(self, seed: int) -> None:
        self._llm = RandomLLM(seed)
        self.characters = 0

    def choose(self, question: Question) -> Answer:
        """A random answer."""
        self.characters += sum(len(message.content) for message in question.messages)
        return self._llm.choose(question)


def measure(
    pack: TaskPack, lookahead: Literal["on", "off"], seeds: int
) -> tuple[list[int], list[int], list[Plan], int]:
    """(questions of each plan, prompt characters of each, the plans, how many of them the automaton accepts)."""
    tasks = list(islice(cycle(pack.tasks or (pack.task(""),)), seeds))
    questions, characters, plans, valid = [], [], [], 0
    for seed, task in enumerate(tasks):
        llm = Counted(seed)
        planner = pack.planner(llm, lookahead=lookahead, budget=Budget(questions=QUESTIONS))
        try:
            plans.append(planner.plan(task))
            questions.append(plans[-1].usage.questions)
            # Membership is decided without lookahead, by reading the finished word.
            valid += planner.table(task).automaton.accepts(plans[-1].word)
        except BudgetExceeded:
            questions.append(QUESTIONS)
        characters.append(llm.characters)
    return questions, characters, plans, valid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    seeds = parser.parse_args().seeds
    table = Table(title=f"Random answers, {seeds} plans each; medians (and the most)")
    for column in ("pack", "lookahead", "questions", "prompt characters", "dead ends", "valid", "given up"):
        table.add_column(column, justify="left" if column in ("pack", "lookahead") else "right")
    for name in authored.names("tasks"):
        pack = TaskPack.load(name)
        for lookahead in ("on", "off"):
            questions, characters, plans, valid = measure(pack, lookahead, seeds)
            ends = [plan.usage.backtracks for plan in plans] or [0]
            table.add_row(
                name, lookahead, f"{statistics.median(questions):,.0f} ({max(questions):,})",
                f"{statistics.median(characters):,.0f} ({max(characters):,})",
                f"{statistics.median(ends):,.0f} ({max(ends):,})", f"{valid}/{len(plans)}", str(seeds - len(plans)),
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
