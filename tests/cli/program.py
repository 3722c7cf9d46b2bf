"""The command line as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(*arguments: str, cwd: Path | None = None, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from formal_llm.cli.main import main; main()", *arguments]
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    environment = {**clean, "NO_COLOR": "1", "COLUMNS": "100", **env}
    return subprocess.run(command, capture_output=True, text=True, input=stdin, cwd=cwd, env=environment, timeout=60)
