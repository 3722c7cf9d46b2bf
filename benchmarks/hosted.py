"""Models behind an API: plans a second with more and more walks in flight, and what stopping and going on costs.

Run: python benchmarks/hosted.py [--part throughput|stops] [--plans N] [--how kill|interrupt|terminate]

``throughput``
    Against a server on this machine that takes 50 ms to answer. ``ideal`` is what latency alone allows: walks in flight
    / (questions a plan x 50 ms). ``own`` is the CPU time of the planner alone, measured with the same answers and no
    server; ``SDK and all`` is the CPU time of the process that plans.
``stops``
    A run over many tasks is stopped at random moments and continued. The results must be those of a run that nobody
    stopped, every task once; told is how many answers were asked again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from formal_llm import Planner, Question, TaskPack
from formal_llm.llms import HostedLLM
from tests.slow_server import read_counts, slow_server

LATENCY = 0.05
#: How a run is stopped.
SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}


# -- throughput --------------------------------------------------------------------------------------------------------


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


def measure(llm: HostedLLM, plans: int, in_flight: int) -> tuple[float, float, float]:
    """(plans per second, CPU seconds per plan, questions per plan)."""
    pack = TaskPack.load("openagi")
    planner = Planner(pack.cfg, llm, wording=pack.wording)
    planner.plan_all(pack.tasks, concurrency=64)  # connections of the client aside, everything is warm
    tasks = list(islice(cycle(pack.tasks), plans))
    begun, cpu = perf_counter(), process_time()
    outcomes = list(planner.plan_each(tasks, concurrency=in_flight))
    seconds, used = perf_counter() - begun, process_time() - cpu
    questions = sum(outcome.unwrap().usage.questions for outcome in outcomes)
    return plans / seconds, used / plans, questions / plans


def measure_throughput(plans: int) -> Table:
    """The table of plans a second."""
    own = alone(plans)
    table = Table(title=f"OpenAGI, server with {LATENCY * 1000:.0f} ms latency, {os.cpu_count()} cores")
    for column in ("walks in flight", "plans/s", "ideal", "share of ideal", "CPU ms/plan: own", "SDK and all"):
        table.add_column(column, justify="right")
    with slow_server(LATENCY) as url:
        for in_flight in (1, 8, 64, 512):
            count = min(plans, max(10, in_flight * 20))
            rate, cpu, questions = measure(HostedLLM("openai:slow", base_url=url, api_key="none"), count, in_flight)
            ideal = in_flight / (questions * LATENCY)
            table.add_row(
                str(in_flight), f"{rate:,.1f}", f"{ideal:,.1f}", f"{rate / ideal:.0%}", f"{own * 1000:.2f}",
                f"{cpu * 1000:.2f}",
            )  # fmt: skip
    return table


# -- stop and go on ----------------------------------------------------------------------------------------------------


class Stopped(NamedTuple):
    """After how many finished tasks a run was stopped, its answers, how many more than needed, and its tokens."""

    done: list[int]
    answered: int
    again: int
    tokens_missing: int


def finished(file: Path) -> dict[int, list[str]]:
    """The word of each task in a results file; raises if a task stands there twice or a line is no JSON."""
    words: dict[int, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        if data["index"] in words:
            raise AssertionError(f"task {data['index']} stands there twice")
        if data["status"] != "stopped":
            words[data["index"]] = data["word"]
    return words


def count_tokens(file: Path) -> int:
    """The tokens that a results file reports."""
    used = [json.loads(line)["usage"] for line in file.read_text(encoding="utf-8").splitlines()]
    return sum(one["input_tokens"] + one["output_tokens"] for one in used)


def stop_and_continue(how: str, tasks: int, stops: int, concurrency: int, seed: int, url: str) -> Stopped:
    """Stop a run of the command line and continue it. Raises if anything is lost or twice."""
    rng, done = random.Random(seed), []
    environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sentences = islice(cycle(task.description for task in TaskPack.load("openagi").tasks), tasks)
        (folder / "tasks.txt").write_text("\n".join(sentences), encoding="utf-8")

        def command(out: str) -> list[str]:
            options = ["--tasks", str(folder / "tasks.txt"), "--out", str(folder / out), "--llm", "openai:slow"]
            start = [sys.executable, "-m", "formal_llm", "plan", "openagi"]
            return [*start, *options, "--concurrency", str(concurrency)]

        file = folder / "stopped"
        for _ in range(stops):
            before = read_counts(url)["answered"]
            process = subprocess.Popen(command("stopped"), env=environment, stderr=subprocess.PIPE)
            # Wait until the run has got somewhere, so that most stops hit it at work, and then a random while.
            aim = before + rng.uniform(0.1, 1) * tasks * 4 / (stops + 1)
            deadline = time.monotonic() + 120
            while process.poll() is None and time.monotonic() < deadline:
                if read_counts(url)["answered"] >= aim:
                    break
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.05))
            process.send_signal(SIGNALS[how])
            process.communicate(timeout=60)
            done.append(file.read_bytes().count(b'"planned"') if file.exists() else 0)
        subprocess.run(command("stopped"), env=environment, check=True, stderr=subprocess.DEVNULL)
        answered = read_counts(url)["answered"]
        subprocess.run(command("whole"), env=environment, check=True, stderr=subprocess.DEVNULL)
        needed = read_counts(url)["answered"] - answered
        stopped, whole = finished(file), finished(folder / "whole")
        if sorted(stopped) != list(range(tasks)) or stopped != whole:
            raise AssertionError("the results are not those of a run that nobody stopped")
        if (left := folder / "stopped.journal").exists():
            raise AssertionError(f"{left.name} is still there")
        missing = count_tokens(folder / "whole") - count_tokens(file)
    return Stopped(done, answered, answered - needed, missing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("throughput", "stops"), help="only this")
    parser.add_argument("--plans", type=int, default=1_000, help="plans at 64 in flight and above; fewer below")
    parser.add_argument("--how", choices=SIGNALS, default="kill", help="how a run is stopped")
    parser.add_argument("--tasks", type=int, default=300, help="tasks of the run that is stopped")
    parser.add_argument("--stops", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=64, help="of the run that is stopped")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.part != "stops":
        Console().print(measure_throughput(given.plans))
    if given.part != "throughput":
        with slow_server(LATENCY) as url:
            found = stop_and_continue(given.how, given.tasks, given.stops, given.concurrency, given.seed, url)
        print(
            f"{given.how}: stopped after {', '.join(map(str, found.done))} of {given.tasks} tasks and continued: every "
            f"task once; of {found.answered} answers {found.again} were asked again, in {given.stops} stops with "
            f"{given.concurrency} in flight; {found.tokens_missing} tokens are missing in the file"
        )


if __name__ == "__main__":
    main()
