"""Tools in processes of their own: a call that takes too long is killed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from formal_llm.tools.calling import run_awaitable
from formal_llm.tools.tool import Tool, find_tool


def isolated(where: str, *, memory: int | None = None, timeout: float | None = None) -> Tool:
    """Return the tool that a module defines, run in a process of its own.

    The tool is asynchronous. Where its call takes too long or is cancelled, the process is killed; processes that it
    has started are not. Values travel pickled. As with :mod:`multiprocessing`, the main module is imported in the
    process, so that a script needs ``if __name__ == "__main__":``.

    Args:
        where: module and name, as in ``"my_tools:denoise"``; the process imports it likewise.
        memory: the maximum number of bytes of address space of the process, on systems that can limit it; None for no
            limit.
        timeout: seconds for one call. Default: the tool's own setting.

    Raises:
        ToolkitError: there is no such tool.
    """
    tool = find_tool(where)

    async def call_there(*values: object, **named: object) -> object:
        from anyio import to_process

        return await to_process.run_sync(partial(_call_here, where, memory, values, named), cancellable=True)

    return replace(tool, function=call_there, batch=None, timeout=tool.timeout if timeout is None else timeout)


def _call_here(where: str, memory: int | None, values: Sequence[object], named: Mapping[str, object]) -> object:
    """Call the tool, in its process."""
    if memory is not None:
        try:
            import resource
        except ImportError:  # a system without such limits
            pass
        else:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    return run_awaitable(partial(find_tool(where).function, *values, **named))
