"""``formal-llm doctor URL``: what a server that speaks OpenAI's protocol supports, and how to use it."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Annotated

import typer

from formal_llm.cli.console import command, print_text

HELP = """Ask a server that speaks OpenAI's protocol some twenty questions, and report what it supports.

Each check looks at what comes back, since some servers accept a field and ignore it. At the end stands how to use the
server. It costs about as much as twenty short questions.

Examples:

  formal-llm doctor http://localhost:8080/v1

  formal-llm doctor https://gateway.example/v1 --model large --key-variable GATEWAY_KEY
"""


@command
def doctor(
    url: Annotated[str, typer.Argument(help="The address, with the version: http://localhost:8080/v1")],
    model: Annotated[str, typer.Option(help="The model. Default: the first one that the server lists.")] = "",
    key_variable: Annotated[
        str, typer.Option(metavar="NAME", help="The environment variable with the key.")
    ] = "OPENAI_API_KEY",
    deadline: Annotated[float, typer.Option(min=0.1, help="Seconds for a request.")] = 60.0,
) -> None:
    """Examine a server."""
    from formal_llm.llms.hosted.doctor import ExaminedServer, advise_settings, examine_server

    with closing(ExaminedServer(url, model, os.environ.get(key_variable), deadline)) as server:
        for finding in examine_server(server):
            print_text(f"{finding.outcome:8} {finding.check}{': ' if finding.detail else ''}{finding.detail}")
    print_text("")
    for line in advise_settings(server.found):
        print_text(f"- {line}")
