"""``formal-llm bench``: the benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from formal_llm import authored
from formal_llm.authored.places import PACKS
from formal_llm.cli import bench, bench_agents, bench_pack, bench_travel
from formal_llm.cli.console import errors_told
from formal_llm.cli.help_pages import LongCommand, PlainGroup
from formal_llm.errors import ResourceNotFound

if TYPE_CHECKING:
    from typer._click.core import Command, Context  # typer's own copy of click, which is what its groups take

#: The command for any task pack.
ANY = "PACK"


class Benchmarks(PlainGroup):
    """The benchmarks: some have names, and any task pack is one."""

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The benchmark of the name that the arguments begin with; of a task pack, the one for all packs."""
        named = [name for name in self.list_commands(ctx) if name != ANY]
        if args[0] not in named:
            with errors_told():
                if not Path(args[0]).is_dir() and args[0] not in (packs := [*authored.names("tasks"), *PACKS.names()]):
                    raise ResourceNotFound("benchmark or task pack", args[0], dict.fromkeys([*named, *packs]))
            return "", self.get_command(ctx, ANY), args  # the usage shows PACK as its argument
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=Benchmarks, help="Compare LLMs on tasks or questions.", no_args_is_help=True)
app.command("openagi", help=bench.HELP, cls=LongCommand)(bench.bench)
app.command(ANY, help=bench_pack.HELP)(bench_pack.bench_pack)
app.command("agents", help=bench_agents.HELP)(bench_agents.bench_agents)
app.command("travelplanner", help=bench_travel.HELP)(bench_travel.bench_travelplanner)
