"""Workers: processes that answer one question at a time, and are ended where an answer is not wanted any more.

Python cannot be interrupted in the middle of a search from outside, but a process can be ended at any time. What it had
remembered is lost; on systems that can fork, the next one is there within milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess

from formal_llm.studio.parts import Part
from formal_llm.studio.questions import answer

#: How many workers answer at a time: each page has a few. Further questions wait until one is done. If there are more
#: workers than this, those that have nothing to do are ended, the one that was asked longest ago first.
_MOST = 12
#: What a worker may take of memory, in bytes, where the system keeps such bounds.
_MEMORY = 8 << 30


def serve(connection: Connection) -> None:
    """Answer questions until no more come: the work of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    with contextlib.suppress(AttributeError, OSError):
        os.setsid()  # so that what it starts (Graphviz) is ended with it
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    with contextlib.suppress(EOFError, OSError):
        while True:
            asked = json.loads(connection.recv_bytes())
            begun = time.process_time()
            try:
                for part in answer(asked):
                    connection.send_bytes(_encode_part(part))
            except MemoryError:
                connection.send_bytes(_encode_part({"part": "given up", "reason": "it needs too much memory"}))
                return
            except OSError:
                raise
            except Exception as error:
                # An error of ours: it is shown, and the page continues.
                connection.send_bytes(
                    _encode_part({"part": "bad question", "reason": f"{type(error).__name__}: {error}"})
                )
            connection.send_bytes(_encode_part({"part": "end", "seconds": round(time.process_time() - begun, 3)}))
            connection.send_bytes(b"")


def _encode_part(part: Part) -> bytes:
    return json.dumps(part, ensure_ascii=True).encode() + b"\n"


class Worker:
    """One worker process, started when it is first asked. A new question takes the place of one that it works on."""

    def __init__(self, threads: ThreadPoolExecutor, slots: asyncio.Semaphore) -> None:
        self._threads = threads
        self._slots = slots
        self._asked = 0
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._busy = False
        self._newest = 0
        self._closed = False

    @property
    def is_idle(self) -> bool:
        """Whether it neither answers a question nor has one that waits."""
        return not self._asked

    async def ask(self, asked: Mapping[str, object], seconds: float) -> AsyncIterator[bytes]:
        """The parts of an answer, one JSON line each. Not waiting for the rest of them ends the work on them.

        Args:
            asked: the question.
            seconds: how long the answer may take before it is given up, from when its turn has come.
        """
        self._newest += 1
        mine = self._newest
        if self._busy:
            self.stop()
        self._asked += 1
        try:
            async with contextlib.aclosing(self._answer_question(asked, seconds, mine)) as parts:
                async for part in parts:
                    yield part
        finally:
            self._asked -= 1

    async def _answer_question(self, asked: Mapping[str, object], seconds: float, mine: int) -> AsyncGenerator[bytes]:
        async with self._lock, self._slots:
            if self._closed or mine != self._newest:
                reason = "the studio is closed" if self._closed else "something else was asked"
                yield _encode_part({"part": "given up", "reason": reason})
                return
            self._busy, finished = True, False
            loop = asyncio.get_running_loop()
            until = loop.time() + seconds
            try:
                connection = self._connection
                if connection is None:
                    connection = await loop.run_in_executor(self._threads, self._start_process)
                connection.send_bytes(json.dumps(asked).encode())
                while True:
                    coming = loop.run_in_executor(self._threads, connection.recv_bytes)
                    part = await asyncio.wait_for(coming, until - loop.time())
                    if not part:
                        finished = True
                        return
                    yield part
            except (EOFError, OSError) as error:
                if isinstance(error, TimeoutError):
                    reason = f"it took longer than {seconds:g} seconds"
                else:
                    reason = "something else was asked" if mine != self._newest else "the worker has ended"
                yield _encode_part({"part": "given up", "reason": reason})
            finally:
                self._busy = False
                if not finished:
                    self.stop()

    def _start_process(self) -> Connection:
        context = _choose_context()
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self._process, self._connection = process, ours
        return ours

    def close(self) -> None:
        """End the process for good: whatever else is asked is given up."""
        self._closed = True
        self.stop()

    def stop(self) -> None:
        """End the process, and what it has started."""
        process, self._process, self._connection = self._process, None, None
        if process is None or process.pid is None:
            return
        with contextlib.suppress(AttributeError, OSError):
            if os.getpgid(process.pid) == process.pid:
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join(5)


class Workers:
    """The workers of all pages, by the name of what they are asked for."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(2 * _MOST, "studio")
        self._slots = asyncio.Semaphore(_MOST)
        self._workers: OrderedDict[str, Worker] = OrderedDict()
        self._closed = False

    def worker(self, name: str) -> Worker:
        """The worker of that name; a new one where there is none."""
        worker = self._workers.get(name)
        if worker is None:
            worker = self._workers[name] = Worker(self._threads, self._slots)
            if self._closed:
                worker.close()
            idle = [known for known, one in self._workers.items() if one.is_idle and known != name]
            for known in idle[: max(len(self._workers) - _MOST, 0)]:
                self._workers.pop(known).stop()
        self._workers.move_to_end(name)
        return worker

    def close(self) -> None:
        """End all of them for good; answers that are under way end with it."""
        self._closed = True
        for worker in self._workers.values():
            worker.close()


def _choose_context() -> ForkServerContext | SpawnContext:
    """How workers are started: from a process that has imported all they need, where there is such a thing."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", __name__])
    return context
