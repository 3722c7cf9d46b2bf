"""The ``formal-llm`` command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from formal_llm import __version__
from formal_llm.cli import bench as benching
from formal_llm.cli import check as checking
from formal_llm.cli import count as counting
from formal_llm.cli import data as making
from formal_llm.cli import diff as comparing
from formal_llm.cli import inspect as inspecting
from formal_llm.cli import plan as planning
from formal_llm.cli import run as running
from formal_llm.cli import try_ as trying
from formal_llm.cli import verify as verifying
from formal_llm.cli.console import EXIT_CODES_HELP, print_text, settings

if TYPE_CHECKING:
    from typer._click.core import Command, Context  # typer's own copy of click, which is what its groups take


class Commands(TyperGroup):
    """The commands; those whose options are made of other things are loaded when they are asked for.

    ``train`` has an option for each setting of a training run, and the settings need pydantic: a third of the time that
    all other commands take to start.
    """

    def list_commands(self, ctx: Context) -> list[str]:
        """The names of the commands, in the order of the help."""
        return [*super().list_commands(ctx), *({"train"} - self.commands.keys())]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The command of that name; None where there is none."""
        if cmd_name == "train" and cmd_name not in self.commands:
            from formal_llm.cli import train as training

            own = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            own.command("train", help=training.HELP)(training.train)
            self.commands["train"] = typer.main.get_command(own)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="formal-llm",
    cls=Commands,
    help="Plans from language models that provably follow the rules people write down.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    add_completion=False,
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


app.command(help=planning.HELP)(planning.plan)
app.command(help=running.HELP)(running.run)
app.command(help=verifying.HELP)(verifying.verify)
app.command("try", help=trying.HELP)(trying.try_)
app.command(help=checking.HELP)(checking.check)
app.command(help=comparing.HELP)(comparing.diff)
app.command(help=inspecting.DRAW_HELP)(inspecting.draw)
app.command(help=inspecting.TASKS_HELP)(inspecting.tasks)
app.command()(inspecting.llms)
app.command(help=counting.COUNT_HELP)(counting.count)
app.command(help=counting.SAMPLE_HELP)(counting.sample)
app.command(help=making.DATA_HELP)(making.data)
app.command(help=benching.HELP)(benching.bench)


def main() -> None:
    """Run the command line."""
    app()
