"""Tools in separate processes: a call that hangs is killed, and memory use is confined to its process.

A worker process imports the tool by its module and name. It receives and returns values as the bytes of their kinds,
over a pair of sockets; nothing is pickled. Processes that the tool starts end with its worker; on Linux also those that
leave its session, such as daemons, which elsewhere escape but are not waited for. Each call has a random number that
its answer repeats, so that an answer to another call is not taken for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import struct
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, cast

from formal_llm.tools.kinds import Kind
from formal_llm.tools.tool import Tool, find_tool

#: The maximum number of bytes of a message.
MAX_MESSAGE = 1_000_000_000
#: The environment variables that a worker gets; ``*`` is a wildcard. Families that may hold secrets are listed by name.
ENVIRONMENT = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS",
    "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONHASHSEED", "PYTHONUTF8",
    "PYTHONIOENCODING", "PYTHONCOERCECLOCALE", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX",
    "PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONFAULTHANDLER", "PYTHONMALLOC", "PYTHONDEVMODE",
    "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_*", "SSL_CERT_*", "*_NUM_THREADS", "CUDA_*", "TORCH_HOME",
    "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_*", "HF_HUB_ENABLE_*", "HF_HUB_DOWNLOAD_TIMEOUT",
    "HF_HUB_ETAG_TIMEOUT", "HF_DATASETS_CACHE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_CACHE", "TRANSFORMERS_OFFLINE",
    "TRANSFORMERS_VERBOSITY",
)  # fmt: skip
#: Words in the names of environment variables that hold secrets: :data:`ENVIRONMENT` passes none of these.
SECRETS = ("TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL")
#: The seconds that a worker which closed its connection may take to end before it is killed.
_GRACE = 2.0
#: The seconds that a worker may take to end its processes before its process group is killed.
_PATIENCE = 10.0


def isolated(
    where: str,
    *,
    memory: int | None = None,
    timeout: float | None = None,
    idle: int = 1,
    environment: Sequence[str] = (),
) -> Tool:
    """Return the tool that a module defines, run in a separate process (Linux, macOS).

    If a call takes too long, the process is killed with everything that it started.

    Args:
        where: module and name, as in ``"my_tools:denoise"``; the worker imports it likewise.
        memory: the maximum number of bytes that the process may use, together with all processes that it starts where
            the system allows it (cgroups, version 2); otherwise a warning is given, and each process alone may use this
            much. None for no limit.
        timeout: seconds for one call before the process is killed. Default: the tool's own setting.
        idle: the maximum number of idle processes to keep; a process is started if none is idle.
        environment: the environment variables that the process gets besides :data:`ENVIRONMENT` (paths, language,
            threads): others, such as keys, are not passed on unless named. ``"MY_*"`` matches all with this prefix,
            including keys.

    Raises:
        ToolkitError: there is no such tool.
    """
    tool = find_tool(where)
    if memory is not None and find_memory_group() is None:
        warnings.warn(
            f"{where}: the memory limit holds for each of its processes alone: there is no cgroup (version 2) here in "
            "which groups with a memory limit can be made",
            stacklevel=2,
        )
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

    def __call__(self, *values: object, **named: object) -> object:
        payloads = dump_arguments(self._tool, values, named)
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is not None and not worker.is_ready():
            worker.close()
            worker = None
        if worker is None:
            worker = self._start_worker()
        try:
            answer, results = worker.call_worker(payloads, self._timeout, list(named))
        except BaseException:
            worker.close()
            raise
        with self._lock:
            waits = worker.is_ready() and len(self._idle) < self._keep and answer.get("error") != "MemoryError"
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
        passed = select_environment(os.environ, environment)
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
        stream = self._line.makefile("rwb")
        self._stream, self._peek = cast("IO[bytes]", stream), stream.peek
        self._late = False
        # Processes that the tool forked may keep the connection open; detect the end of the worker itself anyway.
        self._watch = threading.Thread(target=self._watch_process, name="formal-llm-worker", daemon=True)
        self._watch.start()

    def is_ready(self) -> bool:
        """Return whether the process runs and may be called: nothing that answers an earlier call is left unread."""
        if self._late or self._process.poll() is not None:
            return False
        self._line.setblocking(False)
        try:
            return not self._peek(1)
        except OSError:
            return False
        finally:
            self._line.setblocking(True)

    def call_worker(
        self, payloads: Sequence[bytes], timeout: float | None, named: Sequence[str] = ()
    ) -> tuple[dict[str, str], list[bytes]]:
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
            call = secrets.token_hex(16)
            write_message(self._stream, {"call": call, "named": json.dumps(named)}, payloads)
            answer, results = read_message(self._stream)
            if answer.get("call") != call:
                raise ValueError("an answer to another call")
            return answer, results
        except ValueError as error:
            raise RuntimeError(
                f"its process sent {error}, as it does when a tool forks and returns twice, and was killed"
            ) from error
        except (OSError, EOFError) as error:
            if self._late:
                raise TimeoutError(f"killed after {timeout:g} seconds") from None
            raise self._death_error(error) from error
        finally:
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """End the process and everything that it started."""
        self._end_processes()
        self._watch.join()
        with contextlib.suppress(OSError):  # unwritten data has no reader
            self._stream.close()
        self._line.close()

    def _too_late(self) -> None:
        self._late = True
        self._end_processes()
        self._hang_up()

    def _watch_process(self) -> None:
        self._process.wait()
        self._kill_group()  # processes that it started and left behind
        self._hang_up()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def _end_processes(self) -> None:
        self._process.terminate()  # lets it find and kill those that left its group; see the module worker
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._kill_group()

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


def select_environment(variables: Mapping[str, str], named: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables that a worker gets: those of :data:`ENVIRONMENT` that hold no secret, and those named."""

    def is_passed(name: str) -> bool:
        is_secret = any(word in name.upper() for word in SECRETS)
        patterns = named if is_secret else (*ENVIRONMENT, *named)
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    return {name: value for name, value in variables.items() if is_passed(name)}


def find_memory_group(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> Path | None:
    """Return the cgroup (version 2) in which this process can make groups with a memory limit; None if there is none.

    It is the group of this process or the one above: only the root may both hold processes and limit its groups.

    Args:
        root: where the cgroups are mounted.
        membership: the file that lists the groups of this process.
    """
    with contextlib.suppress(OSError):
        paths = [line[3:] for line in membership.read_text().split("\n") if line.startswith("0::")]
        for path in paths:
            own = root / path.lstrip("/")
            for group in (own, own.parent):
                control = group / "cgroup.subtree_control"
                if (
                    control.is_file()
                    and "memory" in control.read_text().split()
                    and os.access(group, os.W_OK)
                    and os.access(group / "cgroup.procs", os.W_OK)
                ):
                    return group
    return None


def dump_arguments(tool: Tool, values: Sequence[object], named: Mapping[str, object]) -> list[bytes]:
    """Return the arguments with which the function of a tool is called as bytes, those with names last."""
    kinds = find_kinds(tool, len(values), list(named))
    return [kind.dump(value) for kind, value in zip(kinds, (*values, *named.values()), strict=True)]


def find_kinds(tool: Tool, positional: int, named: Sequence[str]) -> list[Kind]:
    """Return the kinds of arguments: of the first positional ones, and of those with these names."""
    in_place = [one for one in tool.signature.parameters if one.by_position]
    return [one.written for one in (*in_place[:positional], *(tool.signature.by_name[name] for name in named))]


def write_message(stream: IO[bytes], fields: Mapping[str, str], payloads: Sequence[bytes]) -> None:
    """Write a message: some text fields, and the bytes of values; the field ``call`` is repeated at the end."""
    head = json.dumps({**fields, "sizes": [len(payload) for payload in payloads]}).encode()
    stream.write(struct.pack(">I", len(head)) + head)
    for payload in payloads:
        stream.write(payload)
    stream.write(fields.get("call", "").encode())
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, str], list[bytes]]:
    """Read a message.

    Raises:
        EOFError: the message is truncated or too large.
        ValueError: it is damaged, as it is where two processes write at the same time.
    """
    (length,) = struct.unpack(">I", _read_exactly(stream, 4))
    head = _read_exactly(stream, length)
    try:
        fields = json.loads(head)
    except ValueError as error:
        raise ValueError("a damaged message") from error
    if not isinstance(fields, dict) or "sizes" not in fields:
        raise ValueError("a damaged message")
    sizes: list[int] = fields.pop("sizes")
    payloads = [_read_exactly(stream, size) for size in sizes]
    call = fields.get("call", "").encode()
    if _read_exactly(stream, len(call)) != call:
        raise ValueError("a damaged message")
    return fields, payloads


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    if size > MAX_MESSAGE:
        raise EOFError("the message is too large")
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("the message is cut off")
    return data
