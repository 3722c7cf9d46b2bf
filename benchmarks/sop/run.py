"""SOPBench by procedures, judged by its own judge.

    python benchmarks/sop/run.py FOLDER --llm minilm
    python benchmarks/sop/run.py FOLDER --llm test:random --goal-given --press
    python benchmarks/sop/run.py FOLDER --recorded

FOLDER is a copy of the benchmark (Li et al. 2025, arXiv 2503.08669). Each case brings the needs of its goal to the
procedure of its domain, beside this file. The model chooses the goal from the user's words and from the names of the
values that the user can give; --goal-given leaves it only choices between checks. --press: the user presses the
agent to skip checks. --recorded: which runs of other models the guard compiled from each case's procedure would have
refused.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
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


def main() -> None:
    """Read the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a copy of SOPBench")
    parser.add_argument("--llm", default="minilm", help="who chooses the goal")
    parser.add_argument("--domain", action="append", choices=DOMAINS, help="only this domain; repeatable")
    parser.add_argument("--goal-given", action="store_true")
    parser.add_argument("--press", action="store_true")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--failed", action="store_true", help="show each case that does not pass")
    given = parser.parse_args()
    domains = given.domain or list(DOMAINS)
    bench = SopBench(given.folder)
    if given.recorded:
        show_recorded(bench, [name for name in domains if find_runs(given.folder, name).is_file()])
    else:
        show_cases(bench, domains, SopSettings(resolve(given.llm), given.goal_given, given.press), given.failed)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    main()
