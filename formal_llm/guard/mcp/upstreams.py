"""Connections to the MCP servers behind a guard: their tools under unique names, and calls to them."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import Prompt, PromptListChangedNotification, Resource, ResourceTemplate, ToolListChangedNotification
from mcp.types import Tool as McpTool

from formal_llm.errors import ToolError, ToolkitError
from formal_llm.guard.mcp.servers import McpServer

#: The maximum number of pages of a listing.
_PAGES = 100


class OfferedTool(NamedTuple):
    """A tool as the client of the guard sees it, its server, and its name there."""

    tool: McpTool
    upstream: Upstream
    name: str


class Upstream:
    """A connection to one server behind the guard.

    Args:
        changed: called when its offers change.
        timeout: its maximum start time in seconds.
        target: a different target for ``mcp.Client``, such as a server in this process.
    """

    def __init__(
        self, server: McpServer, changed: Callable[[], Awaitable[None]], timeout: float = 60.0, *, target: object = None
    ) -> None:
        self._given = target
        self.server = server
        self.timeout = timeout
        self._changed = changed
        self.client: Client

    async def connect(self, stack: AsyncExitStack) -> None:
        """Connect to the server until the stack is closed.

        Raises:
            ToolError: the server does not start, or does not support MCP.
        """
        import asyncio

        try:
            target: Any = await self._open_target(stack) if self._given is None else self._given
            self.client = Client(target, message_handler=self._handle_message, cache=None)
            async with asyncio.timeout(self.timeout):
                await stack.enter_async_context(self.client)
        except Exception as error:
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            text = f"did not answer within {self.timeout:g} seconds" if isinstance(cause, TimeoutError) else str(cause)
            raise ToolError(
                f"the MCP server {self.server.name}", f"cannot be used: {text or type(cause).__name__}", cause=cause
            ) from error

    async def _open_target(self, stack: AsyncExitStack) -> Any:
        server = self.server
        if server.command:
            command, *arguments = server.command
            return StdioServerParameters(
                command=command, args=arguments, env={**os.environ, **server.env}, cwd=server.folder
            )
        if not server.headers:
            return server.url
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        timeout = httpx2.Timeout(30, read=300)
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout))
        return streamable_http_client(server.url, http_client=http)

    async def _handle_message(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification | PromptListChangedNotification):
            await self._changed()

    async def list_tools(self) -> list[McpTool]:
        """List the tools that it offers now.

        Raises:
            ToolkitError: the listing does not end.
        """
        return await self._collect_pages(lambda cursor: self.client.list_tools(cursor=cursor), "tools")

    async def _collect_pages(self, ask: Callable[[str | None], Awaitable[Any]], key: str) -> list[Any]:
        entries: list[Any] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await ask(cursor)
            entries += getattr(page, key)
            cursor = page.next_cursor
            if not cursor:
                return entries
        raise ToolkitError([f"the MCP server {self.server.name} lists its {key} on more than {_PAGES} pages"])

    def has_capability(self, what: str) -> bool:
        """Return whether it declares that it has resources, prompts or completions."""
        return getattr(self.client.server_capabilities, what, None) is not None

    async def list_resources(self) -> list[Resource]:
        """List the resources that it offers."""
        return await self._collect_pages(lambda cursor: self.client.list_resources(cursor=cursor), "resources")

    async def list_templates(self) -> list[ResourceTemplate]:
        """List the resource templates that it offers."""
        ask = self.client.list_resource_templates
        return await self._collect_pages(lambda cursor: ask(cursor=cursor), "resource_templates")

    async def list_prompts(self) -> list[Prompt]:
        """List the prompts that it offers."""
        return await self._collect_pages(lambda cursor: self.client.list_prompts(cursor=cursor), "prompts")

    async def watch_changes(self) -> None:
        """Watch for changes of a server with the new protocol, which notifies only listeners."""
        try:
            async with self.client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    await self._changed()
        except MCPError:
            return  # a server without notifications of changes


def assign_tool_names(found: Sequence[tuple[Upstream, Sequence[McpTool]]]) -> dict[str, OfferedTool]:
    """Assign each tool the name that the client sees: its own name if it is unique, else prefixed with the server's.

    Raises:
        ToolkitError: a server has two tools with the same name.
    """
    counts: dict[str, int] = {}
    for upstream, tools in found:
        names = [tool.name for tool in tools]
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise ToolkitError([f"the MCP server {upstream.server.name} has two tools named {duplicates[0]}"])
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    offered: dict[str, OfferedTool] = {}
    taken = {name for name, count in counts.items() if count == 1}
    for upstream, tools in found:
        for tool in tools:
            name = tool.name
            if counts[name] > 1:
                name = base = f"{re.sub(r'[^A-Za-z0-9_-]', '_', upstream.server.name)}_{tool.name}"
                number = 2
                while name in taken:
                    name, number = f"{base}_{number}", number + 1
                taken.add(name)
            offered[name] = OfferedTool(tool.model_copy(update={"name": name}), upstream, tool.name)
    return offered
