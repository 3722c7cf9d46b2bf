"""``formal-llm count``, ``sample`` and ``diff``: questions about the plans that rules allow."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from formal_llm.automata import Lookahead
from formal_llm.automata.languages.comparison import Differences, differences
from formal_llm.automata.models.symbols import Order
from formal_llm.cli import options
from formal_llm.cli.console import command, counted, print_text
from formal_llm.cli.sources import load
from formal_llm.errors import FormalLLMError, NoValidPlan
from formal_llm.planning.plans.vocabulary import order_of, write_word


class Of(StrEnum):
    """What is counted or equally likely."""

    words = "words"
    derivations = "derivations"


_MaxLength = Annotated[int | None, typer.Option(min=0, help="Only plans of at most this many terminals.")]
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
    rule: options.RuleOption = None,
    max_length: _MaxLength = None,
    max_states: _MaxStates = 100_000,
    of: Annotated[Of, typer.Option(help="Distinct words, or derivations.")] = Of.words,
    as_json: options.JsonOption = False,
) -> None:
    """Count the valid plans."""
    loaded = load(source, set_, rule)
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
    rule: options.RuleOption = None,
    max_length: _MaxLength = None,
    max_states: _MaxStates = 100_000,
    of: Annotated[Of, typer.Option(help="What is equally likely: words, or derivations.")] = Of.words,
    as_json: options.JsonOption = False,
) -> None:
    """Draw valid plans at random."""
    loaded = load(source, set_, rule)
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
        print_text("\n".join(write_word(word, order_of(cfg)) if word else "ε" for word in words))


DIFF_HELP = """Compare rules: do two sources describe the same plans?

If not, a shortest plan that one has and the other has not is shown, both ways. Finite automata and small finite
languages are compared wholly, others up to a length that is told.

Examples:

  formal-llm diff old.cfg new.cfg

  formal-llm diff old.cfg new.cfg --max-length 12 --json
"""


@command
def diff(
    one: Annotated[str, typer.Argument(metavar="A", help="A task pack, or rules: name or path.")],
    other: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    max_length: Annotated[int | None, typer.Option(min=0, help="Compare plans of at most this many terminals.")] = None,
    max_states: Annotated[int, typer.Option(min=1, help="How far plans are followed: the budget.")] = 5_000,
    as_json: options.JsonOption = False,
) -> None:
    """Compare rules."""
    a, b = (load(name).whole for name in (one, other))
    if order_of(a) != order_of(b):
        raise FormalLLMError("only one of them has %order prefix: write both in one order to compare them")
    found = differences(a, b, max_length, max_places=max_states)
    if as_json:
        print_text(json.dumps(_comparison_data(found), indent=2, ensure_ascii=False))
    else:
        print_text("\n".join(_comparison_lines(found, one, other, order_of(a))))
    if not found.equal:
        raise typer.Exit(1)


def _comparison_data(found: Differences) -> dict[str, object]:
    return {
        "equal": found.equal,
        "exact": found.exact,
        "up_to": found.up_to,
        "only_a": found.only_one,
        "only_b": found.only_other,
        "counts": [{"length": row.length, "a": row.one, "b": row.other} for row in found.counts],
    }


def _comparison_lines(found: Differences, one: str, other: str, order: Order) -> list[str]:
    if found.equal:
        lines = ["equal: they have the same plans"]
        if found.up_to is not None:
            lines = [f"equal up to {counted(found.up_to, 'terminal')}; longer plans were not compared"]
    else:
        lines = ["different"]
        for name, only in ((one, found.only_one), (other, found.only_other)):
            none = "nothing" if found.exact else f"nothing of at most {counted(found.up_to or 0, 'terminal')}"
            lines.append(f"only in {name}: {none if only is None else write_word(only, order)}")
    return lines + _counts_table(["plans", one, other], found.counts)


def _counts_table(heads: Sequence[str], counts: Sequence[Sequence[int]]) -> list[str]:
    """How many plans of each length there are."""
    rows = [list(heads), *([f"of length {length}", str(a), str(b)] for length, a, b in counts if a or b)]
    if len(rows) == 1:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows]
