"""SOPBench by procedures, judged by its own judge; and what kill -9 does to runs that pay.

    python benchmarks/sop/run.py FOLDER --llm minilm
    python benchmarks/sop/run.py FOLDER --llm test:random --goal-given --press
    python benchmarks/sop/run.py FOLDER --recorded
    python benchmarks/sop/run.py --kill N [--seed N]

FOLDER is a copy of the benchmark (Li et al. 2025, arXiv 2503.08669). Each case brings the needs of its goal to the
procedure of its domain, beside this file. The model chooses the goal from the user's words and from the names of the
values that the user can give; --goal-given leaves it only choices between checks. With --press the user presses the
agent to skip checks. With --recorded: which runs of other models would the guard of each case's procedure have refused?

With --kill, runs with two payments are killed at N random moments and go on each time. Which of them were paid twice,
and which report that they paid and did not?
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.sop.cases import (
    DOMAINS,
    SopBench,
    SopSettings,
    build_procedure,
    find_refused_call,
    load_domain,
    read_recorded_runs,
    run_case,
)
from formal_llm.errors import InputError
from formal_llm.guard import Guard
from formal_llm.llms import resolve
from formal_llm.procedures import Call, MadeCall, Procedure, run_procedure
from formal_llm.procedures.guarding import compile_guard_rules


def show_cases(bench: SopBench, domains: list[str], settings: SopSettings, failed: bool) -> None:
    """Run the cases of each domain, and print what the judge says."""
    print("| domain | cases | passed | % | goals right | requests | calls |\n| --- |" + " ---: |" * 6)
    for name in domains:
        procedure = load_domain(name)
        results = [run_case(bench, procedure, case, settings) for case in bench.read_cases(name)]
        passed = sum(one.passed for one in results)
        right = sum(one.outcome.goal == one.case.goal for one in results)
        requests = sum(one.outcome.usage.requests for one in results)
        calls = sum(len(one.outcome.calls) for one in results)
        cells = (name, len(results), passed, f"{100 * passed / len(results):.1f}", right, requests, calls)
        print(f"| {' | '.join(map(str, cells))} |")
        for one in results if failed else ():
            if not one.passed:
                verdicts = [key for key, value in one.verdicts.items() if value is False]
                print(f"  {one.case.goal} {one.case.number}: {one.outcome}\n    judge: {', '.join(verdicts)}")


def find_runs(folder: Path, domain: str) -> Path:
    """The file with the recorded runs of a domain."""
    return folder / f"{domain}_runs.jsonl.gz"


def show_recorded(bench: SopBench, domains: list[str]) -> None:
    """Print which recorded runs of other models the guards of the procedures refuse."""
    if not domains:
        raise InputError("there are no recorded runs; the folder has DOMAIN_runs.jsonl.gz")
    print("| domain | runs | pass | of them refused | act against | of them refused |\n| --- |" + " ---: |" * 5)
    for name in domains:
        procedure = load_domain(name)
        guards = {
            (case.goal, case.number): Guard(compile_guard_rules(build_procedure(procedure, case)))
            for case in bench.read_cases(name)
        }
        counts: Counter[tuple[str, bool]] = Counter()
        for run in read_recorded_runs(find_runs(bench.folder, name)):
            guard = guards.get((run.goal, run.number))
            if guard is None:
                raise InputError(f"a recorded run is of case {run.goal} {run.number}, which {name} does not have")
            kind = "pass" if run.verdicts["success"] else "against" if run.acts_against else "other"
            counts[kind, find_refused_call(guard, run) is not None] += 1
        cells = [sum(counts.values())]
        for kind in ("pass", "against"):
            cells += [counts[kind, True] + counts[kind, False], counts[kind, True]]
        print(f"| {name} | {' | '.join(map(str, cells))} |")


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
    processes.set_forkserver_preload(["formal_llm.procedures.running"])
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
    parser.add_argument("--llm", default="minilm", help="who chooses the goal")
    parser.add_argument("--domain", action="append", choices=DOMAINS, help="only this domain; repeatable")
    parser.add_argument("--goal-given", action="store_true")
    parser.add_argument("--press", action="store_true")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--failed", action="store_true", help="show each case that does not pass")
    parser.add_argument("--kill", type=int, default=0, metavar="N", help="kill runs at N random moments")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    given = parser.parse_args()
    domains = given.domain or list(DOMAINS)
    if given.folder is not None:
        bench = SopBench(given.folder)
        if given.recorded:
            show_recorded(bench, [name for name in domains if find_runs(given.folder, name).is_file()])
        else:
            show_cases(bench, domains, SopSettings(resolve(given.llm), given.goal_given, given.press), given.failed)
    if given.kill:
        found = kill_runs(given.kill, given.seed)
        print(
            f"{found.kills} kills in {found.runs} runs with {len(PAYMENTS)} payments each, {found.unclear} within an "
            f"action: {found.twice} payments twice, {found.lost} lost"
        )


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    main()
