"""``formal-llm verify``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.cli import options
from formal_llm.cli.console import command, print_text
from formal_llm.cli.sources import load, naming_place, plan_text
from formal_llm.planning.checking.texts import verify_text
from formal_llm.planning.checking.verify import Verifier

HELP = """Verify a plan that anybody wrote: is it valid, where does it go wrong, what is the nearest valid plan?

The plan is read from a file, or from standard input for "-": one step a line, by name or label, in the order in which
they are carried out, or on one line with " / " between them; a word, names with blanks between; nested calls; JSON.
Bullets and numbers before a step are dropped; nothing else may stand on its line.

Where a task is named, the plan must also be one for its goal, from its inputs. Limits and constraints that are to blame
are named.

Examples:

  formal-llm verify openagi my_plan.txt

  formal-llm plan openagi 117 | formal-llm verify openagi - 117

  formal-llm verify risk model_answer.txt --json

  formal-llm travel verify --help

  echo "captioning colorization input_image" | formal-llm verify openagi - --limit colorization=0 --json
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
    rule: options.RuleOption = None,
    max_states: options.MaxStatesOption = 50_000,
    as_json: options.JsonOption = False,
) -> None:
    """Verify a plan."""
    loaded = load(source, set_, rule)
    rules, limits = loaded.language(task, inputs=input_, goal=goal, limit=limit, require=require)
    own = (
        loaded.rules if isinstance(loaded.rules, Behaviour) and rules is loaded.source else rules
    )  # its parts have names
    verifier = Verifier(own, limits, max_states=max_states)
    with naming_place(plan):
        verdict = verify_text(plan_text(plan), verifier)
    print_text(json.dumps(verdict.to_dict(), indent=2, ensure_ascii=False) if as_json else str(verdict))
    if not verdict.valid:
        raise typer.Exit(1)
