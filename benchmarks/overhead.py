"""Time per question with an answerer that costs nothing, lookahead included; and how long the prompts are.

Run: python benchmarks/overhead.py [--repeats N]

The walks are over the paper's 17 test tasks with random answers, each repeat with answers of its own, so that most of
them meet configurations that no plan before has met. ``first`` is a planner's first round over the tasks, with empty
tables. ``prompts`` renders every prompt as well. Beside it stands a loop hand-coded for this one grammar: a stack of
type names, a set of used tools, and no lookahead but the knowledge of what a text needs.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import statistics
from collections.abc import Callable
from time import perf_counter

from rich.console import Console
from rich.table import Table

from formal_llm import Budget, FunctionLLM, Planner, Question, RandomLLM, Task, TaskPack, Wording

TOOLS = {
    "I": [(f"a{n}", ["I"]) for n in range(4)] + [("c", ["T"])],
    "T": [(f"b{n}", ["I"]) for n in range(3)]
    + [(f"d{n}", ["T"]) for n in range(5)]
    + [("e", ["I", "T"]), ("f", ["T", "T"])],
}
#: Where no text is given, each text needs one of these at its bottom; where no image is given, an image needs "c".
BOTTOM = {"b0", "b1", "b2"}


def by_hand(goal: str, given: set[str], rng: random.Random) -> int:
    """A plan by a loop that knows this grammar; returns the number of questions."""
    stack, used, questions, first = [goal], set[str](), 0, True
    while stack:
        symbol = stack.pop()
        texts, images = stack.count("T"), stack.count("I")
        options: list[tuple[str, list[str]]] = []
        for tool, needs in TOOLS[symbol]:
            if tool in used:
                continue
            free = 3 - len(used & BOTTOM) - (tool in BOTTOM)
            pictures = 1 - ("c" in used) - (tool == "c")
            if ("T" in given or texts + needs.count("T") <= free) and (
                "I" in given or images + needs.count("I") <= pictures
            ):
                options.append((tool, needs))
        if symbol in given and not first:
            options.append(("input", []))
        first = False
        chosen = options[0]
        if len(options) > 1:
            questions += 1
            chosen = options[rng.randrange(len(options))]
        if chosen[0] != "input":
            used.add(chosen[0])
        stack += reversed(chosen[1])
    return questions


def per_question(planner: Planner, tasks: tuple[Task, ...], rounds: int) -> float:
    """Microseconds per question, the garbage collector left as it is in real use."""
    questions = 0
    begin = perf_counter()
    for _ in range(rounds):
        for task in tasks:
            questions += planner.plan(task).usage.questions
    return (perf_counter() - begin) / questions * 1e6


def hand_coded(tasks: tuple[Task, ...], rounds: int, seed: int) -> float:
    """The same for the hand-coded loop."""
    rng = random.Random(seed)
    shapes = [
        ("I" if task.goal == "image_plan" else "T", {"I" if name == "image" else "T" for name in task.inputs})
        for task in tasks
    ]
    questions = 0
    begin = perf_counter()
    for _ in range(rounds):
        for goal, given in shapes:
            questions += by_hand(goal, given, rng)
    return (perf_counter() - begin) / questions * 1e6


def characters(pack: TaskPack, tasks: tuple[Task, ...], conversation: bool, seeds: int) -> tuple[float, float, float]:
    """Per plan: characters that are new in each request, characters sent in all, questions."""
    new = sent = questions = 0
    wording = Wording(conversation=conversation)
    for seed in range(seeds):
        rng = random.Random(seed)

        def answer(question: Question, rng: random.Random = rng) -> int:
            nonlocal new, sent, questions
            questions += 1
            new += len(question.prompt)
            sent += sum(len(message.content) for message in question.messages)
            return rng.randrange(len(question.options)) + 1

        planner = Planner(pack.cfg, answer, wording=wording)
        for task in tasks:
            planner.plan(task)
    plans = seeds * len(tasks)
    return new / plans, sent / plans, questions / plans


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9, help="measurements of each; the median is shown")
    parser.add_argument("--rounds", type=int, default=20, help="rounds over the tasks in one measurement")
    arguments = parser.parse_args()
    pack = TaskPack.load("openagi")
    tasks = pack.split("test")

    def rendering(seed: int) -> FunctionLLM:
        rng = random.Random(seed)

        def answer(question: Question) -> int:
            _ = question.prompt
            return rng.randrange(len(question.options)) + 1

        return FunctionLLM(answer)

    warm = Planner(pack.cfg, RandomLLM(0), wording=pack.wording)
    blind = Planner(pack.cfg, RandomLLM(0), wording=pack.wording, lookahead="off", budget=Budget())
    seeds = iter(range(1, 1_000_000))

    def steady() -> float:
        warm.llm = RandomLLM(next(seeds))
        return per_question(warm, tasks, arguments.rounds)

    def off() -> float:
        blind.llm = RandomLLM(next(seeds))
        return per_question(blind, tasks, arguments.rounds)

    def first() -> float:
        return per_question(Planner(pack.cfg, RandomLLM(next(seeds)), wording=pack.wording), tasks, 1)

    def prompts() -> float:
        warm.llm = rendering(next(seeds))
        return per_question(warm, tasks, arguments.rounds)

    def hand() -> float:
        return hand_coded(tasks, arguments.rounds * 5, next(seeds))

    rows: list[tuple[str, Callable[[], float]]] = [
        ("lookahead on", steady),
        ("lookahead on, first round", first),
        ("lookahead on, with prompts", prompts),
        ("lookahead off", off),
        ("hand-coded for this grammar", hand),
    ]
    times: dict[str, list[float]] = {name: [] for name, _ in rows}
    for _ in range(arguments.repeats):  # interleaved, so that a busy moment of the machine hits all alike
        for name, measure in rows:
            gc.collect()
            times[name].append(measure())
    base = statistics.median(times["hand-coded for this grammar"])
    console = Console(width=100)
    table = Table(title=f"Microseconds per question, 17 test tasks; Python {platform.python_version()}")
    for column in ("planner", "median", "least", "most", "times the hand-coded loop"):
        table.add_column(column, justify="left" if column == "planner" else "right")
    for name, _ in rows:
        values = times[name]
        middle = statistics.median(values)
        table.add_row(name, f"{middle:.1f}", f"{min(values):.1f}", f"{max(values):.1f}", f"{middle / base:.1f}")
    console.print(table)
    table = Table(title="Prompt characters per plan")
    for column in ("wording", "new in each request", "sent in all", "questions"):
        table.add_column(column, justify="left" if column == "wording" else "right")
    for name, conversation in (("each question alone", False), ("one conversation", True)):
        new, sent, questions = characters(pack, tasks, conversation, 20)
        table.add_row(name, f"{new:,.0f}", f"{sent:,.0f}", f"{questions:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
