"""How long a run of a procedure takes for its next step, and what kill -9 does to runs that pay.

Run: python benchmarks/procedures.py FOLDER
     python benchmarks/procedures.py --kill N [--seed N]

FOLDER is a copy of SOPBench: all its cases are run with the goal given, and with the first of equally good ways. A step
is the work between the answer to one request and the next request, in processor time; the tools are not counted.

With --kill, runs with two payments are killed at N random moments and go on each time. Which of them were paid twice,
and which report that they paid and did not?
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from formal_llm.llms.question import Answer, Question
from formal_llm.packs.sop.benchmark import DOMAINS, SopBench, build_procedure, load_domain, make_tools
from formal_llm.procedures import Call, MadeCall, Procedure, ProcedureRun, run_procedure
from formal_llm.procedures.run import Request, ToolRequest
from formal_llm.procedures.running import call_tool
from formal_llm.tools.calling import Caller, CallLimits

# -- the time of a step ------------------------------------------------------------------------------------------------


def time_steps(run: ProcedureRun, answer: Callable[[Request], object]) -> Iterator[float]:
    """Yield the milliseconds of processor time that each step of a run takes."""
    steps, reply = run.steps(), None
    while True:
        begun = time.process_time()
        try:
            request = steps.send(reply)
        except StopIteration:
            request = None
        yield 1000 * (time.process_time() - begun)
        if request is None:
            return
        reply = answer(request)


def time_domain(bench: SopBench, name: str) -> list[float]:
    """The times of all steps of the cases of a domain."""
    domain, caller, times = load_domain(name), Caller(CallLimits()), list[float]()
    for case in bench.read_cases(name):
        procedure = build_procedure(domain, case)
        tools = make_tools(bench.make_system(case), list(procedure.tools), [])
        answer = partial(answer_request, tools, caller)
        times += time_steps(ProcedureRun(procedure, case.request, case.known, case.goal), answer)
    return times


def answer_request(tools: Mapping[str, Callable[..., object]], caller: Caller, request: Request) -> object:
    """Call a tool, take the first way, or have no further values."""
    if isinstance(request, ToolRequest):
        return call_tool(tools[request.call.tool], request.call, caller)
    return Answer((1,)) if isinstance(request, Question) else None


def show_times(folder: Path) -> None:
    """Print the times by domain."""
    bench, table, every = (
        SopBench(folder),
        Table("domain", "steps", "median", "p99", "worst", title="ms"),
        list[float](),
    )
    for name in DOMAINS:
        gc.collect()
        times = time_domain(bench, name)
        every += times
        add_row(table, name, times)
    add_row(table, "all", every)
    Console().print(table)


def add_row(table: Table, name: str, times: list[float]) -> None:
    """Add the times of a domain."""
    cells = (median(times), quantiles(times, n=100)[-1], max(times))
    table.add_row(name, str(len(times)), *(f"{one:.2f}" for one in cells))


# -- kill -9 -----------------------------------------------------------------------------------------------------------

PAYING = """
check find(order: text) "Looks an order up."
action log_in(user: text, password: text) "Logs in."
    changes nothing
action deposit(order: text) "Pays a part in advance."
goal action pay(user: text, order: text, amount: number = 0) "Pays the rest."
    with amount = find(order).total
    all of
        logged_in(user)
        deposited(order)
        find(order).state == "open"
fact logged_in(user): log_in(user, password) is ok
fact deposited(order): deposit(order) is ok
"""
PAYMENTS = ("deposit", "pay")
#: Seconds that each call takes before and after it does something.
_SLOW = 0.004


@dataclass
class Killed:
    """What was killed: how often, how often in the middle of a call, in how many runs, and which payments are wrong."""

    kills: int = 0
    unclear: int = 0
    runs: int = 0
    twice: int = 0
    lost: int = 0


def pay(procedure: Procedure, folder: str, started: Event) -> None:
    """Run the procedure, or go on with it; the process ends with 0 if the goal was done."""
    ledger, unclear = Path(folder, "ledger"), Path(folder, "unclear")

    def make_tool(name: str, result: object) -> Callable[..., object]:
        def call(**_: object) -> object:
            time.sleep(_SLOW)
            if name in PAYMENTS:
                write_line(ledger, name)
            time.sleep(_SLOW)
            return result

        return call

    def clarify(call: Call) -> MadeCall | None:
        """Look the payment up, as a person would."""
        write_line(unclear, call.tool)
        is_done = call.tool not in PAYMENTS or call.tool in read_lines(ledger)
        return MadeCall(call, True) if is_done else None

    tools = {name: make_tool(name, True) for name in ("log_in", *PAYMENTS)}
    tools["find"] = make_tool("find", {"state": "open", "total": 5})
    started.set()
    outcome = run_procedure(
        procedure, "Pay.", None, tools, goal="pay", clarify=clarify,
        known={"user": "ada", "order": "7", "password": "x"}, journal=Path(folder, "run.log"),
    )  # fmt: skip
    sys.exit(outcome.ending != "done")


def write_line(file: Path, line: str) -> None:
    """Append a line that is on the disk then."""
    with file.open("a") as opened:
        opened.write(f"{line}\n")
        opened.flush()
        os.fsync(opened.fileno())


def read_lines(file: Path) -> list[str]:
    """The lines of a file; none if it is not there."""
    return file.read_text().split() if file.is_file() else []


def kill_runs(kills: int, seed: int = 0) -> Killed:
    """Kill runs at random moments until so many were hit, and let each end at last.

    Raises:
        RuntimeError: a run ended otherwise than it should.
    """
    rng, found, procedure = random.Random(seed), Killed(), Procedure.from_string(PAYING)
    processes = get_context("forkserver")
    processes.set_forkserver_preload(["formal_llm.procedures.running", "rich.table", "formal_llm.packs.sop.benchmark"])
    longest = 0.0
    while found.kills < kills:
        found.runs += 1
        with tempfile.TemporaryDirectory() as folder:
            ended = False
            while not ended:
                started = processes.Event()
                process = processes.Process(target=pay, args=(procedure, folder, started))
                process.start()
                started.wait(60)
                begun = time.monotonic()
                # The first run is not killed: how long it takes bounds the moments.
                process.join(rng.uniform(0, longest) if longest and found.kills < kills else None)
                ended = process.exitcode is not None
                process.kill()
                process.join()
                found.kills += not ended
                longest = longest or time.monotonic() - begun
            if process.exitcode != 0:
                raise RuntimeError(f"a run ended with {process.exitcode}")
            paid = read_lines(Path(folder, "ledger"))
            found.unclear += len(read_lines(Path(folder, "unclear")))
            found.twice += sum(paid.count(name) > 1 for name in PAYMENTS)
            found.lost += sum(name not in paid for name in PAYMENTS)
    return found


def main() -> None:
    """Read the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="a copy of SOPBench")
    parser.add_argument("--kill", type=int, default=0, metavar="N", help="kill runs at N random moments")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    arguments = parser.parse_args()
    if arguments.folder is not None:
        show_times(arguments.folder)
    if arguments.kill:
        found = kill_runs(arguments.kill, arguments.seed)
        print(
            f"{found.kills} kills in {found.runs} runs with {len(PAYMENTS)} payments each, {found.unclear} within an "
            f"action: {found.twice} payments twice, {found.lost} lost"
        )


if __name__ == "__main__":
    main()
