"""Which servers stand behind a guard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm.errors import ToolkitError
from formal_llm.guard.mcp.servers import McpServer, read_server_file


def test_commands_and_addresses() -> None:
    assert McpServer.from_command(["npx", "-y", "server"]) == McpServer("npx", ("npx", "-y", "server"))
    assert McpServer.from_command(["https://a.example:8/mcp?x"]) == McpServer(
        "a.example:8", url="https://a.example:8/mcp?x"
    )
    assert McpServer.from_definition("files=python 'my server.py'") == McpServer("files", ("python", "my server.py"))
    assert McpServer.from_definition("web=http://x/mcp").url == "http://x/mcp"
    for wrong in ("files", "=x", "a b=x", "x='"):
        with pytest.raises(ToolkitError):
            McpServer.from_definition(wrong)
    with pytest.raises(ToolkitError, match="behind --"):
        McpServer.from_command([])


def test_the_file_of_a_client(tmp_path: Path) -> None:
    path = tmp_path / ".mcp.json"

    def servers(data: object) -> list[McpServer]:
        path.write_text(json.dumps({"mcpServers": data}))
        return read_server_file(str(path))

    assert servers({
        "files": {"command": "npx", "args": ["-y", "s"], "env": {"A": "1"}, "cwd": "/"},
        "web": {"type": "http", "url": "http://x/mcp", "headers": {"Authorization": "Bearer y"}},
        "off": {"command": "x", "disabled": True},
    }) == [
        McpServer("files", ("npx", "-y", "s"), env={"A": "1"}, folder="/"),
        McpServer("web", url="http://x/mcp", headers={"Authorization": "Bearer y"}),
    ]  # fmt: skip
    with pytest.raises(ToolkitError, match="neither a command nor a url"):
        servers({"x": {}})
    with pytest.raises(ToolkitError, match="comand"):
        servers({"x": {"comand": "y"}})
    path.write_text("{")
    with pytest.raises(ToolkitError, match="no JSON"):
        read_server_file(str(path))
