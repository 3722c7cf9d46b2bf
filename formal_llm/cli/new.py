"""``formal-llm new``: a folder to start from, with rules, examples, a task and a test."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from formal_llm import authored
from formal_llm.cli.console import check_folder, command, print_text
from formal_llm.errors import InputError

HELP = """Make a folder to start from: rules, examples, a task and a test.

The rules are those of a template (--like), or SENTENCES about the order of steps. All of them are yours to change.

order: what may follow what. pipeline: which tool takes what. schedule: a day with a clock and opening hours.
procedure: what must be checked before an action. guard: rules for an agent that you have.

Examples:

  formal-llm new laundry

  formal-llm new laundry "steps: wash, dry, iron, fold. wash before dry. at most 2 iron. last fold."

  formal-llm new refunds --like procedure
"""
#: What stands for the name in the files of a template.
PLACEHOLDER = "NAME"


class TemplateName(StrEnum):
    """What a folder can be like."""

    order = "order"
    pipeline = "pipeline"
    schedule = "schedule"
    procedure = "procedure"
    guard = "guard"


@command
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the folder and its files, or a path.")],
    sentences: Annotated[str, typer.Argument(help="Rules in sentences, as `author` takes them.")] = "",
    like: Annotated[TemplateName, typer.Option(help="The template.")] = TemplateName.order,
    llm: Annotated[
        str | None, typer.Option("--llm", help="Who drafts them of free words: formal-llm list llms.")
    ] = None,
) -> None:
    """Make a folder to start from."""
    folder = Path(name)
    if not re.fullmatch(r"[A-Za-z][\w-]*", folder.name):
        raise InputError(f"{name}: a name has letters, digits, - and _, and begins with a letter, such as laundry")
    if sentences and like is not TemplateName.order:
        raise InputError(f"sentences become rules about an order; leave out --like {like.value}")
    if folder.exists():
        raise InputError(f"{folder}: it is there already; choose another name")
    check_folder(folder)
    files = _fill_template(like, folder.name)
    if sentences:
        files |= _write_rules(sentences, folder.name, llm)
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    print_text("".join(f"written        {folder / file}\n" for file in files))
    rules = next(file for file in files if file.startswith(folder.name) and not file.endswith(".examples"))
    print_text(f"now: cd {folder} && formal-llm check {rules}; {folder.name}/README.md shows more")


def _fill_template(like: TemplateName, name: str) -> dict[str, str]:
    """The files of a template, by their names in the new folder."""
    root = authored.find("grammars", "templates")
    test = like if like in (TemplateName.procedure, TemplateName.guard) else "plans"
    files = {path.name: path for path in sorted((root / like).iterdir()) if path.is_file()}
    files[f"test_{PLACEHOLDER}.py"] = root / f"test_{test}.py"
    return {
        file.replace(PLACEHOLDER, name): path.read_text(encoding="utf-8").replace(PLACEHOLDER, name)
        for file, path in files.items()
    }


def _write_rules(sentences: str, name: str, llm: str | None) -> dict[str, str]:
    """The files with rules, examples and task that sentences describe.

    Raises:
        NotationError: without a model, they are none of the sentences that are read.
        NotAuthored: the model wrote no clean rules.
    """
    from formal_llm.authoring import Example, author, write_examples
    from formal_llm.automata import Lookahead

    made = author(sentences, llm, notation="rules")
    shortest = Lookahead(made.rules).shortest_word() or ()
    title = json.dumps(f"{name}: an order of steps")
    return {
        f"{name}.rules": made.text,
        f"{name}.examples": write_examples([Example(shortest, True, "the shortest plan; is it what you meant?")]),
        "pack.toml": f'title = {title}\nrules = "{name}.rules"\ntask = {json.dumps(sentences)}\n',
    }
