"""``formal-llm count`` and ``formal-llm sample``."""

from __future__ import annotations

import json
import random
from enum import StrEnum
from typing import Annotated

import typer

from formal_llm.automata import Lookahead
from formal_llm.cli import options
from formal_llm.cli.console import command, print_text
from formal_llm.cli.sources import load
from formal_llm.errors import NoValidPlan
from formal_llm.planning.plans.vocabulary import write_word


class Of(StrEnum):
    """What is counted or equally likely."""

    words = "words"
    derivations = "derivations"


_MaxLength = Annotated[int | None, typer.Option(min=0, help="Only plans of at most so many terminals.")]
# A lookahead never counts with a smaller budget than this.
_MaxStates = Annotated[int, typer.Option(min=100_000, help="How many states the count may visit.")]

COUNT_HELP = """Count the valid plans, exactly. The number stands alone on the last line.

Examples:

  formal-llm count openagi 0

  formal-llm count openagi --input image --goal text --limit input_image=1

  formal-llm count my.cfg --max-length 12 --of derivations
"""

SAMPLE_HELP = """Draw valid plans at random, all equally likely.

Examples:

  formal-llm sample openagi 0 --number 3 --seed 7

  formal-llm sample my.cfg --max-length 12
"""


@command
def count(
    source: options.SourceArgument,
    task: options.TaskArgument = "",
    limit: options.LimitOption = None,
    require: options.RequireOption = None,
    input_: options.InputOption = None,
    goal: options.GoalOption = None,
    set_: options.SetOption = None,
    constraint: options.ConstraintOption = None,
    max_length: _MaxLength = None,
    max_states: _MaxStates = 100_000,
    of: Annotated[Of, typer.Option(help="Distinct words, or derivations.")] = Of.words,
    process: options.ProcessOption = None,
    final: options.FinalOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Count the valid plans."""
    loaded = load(source, set_, constraint, process=process, final=final)
    cfg, limits = loaded.language(task, inputs=input_, goal=goal, limit=limit, require=require)
    number = Lookahead(cfg, limits, max_states=max_states).count(of=of.value, max_length=max_length)
    print_text(json.dumps({"count": number, "of": of.value, "max_length": max_length}) if as_json else str(number))


@command
def sample(
    source: options.SourceArgument,
    task: options.TaskArgument = "",
    number: Annotated[int, typer.Option(min=1, help="How many plans.")] = 1,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same plans.")] = None,
    limit: options.LimitOption = None,
    require: options.RequireOption = None,
    input_: options.InputOption = None,
    goal: options.GoalOption = None,
    set_: options.SetOption = None,
    constraint: options.ConstraintOption = None,
    max_length: _MaxLength = None,
    max_states: _MaxStates = 100_000,
    of: Annotated[Of, typer.Option(help="What is equally likely: words, or derivations.")] = Of.words,
    process: options.ProcessOption = None,
    final: options.FinalOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Draw valid plans at random."""
    loaded = load(source, set_, constraint, process=process, final=final)
    cfg, limits = loaded.language(task, inputs=input_, goal=goal, limit=limit, require=require)
    lookahead = Lookahead(cfg, limits, max_states=max_states)
    rng = random.Random(seed)
    words = [lookahead.sample(rng, of=of.value, max_length=max_length) for _ in range(number)]
    if words[0] is None:
        within = "" if max_length is None else f" of at most {max_length} terminals"
        raise NoValidPlan(f"there is none{within} to draw")
    if as_json:
        print_text(json.dumps(words))
    else:
        print_text("\n".join(write_word(word) if word else "ε" for word in words))
