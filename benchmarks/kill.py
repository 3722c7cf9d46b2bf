"""A run over many tasks is killed (SIGKILL) at random moments and continued; then every task must stand there once.

Run: python benchmarks/kill.py [--tasks N] [--kills N] [--seed N]

The tasks are planned with ``openai:`` against a server on this machine, with an answer cache. At the end the results
are compared with those of a run that nobody killed, and SQLite checks the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from benchmarks.slow_server import slow_server
from formal_llm import TaskPack


def command(folder: Path, out: str, llm: str) -> list[str]:
    """The command line of the run."""
    options = ["--tasks", str(folder / "tasks.txt"), "--out", str(folder / out), "--llm", llm]
    return [sys.executable, "-m", "formal_llm", "plan", "openagi", *options, "--cache", str(folder / f"{out}.sqlite")]


def finished(file: Path) -> dict[int, list[str]]:
    """The word of each task in a results file; raises if a task stands there twice or a line is no JSON."""
    words: dict[int, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        if data["index"] in words:
            raise AssertionError(f"task {data['index']} stands there twice")
        words[data["index"]] = data["word"]
    return words


def run(tasks: int, kills: int, seed: int, llm: str, environment: dict[str, str]) -> list[int]:
    """Kill and continue; how many tasks were done after each kill. Raises if anything is lost or twice."""
    rng = random.Random(seed)
    done = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sentences = islice(cycle(task.description for task in TaskPack.load("openagi").tasks), tasks)
        (folder / "tasks.txt").write_text("\n".join(sentences), encoding="utf-8")
        file = folder / "killed"
        for number in range(kills):
            process = subprocess.Popen(command(folder, "killed", llm), env=environment, stderr=subprocess.PIPE)
            # Wait until the run has got somewhere, so that most kills hit it at work, and then a random while.
            aim = rng.uniform(0, 1.6) * tasks * (number + 1) / (kills + 1) / 1.6
            deadline = time.monotonic() + 120
            while process.poll() is None and time.monotonic() < deadline:
                if file.exists() and file.read_bytes().count(b"\n") >= aim:
                    break
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            done.append(file.read_bytes().count(b"\n"))
        subprocess.run(command(folder, "killed", llm), env=environment, check=True, stderr=subprocess.DEVNULL)
        subprocess.run(command(folder, "whole", llm), env=environment, check=True, stderr=subprocess.DEVNULL)
        killed, whole = finished(file), finished(folder / "whole")
        if sorted(killed) != list(range(tasks)) or killed != whole:
            raise AssertionError("the results are not those of a run that nobody killed")
        for cache in (folder / "killed.sqlite", folder / "whole.sqlite"):
            database = sqlite3.connect(cache)
            if database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise AssertionError(f"{cache.name} is damaged")
            database.close()
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with slow_server(0.005) as url:
        environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        done = run(given.tasks, given.kills, given.seed, "openai:slow", environment)
    print(f"killed after {', '.join(map(str, done))} of {given.tasks} tasks; continued: every task once, cache intact")


if __name__ == "__main__":
    main()
