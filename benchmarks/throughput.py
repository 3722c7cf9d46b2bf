"""Plans per second with more and more walks in flight, against a server on this machine that takes 50 ms to answer.

Run: python benchmarks/throughput.py [--plans N]

``ideal`` is what latency alone allows: walks in flight / (questions per plan x 50 ms). ``own`` is the CPU time of the
planner alone, measured with the same answers and no server; ``SDK and all`` is the CPU time of the process that plans.
"""

from __future__ import annotations

import argparse
import os
from itertools import cycle, islice
from time import perf_counter, process_time

from rich.console import Console
from rich.table import Table

from benchmarks.slow_server import slow_server
from formal_llm import Planner, Question, TaskPack

LATENCY = 0.05
IN_FLIGHT = (1, 8, 64, 512)


def alone(plans: int) -> float:
    """Seconds of CPU per plan that planning takes without any client."""
    pack = TaskPack.load("openagi")

    def chosen(question: Question) -> str:
        question.messages  # noqa: B018  # a client looks at the prompt
        return str(len(question.options))

    planner = Planner(pack.cfg, chosen, wording=pack.wording)
    tasks = list(islice(cycle(pack.tasks), plans))
    planner.plan_all(tasks)  # what the planner learns of the grammar is learned
    begun = process_time()
    planner.plan_all(tasks)
    return (process_time() - begun) / plans


def measure(url: str, plans: int, in_flight: int) -> tuple[float, float, float]:
    """(plans per second, CPU seconds per plan, questions per plan)."""
    os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = url, "none"
    pack = TaskPack.load("openagi")
    planner = Planner(pack.cfg, "openai:slow", wording=pack.wording)
    planner.plan_all(pack.tasks, concurrency=64)  # connections of the client aside, everything is warm
    tasks = list(islice(cycle(pack.tasks), plans))
    begun, cpu = perf_counter(), process_time()
    outcomes = planner.plan_all(tasks, concurrency=in_flight)
    seconds, used = perf_counter() - begun, process_time() - cpu
    questions = sum(outcome.unwrap().usage.questions for outcome in outcomes)
    return plans / seconds, used / plans, questions / plans


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=1_000, help="plans at 64 in flight and above; fewer below")
    plans = parser.parse_args().plans
    own = alone(plans)
    table = Table(title=f"OpenAGI, server with {LATENCY * 1000:.0f} ms latency, {os.cpu_count()} cores")
    for column in ("walks in flight", "plans/s", "ideal", "share of ideal", "CPU ms/plan: own", "SDK and all"):
        table.add_column(column, justify="right")
    with slow_server(LATENCY) as url:
        for in_flight in IN_FLIGHT:
            count = min(plans, max(10, in_flight * 20))
            rate, cpu, questions = measure(url, count, in_flight)
            ideal = in_flight / (questions * LATENCY)
            table.add_row(
                str(in_flight), f"{rate:,.1f}", f"{ideal:,.1f}", f"{rate / ideal:.0%}",
                f"{own * 1000:.2f}", f"{cpu * 1000:.2f}",
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
