"""A server on this machine that answers chat completions after a fixed time, for benchmarks and end-to-end tests.

Which option it chooses is a function of what it is asked, so the same questions always get the same answers. It runs in
a process of its own until its standard input is closed, that is, at the latest when the one who started it ends.

Run: python benchmarks/slow_server.py [--latency SECONDS]   (prints its address, then serves)
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def answer(body: dict[str, Any]) -> bytes:
    """The completion for a request: an option that depends on the messages alone."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    several = "choices" in schema
    enum = schema["choices"]["items"]["enum"] if several else schema["choice"]["enum"]
    said = json.dumps(body["messages"]).encode()
    chosen = enum[int.from_bytes(hashlib.sha256(said).digest()[:4]) % len(enum)]
    text = json.dumps({"choices": [chosen]} if several else {"choice": chosen})
    message = {"role": "assistant", "content": text, "refusal": None}
    usage = {"prompt_tokens": len(said) // 4, "completion_tokens": 7, "total_tokens": len(said) // 4 + 7}
    completion = {
        "id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "usage": usage,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }  # fmt: skip
    return json.dumps(completion).encode()


async def serve(latency: float) -> None:
    """Serve until standard input ends."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower():
                length = next(
                    int(line.split(":")[1]) for line in head.splitlines() if line.startswith("content-length")
                )
                body = json.loads(await reader.readexactly(length))
                await asyncio.sleep(latency)
                page = answer(body)
                head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(page)}\r\n\r\n"
                writer.write(head.encode() + page)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=2048)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


@contextmanager
def slow_server(latency: float = 0.05) -> Iterator[str]:
    """The address of a server in a process of its own, which ends with the block."""
    command = [sys.executable, str(Path(__file__)), "--latency", str(latency)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.05)
    asyncio.run(serve(parser.parse_args().latency))
