"""Small mistakes made on purpose: does the test file that mirrors a module notice them?

    python benchmarks/mutants.py --core                    # the parts that decide what is allowed and what is learned
    python benchmarks/mutants.py --random 300 --seed 26    # a random sample of the whole library
    python benchmarks/mutants.py --file formal_llm/llms/reading.py --file formal_llm/automata/lookahead/flow.py:120
    python benchmarks/mutants.py --core --list             # what would be run
    python benchmarks/mutants.py --core --report           # what is known from earlier runs

A mutant is one small change of one line (``benchmarks/mutating/mutations.py``): a comparison, a sign, a condition, a
constant of 0 to 2. Only the mirrored test file is run over it: the first test that fails notices the mutant. One that
no test notices is either a gap in the tests or an equivalent program. Equivalent ones are named, each with its reason,
in ``benchmarks/mutating/equivalent.toml``, and are not counted.

Nothing is written into the checkout but ``build/mutants/``: copies of the repository, in which mutants are run, and
``results.jsonl``, to which outcomes are appended. A run that was stopped starts again with the module that it was at.
An outcome holds as long as the module is unchanged, and that of a mutant which was not noticed as long as its test file
is unchanged, too. The exit code is 1 if a mutant survives that is not named, or was not run.

Why not mutmut or cosmic-ray: both run a test command for each mutant, with all imports, two seconds and more for each
here, and neither restricts a module to the test file of its name. Here a mutant is a copy of a process that has
collected the tests, and runs only those which execute its line, the quickest first.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import math
import os
import random
import sys
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from benchmarks.mutating.mutations import Mutant, is_change, list_mutants  # noqa: E402
from benchmarks.mutating.running import Baseline, Outcome, Runner, TestsFail  # noqa: E402

EQUIVALENT = ROOT / "benchmarks" / "mutating" / "equivalent.toml"
FOLDER = ROOT / "build" / "mutants"
#: For how many mutants of a module it is not worth while to record which test executes which line.
FEW = 3
#: What decides whether a plan, a call or an answer is allowed, and what a model learns from.
CORE = {
    "the checker of certificates": ["planning/checking/certificate_checker"],
    "the filters of lookahead": [
        f"automata/lookahead/{name}"
        for name in (
            "verdicts", "counters", "resources", "limited", "flow", "search", "exact/sums", "exact/simplex",
            "exact/linear_program", "stacks",
        )
    ],
    "the guard's search": [
        *(f"control/{name}" for name in ("search", "supervisor", "component", "machines", "plant")),
        *(f"guard/{name}" for name in ("position", "guard", "rules/possible_events")),
    ],
    "the reading of answers": ["llms/reading"],
    "the objective of training": ["rltf/objective", "rltf/advantages"],
}  # fmt: skip


def mirrored(module: str) -> str:
    """The test file of a module: ``tests/ROOM/test_MODULE.py``."""
    path = Path(module).relative_to("formal_llm")
    return str(Path("tests", *path.parts[:-1], f"test_{path.name}"))


def digest(*paths: str, root: Path = ROOT) -> str:
    """What files of the repository, or of a copy of it, are recognised by."""
    return hashlib.sha256(b"\0".join((root / path).read_bytes() for path in paths)).hexdigest()[:16]


def modules() -> list[str]:
    """The modules with a test file of their own."""
    found = (str(path.relative_to(ROOT)) for path in sorted((ROOT / "formal_llm").rglob("*.py")))
    return [name for name in found if (ROOT / mirrored(name)).is_file()]


def mutants_of(module: str) -> list[Mutant]:
    return list_mutants(module, (ROOT / module).read_text(encoding="utf-8"))


Place = tuple[str, int, int, str]


def place(mutant: Mutant) -> Place:
    return mutant.file, mutant.start, mutant.end, mutant.text


def chosen(options: argparse.Namespace) -> list[Mutant]:
    """The mutants asked for."""
    found: list[Mutant] = []
    if options.core:
        found += [mutant for names in CORE.values() for name in names for mutant in mutants_of(f"formal_llm/{name}.py")]
    for name in options.file:
        path, _, line = name.partition(":")
        module = str(Path(path).resolve().relative_to(ROOT))
        found += [mutant for mutant in mutants_of(module) if not line or mutant.line == int(line)]
    found = [mutant for mutant in found if valid(mutant)]
    if options.random:
        everything = [mutant for module in modules() for mutant in mutants_of(module)]
        # By a number of its own for each, so that a change of one module leaves the rest of a sample as it is.
        seen = Counter[str]()
        order: dict[Place, bytes] = {}
        for one in everything:
            name = f"{options.seed} {one.key} {one.text}"
            seen[name] += 1
            order[place(one)] = hashlib.sha256(f"{name} {seen[name]}".encode()).digest()
        everything.sort(key=lambda one: order[place(one)])
        sample: list[Mutant] = []
        for mutant in everything:
            if len(sample) == options.random:
                break
            if valid(mutant):
                sample.append(mutant)
        found += sample
    return found


def valid(mutant: Mutant) -> bool:
    return is_change(mutant, (ROOT / mutant.file).read_text(encoding="utf-8"))


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Why a mutant is the same program, by the mutant's key."""
    rows = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    return {(row["file"], row["function"], row["line"], row["change"]): row["why"] for row in rows}


# -- results ----------------------------------------------------------------------------------------------------------


def recorded() -> dict[Place, dict[str, Any]]:
    """The outcomes of earlier runs that still hold."""
    found: dict[Place, dict[str, Any]] = {}
    path, digests = FOLDER / "results.jsonl", dict[str, tuple[str, str]]()
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        row = json.loads(line)
        file = row["file"]
        if not (ROOT / file).is_file():
            continue
        module, tests = digests.setdefault(file, (digest(file), digest(mirrored(file))))
        if row["module"] == module and (row["outcome"] == "noticed" or row["tests"] == tests):
            found[file, row["start"], row["end"], row["text"]] = row
    return found


def record(outcome: Outcome, root: Path) -> dict[str, Any]:
    mutant = outcome.mutant
    tests = mirrored(mutant.file)
    return {
        "file": mutant.file, "line": mutant.line, "start": mutant.start, "end": mutant.end, "text": mutant.text,
        "change": mutant.change, "outcome": outcome.outcome, "by": outcome.by,
        "module": digest(mutant.file, root=root), "tests": digest(tests, root=root),
    }  # fmt: skip


def baseline_file(module: str, runner: Runner) -> Path:
    return FOLDER / "baselines" / f"{digest(module, mirrored(module), root=runner.copy)}.json"


def known_baseline(runner: Runner, module: str) -> Baseline:
    """What the unmutated tests do, from a file if they ran before."""
    tests, path = mirrored(module), baseline_file(module, runner)
    if path.is_file():
        return Baseline(**json.loads(path.read_text()))
    found = runner.baseline(module, tests)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(found)))
    return found


def work(number: int, groups: Sequence[tuple[str, list[Mutant]]], minutes: float, console: Console) -> None:
    """Run mutants, module by module, and append each outcome to the results."""
    while True:  # a folder that no other run works in
        lock = (FOLDER / f"job{number}.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            number += 1
    runner = Runner(ROOT, FOLDER / f"job{number}", minutes)
    for module, mutants in groups:
        begin, seen = time.monotonic(), Counter[str]()
        try:
            if len(mutants) > FEW or baseline_file(module, runner).is_file():
                known = known_baseline(runner, module)
                runner.learn(known.modules)
                outcomes = runner.run(module, mirrored(module), mutants, known)
            else:
                outcomes = runner.run_few(module, mirrored(module), mutants)
            for outcome in outcomes:
                seen[outcome.outcome] += 1
                with (FOLDER / "results.jsonl").open("a", encoding="utf-8") as file:
                    file.write(f"{json.dumps(record(outcome, runner.copy))}\n")
        except TestsFail as problem:
            console.print(f"[red]not run:[/] {module}: {problem}", markup=True, highlight=False)
        except Exception:
            console.print(f"not run: {module}", traceback.format_exc(), markup=False)
        counts = ", ".join(f"{count} {name}" for name, count in sorted(seen.items()))
        console.print(f"{module}: {counts or 'none'} ({time.monotonic() - begin:.0f} s)", highlight=False)
    runner.clean()


def run(mutants: Iterable[Mutant], jobs: int, minutes: float, console: Console) -> None:
    """Run mutants in processes."""
    groups: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        groups.setdefault(mutant.file, []).append(mutant)
    for group in groups.values():
        random.Random(0).shuffle(group)  # where the time ends, those that were run are any of them
    rows = list(groups.items())
    children = []
    for number in range(min(jobs, len(rows))):
        child = os.fork()
        if not child:
            work(number, rows[number::jobs], minutes, console)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


# -- what is printed --------------------------------------------------------------------------------------------------


def report(mutants: Sequence[Mutant], console: Console) -> bool:
    """Print a table by module and what survives; whether nothing does and all were run."""
    results, named = recorded(), equivalents()
    table = Table("module", "mutants", "noticed", "equivalent", "survive", "not run")
    counts: dict[str, Counter[str]] = {}
    surviving: list[tuple[Mutant, str]] = []
    for mutant in mutants:
        count = counts.setdefault(mutant.file, Counter())
        outcome = results.get(place(mutant), {"outcome": "not run"})["outcome"]
        if outcome != "noticed" and mutant.key in named:
            outcome = "equivalent"
        count["survive" if outcome in ("survived", "never run") else outcome] += 1
        if outcome in ("survived", "never run"):
            surviving.append((mutant, outcome))
    columns = ("noticed", "equivalent", "survive", "not run")
    for file, count in sorted(counts.items()):
        table.add_row(file, str(count.total()), *(str(count[column]) for column in columns))
    total = sum(counts.values(), Counter[str]())
    table.add_section()
    table.add_row(f"{len(counts)} modules", str(total.total()), *(str(total[column]) for column in columns))
    console.print(table)
    for mutant, outcome in surviving:
        seen = "" if outcome == "survived" else "   (no test runs it)"
        console.print(f"{mutant.file}:{mutant.line} {mutant.function}{seen}", markup=False, highlight=False)
        text = f"    line: {mutant.source}\n    change: {mutant.change}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    counted = total["noticed"] + total["survive"]
    if counted:
        share = f"{total['noticed'] / counted:.1%}"
        console.print(f"noticed by the mirrored test file: {total['noticed']} of {counted}, {share}", highlight=False)
    return not surviving and not total["not run"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", action="store_true", help="all mutants of the parts that have to be right")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N mutants at random over all modules")
    parser.add_argument("--seed", type=int, default=26, help="of the random sample")
    parser.add_argument("--file", action="append", default=[], metavar="PATH[:LINE]", help="those of a file or a line")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--minutes", type=float, default=math.inf, help="how long one module may take")
    parser.add_argument("--fresh", action="store_true", help="forget what was recorded")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--report", action="store_true", help="print what is recorded and run nothing")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    mutants = chosen(options)
    if options.list:
        for mutant in mutants:
            console.print(f"{mutant.file}:{mutant.line} {mutant.change}", markup=False, highlight=False, soft_wrap=True)
        return
    if options.fresh:
        (FOLDER / "results.jsonl").unlink(missing_ok=True)
    if not options.report:
        FOLDER.mkdir(parents=True, exist_ok=True)
        done = recorded()
        run([mutant for mutant in mutants if place(mutant) not in done], options.jobs, options.minutes, console)
    sys.exit(0 if report(mutants, console) else 1)


if __name__ == "__main__":
    main()
