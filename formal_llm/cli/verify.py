"""``formal-llm verify``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from formal_llm.cli import options
from formal_llm.cli.console import command, print_text
from formal_llm.cli.sources import load, read_plan
from formal_llm.planning.checking.verify import Verifier

HELP = """Verify a plan that anybody wrote: is it valid, where does it go wrong, what is the nearest valid plan?

The plan is read from a file, or from standard input for "-": steps by name or label, one a line; a word; nested calls;
JSON. Where a task is named, the plan must also be one for its goal, from its inputs. Limits and constraints that are to
blame are named.

Examples:

  formal-llm verify openagi my_plan.txt

  formal-llm plan openagi 117 | formal-llm verify openagi - 117

  echo "captioning colorization input_image" | formal-llm verify openagi - --limit colorization=0 --json

Exit codes: 0 the plan is valid; 1 it is not; 2 wrong arguments, or a plan or grammar that cannot be read.
"""


@command
def verify(
    source: options.SourceArgument,
    plan: Annotated[str, typer.Argument(help='A file with the plan; "-" for standard input.')],
    task: options.TaskArgument = "",
    limit: options.LimitOption = None,
    require: options.RequireOption = None,
    input_: options.InputOption = None,
    goal: options.GoalOption = None,
    set_: options.SetOption = None,
    constraint: options.ConstraintOption = None,
    max_states: options.MaxStatesOption = 50_000,
    order: options.OrderOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Verify a plan."""
    loaded = load(source, set_, constraint, None if order is None else order.value)
    rules, limits = loaded.language(task, inputs=input_, goal=goal, limit=limit, require=require)
    verifier = Verifier(rules, limits, max_states=max_states)
    verdict = verifier.verify(read_plan(plan, loaded, rules))
    print_text(json.dumps(verdict.to_dict(), indent=2, ensure_ascii=False) if as_json else str(verdict))
    if not verdict.valid:
        raise typer.Exit(1)
