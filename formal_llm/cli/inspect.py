"""``formal-llm check``, ``draw``, ``tasks`` and ``llms``."""

from __future__ import annotations

import json
import os
import random
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from formal_llm import authored
from formal_llm.automata import PDA, Lookahead
from formal_llm.cli.console import EXIT_CODES_HELP, command, err, out, print_text, said_of
from formal_llm.cli.options import JsonOption, MaxStatesOption, SourceArgument
from formal_llm.cli.sources import load
from formal_llm.errors import FormalLLMError, InfiniteLanguage, Undecided
from formal_llm.llms import PROVIDERS
from formal_llm.planning import TaskPack

CHECK_HELP = f"""Check a grammar: errors with their place, warnings, and what it describes.

Examples:

  formal-llm check my.cfg

  formal-llm check openagi --strict

{EXIT_CODES_HELP}
"""


@command
def check(
    source: SourceArgument,
    strict: Annotated[bool, typer.Option("--strict", help="End with exit code 1 when there are warnings.")] = False,
    max_states: MaxStatesOption = 20_000,
    as_json: JsonOption = False,
) -> None:
    """Check a grammar."""
    loaded = load(source)
    cfg = loaded.cfg
    automaton = PDA.from_cfg(cfg)
    found: dict[str, object] = (
        {} if loaded.pack is None else {"task pack": f"{loaded.pack.title}; {len(loaded.pack.tasks)} tasks"}
    )
    found |= {
        "start symbol": cfg.start,
        "grammar": f"{len(cfg.nonterminals)} nonterminals, {len(cfg.terminals)} terminals, "
        f"{len(cfg.productions)} productions",
        "automaton": f"{len(automaton.states)} states, {len(automaton.transitions)} transitions",
        "classes": ", ".join(sorted(cfg.classes)) or "none",
        "limits": "; ".join(line.lstrip("%") for line in cfg.limits.lines()) or "none",
        **_language(Lookahead(cfg, max_states=max_states)),
    }
    if as_json:
        print_text(json.dumps({**found, "warnings": list(map(str, cfg.warnings))}, indent=2, ensure_ascii=False))
    else:
        for warning in cfg.warnings:
            err().print(f"warning: {warning}", style="yellow", markup=False)
        for name, said in found.items():
            for line in said if isinstance(said, list) else [said]:
                print_text(f"{name:<15}{line}")
    if strict and cfg.warnings:
        raise typer.Exit(1)


def _language(lookahead: Lookahead) -> dict[str, object]:
    """What the language is: how many plans, the shortest, the longest, three at random; as far as budgets reach."""
    found: dict[str, object] = {}
    try:
        shortest = lookahead.shortest_word()
        if shortest is None:
            return {}
        bound = None
        if (number := _finite_count(lookahead)) is not None:
            found["plans"] = f"{number:,}"
        else:
            bound = len(shortest) + _FURTHER
            some = lookahead.count(max_length=bound)
            found["plans"] = f"infinitely many; {some:,} of at most {bound} terminals"
        found["shortest plan"] = _shown(shortest)
        if number is not None:
            found["longest plan"] = f"{_longest(lookahead, number, len(shortest))} terminals"
        rng = random.Random(0)
        found["at random"] = [_shown(lookahead.sample(rng, max_length=bound)) for _ in range(3)]
    except Undecided as error:
        found["not decided"] = said_of(error)
    return found


def _finite_count(lookahead: Lookahead) -> int | None:
    """The number of plans; None for infinitely many."""
    try:
        return lookahead.count()
    except InfiniteLanguage:
        return None


#: Of an infinite language the plans are counted that are at most so much longer than the shortest.
_FURTHER = 4


def _longest(lookahead: Lookahead, number: int, at_least: int) -> int:
    """The length of the longest of ``number`` plans: the least bound that leaves none out."""
    low, high = at_least, max(1, 2 * at_least)
    while lookahead.count(max_length=high) < number:
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        if lookahead.count(max_length=middle) < number:
            low = middle + 1
        else:
            high = middle
    return low


def _shown(word: tuple[str, ...] | None) -> str:
    return " ".join(word or ()) or "ε (the empty plan)"


class What(StrEnum):
    """What there is to draw."""

    grammar = "grammar"
    pda = "pda"


class Format(StrEnum):
    """The languages of pictures."""

    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"


DRAW_HELP = f"""Draw a grammar or its pushdown automaton.

Examples:

  formal-llm draw openagi > openagi.mmd

  formal-llm draw my.cfg --what pda --out my.svg

SVG needs Graphviz; Mermaid and DOT need nothing. {EXIT_CODES_HELP}
"""


@command
def draw(
    source: SourceArgument,
    what: Annotated[What, typer.Option(help="What to draw.")] = What.grammar,
    format_: Annotated[
        Format | None, typer.Option("--format", help="Else told from the ending of --out; Mermaid where there is none.")
    ] = None,
    to: Annotated[Path | None, typer.Option("--out", help="The file to write; standard output where left out.")] = None,
) -> None:
    """Draw a grammar or its automaton."""
    cfg = load(source).cfg
    drawable = PDA.from_cfg(cfg) if what is What.pda else cfg
    if format_ is None:
        endings = {".svg": Format.svg, ".dot": Format.dot, ".gv": Format.dot, ".mmd": Format.mermaid}
        if to is not None and to.suffix not in endings:
            raise FormalLLMError(f"the ending of {to} names no format; give --format, or one of {', '.join(endings)}")
        format_ = endings[to.suffix] if to is not None else Format.mermaid
    text: str = getattr(drawable, f"to_{format_.value}")()
    if to is None:
        print_text(text)
    else:
        to.write_text(text, encoding="utf-8")


TASKS_HELP = f"""List the task packs, or the tasks of one.

Examples:

  formal-llm tasks

  formal-llm tasks openagi --split test

{EXIT_CODES_HELP}
"""


@command
def tasks(
    pack: Annotated[str | None, typer.Argument(help="A task pack: its name, or a path.")] = None,
    split: Annotated[str, typer.Option(help="Only the tasks of this split.")] = "all",
    as_json: JsonOption = False,
) -> None:
    """List task packs or tasks."""
    if pack is None:
        packs = [TaskPack.load(name) for name in authored.names("tasks")]
        found: list[dict[str, object]] = [
            {"name": one.name, "title": one.title, "tasks": len(one.tasks)} for one in packs
        ]
        if as_json:
            print_text(json.dumps(found, indent=2))
            return
        for row in found:
            print_text(f"{row['name']:<12} {row['tasks']:>5} tasks  {row['title']}")
        return
    loaded = TaskPack.load(pack)
    chosen = loaded.split(split)
    number = {id(task): place for place, task in enumerate(loaded.tasks)}
    rows: list[dict[str, object]] = [
        {"number": number[id(task)], "group": task.group, "goal": task.goal, "inputs": list(task.inputs),
         "task": task.description}
        for task in chosen
    ]  # fmt: skip
    if as_json:
        print_text(json.dumps(rows, indent=2))
        return
    for row in rows:
        print_text(f"{row['number']:>4}  {row['group']}  {row['task']}")


@command
def llms() -> None:
    """List who can answer, and which keys are set."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("llm", no_wrap=True)
    table.add_column("who answers")
    for form, meaning in PROVIDERS.items():
        variable = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}.get(form.split(":")[0])
        state = "" if variable is None else (" [set]" if os.environ.get(variable) else " [key not set]")
        table.add_row(form, (meaning + state).replace("[", r"\["))
    out().print(table)
