"""Tools in separate processes: a call that hangs is killed, and memory use is confined to its process.

A worker process imports the tool by its module and name. It receives and returns values as the bytes of their kinds,
over a pair of sockets; nothing is pickled. The worker leads its own session: processes that the tool starts end with
it, and a process that escapes nevertheless (a daemon) is not waited for.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import IO, cast

from formal_llm.tools.tool import Tool, find_tool

#: The maximum number of bytes of a message.
MAX_MESSAGE = 1_000_000_000
#: The environment variables that a worker gets; ``*`` is a wildcard. Names that usually hold secrets are not included.
ENVIRONMENT = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP", "XDG_*",
    "PYTHON*", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_*", "SSL_CERT_*", "*_NUM_THREADS", "CUDA_*",
    "HF_HOME", "HF_HUB_*", "HF_DATASETS_*", "TRANSFORMERS_*", "TORCH_HOME",
)  # fmt: skip
#: The seconds that a worker which closed its connection may take to end before it is killed.
_GRACE = 2.0


def isolated(
    where: str,
    *,
    memory: int | None = None,
    timeout: float | None = None,
    idle: int = 1,
    environment: Sequence[str] = (),
) -> Tool:
    """Return the tool that a module defines, run in a separate process (Linux, macOS).

    The process leads its own session. If a call takes too long, it is killed with everything that it started.

    Args:
        where: module and name, as in ``"my_tools:denoise"``; the worker imports it likewise.
        memory: the maximum number of bytes that the process may use; None for no limit.
        timeout: seconds for one call before the process is killed. Default: the tool's own setting.
        idle: the maximum number of idle processes to keep; a process is started if none is idle.
        environment: the environment variables that the process gets besides :data:`ENVIRONMENT` (paths, language,
            threads): others, such as keys, are not passed on unless named. ``"MY_*"`` matches all with this prefix.

    Raises:
        ToolkitError: there is no such tool.
    """
    tool = find_tool(where)
    seconds = tool.timeout if timeout is None else timeout
    function = _Isolated(tool, where, memory, seconds, idle, tuple(environment))
    return replace(tool, function=function, batch=None, timeout=None)


class _Isolated:
    """The function of an isolated tool. Thread-safe: each call has a process to itself."""

    def __init__(
        self,
        tool: Tool,
        where: str,
        memory: int | None,
        timeout: float | None,
        idle: int,
        environment: tuple[str, ...] = (),
    ) -> None:
        self._settings = (tool, where, memory, timeout, idle, environment)
        self._tool = tool
        self._timeout = timeout
        self._keep = idle
        self._idle: list[_WorkerProcess] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _close_all, self._idle)  # also when the program ends

    def __reduce__(self) -> tuple[type[_Isolated], tuple[object, ...]]:
        return _Isolated, self._settings

    def __call__(self, *values: object) -> object:
        payloads = [kind.dump(value) for kind, value in zip(self._tool.inputs, values, strict=True)]
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None or not worker.alive:
            worker = self._start_worker()
        try:
            answer, results = worker.call_worker(payloads, self._timeout)
        except BaseException:
            worker.close()
            raise
        with self._lock:
            waits = worker.alive and len(self._idle) < self._keep and answer.get("error") != "MemoryError"
            if waits:
                self._idle.append(worker)
        if not waits:
            worker.close()
        if answer.get("error") == "MemoryError":
            raise MemoryError(answer.get("text", ""))
        if "error" in answer:
            raise RuntimeError(f"{answer['error']}: {answer.get('text', '')}")
        return self._tool.output.load(results[0])

    def close(self) -> None:
        """End the idle processes."""
        with self._lock:
            _close_all(self._idle)

    def _start_worker(self) -> _WorkerProcess:
        _, where, memory, _, _, environment = self._settings
        passed = {
            name: value
            for name, value in os.environ.items()
            if any(fnmatchcase(name, pattern) for pattern in (*ENVIRONMENT, *environment))
        }
        # The worker must find the same modules: pass sys.path in the environment variable that sets it.
        passed["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
        return _WorkerProcess([sys.executable, "-m", "formal_llm.tools.worker", where, str(memory or 0)], passed)


class _WorkerProcess:
    """A worker process and the connection to it.

    The connection is a pair of sockets instead of pipes: our end can be shut down, which wakes any reader or writer of
    it, no matter which process still holds the other end.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._line, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603
                command, stdin=theirs.fileno(), stdout=theirs.fileno(), env=environment, start_new_session=True
            )
        self._stream = cast("IO[bytes]", self._line.makefile("rwb"))
        self._late = False
        # Processes that the tool forked may keep the connection open; detect the end of the worker itself anyway.
        self._watch = threading.Thread(target=self._watch_process, name="formal-llm-worker", daemon=True)
        self._watch.start()

    @property
    def alive(self) -> bool:
        """Whether the process is running and may be called."""
        return not self._late and self._process.poll() is None

    def call_worker(self, payloads: Sequence[bytes], timeout: float | None) -> tuple[dict[str, str], list[bytes]]:
        """Send a call to the worker and return its answer.

        Raises:
            TimeoutError: no answer within ``timeout`` seconds; the process has been killed.
            MemoryError: the system killed the process, as it does when memory runs out.
            RuntimeError: the process has ended in another way, which the error specifies.
        """
        timer = None if timeout is None else threading.Timer(timeout, self._too_late)
        try:
            if timer is not None:
                timer.start()
            write_message(self._stream, {}, payloads)
            return read_message(self._stream)
        except (OSError, EOFError) as error:
            if self._late:
                raise TimeoutError(f"killed after {timeout:g} seconds") from None
            raise self._death_error(error) from error
        finally:
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """End the process and everything that it started."""
        self._kill_group()
        self._watch.join()
        with contextlib.suppress(OSError):  # unwritten data has no reader
            self._stream.close()
        self._line.close()

    def _too_late(self) -> None:
        self._late = True
        self._kill_group()
        self._hang_up()

    def _watch_process(self) -> None:
        self._process.wait()
        self._kill_group()  # processes that it started and left behind
        self._hang_up()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all processes have ended
            os.killpg(self._process.pid, signal.SIGKILL)

    def _death_error(self, error: Exception) -> Exception:
        """Return the error for a connection that the worker closed."""
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return RuntimeError(f"its process answered no more ({error}), and was killed")
        if code >= 0:
            return RuntimeError(f"its process ended by itself, with exit code {code}, and gave no result")
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        if -code == signal.SIGKILL:
            return MemoryError(
                f"its process was killed from outside ({name}), as a system does that is short of memory"
            )
        return RuntimeError(f"its process crashed: {name} ({signal.strsignal(-code) or 'unknown'})")


def _close_all(workers: list[_WorkerProcess]) -> None:
    while workers:
        workers.pop().close()


def write_message(stream: IO[bytes], told: Mapping[str, str], payloads: Sequence[bytes]) -> None:
    """Write a message: some text fields, and the bytes of values."""
    head = json.dumps({**told, "sizes": [len(payload) for payload in payloads]}).encode()
    stream.write(struct.pack(">I", len(head)) + head)
    for payload in payloads:
        stream.write(payload)
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, str], list[bytes]]:
    """Read a message.

    Raises:
        EOFError: the message is truncated or too large.
    """
    (length,) = struct.unpack(">I", _read_exactly(stream, 4))
    fields = json.loads(_read_exactly(stream, length))
    sizes: list[int] = fields.pop("sizes")
    return fields, [_read_exactly(stream, size) for size in sizes]


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    if size > MAX_MESSAGE:
        raise EOFError("the message is too large")
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("the message is cut off")
    return data
