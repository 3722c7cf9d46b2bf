"""The ``formal-llm`` command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from formal_llm import __version__
from formal_llm.cli import (
    agent,
    author,
    bench,
    bench_agents,
    bench_pack,
    bench_travel,
    check,
    count,
    data,
    guard,
    inspect,
    lsp,
    new,
    plan,
    procedures,
    run,
    train_planner,
    travel,
    try_,
    verify,
)
from formal_llm.cli.console import EXIT_CODES, guard_errors, print_text, settings
from formal_llm.cli.help_pages import LongCommand, PlainGroup, show_plainly

if TYPE_CHECKING:
    from typer._click.core import Command, Context  # typer's own copy of click, which is what its groups take


class Commands(PlainGroup):
    """The commands; those whose options are made of other things are loaded when they are asked for.

    ``train`` has an option for each setting of a training run, and the settings need pydantic: a third of the time that
    all other commands take to start.
    """

    def list_commands(self, ctx: Context) -> list[str]:
        """The names of the commands, in the order of the help."""
        return [*super().list_commands(ctx), *({"train"} - self.commands.keys())]

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The command that the arguments begin with, and those left for it.

        A name of two words goes first (``plan travel``), also where options with their values stand between them.
        """
        second = 1
        while second < len(args) and args[second].startswith("--"):
            second += 1 if "=" in args[second] else 2
        both = " ".join([*args[:1], *args[second : second + 1]])
        if both in self.commands:
            args = [both, *args[1:second], *args[second + 1 :]]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The command of that name; None where there is none."""
        if cmd_name == "train" and cmd_name not in self.commands:
            from formal_llm.cli import train

            own = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            own.command("train", help=train.HELP, cls=LongCommand, rich_help_panel=MEASURE)(train.train)
            self.commands["train"] = typer.main.get_command(own)
            show_plainly(self.commands["train"])
        return super().get_command(ctx, cmd_name)


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


PLAN, WRITE, ACT, MEASURE, LIST = "Plan", "Write rules", "Act and guard", "Measure and train", "What there is"
app.command(help=plan.HELP, cls=LongCommand, rich_help_panel=PLAN)(plan.plan)
app.command("plan travel", help=travel.PLAN_HELP, hidden=True)(travel.plan_travel)  # named in the help of "plan"
app.command("verify travel", help=travel.VERIFY_HELP, hidden=True)(travel.verify_travel)
app.command(help=run.HELP, rich_help_panel=PLAN)(run.run)
app.command(help=verify.HELP, rich_help_panel=PLAN)(verify.verify)
app.command(help=new.HELP, rich_help_panel=WRITE)(new.new)
app.command("try", help=try_.HELP, rich_help_panel=WRITE)(try_.try_)
app.command("author", help=author.HELP, rich_help_panel=WRITE)(author.author_)
app.command(help=check.HELP, rich_help_panel=WRITE)(check.check)
app.command(help=lsp.HELP, rich_help_panel=WRITE)(lsp.lsp)
app.command(help=count.DIFF_HELP, rich_help_panel=WRITE)(count.diff)
app.command(help=inspect.DRAW_HELP, rich_help_panel=WRITE)(inspect.draw)
app.command(help=count.COUNT_HELP, rich_help_panel=WRITE)(count.count)
app.command(help=count.SAMPLE_HELP, rich_help_panel=WRITE)(count.sample)
app.command(help=procedures.ACT_HELP, rich_help_panel=ACT)(procedures.act)
app.command(help=agent.HELP, cls=LongCommand, rich_help_panel=ACT)(agent.agent)
app.add_typer(guard.app, name="guard", rich_help_panel=ACT)
app.add_typer(bench.app, name="bench", rich_help_panel=MEASURE)
bench.app.command(bench.ANY, help=bench_pack.HELP)(bench_pack.bench_pack)
bench.app.command("agents", help=bench_agents.HELP)(bench_agents.bench_agents)
bench.app.command("travelplanner", help=bench_travel.HELP)(bench_travel.bench_travelplanner)
app.command(help=data.DATA_HELP, rich_help_panel=MEASURE)(data.data)
app.command(help=train_planner.HELP, rich_help_panel=MEASURE)(train_planner.train_planner)
app.command("list", help=inspect.LIST_HELP, rich_help_panel=LIST)(inspect.list_)


def main() -> None:
    """Run the command line."""
    guard_errors()
    app()
