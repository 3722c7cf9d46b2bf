"""``formal-llm guard --hook RULES``: one event of a coding agent, from standard input to standard output.

The answer comes from a process for all hooks of a user (:func:`formal_llm.guard.hooks.hook.serve_hooks`). Where
there is none yet, this process answers itself and becomes it. So this module imports almost nothing.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
import zlib
from pathlib import Path

TYPE_CHECKING = False  # typing's own takes as long to import as Python to start
if TYPE_CHECKING:
    from collections.abc import Sequence

#: The exit code that denies, the maximum number of bytes of input, and how long to wait for an answer, in seconds.
_DENIED, _MOST_INPUT, _LONGEST = 2, 32_000_000, 50.0
#: The maximum length of the path of a socket.
_MOST_PATH = 100
Answer = tuple[int, bytes, bytes]


def run_hook(arguments: Sequence[str]) -> int:
    """Answer one event; return the exit code."""
    try:
        return _answer_event(arguments)
    except Exception as error:  # whatever goes wrong in a guard must not let a call through
        sys.stderr.write(f"formal-llm guard: {type(error).__name__}: {error}\n")
        return _DENIED


def _answer_event(arguments: Sequence[str]) -> int:
    data = sys.stdin.buffer.read(_MOST_INPUT + 1)
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    head = [str(Path.cwd()), str(base / "formal-llm" / "guard"), *arguments]
    place = None if "--alone" in arguments else _find_place(Path(os.environ.get("XDG_RUNTIME_DIR") or base))
    answer = _ask_process(place, head, data) if place else None
    if answer is not None:
        return _write_answer(answer)
    from formal_llm.guard.hooks.hook import HookMemory, answer_hook, serve_hooks

    memory = HookMemory()
    code = _write_answer(answer_hook(head[2:], (head[0], head[1]), data, memory).encode_lines())
    if place and not _fork_process():
        try:
            _detach_process(place.parent)
            serve_hooks(place, memory)
        finally:
            os._exit(0)
    return code


def _fork_process() -> int:
    """Fork this process; return 0 in the new one, and another number where there is none, too."""
    try:
        return os.fork()
    except OSError:
        return -1


def _write_answer(answer: Answer) -> int:
    code, out, err = answer
    sys.stderr.buffer.write(err)
    sys.stdout.buffer.write(out)
    sys.stderr.flush()
    sys.stdout.flush()
    return code


def _find_place(base: Path) -> Path | None:
    """Return the path of the socket for this user and this library; None where there can be none."""
    folder = base / "formal-llm" / "hooks"
    place = folder / f"{zlib.crc32(os.fsencode(f'{__file__} {sys.executable}')):08x}.sock"
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(place)) > _MOST_PATH:
        return None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    # Nobody else may put a socket there and answer in its place.
    safe = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return place if safe else None


def _ask_process(place: Path, head: Sequence[str], data: bytes) -> Answer | None:
    """Return the answer of the process at a socket; None where there is none, or it is of an older version."""
    text = b"\0".join(map(os.fsencode, head))
    answer, problem = b"", "it ended"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_LONGEST)
        try:
            connection.connect(str(place))
        except OSError:
            return None
        try:
            connection.sendall(b"%d\n" % len(text) + text + data)
            connection.shutdown(socket.SHUT_WR)
        except OSError as error:
            problem = str(error)  # an answer may have come before
        try:
            while part := connection.recv(1 << 20):
                answer += part
        except OSError as error:
            problem = str(error)
    if answer == b"stale\n":
        return None
    first, _, rest = answer.partition(b"\n")
    numbers = [int(number) for number in first.split()]
    if len(numbers) == 3 and len(rest) == numbers[1] + numbers[2]:
        return numbers[0], rest[: numbers[1]], rest[numbers[1] :]
    message = f"formal-llm guard: the process that judges hooks did not answer ({problem}); try again\n"
    return _DENIED, b"", message.encode()


def _detach_process(folder: Path) -> None:
    """Leave the session, the folder and the files of the process that started this one, which waits for none of it."""
    os.setsid()
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.closerange(3, 1024)
