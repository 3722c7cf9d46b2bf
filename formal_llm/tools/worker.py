"""The process of an isolated tool: reads values from standard input and writes the tool's results to the output.

Run: python -m formal_llm.tools.worker MODULE:NAME MEMORY (see :mod:`formal_llm.tools.isolated`)
"""

from __future__ import annotations

import os
import sys

from formal_llm.tools.isolated import read_message, write_message
from formal_llm.tools.tool import find_tool


def serve_calls(where: str, memory: int) -> None:
    """Answer calls until no caller is left."""
    # The tool's own output must not mix with the messages, nor its input consume them. The copies are closed in
    # programs that the tool starts, so that these do not keep the connection open.
    answers, calls = os.fdopen(os.dup(sys.stdout.fileno()), "wb"), os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    tool = find_tool(where)
    if memory:
        try:
            import resource
        except ImportError:  # a system without such limits
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
        except BaseException as error:  # any exception of a tool is its answer
            write_message(answers, {"error": type(error).__name__, "text": str(error)[:500]}, [])
        else:
            write_message(answers, {}, [payload])


if __name__ == "__main__":
    serve_calls(sys.argv[1], int(sys.argv[2]))
