"""``formal-llm act`` and ``bench sop``: procedures carried out, and measured on a benchmark."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from formal_llm.cli.agent import tools_of
from formal_llm.cli.console import command, err, print_text, write_to
from formal_llm.errors import InputError

if TYPE_CHECKING:
    from formal_llm.planning.json_data import JSON
    from formal_llm.procedures import Call, MadeCall, Procedure, ValuesRequest
    from formal_llm.tools.toolkit import Toolkit

ACT_HELP = """Carry out what a user wants, by a procedure: what comes first is checked, whatever anybody says.

The model chooses the goal; --goal names it instead. Values come from --known, and from you at the terminal. The run
ends with the goal done, declined with the fact that failed and the call that showed it, or handed over to a person
(exit codes 0, 1 and 5).

Examples:

  formal-llm act access.procedure --tools my_tools:toolkit --llm openai:gpt-6-luna "I need access to the wiki."

  formal-llm act access.procedure --tools my_tools:toolkit --goal grant_access --known user=ada --known system=wiki

  formal-llm act access.procedure --guard access.guard

With --journal FILE the run goes on where it was interrupted: nothing that was done is done again. --evidence FILE keeps
what formal_llm.procedures.checker checks by itself. --guard FILE writes the procedure as rules for the guard of an
agent that you have, and does nothing else.
"""


@command
def act(
    procedure: Annotated[Path, typer.Argument(metavar="PROCEDURE", help="A .procedure file.")],
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
    guard: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rules of a guard; - prints them.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0.1, help="Seconds for one call of a tool.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Carry out a procedure."""
    from formal_llm.procedures.checker import check_evidence
    from formal_llm.procedures.evidence import write_evidence
    from formal_llm.procedures.guarding import compile_guard_rules
    from formal_llm.procedures.procedure import Procedure
    from formal_llm.procedures.running import run_procedure

    rules = Procedure.from_file(procedure)
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
