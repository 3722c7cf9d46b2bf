"""The ``formal-llm`` command line: which commands there are. Each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from formal_llm import __version__
from formal_llm.cli.console import EXIT_CODES, guard_errors, print_text, settings
from formal_llm.cli.help_pages import USUAL, LongCommand, PlainGroup, show_plainly

if TYPE_CHECKING:
    from typer._click.core import Command, Context  # typer's own copy of click
    from typer._click.formatting import HelpFormatter
    from typer._click.shell_completion import CompletionItem

PLAN, WRITE, ACT, MEASURE, LIST = "Plan", "Write rules", "Act and guard", "Measure and train", "What there is"
#: Each command: where it is (module, function and text of its help, or a group), its panel, its help in one sentence.
COMMANDS = {
    "plan": ("plan:plan:HELP", PLAN, "Plan a task: the plan is a word of the grammar, whatever the LLM answers."),
    "run": ("run:run:HELP", PLAN, "Plan a task, carry the plan out, and write a report with what every step made."),
    "verify": (
        "verify:verify:HELP", PLAN,
        "Verify a plan that anybody wrote: is it valid, where does it go wrong, what is the nearest valid plan?",
    ),
    "travel": ("travel:app", PLAN, "Plan a trip, or verify one: every wish and the budget are kept."),
    "new": ("new:new:HELP", WRITE, "Make a folder to start from: rules, examples, a task and a test."),
    "try": ("try_:try_:HELP", WRITE, "Try rules: answer the questions yourself, as the LLM would."),
    "author": ("author:author_:HELP", WRITE, "Write rules from plain words, and accept them by examples."),
    "check": ("check:check:HELP", WRITE, "Check rules: errors with their place, warnings, and what they describe."),
    "lsp": (
        "lsp:lsp:HELP", WRITE,
        "The language server of the notations, for editors: errors and warnings while rules are written.",
    ),
    "draw": ("inspect:draw:DRAW_HELP", WRITE, "Draw rules, or their automaton, or a plan over them."),
    "act": (
        "procedures:act:ACT_HELP", ACT,
        "Carry out what a user wants, by a procedure: what comes first is checked, whatever anybody says.",
    ),
    "agent": (
        "agent:agent:HELP", ACT,
        "Ask an agent a question and see what it does: its states as they are written, its tools, what was corrected.",
    ),
    "guard": (
        "guard:app", ACT,
        "Guard an agent that exists already: only steps from which the rules can still be kept.",
    ),
    "bench": ("benchmarks:app", MEASURE, "Compare LLMs on tasks or questions."),
    "train": (
        "train:train:HELP", MEASURE,
        "Train a model that runs here on the rewards of its plans (RLTF), through LoRA adapters.",
    ),
    "list": (
        "inspect:list_:LIST_HELP", LIST,
        "List what there is: task packs and rules, the tasks of a pack, LLMs, what packages add, recorded answers.",
    ),
}  # fmt: skip
#: What to do in place of a command that has gone.
GONE = {
    "count": "check --count",
    "sample": "check --sample N",
    "diff": "from Python: formal_llm.automata.languages.comparison.differences",
    "data": "from Python: formal_llm.packs.openagi.data.making.make_data",
    "train-planner": "from Python: formal_llm.rltf.head_training.train_head",
}


def load_command(name: str) -> Command:
    """Load a command by its name."""
    place, panel, _ = COMMANDS[name]
    module, attribute, *text = place.split(":")
    loaded = import_module(f"formal_llm.cli.{module}")
    own = getattr(loaded, attribute)
    if not text:
        return typer.main.get_group(own)
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    kind = LongCommand if name in USUAL else None
    program.command(name, help=getattr(loaded, text[0]), cls=kind, rich_help_panel=panel)(own)
    command = typer.main.get_command(program)
    show_plainly(command)
    return command


class Commands(PlainGroup):
    """The commands, loaded by name; their list is made of the table, and loads none."""

    _lists = False

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002  # what typer calls it with
        """The names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        """The command of that name; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        if self._lists:
            _, panel, text = COMMANDS[cmd_name]
            return TyperCommand(cmd_name, help=text, rich_help_panel=panel)
        if cmd_name not in self.commands:
            self.commands[cmd_name] = load_command(cmd_name)
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The command that the arguments begin with, and those left for it."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ways = [f"Did you mean {near!r}?" for near in get_close_matches(args[0], COMMANDS, 1)]
            if args[0] in GONE:
                ways = [f"In its place: {GONE[args[0]]}"]
            ctx.fail(" ".join([f"No such command {args[0]!r}.", *ways]))
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Print the help."""
        with self._listing():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command."""
        with self._listing():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _listing(self) -> Iterator[None]:
        self._lists = True
        try:
            yield
        finally:
            self._lists = False


HELP = """Plans from language models that provably follow the rules people write down.

First steps, offline. Answer the questions of a plan yourself:

  formal-llm try cooking

Make a folder with rules, examples, a task and a test, and plan the task:

  formal-llm new laundry

  formal-llm plan ./laundry
"""
app = typer.Typer(
    name="formal-llm",
    cls=Commands,
    help=HELP,
    epilog="\n\n".join(["Exit codes:", *(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items())]),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print_text(f"formal-llm {__version__}")
        raise typer.Exit


@app.callback()
def _before(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[  # noqa: ARG001  # handled by its callback
        bool, typer.Option("--version", help="Print the version and end.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    settings.debug = debug


def main() -> None:
    """Run the command line."""
    guard_errors()
    app()
