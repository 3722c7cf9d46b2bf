"""One call of a tool: its time limit, its retries, and limits on its result."""

from __future__ import annotations

import inspect
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from formal_llm.errors import Cancelled, InputError, Pending, ToolError
from formal_llm.tools.kinds import Value
from formal_llm.tools.tool import Tool

#: The interval in seconds at which a waiting thread checks whether it has been cancelled.
POLL = 0.02


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits on calls.

    Attributes:
        timeout: seconds for one call; None for no limit.
        retries: how often a failed call is retried.
        retry_wait: seconds before the second try; doubled before each further one.
        max_bytes: the size limit for a value that a tool returns.
        max_hung: the number of hanging calls to abandon; beyond it, tools that hang are no longer called.
    """

    timeout: float | None = None
    retries: int = 0
    retry_wait: float = 0.0
    max_bytes: int = 500_000_000
    max_hung: int = 32


class Caller:
    """Calls tools. Thread-safe.

    A call that takes too long is abandoned: a thread cannot be stopped from outside, so it continues until the tool
    returns, and its result is dropped. A tool that must be stoppable should run in a separate process
    (:func:`formal_llm.tools.isolated`). What an asynchronous tool gives is awaited: by :meth:`acall` on the loop of the
    caller, else on a loop of its own. It is cancelled where it takes too long.
    """

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self._hung: Counter[str] = Counter()
        self._lock = threading.Lock()

    def call(
        self,
        tool: Tool,
        inputs: Sequence[Value],
        cancel: threading.Event | None = None,
        named: Mapping[str, Value] = MappingProxyType({}),
    ) -> tuple[Value, int]:
        """Return the result of a call, and the number of tries it took.

        Args:
            tool: the tool.
            inputs: a value for each input.
            cancel: ends the call when it is set.
            named: values for other parameters.

        Raises:
            ToolError: no try succeeded.
            Cancelled: ``cancel`` was set.
        """
        for number, pause in self._list_tries(tool):
            try:
                work = _lend_copies(tool, inputs, named)
                result = self._call_within(tool.name, work, self._find_timeout(tool), cancel)
                return self._accept_result(tool, result), number
            except ToolError as error:
                if pause is None or error.reason == "kind":
                    raise
            _sleep_for(pause, cancel)
        raise AssertionError  # the last try returns or raises

    async def acall(
        self, tool: Tool, inputs: Sequence[Value], named: Mapping[str, Value] = MappingProxyType({})
    ) -> tuple[Value, int]:
        """Do the same as :meth:`call` without blocking the event loop: asynchronous tools run on it, others in threads.

        Raises:
            ToolError: no try succeeded.
        """
        import asyncio

        if not tool.is_async:
            return await asyncio.to_thread(self.call, tool, inputs, None, named)
        for number, pause in self._list_tries(tool):
            try:
                return self._accept_result(tool, await self._await_call(tool, inputs, named)), number
            except ToolError as error:
                if pause is None or error.reason == "kind":
                    raise
            await asyncio.sleep(pause)
        raise AssertionError  # as above

    def _list_tries(self, tool: Tool) -> Iterator[tuple[int, float | None]]:
        """Yield the number of each try, and the seconds after it before the next one; None after the last."""
        retries = self.limits.retries if tool.retries is None else tool.retries
        pause = self.limits.retry_wait
        for number in range(1, retries + 1):
            yield number, pause
            pause *= 2
        yield retries + 1, None

    def call_many(
        self, tool: Tool, rows: Sequence[Sequence[Value]], cancel: threading.Event | None = None
    ) -> list[Value]:
        """Return the results of many calls of a tool that can process them together.

        Raises:
            ToolError: the call failed; which of the calls is the cause is unknown.
            Cancelled: ``cancel`` was set.
        """
        assert tool.batch is not None
        columns = [[value.copy() for value in column] for column in zip(*rows, strict=True)]
        work = partial(tool.batch, *columns)
        results = self._call_within(tool.name, work, self._find_timeout(tool), cancel)
        if not isinstance(results, Sequence) or isinstance(results, str) or len(results) != len(rows):
            raise ToolError(tool.name, f"did not return a list of {len(rows)} results", reason="kind")
        return [self._accept_result(tool, result) for result in results]

    def _accept_result(self, tool: Tool, result: object) -> Value:
        kind, max_bytes = tool.output, self.limits.max_bytes
        if not kind.has(result):
            problem = f"returned a {type(result).__name__} where a value of kind {kind} was expected"
            raise ToolError(tool.name, problem, reason="kind")
        try:
            size = kind.weigh(result)
            value = Value(kind, kind.accept(result)) if size <= max_bytes else None
        except InputError as error:
            raise ToolError(tool.name, f"returned what it should not: {error}", reason="kind", cause=error) from error
        except Exception as error:  # a value whose own methods fail, or a function of the kind
            problem = f"returned a value that cannot be read: {error_line(error)}"
            raise ToolError(tool.name, problem, reason=_reason_of(error, "kind"), cause=error) from error
        if value is None:
            raise ToolError(tool.name, f"returned {size:,} bytes; at most {max_bytes:,} are allowed", reason="memory")
        return value

    def call_function(self, name: str, function: Callable[[], object]) -> object:
        """Return what a function that is no tool returns, awaited if it must be, within the time limit.

        Raises:
            ToolError: it failed, or took too long; ``name`` names it.
        """
        return self._call_within(name, function, self.limits.timeout, None)

    def _call_within(
        self, name: str, work: Callable[[], object], timeout: float | None, cancel: threading.Event | None
    ) -> object:
        """Do work within its time limit; in a separate thread if it may have to be abandoned."""

        def run_work() -> object:
            result = work()
            return run_awaitable(result, timeout)

        if timeout is None and cancel is None:
            try:
                return run_work()
            except BaseException as error:  # a tool may raise anything, even to end the program, which must go on
                if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                    raise
                raise _error_of(name, error) from error
        if cancel is not None and cancel.is_set():
            raise Cancelled
        with self._lock:
            if self._hung[name] and self._hung.total() >= self.limits.max_hung:
                raise ToolError(name, f"still hangs in {self._hung[name]} earlier calls", reason="timeout")
        call = _start_call(run_work)
        limit = None if timeout is None else time.monotonic() + timeout
        while not wait([call], _remaining_time(limit, cancel)).done:
            cancelled = cancel is not None and cancel.is_set()
            is_late = limit is not None and time.monotonic() >= limit
            if not cancelled and not is_late:
                continue
            with self._lock:
                self._hung[name] += 1
            call.add_done_callback(lambda _: self._on_return(name))
            if cancelled:
                raise Cancelled
            raise _error_of(name, _TooLate(timeout))
        if (raised := call.exception()) is not None:
            raise _error_of(name, raised) from raised
        return call.result()

    def _find_timeout(self, tool: Tool) -> float | None:
        return self.limits.timeout if tool.timeout is None else tool.timeout

    async def _await_call(self, tool: Tool, inputs: Sequence[Value], named: Mapping[str, Value]) -> object:
        """Call an asynchronous tool on the loop that runs."""
        import asyncio

        try:
            result = _lend_copies(tool, inputs, named)()
            assert inspect.isawaitable(result)
            return await _await_within(result, self._find_timeout(tool))
        except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # as above
            raise _error_of(tool.name, error) from error

    def _on_return(self, name: str) -> None:
        with self._lock:
            self._hung[name] -= 1


def _lend_copies(tool: Tool, inputs: Sequence[Value], named: Mapping[str, Value]) -> Callable[[], object]:
    """Return the call of a tool with copies of values, which it may change."""
    copies = {name: value.copy() for name, value in named.items()}
    return partial(tool.apply, [value.copy() for value in inputs], copies)


class _TooLate(Exception):
    """What was awaited took longer than it may."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__()
        self.seconds = seconds or 0.0


async def _await_within(result: Awaitable[object], timeout: float | None) -> object:
    """Return what is awaited; cancel it and raise :class:`_TooLate` after ``timeout`` seconds."""
    import asyncio

    try:
        async with asyncio.timeout(timeout) as scope:
            return await result
    except TimeoutError:
        if scope.expired():
            raise _TooLate(timeout) from None
        raise


def run_awaitable(result: object, timeout: float | None = None) -> object:
    """Return a result, awaited on an event loop of its own if it must be."""
    if not inspect.isawaitable(result):
        return result
    import asyncio

    work = _await_within(result, timeout)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:  # a loop runs in this thread, as in a notebook
        return pool.submit(asyncio.run, work).result()


def _start_call(work: Callable[[], object]) -> Future[object]:
    """Start work in a thread that does not keep the program from ending if it hangs."""
    future: Future[object] = Future()

    def run_call() -> None:
        try:
            result = work()
        except BaseException as error:  # as above
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run_call, name="formal-llm-tool", daemon=True).start()
    return future


def _remaining_time(limit: float | None, cancel: threading.Event | None) -> float | None:
    """Return how long to wait before checking again."""
    remaining = None if limit is None else max(0.0, limit - time.monotonic())
    if cancel is None:
        return remaining
    return POLL if remaining is None else min(POLL, remaining)


def _sleep_for(seconds: float, cancel: threading.Event | None) -> None:
    if cancel is None:
        if seconds:
            time.sleep(seconds)
    elif cancel.wait(seconds):
        raise Cancelled


def _error_of(name: str, error: BaseException) -> ToolError:
    """Return the error of a call. What a tool waits for is no error, and is raised as it is."""
    if isinstance(error, Pending):
        raise error
    if isinstance(error, _TooLate):
        return ToolError(name, f"did not return within {error.seconds:g} seconds", reason="timeout")
    if isinstance(error, ToolError):  # a tool composed of tools
        return ToolError(name, f"failed: {error}", reason=error.reason, cause=error)
    reason = _reason_of(error, "failed")
    problem = {"memory": "ran out of memory", "timeout": "timed out"}.get(reason, "failed")
    return ToolError(name, f"{problem}: {error_line(error)}", reason=reason, cause=error)


def _reason_of(error: BaseException, otherwise: str) -> str:
    return "memory" if isinstance(error, MemoryError) else "timeout" if isinstance(error, TimeoutError) else otherwise


def error_line(error: BaseException) -> str:
    """Return an exception in one line."""
    text = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
