"""Runs with payments are killed at random moments and go on: what is paid twice, and what is reported and not paid."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

from formal_llm.procedures import Call, MadeCall, Procedure, run_procedure

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
