"""Tools in a process of their own: what hangs is killed, and what eats memory eats only its own.

A worker process imports the tool by its module and name, and is given values and gives them back as the bytes of their
kinds, through pipes. Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import IO

from formal_llm.tools.tool import Tool, find_tool

#: The most bytes that a message may have.
MAX_MESSAGE = 1_000_000_000


def isolated(where: str, *, memory: int | None = None, timeout: float | None = None, idle: int = 1) -> Tool:
    """The tool that a module defines, run in a process of its own.

    Args:
        where: module and name, as in ``"my_tools:denoise"``; the worker imports it in the same way.
        memory: how many bytes the process may use; None for no bound. It is kept where the system can (Linux, macOS).
        timeout: seconds for one call; then the process is killed. The tool's own setting where left out.
        idle: how many processes wait for the next call; a process is started where none waits.

    Raises:
        ToolkitError: there is no such tool.
    """
    tool = find_tool(where)
    seconds = tool.timeout if timeout is None else timeout
    return replace(tool, function=_Isolated(tool, where, memory, seconds, idle), batch=None, timeout=None)


class _Isolated:
    """The function of an isolated tool. Threads may share it: each call has a process to itself."""

    def __init__(self, tool: Tool, where: str, memory: int | None, timeout: float | None, idle: int) -> None:
        self._tool = tool
        self._where = where
        self._memory = memory
        self._timeout = timeout
        self._keep = idle
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _close_all, self._idle)  # also when the program ends

    def __reduce__(self) -> tuple[type[_Isolated], tuple[Tool, str, int | None, float | None, int]]:
        return _Isolated, (self._tool, self._where, self._memory, self._timeout, self._keep)

    def __call__(self, *values: object) -> object:
        with self._lock:
            process = self._idle.pop() if self._idle else None
        if process is None or process.poll() is not None:
            process = self._start()
        killed = threading.Event()

        def kill() -> None:
            killed.set()
            process.kill()

        watch = None if self._timeout is None else threading.Timer(self._timeout, kill)
        try:
            if watch is not None:
                watch.start()
            assert process.stdin is not None
            assert process.stdout is not None
            payloads = [kind.dump(value) for kind, value in zip(self._tool.inputs, values, strict=True)]
            write_message(process.stdin, {}, payloads)
            told, results = read_message(process.stdout)
        except (OSError, EOFError) as error:
            _close(process)
            if killed.is_set():
                raise TimeoutError(f"killed after {self._timeout:g} seconds") from None
            raise MemoryError(f"the process of the tool died with exit code {process.returncode}") from error
        except BaseException:
            _close(process)
            raise
        finally:
            if watch is not None:
                watch.cancel()
        with self._lock:
            waits = len(self._idle) < self._keep and not killed.is_set() and told.get("error") != "MemoryError"
            if waits:
                self._idle.append(process)
        if not waits:
            _close(process)
        if told.get("error") == "MemoryError":
            raise MemoryError(told.get("text", ""))
        if "error" in told:
            raise RuntimeError(f"{told['error']}: {told.get('text', '')}")
        return self._tool.output.load(results[0])

    def close(self) -> None:
        """End the processes that wait."""
        with self._lock:
            _close_all(self._idle)

    def _start(self) -> subprocess.Popen[bytes]:
        # The same modules must be found there: sys.path travels as the environment variable that makes it.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}  # noqa: PTH109
        command = [sys.executable, "-m", "formal_llm.tools.worker", self._where, str(self._memory or 0)]
        return subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )


def _close_all(processes: list[subprocess.Popen[bytes]]) -> None:
    while processes:
        _close(processes.pop())


def _close(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # what was left to be written has nobody to read it
                stream.close()
    process.wait()


def write_message(stream: IO[bytes], told: Mapping[str, str], payloads: Sequence[bytes]) -> None:
    """Write a message: a few facts, and the bytes of values."""
    head = json.dumps({**told, "sizes": [len(payload) for payload in payloads]}).encode()
    stream.write(struct.pack(">I", len(head)) + head)
    for payload in payloads:
        stream.write(payload)
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, str], list[bytes]]:
    """Read a message.

    Raises:
        EOFError: it is cut off, or too large.
    """
    (length,) = struct.unpack(">I", _exactly(stream, 4))
    told = json.loads(_exactly(stream, length))
    sizes: list[int] = told.pop("sizes")
    return told, [_exactly(stream, size) for size in sizes]


def _exactly(stream: IO[bytes], size: int) -> bytes:
    if size > MAX_MESSAGE:
        raise EOFError("the message is too large")
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("the message is cut off")
    return data
