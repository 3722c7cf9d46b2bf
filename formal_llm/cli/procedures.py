"""``formal-llm act`` and ``bench sop``: procedures carried out, and measured on a benchmark."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from formal_llm.cli.agent import tools_of
from formal_llm.cli.console import command, err, print_text, write_to
from formal_llm.cli.options import ProcessOption
from formal_llm.errors import InputError

if TYPE_CHECKING:
    from formal_llm.packs.sop.benchmark import SopBench, SopSettings
    from formal_llm.planning.json_data import JSON
    from formal_llm.procedures import Call, MadeCall, Procedure, ValuesRequest
    from formal_llm.tools.toolkit import Toolkit

ACT_HELP = """Carry out what a user wants, by a procedure: what comes first is checked, whatever anybody says.

PROCEDURE is a .procedure file, or a flowchart (.mmd) or process (.bpmn) with tools. The model chooses the goal;
--goal names it instead. Values come from --known, and from you at the terminal. The run ends with the goal done,
declined with the fact that failed and the call that showed it, or handed over to a person (exit codes 0, 1 and 5).

Examples:

  formal-llm act access.procedure --tools my_tools:toolkit --llm openai:gpt-6-luna "I need access to the wiki."

  formal-llm act access.procedure --tools my_tools:toolkit --goal grant_access --known user=ada --known system=wiki

  formal-llm act access.procedure --guard access.guard

With --journal FILE the run goes on where it was interrupted: nothing that was done is done again. --evidence FILE keeps
what formal_llm.procedures.checker checks by itself. --page FILE writes the run as a web page. --guard FILE writes the
procedure as rules for the guard of an agent that you have, and does nothing else.
"""


@command
def act(
    procedure: Annotated[Path, typer.Argument(metavar="PROCEDURE", help="A .procedure file, or a diagram.")],
    request: Annotated[str, typer.Argument(help="What the user wants.")] = "",
    tools: Annotated[str | None, typer.Option(metavar="MODULE:NAME", help="The toolkit.")] = None,
    llm: Annotated[str | None, typer.Option("--llm", help="Who chooses the goal; see: formal-llm list llms.")] = None,
    goal: Annotated[str | None, typer.Option(help="The goal, if it is known.")] = None,
    known: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A value; JSON, or a text. Repeatable.")
    ] = None,
    native: Annotated[
        bool, typer.Option("--native", help="The model calls the goal, and may give values that the request states.")
    ] = False,
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the run, and go on with it.")] = None,
    evidence: Annotated[Path | None, typer.Option(metavar="FILE", help="Write what shows that it was right.")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the run as a web page.")] = None,
    guard: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rules of a guard; - prints them.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0.1, help="Seconds for one call of a tool.")] = None,
    process: ProcessOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Carry out a procedure."""
    from formal_llm.procedures.checker import check_evidence
    from formal_llm.procedures.evidence import write_evidence
    from formal_llm.procedures.guarding import compile_guard_rules
    from formal_llm.procedures.page import outcome_page
    from formal_llm.procedures.procedure import Procedure
    from formal_llm.procedures.running import run_procedure

    rules = Procedure.from_file(procedure, process=process)
    report_holes(rules)
    if guard is not None:
        write_to(guard, str(compile_guard_rules(rules)))
        return
    if tools is None:
        raise InputError("there are no tools; name them: --tools MODULE:NAME")
    if goal is None and llm is None:
        raise InputError("nobody chooses the goal; name a model or the goal: --llm, --goal")
    values = read_known(rules, known or (), goal)
    outcome = run_procedure(
        rules, request, llm, load_tools(tools), known=values, goal=goal, user=partial(_ask_user, rules),
        approve=_ask_approval, clarify=_ask_result, journal=journal, timeout=timeout, native=native,
    )  # fmt: skip
    if evidence is not None:
        written = write_evidence(rules, outcome)
        problems = check_evidence(cast("dict[str, object]", json.loads(json.dumps(written))))
        write_to(evidence, json.dumps(written, ensure_ascii=False))
        err().print(f"evidence: {'; '.join(problems) or 'checked'}")
    if page is not None:
        write_to(page, outcome_page(rules, outcome, request=request, known=values, has_model=llm is not None))
    print_text(json.dumps(outcome.to_data(), ensure_ascii=False, indent=2) if as_json else str(outcome))
    raise typer.Exit({"done": 0, "declined": 1, "handed over": 5}[outcome.ending])


def report_holes(procedure: Procedure) -> None:
    """Warn of the sentences of a procedure that were not understood."""
    for name, text in procedure.holes:
        err().print(f"warning: {name}: not understood, so it never holds: {text}", style="yellow")


def load_tools(name: str) -> Toolkit:
    """Load the toolkit that is named."""
    made = tools_of(name, None)
    return made() if callable(made) else cast("Toolkit", made)


def read_known(procedure: Procedure, pairs: Sequence[str], goal: str | None = None) -> dict[str, JSON]:
    """Read values from ``NAME=VALUE``: JSON of the type of the value, else a text."""
    from formal_llm.procedures.run import find_misfit, find_parameters

    known: dict[str, JSON] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name:
            raise InputError(f"--known {pair} is not NAME=VALUE")
        parameters = find_parameters(procedure, name, goal)
        known[name] = text
        with suppress(ValueError):
            value = json.loads(text)
            if not find_misfit(parameters, value) or find_misfit(parameters, text):
                known[name] = value
    return known


def _ask(question: str) -> str | None:
    if not sys.stdin.isatty():
        return None
    err().print(question, markup=False)
    try:
        return input("> ").strip()
    except EOFError:
        return None


def _ask_user(procedure: Procedure, asked: ValuesRequest) -> Mapping[str, JSON]:
    """Ask for one value after the other; an empty line means that the user does not have it."""
    given = {name: _ask(f"{name}? (empty if there is none)") for name in asked.names}
    return read_known(procedure, [f"{name}={text}" for name, text in given.items() if text])


def _ask_approval(call: Call) -> bool | str:
    text = _ask(f"May this be done: {call}? yes, or the reason why not")
    return text == "yes" or text or "nobody is at the terminal"


def _ask_result(call: Call) -> MadeCall | None:
    from formal_llm.procedures import MadeCall

    text = _ask(f"{call} was begun when the run was interrupted. What did it return (JSON)? empty if it was not done")
    if text is None:
        raise InputError(f"{call} was begun when the run was interrupted; find out at a terminal whether it was done")
    return MadeCall(call, json.loads(text)) if text else None


# -- the benchmark -----------------------------------------------------------------------------------------------------

SOP_HELP = """Carry out the cases of SOPBench by procedures, and have them judged by its own judge.

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
    llm: Annotated[str, typer.Option("--llm", help="Who chooses the goal; see: formal-llm list llms.")] = "minilm",
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
    from formal_llm.procedures.guarding import compile_guard_rules

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
