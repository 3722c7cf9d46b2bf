"""``formal-llm diff``: do two sets of rules describe the same plans?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from formal_llm.automata.languages.comparison import Differences, differences
from formal_llm.cli.console import command, counted, print_text
from formal_llm.cli.options import FinalOption, JsonOption, ProcessOption
from formal_llm.cli.sources import load
from formal_llm.planning.plans.vocabulary import write_word

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
    max_length: Annotated[int | None, typer.Option(min=0, help="Compare plans of at most so many terminals.")] = None,
    max_states: Annotated[int, typer.Option(min=1, help="How far plans are followed: the budget.")] = 5_000,
    process: ProcessOption = None,
    final: FinalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare rules."""
    a, b = (load(name, process=process, final=final).whole for name in (one, other))
    found = differences(a, b, max_length, max_places=max_states)
    if as_json:
        print_text(json.dumps(_comparison_data(found), indent=2, ensure_ascii=False))
    else:
        print_text("\n".join(_comparison_lines(found, one, other)))
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


def _comparison_lines(found: Differences, one: str, other: str) -> list[str]:
    if found.equal:
        lines = ["equal: they have the same plans"]
        if found.up_to is not None:
            lines = [f"equal up to {counted(found.up_to, 'terminal')}; longer plans were not compared"]
    else:
        lines = ["different"]
        for name, only in ((one, found.only_one), (other, found.only_other)):
            none = "nothing" if found.exact else f"nothing of at most {counted(found.up_to or 0, 'terminal')}"
            lines.append(f"only in {name}: {none if only is None else write_word(only)}")
    return lines + _counts_table(["plans", one, other], found.counts)


def _counts_table(heads: Sequence[str], counts: Sequence[Sequence[int]]) -> list[str]:
    """How many plans of each length there are."""
    rows = [list(heads), *([f"of length {length}", str(a), str(b)] for length, a, b in counts if a or b)]
    if len(rows) == 1:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows]
