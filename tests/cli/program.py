"""The command line as a program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.warm import Warm

#: What nearly every command imports, and the parser of grammars.
FIRST = """
import asyncio, sqlite3, pydantic, rich.markdown, typer.rich_utils, formal_llm.cli.main
formal_llm.CFG.from_string("S -> a")
"""
TERMINAL = {"NO_COLOR": "1", "COLUMNS": "100"}
_warm = Warm(FIRST, **TERMINAL)


def run(*arguments: str, cwd: Path | None = None, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own; how the imports are made once for all of them is told in ``tests/warm.py``."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    environment = {**clean, **TERMINAL, **env}
    return _warm.run("formal_llm.cli.main", "main", arguments, cwd=cwd, stdin=stdin, env=environment, timeout=60)
