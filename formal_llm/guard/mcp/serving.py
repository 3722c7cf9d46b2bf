"""The process of a guard: it connects the servers, serves its client to the end, and stops everything it started."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from formal_llm.errors import MissingDependency
from formal_llm.guard.events import GuardEvent
from formal_llm.guard.guard import Guard
from formal_llm.guard.live import Audit
from formal_llm.guard.mcp.servers import McpServer

if TYPE_CHECKING:
    from formal_llm.guard.mcp.proxy import McpProxy

_log = logging.getLogger("formal_llm.guard")


def serve_guard(
    servers: Sequence[McpServer],
    guarded: Callable[[Sequence[str]], Guard],
    *,
    audit: Audit | None = None,
    past: Sequence[GuardEvent] = (),
    port: int | None = None,
    timeout: float = 60.0,
) -> None:
    """Serve until the client ends or a signal arrives; by then all started servers have ended, too.

    Args:
        servers: the servers behind the guard.
        guarded: makes the guard for the names of tools.
        audit: receives each line of the record.
        past: the events after which the run goes on.
        port: the HTTP port, on this machine only; None for standard input and output.
        timeout: the maximum start time of a server in seconds.

    Raises:
        MissingDependency: the package ``mcp`` is not installed.
        ToolError: a server cannot be used.
        ToolkitError: a server lists its tools incorrectly.
    """
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise MissingDependency("MCP servers need its package: pip install 'formal-llm[mcp]'") from error
    from formal_llm.guard.mcp.proxy import McpProxy

    proxy = McpProxy(guarded, audit, past)
    asyncio.run(_run_until_signal(_serve_proxy(servers, proxy, port, timeout)))


async def _run_until_signal(work: Any) -> None:
    """Run the work until it ends or a signal arrives; it cleans up either way."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        with suppress(NotImplementedError):  # Windows has no such handlers: Ctrl-C raises in the loop
            loop.add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


async def _serve_proxy(servers: Sequence[McpServer], proxy: McpProxy, port: int | None, timeout: float) -> None:
    from formal_llm.guard.mcp.upstreams import Upstream

    async with AsyncExitStack() as stack:
        upstreams = [Upstream(server, proxy.upstream_changed, timeout) for server in servers]
        for one in upstreams:
            await one.connect(stack)
        await proxy.attach_upstreams(upstreams)
        watching = [asyncio.ensure_future(one.watch_changes()) for one in upstreams if _is_modern(one)]
        try:
            await (_serve_stdio(proxy.server) if port is None else _serve_http(proxy.server, port))
        finally:
            for task in watching:
                task.cancel()
            end = proxy.run.stop()
            if not end.runs:
                _log.warning("the run ended too early: %s", end.message)


def _is_modern(upstream: Any) -> bool:
    from mcp.types.version import MODERN_PROTOCOL_VERSIONS

    return upstream.client.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _serve_stdio(server: Any) -> None:
    from mcp.server.lowlevel.server import NotificationOptions
    from mcp.server.stdio import stdio_server

    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


async def _serve_http(server: Any, port: int) -> None:
    import uvicorn

    config = uvicorn.Config(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")
    http_server = uvicorn.Server(config)
    http_server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    await http_server.serve()
