"""One call of a tool: its time limit, its retries, and limits on its result."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass

from formal_llm.errors import Cancelled, InputError, ToolError
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
    (:func:`formal_llm.tools.isolated`).

    Args:
        limits: the limits on calls.
    """

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self._hung: Counter[str] = Counter()
        self._lock = threading.Lock()

    def call(self, tool: Tool, inputs: Sequence[Value], cancel: threading.Event | None = None) -> tuple[Value, int]:
        """Return the result of a call, and the number of tries it took.

        Raises:
            ToolError: no try succeeded.
            Cancelled: ``cancel`` was set.
        """
        retries = self.limits.retries if tool.retries is None else tool.retries
        pause = self.limits.retry_wait
        for number in range(1, retries + 2):
            try:
                copies = [value.copy() for value in inputs]
                return self._accept_result(tool, self._call_within(tool, tool.function, copies, cancel)), number
            except ToolError as error:
                if number > retries or error.reason == "kind":
                    raise
            _sleep_for(pause, cancel)
            pause *= 2
        raise AssertionError  # the last try returns or raises

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
        results = self._call_within(tool, tool.batch, columns, cancel)
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

    def _call_within(
        self, tool: Tool, function: Callable[..., object], arguments: Sequence[object], cancel: threading.Event | None
    ) -> object:
        """Run a function within its time limit; in a separate thread if it may have to be abandoned."""
        timeout = self.limits.timeout if tool.timeout is None else tool.timeout
        if timeout is None and cancel is None:
            try:
                return function(*arguments)
            except BaseException as error:  # a tool may raise anything, even to end the program, which must go on
                if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                    raise
                raise _error_of(tool, error) from error
        if cancel is not None and cancel.is_set():
            raise Cancelled
        with self._lock:
            if self._hung[tool.name] and self._hung.total() >= self.limits.max_hung:
                raise ToolError(tool.name, f"still hangs in {self._hung[tool.name]} earlier calls", reason="timeout")
        call = _start_call(function, arguments)
        limit = None if timeout is None else time.monotonic() + timeout
        while not wait([call], _remaining_time(limit, cancel)).done:
            cancelled = cancel is not None and cancel.is_set()
            is_late = limit is not None and time.monotonic() >= limit
            if not cancelled and not is_late:
                continue
            with self._lock:
                self._hung[tool.name] += 1
            call.add_done_callback(lambda _: self._on_return(tool.name))
            if cancelled:
                raise Cancelled
            raise ToolError(tool.name, f"did not return within {timeout:g} seconds", reason="timeout")
        if (raised := call.exception()) is not None:
            raise _error_of(tool, raised) from raised
        return call.result()

    def _on_return(self, name: str) -> None:
        with self._lock:
            self._hung[name] -= 1


def _start_call(function: Callable[..., object], arguments: Sequence[object]) -> Future[object]:
    """Start a function in a thread that does not keep the program from ending if it hangs."""
    future: Future[object] = Future()

    def run_call() -> None:
        try:
            result = function(*arguments)
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


def _error_of(tool: Tool, error: BaseException) -> ToolError:
    if isinstance(error, ToolError):  # a tool composed of tools
        return ToolError(tool.name, f"failed: {error}", reason=error.reason, cause=error)
    reason = _reason_of(error, "failed")
    problem = {"memory": "ran out of memory", "timeout": "timed out"}.get(reason, "failed")
    return ToolError(tool.name, f"{problem}: {error_line(error)}", reason=reason, cause=error)


def _reason_of(error: BaseException, otherwise: str) -> str:
    return "memory" if isinstance(error, MemoryError) else "timeout" if isinstance(error, TimeoutError) else otherwise


def error_line(error: BaseException) -> str:
    """Return an exception in one line."""
    text = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
