"""``formal-llm draw`` and ``list``."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from formal_llm import authored
from formal_llm.authored.files import read_text
from formal_llm.authored.places import PACKS
from formal_llm.authored.plugins import Plugins
from formal_llm.automata import PDA
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.notation.files import ENDINGS
from formal_llm.automata.notation.files import PLUGINS as NOTATIONS
from formal_llm.cli.console import command, counted, err, out, print_text
from formal_llm.cli.options import (
    SHIPPED,
    JsonOption,
    SetOption,
    SourceArgument,
)
from formal_llm.cli.sources import load, read_plan
from formal_llm.errors import FormalLLMError, InputError, PluginError
from formal_llm.llms.providers import PLUGINS as PROVIDERS
from formal_llm.llms.providers import provider_forms
from formal_llm.llms.recorded import list_answers
from formal_llm.planning import TaskPack
from formal_llm.planning.plans.overlay import Overlay
from formal_llm.tools.toolkit import PLUGINS as TOOLKITS

_KINDS = {
    ".cfg": "grammar", ".pda": "automaton", ".mmd": "flowchart", ".mermaid": "flowchart", ".agent": "behaviour",
    ".rules": "sentences",
}  # fmt: skip
#: The title of a file of rules, or the first sentence of its first comment.
_TITLE = re.compile(r"^(?:title: *(.+)|(?:#|<!--) *(.+?)(?:\.(?= |$)|$))", re.MULTILINE)


class What(StrEnum):
    """What there is to draw."""

    rules = "rules"
    pda = "pda"


class Format(StrEnum):
    """The languages of pictures."""

    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    png = "png"
    text = "text"


DRAW_HELP = """Draw rules, or their automaton, or a plan over them.

With --plan, what the plan uses is marked and carries the numbers of its steps, and all else is grey. A large automaton
is folded: ways without a choice become one arrow.

Examples:

  formal-llm draw openagi > openagi.mmd

  formal-llm draw my.cfg --what pda --out my.svg

  formal-llm draw daily --what pda --out day.png

  formal-llm plan daily | formal-llm draw daily --plan - --out day.svg

SVG and PNG need Graphviz; Mermaid, DOT and text need nothing.
"""


@command
def draw(
    source: SourceArgument,
    what: Annotated[
        What, typer.Option(help="The rules as they are written, or their automaton with all constraints.")
    ] = What.rules,
    format_: Annotated[
        Format | None, typer.Option("--format", help="Else told from the ending of --out; Mermaid where there is none.")
    ] = None,
    to: Annotated[Path | None, typer.Option("--out", help="The file to write; standard output where left out.")] = None,
    plan: Annotated[
        str | None,
        typer.Option(metavar="FILE", help='A plan to draw over the rules, as verify reads it; "-" for standard input.'),
    ] = None,
    max_boxes: Annotated[int, typer.Option(min=1, help="Draw no automaton that takes more boxes than this.")] = 60,
    set_: SetOption = None,
) -> None:
    """Draw rules or their automaton."""
    loaded = load(source, set_)
    language = loaded.whole
    drawable: Any = as_automaton(language) if what is What.pda else loaded.rules
    if plan is not None:
        drawable = Overlay(read_plan(plan, language), drawable)
    is_large = what is What.pda or isinstance(loaded.rules, (PDA, Behaviour))
    if is_large and format_ is not Format.text:
        boxes = len(drawable.picture.nodes)
        if boxes > max_boxes:
            ways = ["the rules as they are written (--what rules)"] if what is What.pda else []
            ways += ["one plan's way through it (--plan FILE)"] * (not plan)
            ways.append(f"it nevertheless (--max-boxes {boxes})")
            raise FormalLLMError(f"the picture would have {boxes} boxes, too many to read; draw {', or '.join(ways)}")
    if format_ is None:
        endings = {
            ".svg": Format.svg, ".dot": Format.dot, ".gv": Format.dot, ".mmd": Format.mermaid, ".png": Format.png,
        }  # fmt: skip
        if to is not None and to.suffix not in endings:
            raise FormalLLMError(f"the ending of {to} names no format; give --format, or one of {', '.join(endings)}")
        format_ = endings[to.suffix] if to is not None else Format.mermaid
    picture: str | bytes = str(drawable) if format_ is Format.text else getattr(drawable, f"to_{format_.value}")()
    if to is not None:
        to.write_bytes(picture if isinstance(picture, bytes) else picture.encode())
    elif isinstance(picture, bytes):
        sys.stdout.buffer.write(picture)
    else:
        print_text(picture)


LIST_HELP = """List what there is: task packs and rules, the tasks of a pack, LLMs, what packages add, recorded answers.

Examples:

  formal-llm list

  formal-llm list openagi --split test

  formal-llm list llms

  formal-llm list plugins --load

  formal-llm list answers answers.db

Answers are listed as lines of JSON: what --cache FILE and --record FILE wrote.

Plugins are providers, task packs, toolkits, notations and estimators. Nothing is imported for their list; with --load
each is, and what cannot be used is told. A name that two packages offer, or that formal_llm has itself, is told in
either case.
"""


@command
def list_(
    what: Annotated[
        str | None, typer.Argument(help='A task pack: its name, or a path; or "llms", "plugins", or "answers".')
    ] = None,
    file: Annotated[Path | None, typer.Argument(help="The file of recorded answers.")] = None,
    split: Annotated[str, typer.Option(help="Only the tasks of this split.")] = "all",
    load: Annotated[bool, typer.Option("--load", help="Import each plugin, and tell which cannot be used.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List what can be named."""
    if load and what != "plugins":
        raise InputError("--load is for: formal-llm list plugins")
    if what == "answers" or file is not None:
        _print_answers(what, file)
        return
    problems: set[str] = set()
    if what == "plugins":
        rows = list(_list_plugins(load))
        problems = {row["problem"] for row in rows if row["problem"]}
    else:
        rows = list(_list_llms() if what == "llms" else _list_names() if what is None else _list_tasks(what, split))
    if as_json:
        print_text(json.dumps(rows, indent=2))
    elif what in ("llms", "plugins"):
        _show_table(rows, ("name", "answers") if what == "llms" else ("kind", "name", "package", "function"))
        if not rows:
            print_text("No installed package adds anything. How to write one: docs/howto/extend.md")
    else:
        for row in rows:
            if what is None:
                kind = counted(row["tasks"], "task") if row["tasks"] else row["kind"]
                print_text(f"{row['name']:<16} {kind:>12}  {row['title']}")
            else:
                print_text(f"{row['number']:>4}  {row['group']}  {row['task']}")
    for problem in sorted(problems):
        err().print(problem, style="yellow")
    if problems:
        raise typer.Exit(2)


def _print_answers(what: str | None, file: Path | None) -> None:
    if what != "answers" or file is None:
        raise InputError("answers are listed as in: formal-llm list answers FILE")
    for answer in list_answers(file):
        print_text(json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace").decode())


def _show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    if rows:
        out().print(table)


def _list_names() -> Iterator[dict[str, Any]]:
    """List the task packs and the rules that are shipped or installed."""
    known = {"travel"}
    for name in (*authored.names("tasks"), *PACKS.names()):
        try:
            pack = TaskPack.load(name)
        except FormalLLMError as error:  # the others are listed all the same
            err().print(f"left out: {error}", style="yellow")
            continue
        known.add(pack.name)
        yield {"name": pack.name, "kind": "task pack", "title": pack.title, "tasks": len(pack.tasks)}
    yield {"name": "travel", "kind": "domain", "title": "Trips: travel plan, travel verify", "tasks": 0}
    for name, kind, title in shipped_rules():
        if name not in known:
            yield {"name": name, "kind": kind, "title": title, "tasks": 0}


def _list_tasks(name: str, split: str) -> Iterator[dict[str, Any]]:
    """List the tasks of a pack."""
    pack = TaskPack.load(name)
    number = {id(task): place for place, task in enumerate(pack.tasks)}
    for task in pack.split(split):
        yield {
            "number": number[id(task)], "group": task.group, "goal": task.goal, "inputs": list(task.inputs),
            "task": task.description,
        }  # fmt: skip


def shipped_rules() -> Iterator[tuple[str, str, str]]:
    """The name, kind and title of all rules that are shipped in files of their own."""
    for folder in SHIPPED:
        for name in authored.names(folder):
            path = authored.find(folder, name, ENDINGS)
            title = _TITLE.search(read_text(path))
            yield name, _KINDS[path.suffix], next(filter(None, title.groups()), "") if title else ""


def _list_llms() -> Iterator[dict[str, Any]]:
    """List who can answer, and which keys are set."""
    for form, meaning in provider_forms().items():
        variable = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}.get(form.split(":")[0])
        state = "" if variable is None else (" [set]" if os.environ.get(variable) else " [key not set]")
        yield {"name": form, "answers": meaning + state}


def _list_plugins(load: bool) -> Iterator[dict[str, Any]]:
    """List what installed packages add, each with the reason why it cannot be used, if there is one."""
    kinds: tuple[Plugins[object], ...] = (PROVIDERS, PACKS, TOOLKITS, NOTATIONS)
    for kind in kinds:
        for one in kind.list_installed():
            problem = ""
            try:
                kind.find(one.name)
                if load:
                    one.load()
            except PluginError as error:
                problem = str(error)
            yield {
                "kind": kind.called, "name": one.name, "package": one.package, "function": one.value,
                "problem": problem,
            }  # fmt: skip
