"""OpenAGI without a network: nothing is asked in vain, how often plans have just the right tools, what lookahead saves.

Run: python benchmarks/openagi.py [--part random|tools|packs] [--seeds N] [--llm builtin --llm minilm ...]

``random``
    Random answers on all 185 tasks: questions, choices taken without one, dead ends, with lookahead and without.
``tools``
    Plans with exactly the tools that the task calls for, and the mean F1 of the tools: on 60 test tasks in other words
    (``paraphrases.toml``; do not tune on them), on 60 more of the task pack, and on the benchmark's own 185 sentences.
``packs``
    Questions and prompt characters of a plan with random answers for each task pack. Without lookahead whatever the
    automaton allows next is offered and dead ends are left by going back, as the paper's scripts do; a plan that is not
    found within 20,000 questions counts as given up.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Literal

from rich.console import Console
from rich.table import Table

from formal_llm import Answer, Budget, Plan, Planner, Question, RandomLLM, Task, TaskPack, authored
from formal_llm.errors import BudgetExceeded, MissingDependency
from formal_llm.llms import LLM, resolve
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.planning.rewordings import read_rewordings
from formal_llm.rltf.reference_tools import compute_f1

PARAPHRASES = Path(__file__).parent / "paraphrases.toml"
ANSWERERS = ("test:random", "builtin", "minilm", "builtin:minilm", "minilm-planner")
QUESTIONS = 20_000
Lookahead = Literal["on", "off"]


# -- nothing is asked in vain ------------------------------------------------------------------------------------------


def measure_random(seeds: int) -> Table:
    """Random plans of all tasks, with lookahead and without."""
    pack = TaskPack.load("openagi")
    table = Table(title=f"{seeds} plans for each of {len(pack.tasks)} tasks, random answers")
    columns = ("lookahead", "plans", "valid", "questions", "of them wasted", "dead ends", "taken unasked", "seconds")
    for column in columns:
        table.add_column(column, justify="right")
    lookaheads: tuple[Lookahead, ...] = ("on", "off")
    for lookahead in lookaheads:
        planner = Planner(pack.cfg, "test:first", wording=pack.wording, lookahead=lookahead, budget=Budget())
        begin, made = perf_counter(), []
        for seed in range(seeds):
            for task in pack.tasks:
                planner.llm = RandomLLM(seed)
                made.append((task, planner.plan(task)))
        seconds = perf_counter() - begin
        used = [plan.usage for _, plan in made]
        valid = sum(planner.table(task).automaton.accepts(plan.word) for task, plan in made)
        counts = [sum(getattr(one, name) for one in used) for name in ("questions", "wasted", "backtracks", "forced")]
        table.add_row(lookahead, *(f"{count:,}" for count in (len(made), valid, *counts)), f"{seconds:.1f}")
    return table


# -- the right tools ---------------------------------------------------------------------------------------------------


def measure_tools(names: Sequence[str]) -> Table:
    """How often the plans of answerers have exactly the right tools."""
    pack = TaskPack.load("openagi")
    inputs = {entry["terminal"] for entry in pack.data["inputs"].values()}
    sets = {
        "60 in other words": read_rewordings(pack, PARAPHRASES),
        "60 of the pack": read_rewordings(pack, "paraphrases.toml"),
        f"the benchmark's {len(pack.tasks)}": pack.tasks,
    }
    table = Table(title="Plans with exactly the right tools (mean F1 of the tools)")
    for column in ("who answers", *sets, "questions a plan", "CPU ms a plan"):
        table.add_column(column, justify="left" if column == "who answers" else "right")
    for name in names:
        try:
            llm: LLM = resolve(name)
        except MissingDependency as error:
            print(f"left out: {name}: {error}")
            continue
        planner, cells, plans = pack.planner(llm), [], []
        planner.plan(pack.tasks[0])  # what is loaded and learned once is not measured
        begin = process_time()
        for tasks in sets.values():
            made = [planner.plan(task) for task in tasks]
            pairs = zip(tasks, made, strict=True)
            f1 = [compute_f1(tools_called_for(task), set(plan.word) - inputs) for task, plan in pairs]
            cells.append(f"{sum(value == 1 for value in f1)} ({statistics.fmean(f1):.3f})")
            plans += made
        spent = (process_time() - begin) / len(plans)
        asked = statistics.fmean(plan.usage.questions + plan.usage.drafts for plan in plans)
        table.add_row(name, *cells, f"{asked:.1f}", f"{spent * 1e3:.1f}")
    return table


# -- what lookahead saves ----------------------------------------------------------------------------------------------


class Counted(RandomLLM):
    """A random answerer that looks at every prompt."""

    characters = 0

    def answer(self, question: Question, /) -> Answer:
        """A random answer."""
        self.characters += sum(len(message.content) for message in question.messages)
        return super().answer(question)


def measure_packs(seeds: int) -> Table:
    """Plans of each task pack, with lookahead and without: medians, and the most."""
    table = Table(title=f"Random answers, {seeds} plans each; medians (and the most)")
    for column in ("pack", "lookahead", "questions", "prompt characters", "dead ends", "valid", "given up"):
        table.add_column(column, justify="left" if column in ("pack", "lookahead") else "right")
    lookaheads: tuple[Lookahead, ...] = ("on", "off")
    for name in authored.names("tasks"):
        pack = TaskPack.load(name)
        tasks: list[Task] = list(islice(cycle(pack.tasks or (pack.task(""),)), seeds))
        for lookahead in lookaheads:
            questions, characters, plans, valid = list[int](), list[int](), list[Plan](), 0
            for seed, task in enumerate(tasks):
                llm = Counted(seed)
                planner = pack.planner(llm, lookahead=lookahead, budget=Budget(questions=QUESTIONS))
                try:
                    plans.append(planner.plan(task))
                except BudgetExceeded:
                    questions.append(QUESTIONS)
                else:
                    questions.append(plans[-1].usage.questions)
                    # Membership is decided without lookahead, by reading the finished word.
                    valid += planner.table(task).automaton.accepts(plans[-1].word)
                characters.append(llm.characters)
            ends = [plan.usage.backtracks for plan in plans] or [0]
            shown = (f"{statistics.median(found):,.0f} ({max(found):,})" for found in (questions, characters, ends))
            table.add_row(name, lookahead, *shown, f"{valid}/{len(plans)}", str(seeds - len(plans)))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("random", "tools", "packs"), action="append", help="repeatable")
    parser.add_argument("--seeds", type=int, default=40, help="random plans of each task, and of each pack")
    parser.add_argument(
        "--llm", action="append", help=f"who answers in `tools`, repeatable; else {', '.join(ANSWERERS)}"
    )
    given = parser.parse_args()
    console = Console(width=140)
    for part in given.part or ("random", "tools", "packs"):
        if part == "random":
            console.print(measure_random(given.seeds))
        elif part == "tools":
            console.print(measure_tools(given.llm or ANSWERERS))
        else:
            console.print(measure_packs(given.seeds))


if __name__ == "__main__":
    main()
