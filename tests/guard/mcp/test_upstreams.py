"""The servers behind a guard: their tools under names of their own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

from mcp.types import Tool

from formal_llm.errors import ToolkitError
from formal_llm.guard.mcp.servers import McpServer
from formal_llm.guard.mcp.upstreams import Upstream, assign_tool_names


async def _nothing() -> None:
    return None


def tools(*names: str) -> list[Tool]:
    return [Tool(name=name, input_schema={"type": "object"}) for name in names]


def test_a_server_is_opened_by_its_command_or_its_address() -> None:
    async def opened(server: McpServer) -> Any:
        async with AsyncExitStack() as stack:
            return await Upstream(server, _nothing)._open_target(stack)

    assert asyncio.run(opened(McpServer("a", url="http://127.0.0.1:9/mcp"))) == "http://127.0.0.1:9/mcp"
    started = asyncio.run(opened(McpServer("a", command=("run", "it"), env={"MODE": "test"})))
    assert (started.command, started.args, started.env["MODE"]) == ("run", ["it"], "test")
    with_headers = asyncio.run(opened(McpServer("a", url="http://127.0.0.1:9/mcp", headers={"X-Team": "blue"})))
    assert not isinstance(with_headers, str)


def test_names_are_told_apart() -> None:
    one, two, three = (Upstream(McpServer(name), _nothing) for name in ("a b", "two", "two"))
    found = assign_tool_names([(one, tools("read", "two_read")), (two, tools("read", "write")), (three, tools("read"))])
    assert {name: (at.upstream, at.name) for name, at in found.items()} == {
        "a_b_read": (one, "read"), "two_read": (one, "two_read"), "two_read_2": (two, "read"), "write": (two, "write"),
        "two_read_3": (three, "read"),
    }  # fmt: skip
    assert all(at.tool.name == name for name, at in found.items())
    with pytest.raises(ToolkitError, match="the MCP server a b has two tools named read"):
        assign_tool_names([(one, tools("read", "read"))])
