"""Where ``formal-llm`` starts. A hook is a process for each event of an agent, so it goes past all other commands."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["guard"] and "--hook" in sys.argv[2:] and not {"-h", "--help"} & set(sys.argv[2:]):
        from formal_llm.cli.guard_hook import run_hook

        sys.exit(run_hook(sys.argv[2:]))
    from formal_llm.cli.main import main as run

    run()
