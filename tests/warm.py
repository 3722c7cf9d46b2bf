"""Processes that begin with their modules imported: a server imports them once, and each process is a copy of it.

Most of the time of a short program goes into its imports. A copy (``os.fork``) is a process of its own all the same:
it has its own arguments, folder, environment, streams and exit code, and what it changes nobody else sees.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What the server runs: a line in JSON asks for a copy; the copy's number is told, and then how it ended.
SERVER = """
import gc, importlib, json, os, sys
exec(sys.argv[1])
gc.freeze()
answers = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    asked = json.loads(line)
    process = os.fork()
    if not process:
        break
    print(process, file=answers, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), file=answers, flush=True)
else:
    os._exit(0)
# From here on this is the copy.
answers.close()
for stream, how in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
    opened = os.open(asked["streams"][stream], how)
    os.dup2(opened, stream)
    os.close(opened)
# As a new process has them: text in and out goes through buffers, and what is said through lines.
sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)
sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
os.chdir(asked["cwd"])
os.environ.clear()
os.environ.update(asked["env"])
sys.path[:0] = [path for path in asked["env"].get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
sys.argv = ["-c", *asked["arguments"]]
getattr(importlib.import_module(asked["module"]), asked["function"])()
"""


class Warm:
    """A server that ran the lines of ``first``, in the root of the checkout; it starts with the first process.

    Args:
        first: the lines.
        python: the interpreter of the server and of its copies.
        env: what the server finds in its environment besides.
    """

    def __init__(self, first: str, *, python: str = sys.executable, **env: str) -> None:
        self._command = [python, "-c", SERVER, first]
        self._env = {**os.environ, **env}
        self._lock = threading.Lock()
        self._server: subprocess.Popen[str] | None = None

    def run(
        self, module: str, function: str, arguments: Sequence[str], *, cwd: Path | None, stdin: str,
        env: Mapping[str, str], timeout: float,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Call a function without arguments in a process of its own, as ``subprocess.run`` runs a program."""
        with self._lock, tempfile.TemporaryDirectory() as name:
            streams = [Path(name, stream) for stream in ("in", "out", "said")]
            for stream in streams:
                stream.write_text(stdin if stream.name == "in" else "", encoding="utf-8")
            asked = {
                "module": module, "function": function, "arguments": list(arguments), "cwd": str(cwd or Path.cwd()),
                "env": dict(env), "streams": [str(stream) for stream in streams],
            }  # fmt: skip
            server = self._started()
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(f"{json.dumps(asked)}\n")
            server.stdin.flush()
            process = int(server.stdout.readline())
            late = threading.Event()

            def end() -> None:
                late.set()
                os.kill(process, signal.SIGKILL)

            clock = threading.Timer(timeout, end)
            clock.start()
            code = int(server.stdout.readline())
            clock.cancel()
            if late.is_set():
                raise subprocess.TimeoutExpired([module, *arguments], timeout)
            printed, said = (stream.read_text(encoding="utf-8") for stream in streams[1:])
            return subprocess.CompletedProcess([module, *arguments], code, printed, said)

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None:
            self._server = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=self._env
            )
            atexit.register(self._end)
        return self._server

    def _end(self) -> None:
        if self._server is not None:
            self._server.communicate()  # the end of what is asked is the server's own
