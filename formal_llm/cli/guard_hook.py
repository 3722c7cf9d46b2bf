"""``formal-llm guard --hook RULES``: one event of a coding agent, from standard input to standard output.

Each event is a process of its own, so nothing but what an answer needs is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

#: The exit code that denies, and the maximum number of bytes of input.
_DENIED, _MOST_INPUT = 2, 32_000_000


def run_hook(arguments: Sequence[str]) -> int:
    """Answer one event; return the exit code."""
    try:
        from formal_llm.guard.hooks.hook import answer_hook

        data = sys.stdin.buffer.read(_MOST_INPUT + 1)
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        folders = str(Path.cwd()), str(base / "formal-llm" / "guard")
        code, out, err = answer_hook(arguments, folders, data).encode_lines()
    except Exception as error:  # whatever goes wrong in a guard must not let a call through
        sys.stderr.write(f"formal-llm guard: {type(error).__name__}: {error}\n")
        return _DENIED
    sys.stderr.buffer.write(err)
    sys.stdout.buffer.write(out)
    sys.stderr.flush()
    sys.stdout.flush()
    return code
