"""``formal-llm guard --hook RULES``: one event of a coding agent, from standard input to standard output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from formal_llm.guard.core import GuardRules
from formal_llm.guard.guard import Guard
from formal_llm.guard.hooks.hook import DENIED, MOST_INPUT, answer_event, find_state_folder


class _HookParser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # the exit code 2 is a denial for a hook, and meant
        raise SystemExit(f"formal-llm guard --hook: {message}")


def run_hook(arguments: Sequence[str]) -> int:
    """Answer one event; gives the exit code."""
    parser = _HookParser(prog="formal-llm guard", add_help=False)
    parser.add_argument("--hook", action="store_true")
    parser.add_argument("rules")
    parser.add_argument("--state", type=Path, default=None)
    parser.add_argument("--guarantee", choices=("some", "whatever"), default="some")
    try:
        given = parser.parse_args(arguments)
        data = sys.stdin.buffer.read(MOST_INPUT + 1)
        made = answer_event(
            data,
            lambda: Guard(GuardRules.from_file(given.rules), guarantee=given.guarantee),
            given.state or find_state_folder(),
        )
    except SystemExit as error:
        sys.stderr.write(f"{error}\n")
        return DENIED
    except Exception as error:  # whatever goes wrong in a guard must not let a call through
        sys.stderr.write(f"formal-llm guard: {type(error).__name__}: {error}\n")
        return DENIED
    if made.err:
        sys.stderr.write(f"{made.err}\n")
    if made.out:
        sys.stdout.buffer.write(made.out.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.flush()
    return made.code
