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
    bench_travel,
    calibrate,
    check,
    corpus,
    count,
    data,
    guard,
    inspect,
    lsp,
    plan,
    procedures,
    run,
    studio,
    train_planner,
    travel,
    try_,
    verify,
    watch,
)
from formal_llm.cli.console import EXIT_CODES, PlainGroup, guard_errors, print_text, settings, show_plainly

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
            own.command("train", help=train.HELP)(train.train)
            self.commands["train"] = typer.main.get_command(own)
            show_plainly(self.commands["train"])
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="formal-llm",
    cls=Commands,
    help="Plans from language models that provably follow the rules people write down.",
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


app.command(help=plan.HELP)(plan.plan)
app.command("plan travel", help=travel.PLAN_HELP, hidden=True)(travel.plan_travel)  # named in the help of "plan"
app.command("verify travel", help=travel.VERIFY_HELP, hidden=True)(travel.verify_travel)
app.command(help=run.HELP)(run.run)
app.command(help=verify.HELP)(verify.verify)
app.command("try", help=try_.HELP)(try_.try_)
app.command("author", help=author.HELP)(author.author_)
app.command(help=studio.HELP)(studio.studio)
app.command(help=check.HELP)(check.check)
app.command(help=watch.HELP)(watch.watch)
app.command(help=lsp.HELP)(lsp.lsp)
app.command(help=count.DIFF_HELP)(count.diff)
app.command(help=inspect.DRAW_HELP)(inspect.draw)
app.command(help=inspect.TASKS_HELP)(inspect.tasks)
app.command()(inspect.llms)
app.command(help=inspect.DOCTOR_HELP)(inspect.doctor)
app.command(help=inspect.PLUGINS_HELP)(inspect.plugins)
app.command(help=count.COUNT_HELP)(count.count)
app.command(help=count.SAMPLE_HELP)(count.sample)
app.command(help=data.DATA_HELP)(data.data)
app.add_typer(bench.app, name="bench")
bench.app.command("agents", help=bench_agents.HELP)(bench_agents.bench_agents)
bench.app.command("sop", help=procedures.SOP_HELP)(procedures.bench_sop)
bench.app.command("travelplanner", help=bench_travel.HELP)(bench_travel.bench_travelplanner)
app.command(help=calibrate.HELP)(calibrate.calibrate)
app.command(help=train_planner.HELP)(train_planner.train_planner)
app.command(help=agent.HELP)(agent.agent)
app.command(help=procedures.ACT_HELP)(procedures.act)
app.add_typer(corpus.app, name="corpus")
app.add_typer(guard.app, name="guard")


def main() -> None:
    """Run the command line."""
    guard_errors()
    app()
