"""The process of an isolated tool: reads values from standard input and writes the tool's results to the output.

On Linux it consists of two processes: the worker, which calls the tool, and one that supervises it. Every process that
the tool starts and leaves behind, in whatever session, becomes a child of the supervising process, which kills them all
when the worker ends and when it gets SIGTERM.

Run: python -m formal_llm.tools.worker MODULE:NAME MEMORY (see :mod:`formal_llm.tools.isolated`)
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import signal
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Never

from formal_llm.tools.calling import run_awaitable
from formal_llm.tools.isolated import find_kinds, find_memory_group, read_message, write_message
from formal_llm.tools.tool import find_tool

#: The option of Linux's ``prctl`` by which orphaned descendants become children of a process.
_PR_SET_CHILD_SUBREAPER = 36


def split_worker(memory: int) -> None:
    """Split this process in two: the function returns in the worker, and never in the process that supervises it.

    Where the system cannot adopt orphans, the function returns at once.

    Args:
        memory: the maximum number of bytes for all processes of the worker together, where cgroups allow it; 0 for no
            limit.
    """
    if sys.platform != "linux" or ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        return
    above = find_memory_group() if memory else None
    group = None if above is None else above / f"formal-llm-{secrets.token_hex(8)}"
    awaited = {signal.SIGTERM, signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)  # none gets lost before they are awaited
    worker = os.fork()
    if worker == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if group is not None:
            enter_memory_group(group, memory)
        return
    _supervise_worker(worker, awaited, group)


def enter_memory_group(group: Path, memory: int) -> None:
    """Make a cgroup with a memory limit and move this process into it; warn if that fails."""
    try:
        group.mkdir()
        (group / "memory.max").write_text(str(memory))
        for name, value in ("memory.swap.max", "0"), ("memory.oom.group", "1"):
            with contextlib.suppress(OSError):  # a system without swap, or an old one
                (group / name).write_text(value)
        (group / "cgroup.procs").write_text("0")
    except OSError as error:
        warnings.warn(f"the memory limit holds for each process alone: {error}", stacklevel=2)


def _supervise_worker(worker: int, awaited: set[signal.Signals], group: Path | None) -> Never:
    """Wait until the worker ends or SIGTERM comes, kill all that is left, and end as the worker did."""
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123
        for stream in (sys.stdin, sys.stdout):  # the connection ends with the worker
            os.dup2(nothing.fileno(), stream.fileno())
    code = None
    while code is None:
        if signal.sigwait(awaited) == signal.SIGTERM:
            code = -signal.SIGTERM
        while code is None and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            code = os.waitstatus_to_exitcode(ended[1]) if ended[0] == worker else None
    _kill_children()
    if group is not None:
        with contextlib.suppress(OSError):
            group.rmdir()
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker may have left its own
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    os._exit(code)


def _kill_children() -> None:
    """Kill all children until none is left; the children of each become ours when it ends."""
    with contextlib.suppress(OSError):  # a system that does not list them: the caller kills the process group
        while children := Path("/proc/thread-self/children").read_text().split():
            for child in children:
                with contextlib.suppress(PermissionError):
                    os.kill(int(child), signal.SIGKILL)
            os.waitpid(-1, 0)


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
            request, payloads = read_message(calls)
        except (EOFError, ValueError):
            return
        answer = {"call": request.get("call", "")}
        results = []
        try:
            named = json.loads(request.get("named", "[]"))
            count = len(payloads) - len(named)
            kinds = find_kinds(tool, count, named)
            values = [kind.load(data) for kind, data in zip(kinds, payloads, strict=True)]
            work = partial(tool.function, *values[:count], **dict(zip(named, values[count:], strict=True)))
            result = run_awaitable(work)
            results = [tool.output.dump(tool.output.accept(result))]
        except SystemExit as error:
            answer |= {"error": "SystemExit", "text": f"the tool called sys.exit({error.code!r})"[:500]}
        except BaseException as error:  # any exception of a tool is its answer
            answer |= {"error": type(error).__name__, "text": str(error)[:500]}
        write_message(answers, answer, results)


if __name__ == "__main__":
    split_worker(int(sys.argv[2]))
    serve_calls(sys.argv[1], int(sys.argv[2]))
