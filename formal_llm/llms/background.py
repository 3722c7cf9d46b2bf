"""The event loop on which whatever waits for a network is asked, in a thread of its own.

So any thread and any event loop may ask, and connections belong to one loop. A forked process has a loop of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from formal_llm.errors import LLMError

T = TypeVar("T")

#: The name of the thread.
_THREAD = "formal_llm models"
_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}
_STARTING = threading.Lock()
os.register_at_fork(before=_STARTING.acquire, after_in_parent=_STARTING.release, after_in_child=_STARTING.release)
#: What is closed at the end of a process (``aclose``).
CLIENTS: weakref.WeakSet[Any] = weakref.WeakSet()


def background_loop() -> asyncio.AbstractEventLoop:
    """Return the background event loop of this process, which is started if it is not running."""
    with _STARTING:
        loop = _LOOPS.get(os.getpid())
        if loop is None:
            loop = _LOOPS[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name=_THREAD, daemon=True).start()
            atexit.register(_end_loop, os.getpid())
        return loop


def refuse_waiting() -> None:
    """Raise ``LLMError`` in the thread of the loop, where nothing may be waited for."""
    if threading.current_thread().name == _THREAD:
        raise LLMError("what runs on the event loop of models would wait for itself: await aask(request) there")


def run_on_loop(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the background loop; to cancel the future cancels it."""
    return asyncio.run_coroutine_threadsafe(work, background_loop())


def close_client(client: Any, process: int) -> None:
    """Close the connections of a client that nobody has any more; those of a parent process are left alone."""
    if process == os.getpid() and (loop := _LOOPS.get(process)) is not None and loop.is_running():
        asyncio.run_coroutine_threadsafe(client.aclose(), loop)


def _end_loop(process: int) -> None:
    """End what is under way and close all connections, at the end of a process."""
    if process != os.getpid():
        return

    async def close_all() -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.gather(*(client.aclose() for client in list(CLIENTS)), return_exceptions=True)

    loop = _LOOPS[process]
    with suppress(TimeoutError):
        asyncio.run_coroutine_threadsafe(close_all(), loop).result(timeout=1)
    loop.call_soon_threadsafe(loop.stop)
