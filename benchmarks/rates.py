"""Many tasks with a server that allows so many requests a second: how many are refused, and how long it takes.

Run: python benchmarks/rates.py [--tasks N] [--rps N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from time import monotonic

from benchmarks.slow_server import read_counts, slow_server
from formal_llm import TaskPack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--rps", type=float, default=10)
    given = parser.parse_args()
    with slow_server(0.02, given.rps) as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sentences = islice(cycle(task.description for task in TaskPack.load("openagi").tasks), given.tasks)
        (folder / "tasks.txt").write_text("\n".join(sentences), encoding="utf-8")
        options = ["--tasks", str(folder / "tasks.txt"), "--out", str(folder / "out"), "--llm", "openai:slow"]
        environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        begun = monotonic()
        subprocess.run([sys.executable, "-m", "formal_llm", "plan", "openagi", *options], env=environment, check=True)
        seconds, counts = monotonic() - begun, read_counts(url)
    requests = counts["answered"] + counts["refused"]
    print(
        f"{given.tasks} tasks, {given.rps:g} requests a second allowed: {counts['refused']} of {requests} requests "
        f"refused ({counts['refused'] / requests:.1%}); {seconds:.0f} s, {counts['answered'] / given.rps:.0f} s at best"
    )


if __name__ == "__main__":
    main()
