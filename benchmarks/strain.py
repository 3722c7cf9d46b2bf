"""The engine under strain: the cases in which a question was slow, what they take now, and what they should take.

    python benchmarks/strain.py                          # all cases
    python benchmarks/strain.py --only tools --only sums # those with these words in their names
    python benchmarks/strain.py --against ../older       # the same cases on another checkout as well, side by side

Times are milliseconds of processor time on one core, memory is in megabytes. Each case runs in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1]))  # behind what PYTHONPATH says

import benchmarks

benchmarks.__path__ = [str(Path(__file__).parent)]  # the cases are always those of this checkout
from benchmarks import strain_cases  # noqa: E402
from benchmarks.strain_cases.case import Case  # noqa: E402

ROOT = Path(__file__).parents[1]


def all_cases() -> dict[str, Case]:
    """The cases of all modules of :mod:`benchmarks.strain_cases`, by name."""
    found: dict[str, Case] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(strain_cases.__path__)):
        for case in getattr(importlib.import_module(f"benchmarks.strain_cases.{module}"), "CASES", ()):
            assert case.name not in found, f"two cases are called {case.name}"
            found[case.name] = case
    return found


def measured(name: str, checkout: Path, seconds: int) -> dict[str, float | str]:
    """What a case takes with the library of a checkout; the cases themselves are always those of this one."""
    paths = os.pathsep.join((str(checkout), str(ROOT)))
    command = [sys.executable, __file__, "--run", name]
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, cwd=checkout)
    except subprocess.TimeoutExpired:
        return {"": f"> {seconds} s"}
    if done.returncode:
        return {"": (done.stderr.strip().splitlines() or ["failed"])[-1][:60]}
    figures: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return figures


def shown(figures: dict[str, float | str]) -> str:
    return "  ".join(
        f"{name} {value:,.3g}" if isinstance(value, float) else f"{name} {value}".strip()
        for name, value in figures.items()
    )


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--only", action="append", default=[], help="a word in the names of the cases to run")
    options.add_argument("--against", type=Path, help="another checkout of this project")
    options.add_argument("--seconds", type=int, default=180, help="how long one case may take")
    options.add_argument("--run", help=argparse.SUPPRESS)
    given = options.parse_args()
    cases = all_cases()
    if given.run:
        print(json.dumps(cases[given.run].measure()))
        return
    slow = asked = 0.0
    checkouts = [*([given.against.resolve()] if given.against else []), ROOT]
    table = Table("case", "aim", *(["before"] if given.against else []), "now", title="The engine under strain")
    for name, case in cases.items():
        if given.only and not any(word in name for word in given.only):
            continue
        found = [measured(name, checkout, given.seconds) for checkout in checkouts]
        slow += float(found[-1].get("over 80 ms", 0))
        asked += float(found[-1].get("questions", 0))
        figures = [shown(one) for one in found]
        print(name, case.aim, *figures, sep=" | ", file=sys.stderr, flush=True)
        table.add_row(name, case.aim, *figures)
    Console(width=180).print(table)
    print(f"{slow:,.0f} of {asked:,.0f} questions took more than 80 ms")


if __name__ == "__main__":
    main()
