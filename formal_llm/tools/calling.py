"""One call of a tool: its time limit, its retries, and limits on its result."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from formal_llm.errors import InputError, Pending, ToolError
from formal_llm.tools.kinds import Value
from formal_llm.tools.tool import Tool

T = TypeVar("T")
_NONE: Mapping[str, Value] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits on calls.

    Attributes:
        timeout: seconds for one call; None for no limit.
        retries: how often a failed call of a tool that is ``pure`` or ``idempotent`` is retried; any other tool is
            called once, as what it did before it failed is not known.
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

    An asynchronous tool is awaited, on the loop of the caller where there is one, and cancelled where it takes too
    long. Any other tool is abandoned then: a thread cannot be stopped from outside, so it continues until the tool
    returns, and its result is dropped. A tool that must be stoppable runs in a process of its own
    (:func:`formal_llm.tools.isolated.isolated`).
    """

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self._hung: Counter[str] = Counter()
        self._lock = threading.Lock()

    def call(self, tool: Tool, inputs: Sequence[Value], named: Mapping[str, Value] = _NONE) -> tuple[Value, int]:
        """Return the result of a call, and the number of tries it took; in this thread, if it has no time limit.

        Args:
            tool: the tool.
            inputs: a value for each input.
            named: values for other parameters.

        Raises:
            ToolError: no try succeeded.
        """
        if self._find_timeout(tool) is not None:
            return run_blocking(self.acall(tool, inputs, named))
        for number, pause in self._list_tries(tool):
            try:
                work = partial(run_awaitable, _lend_copies(tool, inputs, named))
                return self._accept_result(tool, _call_here(tool.name, work)), number
            except ToolError as error:
                if pause is None or error.reason == "kind":
                    raise
            threading.Event().wait(pause)
        raise AssertionError  # the last try returns or raises

    async def acall(self, tool: Tool, inputs: Sequence[Value], named: Mapping[str, Value] = _NONE) -> tuple[Value, int]:
        """Do the same as :meth:`call` without blocking the event loop: asynchronous tools run on it, others in threads.

        Raises:
            ToolError: no try succeeded.
        """
        for number, pause in self._list_tries(tool):
            try:
                work = _lend_copies(tool, inputs, named)
                made = await self._within(tool.name, work, self._find_timeout(tool), awaits=tool.is_async)
                return self._accept_result(tool, made), number
            except ToolError as error:
                if pause is None or error.reason == "kind":
                    raise
            await asyncio.sleep(pause)
        raise AssertionError  # as above

    async def acall_many(self, tool: Tool, rows: Sequence[Sequence[Value]]) -> list[Value]:
        """Return the results of many calls of a tool that can process them together.

        Raises:
            ToolError: the call failed; which of the calls is the cause is unknown.
        """
        assert tool.batch is not None
        columns = [[value.copy() for value in column] for column in zip(*rows, strict=True)]
        results = await self._within(tool.name, partial(tool.batch, *columns), self._find_timeout(tool))
        if not isinstance(results, Sequence) or isinstance(results, str) or len(results) != len(rows):
            raise ToolError(tool.name, f"did not return a list of {len(rows)} results", reason="kind")
        return [self._accept_result(tool, result) for result in results]

    def call_function(self, name: str, function: Callable[[], object]) -> object:
        """Return what a function that is no tool returns, awaited if it must be, within the time limit.

        Raises:
            ToolError: it failed, or took too long; ``name`` names it.
        """
        if self.limits.timeout is not None:
            return run_blocking(self._within(name, function, self.limits.timeout))
        return _call_here(name, partial(run_awaitable, function))

    def _list_tries(self, tool: Tool) -> Iterator[tuple[int, float | None]]:
        """Yield the number of each try, and the seconds after it before the next one; None after the last."""
        retries = self.limits.retries if tool.retries is None else tool.retries
        for number in range(1, (retries if tool.may_repeat else 0) + 1):
            yield number, self.limits.retry_wait * 2 ** (number - 1)
        yield (retries if tool.may_repeat else 0) + 1, None

    def _find_timeout(self, tool: Tool) -> float | None:
        return self.limits.timeout if tool.timeout is None else tool.timeout

    async def _within(
        self, name: str, work: Callable[[], object], timeout: float | None, *, awaits: bool = False
    ) -> object:
        """Do work within its time limit: on this loop if it ``awaits``, else in a thread that can be abandoned."""
        if awaits:
            return await _await_within(name, work(), timeout)  # type: ignore[arg-type]  # a coroutine function's
        with self._lock:
            if self._hung[name] and self._hung.total() >= self.limits.max_hung:
                raise ToolError(name, f"still hangs in {self._hung[name]} earlier calls", reason="timeout")
        call = _start_call(partial(run_awaitable, work))
        try:
            return await _await_within(name, asyncio.wrap_future(call), timeout)
        finally:
            if not call.done():
                with self._lock:
                    self._hung[name] += 1
                call.add_done_callback(lambda _: self._on_return(name))

    def _on_return(self, name: str) -> None:
        with self._lock:
            self._hung[name] -= 1

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


def _call_here(name: str, work: Callable[[], object]) -> object:
    """Do work in this thread."""
    try:
        return work()
    except BaseException as error:  # a tool may raise anything, even to end the program, which must go on
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise
        raise _error_of(name, error) from error


def _lend_copies(tool: Tool, inputs: Sequence[Value], named: Mapping[str, Value]) -> Callable[[], object]:
    """Return the call of a tool with copies of values, which it may change."""
    copies = {name: value.copy() for name, value in named.items()}
    return partial(tool.apply, [value.copy() for value in inputs], copies)


async def _await_within(name: str, result: Awaitable[object], timeout: float | None) -> object:
    """Return what is awaited; cancel it after ``timeout`` seconds."""
    try:
        async with asyncio.timeout(timeout) as scope:
            return await result
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # a tool may raise anything, as above
        if isinstance(error, TimeoutError) and scope.expired():
            raise ToolError(name, f"did not return within {timeout:g} seconds", reason="timeout") from None
        raise _error_of(name, error) from error


def run_awaitable(work: Callable[[], object]) -> object:
    """Return what work gives, awaited on an event loop of its own if it must be."""
    result = work()
    if not inspect.isawaitable(result):
        return result

    async def await_result() -> object:
        return await result

    return run_blocking(await_result())


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in another thread where a loop runs in this one, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _start_call(work: Callable[[], object]) -> Future[object]:
    """Start work in a thread that does not keep the program from ending if it hangs."""
    future: Future[object] = Future()
    context = copy_context()

    def run_call() -> None:
        try:
            result = context.run(work)
        except BaseException as error:  # as above
            future.set_exception(_Raised(error))
        else:
            future.set_result(result)

    # Running, so that who gives up waiting cannot cancel it: the thread goes on.
    future.set_running_or_notify_cancel()
    threading.Thread(target=run_call, name="formal-llm-tool", daemon=True).start()
    return future


class _Raised(Exception):
    """Carries what a tool raised through a future, which would take some errors for its own."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def _error_of(name: str, error: BaseException) -> ToolError:
    """Return the error of a call. What a tool waits for is no error, and is raised as it is."""
    if isinstance(error, _Raised):
        error = error.error
    if isinstance(error, Pending):
        raise error
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
