"""The guard as a program: real servers as processes and on a port, and what is left when it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

from mcp import Client, MCPError, StdioServerParameters

import formal_llm
from formal_llm.errors import ToolError
from formal_llm.guard import Guard, GuardRules
from formal_llm.guard.audit import read_log
from formal_llm.guard.mcp.servers import McpServer
from formal_llm.guard.mcp.serving import serve_guard
from formal_llm.guard.traces import read_traces
from formal_llm.guard.verifying import verify_trace

SHOP = str(Path(__file__).with_name("shop_server.py"))
ROOT = str(Path(formal_llm.__file__).parent.parent)
RULES = "pay: pay\nrule once: at most 1 pay\n"


def command(folder: Path, *behind: str) -> list[str]:
    (folder / "rules.guard").write_text(RULES)
    return [sys.executable, "-m", "formal_llm", "guard", str(folder / "rules.guard"), *behind]


def running(text: str) -> bool:
    found = subprocess.run(["pgrep", "-f", text], capture_output=True, text=True).stdout.split()
    return any(Path(f"/proc/{number}").exists() for number in found)


def wait_for_port(port: int) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("served", ["stdio", "http"])
def test_rules_are_kept_over_both_transports(served: str, tmp_path: Path) -> None:
    """The rows of the table in docs/howto/guard.md: calls at once, a repeated call, an error of a tool, two clients."""
    words = command(tmp_path, "--", sys.executable, SHOP)
    (tmp_path / "rules.guard").write_text(RULES + "fail: fail\nrule fails: at most 1 fail\n")
    environment = {**os.environ, "PYTHONPATH": ROOT}

    async def work(target: object) -> None:
        async with Client(target) as client:  # type: ignore[arg-type]
            both = await asyncio.gather(*(client.call_tool("pay", {"amount": 1}) for _ in range(2)))
            assert sorted(answer.is_error for answer in both) == [False, True]
            assert (await client.call_tool("pay", {"amount": 1})).is_error
            assert [(await client.call_tool("fail")).is_error for _ in range(2)] == [True, True]
            assert "at most 1 fail" in (await client.call_tool("fail")).content[0].text

    async def work_twice(address: str) -> None:
        await work(address)
        async with Client(address) as client:  # another client, the same run
            assert (await client.call_tool("pay", {"amount": 1})).is_error

    if served == "stdio":
        parameters = StdioServerParameters(command=words[0], args=words[1:], env=environment)
        asyncio.run(asyncio.wait_for(work(parameters), 120))
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = words.index("--")
    guard = subprocess.Popen([*words[:place], "--port", str(port), *words[place:]], env=environment)
    try:
        wait_for_port(port)
        asyncio.run(asyncio.wait_for(work_twice(f"http://127.0.0.1:{port}/mcp"), 120))
    finally:
        guard.terminate()
        guard.wait()


@pytest.mark.slow
def test_what_is_not_known_does_as_the_option_says(tmp_path: Path) -> None:
    """Of two grammars each word has to be in both: the search reaches its bound."""
    words = command(tmp_path, "--guarantee", "whatever", "--unsure", "block", "--", sys.executable, SHOP)
    (tmp_path / "rules.guard").write_text(
        'tools draft, pay\nrule g: grammar """\n%order forward\nS -> draft S pay | pay\n"""\n'
        'rule h: grammar """\n%order forward\nS -> pay | T\nT -> draft T pay pay | pay pay\n"""\n'
    )

    async def work() -> None:
        parameters = StdioServerParameters(command=words[0], args=words[1:], env={**os.environ, "PYTHONPATH": ROOT})
        async with Client(parameters) as client:
            assert "draft" not in {tool.name for tool in (await client.list_tools()).tools}
            refused = await client.call_tool("draft", {"text": "x"})
            assert refused.is_error
            assert "it is not known whether these rules could be kept" in refused.content[0].text
            assert not (await client.call_tool("pay", {"amount": 1})).is_error

    asyncio.run(asyncio.wait_for(work(), 120))


@pytest.mark.slow
def test_a_server_as_a_process_and_one_on_a_port(tmp_path: Path) -> None:
    """One run: calls, a limit over both, the log, a server that crashes, and no child left behind."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    web = subprocess.Popen([sys.executable, SHOP, str(port)], env={**os.environ, "PYTHONPATH": ROOT})
    try:
        wait_for_port(port)
        child = f"files={sys.executable} {SHOP.replace(' ', chr(92) + ' ')}"
        words = command(
            tmp_path, "--server", child, "--server", f"web=http://127.0.0.1:{port}/mcp", "--log", str(tmp_path / "log")
        )

        async def work() -> None:
            parameters = StdioServerParameters(command=words[0], args=words[1:], env={**os.environ, "PYTHONPATH": ROOT})
            async with Client(parameters) as client:
                tools = {tool.name for tool in (await client.list_tools()).tools}
                assert {"files_draft", "web_draft"} <= tools
                assert not (await client.call_tool("web_pay", {"amount": 1})).is_error
                assert not (await client.call_tool("files_pay", {"amount": 1})).is_error
                with pytest.raises(MCPError):
                    await client.call_tool("files_crash")
                assert not (await client.call_tool("web_draft", {"text": "on"})).is_error

        asyncio.run(asyncio.wait_for(work(), 120))
        reading = read_log(tmp_path / "log")
        assert reading.faults == ()
        told = [next(iter(row)) for entry in reading.entries if isinstance(row := entry.row.get("event"), dict)]
        assert told == ["call", "result"] * 4
    finally:
        web.kill()
        web.wait()


@pytest.mark.slow
def test_two_starts_with_one_log_are_one_run(tmp_path: Path) -> None:
    """What the rules allow once, they allow once, however often the guard is started again."""
    words = command(tmp_path, "--log", str(tmp_path / "log"), "--", sys.executable, SHOP)

    async def work(expected: bool) -> None:
        parameters = StdioServerParameters(command=words[0], args=words[1:], env={**os.environ, "PYTHONPATH": ROOT})
        async with Client(parameters) as client:
            assert (await client.call_tool("pay", {"amount": 1})).is_error is expected

    for expected in (False, True):
        asyncio.run(asyncio.wait_for(work(expected), 120))
    reading = read_log(tmp_path / "log")
    assert reading.faults == ()
    assert [entry.row["told"] for entry in reading.entries[1:] if entry.row["event"]] == [True, True, False]
    (report,) = [verify_trace(Guard(GuardRules.from_string(RULES)), trace) for trace in read_traces(tmp_path / "log")]
    assert report.valid
    (tmp_path / "log").write_bytes((tmp_path / "log").read_bytes().replace(b'"amount":1', b'"amount":2'))
    told = subprocess.run(words, capture_output=True, timeout=60, check=False, env={**os.environ, "PYTHONPATH": ROOT})
    assert told.returncode == 2
    assert b"was changed (line 2" in told.stderr.replace(b"\n", b" ")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_guard_and_its_servers(tmp_path: Path, number: signal.Signals) -> None:
    marked = tmp_path / "shop_of_this_test.py"
    marked.write_text(Path(SHOP).read_text())
    guard = subprocess.Popen(
        command(tmp_path, "--", sys.executable, str(marked)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert guard.stdin is not None
    assert guard.stdout is not None
    guard.stdin.write(
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        b'"clientInfo":{"name":"t","version":"1"}}}\n'
    )
    guard.stdin.flush()
    assert guard.stdout.readline().startswith(b'{"jsonrpc"')  # nothing but protocol, although the server prints
    assert running(str(marked))
    guard.send_signal(number)
    rest, _ = guard.communicate(timeout=60)
    assert rest == b""
    assert not running(str(marked))


def test_servers_that_cannot_be_used(tmp_path: Path) -> None:
    def never(_: object) -> None:
        raise AssertionError

    for server, told in (
        (McpServer("gone", (str(tmp_path / "none"),)), "gone"),
        (McpServer("ends", (sys.executable, "-c", "print('no protocol')")), "ends"),
        (McpServer("away", url="http://127.0.0.1:9/mcp"), "away"),
        (McpServer("mute", (sys.executable, "-c", "import sys; sys.stdin.read()")), "within 1.5 seconds"),
    ):
        with pytest.raises(ToolError, match=f"the MCP server {server.name}.*{told if told != server.name else ''}"):
            serve_guard([server], never, timeout=1.5)  # type: ignore[arg-type]
