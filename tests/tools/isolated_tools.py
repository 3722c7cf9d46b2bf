"""Tools that a worker process imports."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from PIL import Image

from formal_llm.tools import tool


@tool
def shout(text: str) -> str:
    print("this must not get among the answers")
    return text.upper()


@tool
def flip(image: Image.Image) -> Image.Image:
    return image.rotate(180)


@tool
def hang(text: str) -> str:
    time.sleep(60)
    return text


@tool
def eat(text: str) -> str:
    return str(len(bytearray(4_000_000_000)))


@tool
def die(text: str) -> str:
    os._exit(7)


@tool
def fail(text: str) -> str:
    raise ValueError(f"not {text}")


@tool
def who(text: str) -> str:
    return str(os.getpid())


def _leave_behind(*, session: bool) -> int:
    """A forked child that holds all that its parent has open, for a while; its process id."""
    ready, begun = os.pipe()
    child = os.fork()
    if child == 0:
        if session:
            os.setsid()
        os.write(begun, b"x")
        time.sleep(60)
        os._exit(0)
    os.read(ready, 1)  # the child is in the session that it shall be in before the parent ends
    os.close(ready)
    os.close(begun)
    if place := os.environ.get("FORMAL_LLM_TEST_PID"):
        Path(place).write_text(str(child))
    return child


@tool
def fork_and_hang(text: str) -> str:
    if text == "warm":
        return text
    _leave_behind(session=text == "session")
    time.sleep(60)
    return text


@tool
def fork_and_die(text: str) -> str:
    _leave_behind(session=text == "session")
    os._exit(3)


@tool
def fork_and_return(text: str) -> str:
    return str(_leave_behind(session=False))


@tool
def start_daemon(text: str) -> str:
    """Start a daemon as programs do: a double fork and a session of its own; return its process id."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            os.write(write, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    os.waitpid(child, 0)
    daemon = os.read(read, 20).decode()
    if place := os.environ.get("FORMAL_LLM_TEST_PID"):
        Path(place).write_text(daemon)
    if text == "hang":
        time.sleep(60)
    if text == "die":
        os._exit(3)
    return daemon


@tool
def fork_and_return_twice(text: str) -> str:
    if text.startswith("fork"):
        os.fork()
    return f"{text} {os.getsid(0)}"


@tool
def answer_late(text: str) -> str:
    """At the first call, fork and return; the child returns during the second call, which never does."""
    if text == "first":
        global _late
        ready, _late = os.pipe()
        if os.fork() == 0:
            os.read(ready, 1)
    else:
        os.write(_late, b"x")
        time.sleep(60)
    return text


@tool
def leave(text: str) -> str:
    sys.exit(text)


@tool
def interrupt(text: str) -> str:
    raise KeyboardInterrupt


@tool
def crash(text: str) -> str:
    ctypes.string_at(0)
    return text


@tool
def end(text: str) -> str:
    os.kill(os.getpid(), getattr(signal, text))
    time.sleep(60)
    return text


@tool
def hang_up(text: str) -> str:
    os.closerange(3, 256)
    time.sleep(60)
    return text


@tool
def read_input(text: str) -> str:
    return sys.stdin.read() + subprocess.run(["cat"], capture_output=True, text=True, check=True).stdout + text


@tool
def environment(text: str) -> str:
    return json.dumps(dict(os.environ))


NOT_A_TOOL = 3
