"""A run over many tasks is stopped at random moments and continued: every task is there once, and what was paid again?

Run: python benchmarks/kill.py [--how kill|interrupt|terminate] [--tasks N] [--kills N] [--concurrency N] [--seed N]

The tasks are planned with ``openai:`` against a server on this machine, without an answer cache. At the end the results
are compared with those of a run that nobody stopped, and so are the answers that the server has given.
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
from typing import NamedTuple

from benchmarks.slow_server import read_counts, slow_server
from formal_llm import TaskPack

#: How a run is stopped.
SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}


class Stopped(NamedTuple):
    """After how many finished tasks a run was stopped, its answers, how many more than needed, and its tokens."""

    done: list[int]
    answered: int
    again: int
    tokens_missing: int


def command(folder: Path, out: str, llm: str, concurrency: int) -> list[str]:
    """The command line of the run."""
    options = ["--tasks", str(folder / "tasks.txt"), "--out", str(folder / out), "--llm", llm]
    return [sys.executable, "-m", "formal_llm", "plan", "openagi", *options, "--concurrency", str(concurrency)]


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


def run(how: str, tasks: int, kills: int, concurrency: int, seed: int, url: str) -> Stopped:
    """Stop and continue. Raises if anything is lost or twice."""
    rng = random.Random(seed)
    environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    done = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sentences = islice(cycle(task.description for task in TaskPack.load("openagi").tasks), tasks)
        (folder / "tasks.txt").write_text("\n".join(sentences), encoding="utf-8")
        file, arguments = folder / "stopped", ("openai:slow", concurrency)
        for _ in range(kills):
            before = read_counts(url)["answered"]
            process = subprocess.Popen(command(folder, "stopped", *arguments), env=environment, stderr=subprocess.PIPE)
            # Wait until the run has got somewhere, so that most stops hit it at work, and then a random while.
            aim = before + rng.uniform(0.1, 1) * tasks * 4 / (kills + 1)
            deadline = time.monotonic() + 120
            while process.poll() is None and time.monotonic() < deadline:
                if read_counts(url)["answered"] >= aim:
                    break
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.05))
            process.send_signal(SIGNALS[how])
            process.communicate(timeout=60)
            done.append(file.read_bytes().count(b'"planned"') if file.exists() else 0)
        subprocess.run(command(folder, "stopped", *arguments), env=environment, check=True, stderr=subprocess.DEVNULL)
        answered = read_counts(url)["answered"]
        subprocess.run(command(folder, "whole", *arguments), env=environment, check=True, stderr=subprocess.DEVNULL)
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
    parser.add_argument("--how", choices=SIGNALS, default="kill")
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with slow_server(0.05) as url:
        found = run(given.how, given.tasks, given.kills, given.concurrency, given.seed, url)
    print(
        f"{given.how}: stopped after {', '.join(map(str, found.done))} of {given.tasks} tasks and continued: "
        f"every task once; of {found.answered} answers {found.again} were asked again, in {given.kills} stops with "
        f"{given.concurrency} in flight; {found.tokens_missing} tokens are missing in the file"
    )


if __name__ == "__main__":
    main()
