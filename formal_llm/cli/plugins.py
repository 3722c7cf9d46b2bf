"""``formal-llm plugins``: what installed packages offer."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from formal_llm.authored.places import PACKS
from formal_llm.authored.plugins import Plugins
from formal_llm.automata.notation.files import PLUGINS as NOTATIONS
from formal_llm.cli.console import command, err, out, print_text
from formal_llm.cli.options import JsonOption
from formal_llm.errors import PluginError
from formal_llm.llms.llm import PLUGINS as PROVIDERS
from formal_llm.tools.toolkit import PLUGINS as TOOLKITS

HELP = """List what installed packages add: providers, task packs, toolkits, notations, estimators.

Nothing is imported for the list; with --load each is, and what cannot be used is told. A name that two packages offer,
or that formal_llm has itself, is told in either case.

Examples:

  formal-llm plugins

  formal-llm plugins --load
"""


@command
def plugins(
    load: Annotated[bool, typer.Option("--load", help="Import each of them, and tell which cannot be used.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List what installed packages add."""
    from formal_llm.rltf.advantages import PLUGINS as ESTIMATORS  # for this list alone

    kinds: tuple[Plugins[object], ...] = (PROVIDERS, PACKS, TOOLKITS, NOTATIONS, ESTIMATORS)
    rows = [
        {"kind": kind.called, "name": one.name, "package": one.package, "function": one.value,
         "problem": problem_of(kind, one.name, load)}
        for kind in kinds
        for one in kind.installed()
    ]  # fmt: skip
    if as_json:
        print_text(json.dumps(rows, indent=2))
    elif not rows:
        print_text("No installed package adds anything. How to write one: docs/howto/extend.md")
    else:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for column in ("kind", "name", "package", "function"):
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(row[column] for column in ("kind", "name", "package", "function")))
        out().print(table)
    problems = dict.fromkeys(row["problem"] for row in rows if row["problem"])
    for problem in problems:
        err().print(problem, style="yellow")
    if problems:
        raise typer.Exit(2)


def problem_of(kind: Plugins[object], name: str, load: bool) -> str:
    """Why a plugin cannot be used; empty where it can, as far as that is known without importing it."""
    try:
        if load:
            kind.find(name)
        else:
            kind.the_one(name)
    except PluginError as error:
        return str(error)
    return ""
