"""``formal-llm data``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formal_llm.cli.console import command, needs_extra, print_text
from formal_llm.errors import ResourceNotFound
from formal_llm.planning import TaskPack

DATA_HELP = """Make data for the tasks of a pack: degraded pictures and texts, and what should come out.

Examples:

  formal-llm data openagi --out openagi_data

  formal-llm data openagi --out small --split test --samples 2 --seed 7

Nothing is downloaded.
"""

_PACKS = ("openagi",)


@command
def data(
    pack: Annotated[str, typer.Argument(help="The task pack: openagi.")],
    to: Annotated[Path, typer.Option("--out", help="The folder to write; it must not hold data already.")],
    samples: Annotated[int, typer.Option(min=1, help="How many samples each task gets.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same data.")] = 0,
    split: Annotated[str, typer.Option(help="Only the tasks of this split.")] = "all",
) -> None:
    """Make task data."""
    if pack not in _PACKS:
        raise ResourceNotFound("task pack with data", pack, _PACKS)
    loaded = TaskPack.load(pack)
    loaded.split(split)
    tasks = None if split == "all" else loaded.splits[split]
    with needs_extra("openagi", "making data"):
        from formal_llm.packs.openagi.data.making import make_data

        made = make_data(to, tasks=tasks, samples=samples, seed=seed)
    count = len(made["tasks"])
    print_text(f"{to}: {count} tasks, {count * samples} samples")
