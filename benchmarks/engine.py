"""What the engine takes: a question, counting and sampling, lookahead over random tools, ``import formal_llm``.

Run: python benchmarks/engine.py [--part question|prompts|counting|tools|import] [--repeats N] [--tools N ...]

``question``
    Microseconds a question with an answerer that costs nothing, lookahead included: walks over the paper's 17 test
    tasks with random answers, each repeat with answers of its own. ``first`` is a planner's first round over the tasks,
    with empty tables. ``with prompts`` renders every prompt as well.
``prompts``
    How long the prompts of a plan are.
``counting``
    How many plans of OpenAGI there are, exactly; what counting, sampling and weighing them takes.
``tools``
    Lookahead over random grammars of typed tools. A tool takes one to three typed inputs and makes one type, and may be
    used at most once; some types are given, as often as a plan wants. The configurations are reached by random walks,
    every other walk kept to moves that do not end dead. ``verdicts`` counts what was found.
``import``
    What ``import formal_llm`` takes, and which heavy libraries it loads (none).
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter, process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from formal_llm import (
    CFG,
    Budget,
    FunctionLLM,
    Limits,
    Lookahead,
    Planner,
    Question,
    RandomLLM,
    Task,
    TaskPack,
    WeightedRules,
    Wording,
)

HEAVY = ["torch", "transformers", "openai", "anthropic", "networkx", "lark", "pydantic", "typer"]
#: Queries of one random grammar.
PER_GRAMMAR = 15


def make_table(title: str, first: str, *columns: str) -> Table:
    """A table with texts in its first column and figures in the others."""
    table = Table(title=title)
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    return table


# -- a question --------------------------------------------------------------------------------------------------------


def per_question(planner: Planner, tasks: Sequence[Task], rounds: int) -> float:
    """Microseconds a question, the garbage collector left as it is in real use."""
    questions, begin = 0, perf_counter()
    for _ in range(rounds):
        for task in tasks:
            questions += planner.plan(task).usage.questions
    return (perf_counter() - begin) / questions * 1e6


def measure_questions(repeats: int) -> Table:
    """The time a question takes."""
    pack = TaskPack.load("openagi")
    tasks, rounds = pack.split("test"), 20
    warm = Planner(pack.cfg, RandomLLM(0), wording=pack.wording)
    blind = Planner(pack.cfg, RandomLLM(0), wording=pack.wording, lookahead="off", budget=Budget())

    def rendering(seed: int) -> FunctionLLM:
        rng = random.Random(seed)

        def answer(question: Question) -> int:
            _ = question.prompt
            return rng.randrange(len(question.options)) + 1

        return FunctionLLM(answer)

    def steady(planner: Planner, make: Callable[[int], Any]) -> Callable[[int], float]:
        def measure(seed: int) -> float:
            planner.llm = make(seed)
            return per_question(planner, tasks, rounds)

        return measure

    rows: dict[str, Callable[[int], float]] = {
        "lookahead on": steady(warm, RandomLLM),
        "lookahead on, first round":
            lambda seed: per_question(Planner(pack.cfg, RandomLLM(seed), wording=pack.wording), tasks, 1),
        "lookahead on, with prompts": steady(warm, rendering),
        "lookahead off": steady(blind, RandomLLM),
    }  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in rows}
    for seed in range(1, repeats + 1):  # interleaved, so that a busy moment of the machine hits all alike
        for name, measure in rows.items():
            gc.collect()
            times[name].append(measure(seed))
    title = f"Microseconds a question, {len(tasks)} test tasks; Python {platform.python_version()}"
    table = make_table(title, "planner", "median", "least", "most")
    for name, found in times.items():
        table.add_row(name, f"{statistics.median(found):.1f}", f"{min(found):.1f}", f"{max(found):.1f}")
    return table


def measure_prompts(seeds: int) -> Table:
    """Characters of a plan's prompts, each question alone and as one conversation."""
    pack = TaskPack.load("openagi")
    tasks = pack.split("test")
    table = make_table("Prompt characters a plan", "wording", "new in each request", "sent in all", "questions")
    for name, conversation in (("each question alone", False), ("one conversation", True)):
        new = sent = questions = 0

        def answer(question: Question) -> int:
            nonlocal new, sent, questions
            questions += 1
            new += len(question.prompt)
            sent += sum(len(message.content) for message in question.messages)
            return rng.randrange(len(question.options)) + 1  # noqa: B023  # asked within this round

        for seed in range(seeds):
            rng = random.Random(seed)
            planner = Planner(pack.cfg, answer, wording=Wording(conversation=conversation))
            for task in tasks:
                planner.plan(task)
        plans = seeds * len(tasks)
        table.add_row(name, f"{new / plans:,.0f}", f"{sent / plans:,.0f}", f"{questions / plans:.1f}")
    return table


# -- counting ----------------------------------------------------------------------------------------------------------


def measure_counting(repeats: int) -> Table:
    """Exact counts and samples; the partition function and the marginals under random scores."""
    pack = TaskPack.load("openagi")
    title = "Complete plans, each of the fifteen tools at most once"
    table = make_table(title, "from", "to", "plans", "counting, ms", "one sample, ms", "sum, ms", "marginals, ms")
    for given, goal, limits in (
        ("an image, used at most once", "text_plan", Limits({"input_text": 0, "input_image": 1})),
        ("an image, used at will", "text_plan", Limits({"input_text": 0})),
        ("an image, used at will", "image_plan", Limits({"input_text": 0})),
        ("a text, used at will", "text_plan", Limits({"input_image": 0})),
        ("image and text, used at will", "text_plan", Limits()),
    ):
        times = []
        for _ in range(repeats):
            lookahead = Lookahead(pack.cfg.with_start(goal), limits)
            begin = perf_counter()
            number = lookahead.count()
            times.append((perf_counter() - begin) * 1e3)
        rng, begin = random.Random(0), perf_counter()
        for _ in range(100):
            lookahead.sample(rng)
        each = (perf_counter() - begin) * 10
        rules = WeightedRules(lookahead)
        rules = rules.with_scores({name: rng.gauss(0, 1) for name in rules.scores})
        begin = perf_counter()
        rules.log_partition()
        summed = perf_counter()
        rules.marginals()
        sums = f"{(summed - begin) * 1e3:.1f}", f"{(perf_counter() - summed) * 1e3:.1f}"
        shown = f"{statistics.median(times):.1f}", f"{each:.1f}", *sums
        table.add_row(given, goal.removesuffix("_plan"), f"{number:,}", *shown)
    return table


# -- random tools ------------------------------------------------------------------------------------------------------


def random_tools(tools: int, rng: random.Random) -> CFG:
    """A random grammar of typed tools, as task packs have them."""
    types = rng.randint(max(3, tools // 10), max(3, tools // 3))
    given = rng.sample(range(types), rng.randint(1, max(1, types // 4)))
    productions: list[tuple[str, tuple[str, ...]]] = [("Plan", (f"Type{rng.randrange(types)}",))]
    for number in range(tools):
        made = number if number < types else rng.randrange(types)  # some tool makes each type
        needs = tuple(f"Type{rng.randrange(types)}" for _ in range(rng.randint(1, 3)))
        productions.append((f"Type{made}", (f"tool{number}", *needs)))
    productions += [(f"Type{number}", (f"given{number}",)) for number in given]
    return CFG(productions, limits=Limits(at_most={f"given{n}": None for n in given}, default=1))


def configurations(cfg: CFG, count: int, rng: random.Random) -> Iterator[Any]:
    """Where random walks end."""
    guide = Lookahead(cfg, max_states=30)
    automaton = guide.automaton
    for number in range(count):
        now = automaton.start()
        for _ in range(rng.randrange(3 * len(cfg.terminals))):
            moves = automaton.moves(now)
            if number % 2:
                moves = [move for move in moves if guide.completable(automaton.step(now, move)).possible]
            if not moves:
                break
            now = automaton.step(now, rng.choice(moves))
        yield now


def measure_tools(sizes: Sequence[int], queries: int) -> Table:
    """Processor time of lookahead over random tools; each grammar is prepared once, as for all plans of a planner."""
    table = make_table("Processor milliseconds a query", "tools", "queries", "verdicts", "median", "p99", "worst")
    for tools in sizes:
        rng, verdicts, times = random.Random(tools), Counter[str](), list[float]()
        for _ in range(-(-queries // PER_GRAMMAR)):
            while Lookahead(cfg := random_tools(tools, rng)).completable().value == "no":
                pass  # no plan at all: nothing to look ahead for
            lookahead = Lookahead(cfg)
            lookahead.completable()
            for now in configurations(cfg, PER_GRAMMAR, rng):
                begin = process_time()
                verdict = lookahead.completable(now)
                times.append((process_time() - begin) * 1e3)
                verdicts[verdict.value] += 1
        times.sort()
        counts = ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items()))
        shown = (f"{time:.2f}" for time in (statistics.median(times), times[int(0.99 * len(times))], times[-1]))
        table.add_row(str(tools), str(len(times)), counts, *shown)
    return table


# -- the import --------------------------------------------------------------------------------------------------------


def measure_import(repeats: int) -> str:
    """Seconds that the import takes above the bare interpreter, and the heavy libraries that it loads."""

    def seconds(program: str) -> float:
        begin = perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        return perf_counter() - begin

    seconds("import formal_llm")  # writes the byte code
    times = [seconds("import formal_llm") - seconds("pass") for _ in range(repeats)]
    program = f"import sys, formal_llm; print([name for name in {HEAVY!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()
    return (
        f"import formal_llm: {statistics.median(times):.3f} s (median of {repeats}); heavy libraries loaded: {loaded}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("question", "prompts", "counting", "tools", "import")
    parser.add_argument("--part", choices=parts, action="append", help="only this; repeatable")
    parser.add_argument("--repeats", type=int, default=9, help="measurements of each; the median is shown")
    parser.add_argument("--tools", type=int, nargs="+", default=[15, 30, 100, 200], help="how many tools")
    parser.add_argument("--queries", type=int, default=150, help="queries for each number of tools")
    given = parser.parse_args()
    console = Console(width=120)
    measures: dict[str, Callable[[], Table | str]] = {
        "question": lambda: measure_questions(given.repeats),
        "prompts": lambda: measure_prompts(2 * given.repeats),
        "counting": lambda: measure_counting(given.repeats),
        "tools": lambda: measure_tools(given.tools, given.queries),
        "import": lambda: measure_import(given.repeats),
    }
    for part in given.part or parts:
        console.print(measures[part]())


if __name__ == "__main__":
    main()
