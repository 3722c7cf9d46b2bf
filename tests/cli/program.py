"""The command line in this process, in a folder and an environment of its own."""

from __future__ import annotations

import os
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from tests.cli.inside import invoke

TERMINAL = {"NO_COLOR": "1", "COLUMNS": "100"}


def run(*arguments: str, cwd: Path | None = None, stdin: str = "", **env: str) -> CompletedProcess[str]:
    """Run it in a folder, without keys of models, on a terminal of 100 columns."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    before = Path.cwd()
    with patch.dict(os.environ, {**clean, **TERMINAL, **env}, clear=True):
        os.chdir(cwd or before)
        try:
            done = invoke(*arguments, typed=stdin)
        finally:
            os.chdir(before)
    return CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)
