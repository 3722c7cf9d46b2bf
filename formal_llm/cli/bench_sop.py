"""``formal-llm bench sop``: procedures over the cases of SOPBench, and guards over its recorded runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formal_llm.cli.console import command, print_text
from formal_llm.errors import InputError

if TYPE_CHECKING:
    from formal_llm.packs.sop.benchmark import SopBench, SopSettings

HELP = """Carry out the cases of SOPBench by procedures, and have them judged by its own judge.

FOLDER is your copy of the benchmark. The procedures are tasks/sop/DOMAIN.procedure; each case brings the needs of its
goal. The model chooses the goal from the user's words and from the names of the values that the user can give;
--goal-given leaves it only choices between checks.

Examples:

  formal-llm bench sop SOPBench --llm minilm

  formal-llm bench sop SOPBench --llm test:random --goal-given --press

  formal-llm bench sop SOPBench --recorded

--press: the user presses the agent to skip checks. --recorded: DOMAIN_runs.jsonl.gz in FOLDER are runs of other models;
the guard compiled from each case's procedure shows which it would have refused.
"""


@command
def bench_sop(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Your copy of the benchmark.")],
    llm: Annotated[str, typer.Option("--llm", help="Who chooses the goal; see: formal-llm llms.")] = "minilm",
    domain: Annotated[list[str] | None, typer.Option(help="A domain; all four if left out. Repeatable.")] = None,
    goal_given: Annotated[bool, typer.Option("--goal-given", help="The goal is given.")] = False,
    press: Annotated[bool, typer.Option("--press", help="The user presses the agent.")] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="Guard the recorded runs.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="Show each case that does not pass.")] = False,
) -> None:
    """Run the benchmark."""
    from formal_llm.llms import resolve
    from formal_llm.packs.sop.benchmark import DOMAINS, SopBench, SopSettings

    bench = SopBench(folder)
    domains = domain or list(DOMAINS)
    unknown = [name for name in domains if name not in DOMAINS]
    if unknown:
        raise InputError(f"there is no procedure for {', '.join(unknown)}; domains are {', '.join(DOMAINS)}")
    if recorded:
        _show_recorded(bench, [name for name in domains if _find_runs(folder, name).is_file()])
        return
    _show_cases(bench, domains, SopSettings(resolve(llm), goal_given, press), failed)


def _show_cases(bench: SopBench, domains: list[str], settings: SopSettings, failed: bool) -> None:
    from formal_llm.packs.sop.benchmark import load_domain, run_case

    print_text("| domain | cases | passed | % | goals right | requests | calls |\n| --- |" + " ---: |" * 6)
    for name in domains:
        procedure = load_domain(name)
        results = [run_case(bench, procedure, case, settings) for case in bench.read_cases(name)]
        passed = sum(one.passed for one in results)
        right = sum(one.outcome.goal == one.case.goal for one in results)
        requests = sum(one.outcome.usage.requests for one in results)
        calls = sum(len(one.outcome.calls) for one in results)
        cells = (name, len(results), passed, f"{100 * passed / len(results):.1f}", right, requests, calls)
        print_text(f"| {' | '.join(map(str, cells))} |")
        for one in results if failed else ():
            if not one.passed:
                verdicts = [key for key, value in one.verdicts.items() if value is False]
                print_text(f"  {one.case.goal} {one.case.number}: {one.outcome}\n    judge: {', '.join(verdicts)}")


def _find_runs(folder: Path, domain: str) -> Path:
    return folder / f"{domain}_runs.jsonl.gz"


def _show_recorded(bench: SopBench, domains: list[str]) -> None:
    from formal_llm.guard import Guard
    from formal_llm.packs.sop.benchmark import build_procedure, find_refused_call, load_domain, read_recorded_runs
    from formal_llm.procedures import compile_guard_rules

    if not domains:
        raise InputError("there are no recorded runs; the folder has DOMAIN_runs.jsonl.gz")
    print_text("| domain | runs | pass | of them refused | act against | of them refused |\n| --- |" + " ---: |" * 5)
    for name in domains:
        procedure = load_domain(name)
        guards = {
            (case.goal, case.number): Guard(compile_guard_rules(build_procedure(procedure, case)))
            for case in bench.read_cases(name)
        }
        counts: Counter[tuple[str, bool]] = Counter()
        for run in read_recorded_runs(_find_runs(bench.folder, name)):
            guard = guards.get((run.goal, run.number))
            if guard is None:
                raise InputError(f"a recorded run is of case {run.goal} {run.number}, which {name} does not have")
            kind = "pass" if run.verdicts["success"] else "against" if run.acts_against else "other"
            counts[kind, find_refused_call(guard, run) is not None] += 1
        cells = [sum(counts.values())]
        for kind in ("pass", "against"):
            cells += [counts[kind, True] + counts[kind, False], counts[kind, True]]
        print_text(f"| {name} | {' | '.join(map(str, cells))} |")
