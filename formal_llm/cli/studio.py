"""``formal-llm studio``: a page in the browser in which rules are written, seen and tried."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from formal_llm.cli.console import command, err
from formal_llm.errors import MissingDependency

HELP = """Open a page in the browser in which rules are written, seen and tried.

The page is served on this machine only, at an address with a secret part. Errors, the picture, counts and sample plans
follow as you type. Ctrl-C ends it.

Examples:

  formal-llm studio my.cfg

  formal-llm studio tea.mmd --port 8000 --no-browser

  formal-llm studio refunds.procedure --follow run.journal

Needs the extra studio: pip install "formal-llm[studio]".
"""


@command
def studio(
    file: Annotated[
        str | None,
        typer.Argument(
            help="A file with rules; it is made when it is saved. Or the name of shipped rules, for a copy."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; any free port where left out.")] = 0,
    follow: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A run that is under way: the journal of a procedure, the log of a guard."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Open the studio."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MissingDependency('the studio needs starlette and uvicorn: pip install "formal-llm[studio]"')
    from formal_llm.studio.opened import Opened
    from formal_llm.studio.serving import serve

    def tell(address: str) -> None:
        err().print(f"the studio is at {address}")
        err().print("anyone with this address can use it, on this machine only; Ctrl-C ends it")

    serve(replace(Opened.of(file), followed=follow), port, tell, browser=browser)
    err().print("the studio is closed")
