"""A server on this machine that answers chat completions after a fixed time, for end-to-end tests and benchmarks.

Which option it chooses is a function of what it is asked, so the same questions always get the same answers. With
``--rps`` it refuses what exceeds that many requests a second (status 429), with ``--breaks`` it fails after that many
answers. ``GET /v1/counts`` returns how many requests it has answered and refused. It runs in a process of its own until
its standard input is closed, that is, at the latest when the one who started it ends.

Run: python tests/slow_server.py [--latency SECONDS] [--rps N]   (prints its address, then serves)
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
from time import monotonic
from typing import Any
from urllib.request import urlopen


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


async def serve(latency: float, rps: float, breaks: int) -> None:
    """Serve until standard input ends; ``rps`` and ``breaks`` of 0 are no limits."""
    answered = refused = failed = 0
    allowed, since = rps, monotonic()

    def is_allowed() -> bool:
        nonlocal allowed, since
        now = monotonic()
        allowed, since = min(allowed + (now - since) * rps, max(rps, 1)), now
        if rps and allowed < 1:
            return False
        allowed -= 1
        return True

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered, refused, failed, breaks
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower():
                status = "200 OK"
                if head.startswith("get /v1/repair"):
                    breaks, page = 0, b"{}"
                elif head.startswith("get"):
                    page = json.dumps({"answered": answered, "refused": refused, "failed": failed}).encode()
                else:
                    length = next(
                        int(line.split(":")[1]) for line in head.splitlines() if line.startswith("content-length")
                    )
                    body = json.loads(await reader.readexactly(length))
                    if breaks and answered >= breaks:
                        status, page = "500 Internal Server Error", b'{"error": {"message": "broken"}}'
                        failed += 1
                    elif is_allowed():
                        answered += 1
                        await asyncio.sleep(latency)
                        page = answer(body)
                    else:
                        status, page = "429 Too Many Requests", b'{"error": {"message": "slow down"}}'
                        refused += 1
                head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(page)}\r\n\r\n"
                writer.write(head.encode() + page)
                await writer.drain()
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=2048)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


@contextmanager
def slow_server(latency: float = 0.05, rps: float = 0, breaks: int = 0) -> Iterator[str]:
    """The address of a server in a process of its own, which ends with the block."""
    command = [
        sys.executable,
        str(Path(__file__)),
        "--latency",
        str(latency),
        "--rps",
        str(rps),
        "--breaks",
        str(breaks),
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def read_counts(url: str) -> dict[str, int]:
    """How many requests the server at an address has answered and refused."""
    with urlopen(f"{url}/counts", timeout=10) as page:
        counts: dict[str, int] = json.load(page)
    return counts


def repair(url: str) -> None:
    """Have the server at an address fail no more."""
    with urlopen(f"{url}/repair", timeout=10):
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--rps", type=float, default=0, help="requests a second that are answered; 0: all")
    parser.add_argument("--breaks", type=int, default=0, help="after how many answers it only fails; 0: never")
    given = parser.parse_args()
    asyncio.run(serve(given.latency, given.rps, given.breaks))
