"""Where the command line starts: a hook goes past all other commands."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
sys.argv = ["formal-llm", *sys.argv[1:]]
from formal_llm.cli.start import main
try:
    main()
except SystemExit as error:
    print(error.code)
print([name for name in ("typer", "rich", "openai", "anthropic", "mcp", "formal_llm.cli.main") if name in sys.modules])
"""


def run(*arguments: str) -> list[str]:
    found = subprocess.run([sys.executable, "-c", LOADED, *arguments], input=b"junk", capture_output=True, timeout=60)
    return found.stdout.decode().splitlines()


def test_a_hook_loads_no_other_command() -> None:
    assert run("guard", "--hook", "--alone", "rules.guard") == ["2", "[]"]


def test_all_else_is_the_command_line() -> None:
    assert "formal_llm.cli.main" in run("--version")[-1]
