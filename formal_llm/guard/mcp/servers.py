"""The definitions of MCP servers behind a guard: commands, addresses, and the configuration files of clients."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from formal_llm.authored.files import read_text
from formal_llm.authored.tables import AlternativeShape, Keys, NamedEntries, problems
from formal_llm.errors import ToolkitError

_SERVER = Keys(
    {"command": str, "args": AlternativeShape((list,)), "env": NamedEntries(str), "cwd": str, "url": str,
     "headers": NamedEntries(str), "type": str, "disabled": bool, "description": str}
)  # fmt: skip
_FILE = Keys({"mcpServers": NamedEntries(_SERVER)}, needed=("mcpServers",))


@dataclass(frozen=True)
class McpServer:
    """An MCP server: a command that communicates over its standard streams, or an address.

    Attributes:
        name: its name, the prefix of its tools if two servers have one with the same name.
        command: the program and its arguments; empty for an address.
        url: the address.
        env: the environment variables of the command, in addition to those of this process.
        folder: the working directory of the command.
        headers: the headers of requests to the address.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_command(cls, words: Sequence[str], name: str = "") -> McpServer:
        """Read a server from a command line: an address, or a command.

        Raises:
            ToolkitError: the command line is empty.
        """
        if not words or not words[0]:
            raise ToolkitError(["no MCP server is named; write its command behind --, or its address"])
        if len(words) == 1 and re.match(r"https?://", words[0]):
            return cls(name or re.sub(r"^https?://|[/?#].*$", "", words[0]), url=words[0])
        return cls(name or PurePath(words[0]).stem, tuple(words))

    @classmethod
    def from_definition(cls, text: str) -> McpServer:
        """Read a server from ``NAME=COMMAND...`` or ``NAME=ADDRESS``.

        Raises:
            ToolkitError: the text has no such form.
        """
        name, sign, rest = text.partition("=")
        if not sign or not re.fullmatch(r"[\w.-]+", name):
            raise ToolkitError([f"{text!r} is no server; write NAME=COMMAND or NAME=ADDRESS"])
        try:
            return cls.from_command(shlex.split(rest), name)
        except ValueError as error:
            raise ToolkitError([f"the command of {name} cannot be read: {error}"]) from None


def read_server_file(path: str) -> list[McpServer]:
    """Read servers from a client's configuration: ``{"mcpServers": {"files": {"command": "...", "args": [...]}}}``.

    Raises:
        ToolkitError: the file has no such form; the error names the problems.
        NotationError: the file cannot be read.
    """
    try:
        data: Any = json.loads(read_text(path))
    except ValueError as error:
        raise ToolkitError([f"{path} is no JSON: {error}"]) from None
    if errors := [one.problem for one in problems(data, _FILE)]:
        raise ToolkitError([f"{path}: {problem}" for problem in errors])
    servers = []
    for name, row in data["mcpServers"].items():
        if row.get("disabled"):
            continue
        if "url" in row:
            servers.append(McpServer(name, url=row["url"], headers=row.get("headers", {})))
        elif "command" in row:
            words = (row["command"], *map(str, row.get("args", ())))
            servers.append(McpServer(name, words, env=row.get("env", {}), folder=row.get("cwd")))
        else:
            raise ToolkitError([f"{path}: the server {name} has neither a command nor a url"])
    return servers
