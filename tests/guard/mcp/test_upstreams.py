"""The servers behind a guard: their tools under names of their own."""

from __future__ import annotations

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
