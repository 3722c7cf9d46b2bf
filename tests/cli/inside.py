"""The command line in this process."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

import pytest
import typer

from formal_llm.cli.main import app

#: The command line, built once: to build it takes 0.13 s of processor time.
COMMAND = typer.main.get_command(app)


def runner(command: str) -> Callable[..., tuple[int, str, str]]:
    """A function that runs a command with its arguments: the exit code, what was printed, what was said besides."""

    def run(*arguments: str) -> tuple[int, str, str]:
        printed, said = io.StringIO(), io.StringIO()
        with redirect_stdout(printed), redirect_stderr(said), pytest.raises(SystemExit) as end:
            COMMAND.main([command, *arguments])
        return int(end.value.code or 0), printed.getvalue(), said.getvalue()

    return run
