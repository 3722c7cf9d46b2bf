"""The command line in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

import pytest
import typer

from formal_llm.cli.main import app

#: The command line, built once: that takes a tenth of a second.
COMMAND = typer.main.get_command(app)


class Ended(NamedTuple):
    """How a command ended: its exit code, what was printed, what was said besides."""

    exit_code: int
    stdout: str
    stderr: str


def invoke(*arguments: str, typed: str | None = "") -> Ended:
    """Run a command line, with what a person types; None for the standard input that there is."""
    printed, said = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(printed),
        redirect_stderr(said),
        patch("sys.stdin", sys.stdin if typed is None else io.StringIO(typed)),
        pytest.raises(SystemExit) as end,
    ):
        COMMAND(arguments, "formal-llm")
    return Ended(int(end.value.code or 0), printed.getvalue(), said.getvalue())


def runner(command: str) -> Callable[..., Ended]:
    """A function that runs a command with its arguments."""
    return lambda *arguments: invoke(command, *arguments, typed=None)
