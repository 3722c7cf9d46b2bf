"""The process of an isolated tool: reads values from standard input, writes what the tool made of them to the output.

Run: python -m formal_llm.tools.worker MODULE:NAME MEMORY (see :mod:`formal_llm.tools.isolated`)
"""

from __future__ import annotations

import os
import sys

from formal_llm.tools.isolated import read_message, write_message
from formal_llm.tools.tool import find_tool


def serve_calls(where: str, memory: int) -> None:
    """Answer calls until nobody is left who makes them."""
    # What the tool prints must not end up among the messages, and what it reads must not be taken from them. The copies
    # are closed in programs that the tool starts, so that these do not hold the line open.
    answers, calls = os.fdopen(os.dup(sys.stdout.fileno()), "wb"), os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    tool = find_tool(where)
    if memory:
        try:
            import resource
        except ImportError:  # a system without such bounds
            pass
        else:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    while True:
        try:
            _, payloads = read_message(calls)
        except EOFError:
            return
        try:
            values = [kind.load(data) for kind, data in zip(tool.inputs, payloads, strict=True)]
            payload = tool.output.dump(tool.output.accept(tool.function(*values)))
        except SystemExit as error:
            write_message(
                answers, {"error": "SystemExit", "text": f"the tool called sys.exit({error.code!r})"[:500]}, []
            )
        except BaseException as error:  # whatever a tool raises is its answer
            write_message(answers, {"error": type(error).__name__, "text": str(error)[:500]}, [])
        else:
            write_message(answers, {}, [payload])


if __name__ == "__main__":
    serve_calls(sys.argv[1], int(sys.argv[2]))
