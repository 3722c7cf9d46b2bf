"""Tools of an MCP server: a real one, in this process and in another one."""

from __future__ import annotations

import base64
import sys
from functools import partial
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

import anyio
from mcp import StdioServerParameters
from mcp.server import MCPServer, Server
from mcp.types import ImageContent, ListToolsResult, TextContent
from mcp.types import Tool as Declared

from formal_llm import CFG, Planner
from formal_llm.agents.tool_calls import call_tool, parse_arguments, read_arguments
from formal_llm.errors import ToolError, ToolkitError
from formal_llm.tools import IMAGE, TEXT, Executor, Toolkit
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.images import write_png
from formal_llm.tools.mcp import mcp_tools
from tests.servers import BUFFERS, HostileServer
from tests.tools.picture_tools import picture

CFG_TEXTS = CFG.from_string("%order prefix\nT -> shout T | join T T | doc")


def server() -> Any:
    made = MCPServer("tests")

    @made.tool()
    def shout(text: str) -> str:
        """Capital letters.

        More about it.
        """
        return text.upper()

    @made.tool()
    def join(first: str, second: str, glue: str = "|") -> str:
        return f"{first}{glue}{second}"

    @made.tool()
    def fail(text: str) -> str:
        raise ValueError(f"cannot do {text}")

    @made.tool()
    def count(number: int) -> str:
        return str(number)

    @made.tool(structured_output=False)
    def turn(text: str) -> list[TextContent | ImageContent]:
        if text == "none":
            return [TextContent(type="text", text="no picture")]
        data = "!!" if text == "damaged" else base64.b64encode(write_png(picture())).decode()
        return [ImageContent(type="image", data=data, mime_type="image/png")]

    return made


def test_the_tools_of_a_server() -> None:
    with mcp_tools(server()) as tools:
        assert {str(tool) for tool in tools} == {
            "shout(text) -> text",
            "join(text, text) -> text",
            "fail(text) -> text",
            "turn(text) -> text",
            "count(int) -> text",
        }
        (shout,) = [tool for tool in tools if tool.name == "shout"]
        assert shout.description == "Capital letters."
        assert shout.parameters == ("text",)
        assert not shout.pure
        kit = Toolkit(tools)
        walk = Planner(CFG_TEXTS, "test:script=2,1,3,3").start("t")
        plan = Planner(CFG_TEXTS, "test:script=2,1,3,3").drive(walk)
        assert plan.word == ("join", "shout", "doc", "doc")
        assert Executor(kit, timeout=20).run(plan, {"doc": "äb"}).output == "ÄB|äb"


def test_images_and_errors() -> None:
    with mcp_tools(server(), names={"turn": "draw", "fail": "fail"}, outputs={"turn": "image"}) as tools:
        draw, fail = tools
        assert (draw.name, draw.inputs, draw.output) == ("draw", (TEXT,), IMAGE)
        assert draw("x").tobytes() == picture().tobytes()
        for text, words in (("none", "0 images"), ("damaged", "no base64")):
            with pytest.raises(ValueError, match=words):
                draw(text)
        with pytest.raises(RuntimeError, match="Error executing tool fail"):
            fail("x")
        cfg = CFG.from_string("%order prefix\nT -> fail doc")
        with pytest.raises(ToolError, match="Error executing tool fail"):
            Toolkit(tools).run(Planner(cfg).plan("t"), {"doc": "y"})


def test_names_that_the_server_does_not_have() -> None:
    for settings in ({"names": {"draw": "draw"}}, {"outputs": {"draw": "image"}}):
        with pytest.raises(ToolkitError, match="no tool draw; it has shout, join"), mcp_tools(server(), **settings):  # type: ignore[arg-type]
            pass


def test_what_a_model_writes_for_a_tool_of_a_server() -> None:
    caller = Caller(CallLimits(timeout=20))
    with mcp_tools(server(), names={"join": "join", "count": "count"}) as (join, count):
        assert join.schema["required"] == ["first", "second"]
        assert join.schema["properties"]["glue"]["default"] == "|"  # type: ignore[index]  # the server's own schema
        assert call_tool(join, partial(read_arguments, join, {"first": "a", "second": "b"}), caller) == ("a|b", True)
        assert call_tool(join, partial(read_arguments, join, {"first": "a", "second": "b", "glue": "-"}), caller) == (
            "a-b",
            True,
        )
        strict = {"first": "a", "second": "b", "glue": None}
        assert call_tool(join, partial(read_arguments, join, strict, strict=True), caller) == ("a|b", True)
        assert call_tool(count, partial(parse_arguments, count, "7"), caller) == ("7", True)
        shown, ok = call_tool(count, partial(read_arguments, count, {"number": "many"}), caller)
        assert not ok and "valid integer" in shown


def test_errors_in_the_block_come_out_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError), mcp_tools(server()):
        _ = 1 / 0


def test_a_server_in_another_process() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.path.insert(0, sys.argv[2]);"
        "import test_mcp; test_mcp.server().run('stdio')"
    )
    from pathlib import Path

    import formal_llm

    here, root = Path(__file__).parent, Path(formal_llm.__file__).parent.parent
    parameters = StdioServerParameters(command=sys.executable, args=["-c", program, str(here), str(root)])
    with mcp_tools(parameters, names={"shout": "shout"}) as (shout,):
        assert shout("abc") == "ABC"


def endless(last: int | None = None, wait: float = 0) -> tuple[Any, list[str | None]]:
    """A server that always has another page of tools, or that many, and the cursors that it was asked for."""
    asked: list[str | None] = []

    async def listed(_: Any, params: Any) -> ListToolsResult:
        asked.append(params.cursor if params else None)
        await anyio.sleep(wait)
        number = len(asked)
        tools = [Declared(name=f"t{number}", input_schema={"type": "object"})]
        return ListToolsResult(tools=tools, next_cursor=None if number == last else str(number))

    return Server("endless", on_list_tools=listed), asked


def test_pages_without_end() -> None:
    server, asked = endless()
    with (
        pytest.raises(ToolkitError, match=r"more than 7 pages \(7 tools so far\).*give more pages"),
        mcp_tools(server, pages=7),
    ):
        pass
    assert asked == [None, "1", "2", "3", "4", "5", "6"]
    server, _ = endless(last=7)
    with mcp_tools(server, pages=7) as tools:
        assert [tool.name for tool in tools] == [f"t{number}" for number in range(1, 8)]
    server, asked = endless()
    with pytest.raises(ToolkitError, match="more than 100 pages"), mcp_tools(server):
        pass


@pytest.mark.parametrize("pages", [[["a", "b", "a"]], [["a"], ["b"], ["a"]]], ids=["on a page", "on two pages"])
def test_a_tool_that_is_listed_twice(pages: list[list[str]]) -> None:
    async def listed(_: Any, params: Any) -> ListToolsResult:
        number = int(params.cursor) if params and params.cursor else 0
        tools = [Declared(name=name, input_schema={"type": "object"}) for name in pages[number]]
        return ListToolsResult(tools=tools, next_cursor=str(number + 1) if number + 1 < len(pages) else None)

    with (
        pytest.raises(ToolkitError, match="the MCP server doubling lists two tools named a"),
        mcp_tools(Server("doubling", on_list_tools=listed)),
    ):
        pass


def test_pages_that_come_too_slowly() -> None:
    server, asked = endless(wait=0.05)  # each in time, all together not
    with (
        pytest.raises(ToolError, match=r"did not answer within 0\.4 seconds") as caught,
        mcp_tools(server, timeout=0.4),
    ):
        pass
    assert caught.value.reason == "timeout"
    assert 1 < len(asked) < 10


def test_a_call_that_takes_too_long_is_a_timeout() -> None:
    made = MCPServer("slow")

    @made.tool()
    async def wait(text: str) -> str:
        await anyio.sleep(60)
        return text

    with mcp_tools(made, timeout=0.4) as (tool,):
        with pytest.raises(TimeoutError, match=r"did not answer within 0\.4 seconds"):
            tool("x")
        with pytest.raises(ToolError) as caught:
            Toolkit([tool]).run(Planner(CFG.from_string("%order prefix\nT -> wait doc")).plan("t"), {"doc": "y"})
        assert caught.value.reason == "timeout"


@pytest.mark.parametrize(
    ("program", "reason"), [("import sys; sys.stdin.read()", "timeout"), ("print(1)", "failed")], ids=["silent", "ends"]
)
def test_a_server_that_cannot_be_reached(program: str, reason: str) -> None:
    parameters = StdioServerParameters(command=sys.executable, args=["-c", program])
    seconds = 0.5 if reason == "timeout" else 30
    with pytest.raises(ToolError, match="the MCP server") as caught, mcp_tools(parameters, timeout=seconds):
        pass
    assert caught.value.reason == reason
    with pytest.raises(ToolError, match="cannot be reached"), mcp_tools("http://127.0.0.1:9/mcp"):
        pass


def real_server_over_http() -> tuple[Any, str]:
    """An MCP server of the SDK behind a socket on loopback."""
    import socket

    import uvicorn

    app = server().streamable_http_app()
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    running = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    return (running, thread), f"http://127.0.0.1:{port}/mcp"


def test_a_server_by_its_address() -> None:
    (running, thread), address = real_server_over_http()
    try:
        with mcp_tools(address, names={"shout": "shout"}) as (shout,):
            kit = Toolkit([shout])
            assert kit.run(
                Planner(CFG.from_string("%order prefix\nT -> shout doc")).plan("t"), {"doc": "y" * 1_000}
            ).output
    finally:
        running.should_exit = True
        thread.join()


@pytest.mark.parametrize("compressed", [False, True])
def test_a_response_without_end(compressed: bool) -> None:
    def behave(send: Any, stopped: Any) -> None:
        encoding = b"Content-Encoding: gzip\r\n" if compressed else b""
        send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + encoding + b"\r\n")
        while not stopped.is_set():
            send(b" " * 100_000)

    told = "compressed" if compressed else "more than 2,000,000 bytes"
    with HostileServer(behave) as hostile:
        with (
            pytest.raises(ToolError, match=f"cannot be reached.*{told}"),
            mcp_tools(hostile.url, max_bytes=2_000_000, timeout=20),
        ):
            pass
        assert hostile.sent < 2_000_000 + BUFFERS
