"""An MCP server to guard: a shop. As a program it speaks on its standard streams, or on a port."""

from __future__ import annotations

import os
import sys
from typing import Any

from mcp.server import MCPServer


def shop(name: str = "shop") -> Any:
    made = MCPServer(name)

    @made.tool()
    def draft(text: str = "") -> str:
        return f"drafted {text}"

    @made.tool()
    def approve(order: int = 0) -> dict[str, int]:
        return {"order": order}

    @made.tool()
    def pay(amount: int = 0) -> str:
        return f"paid {amount}"

    @made.tool()
    def fail() -> str:
        raise ValueError("no such thing")

    @made.tool()
    def crash() -> str:
        os._exit(3)

    @made.resource("shop://hours")
    def hours() -> str:
        return "9 to 5"

    @made.prompt()
    def greet(name: str) -> str:
        return f"Hello {name}"

    return made


if __name__ == "__main__":
    if len(sys.argv) > 1:
        shop().run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        print("not protocol, and not for the client", file=sys.stderr)
        shop().run("stdio")
