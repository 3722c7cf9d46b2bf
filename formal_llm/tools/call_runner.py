"""The work of a thread on calls: look up their results, compute them, or wait for threads that compute them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from formal_llm.errors import Cancelled, ExecutionError, ToolError
from formal_llm.tools.calling import POLL, Caller, error_line
from formal_llm.tools.graph import CallNode
from formal_llm.tools.kinds import Value
from formal_llm.tools.result import StepState
from formal_llm.tools.store import Store, step_key
from formal_llm.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of a call.

    Attributes:
        node: the call.
        given: its result, or the error.
        state, seconds, tries: see :class:`~formal_llm.tools.result.StepResult`.
    """

    node: CallNode
    given: Value | ExecutionError
    state: StepState
    seconds: float = 0.0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with its requirements; the key of its result is None if it is not shared."""

    node: CallNode
    tool: Tool
    inputs: tuple[Value, ...]
    key: str | None


class CallRunner:
    """Obtains the results of calls of one tool. For one thread.

    Args:
        store: the known results; receives the new ones.
        caller: calls tools.
        cancel: ends all waiting when it is set.
    """

    def __init__(self, store: Store, caller: Caller, cancel: threading.Event | None = None) -> None:
        self._store = store
        self._caller = caller
        self._cancel = cancel
        self._claimed: set[str] = set()  # results that other threads wait for this one to compute

    def run_nodes(self, nodes: Sequence[CallNode]) -> list[CallOutcome]:
        """Return the outcomes of the calls, in any order."""
        try:
            return self._run_calls([_call_of(node) for node in nodes])
        except BaseException as error:  # no thread may wait forever for what this one will not compute
            for key in self._claimed:
                self._store.settle_result(key, error)
            raise

    def _run_calls(self, calls: Sequence[_Call]) -> list[CallOutcome]:
        outcomes: list[CallOutcome] = []
        claimed: list[_Call] = []
        waiting: list[tuple[_Call, str, Future[Value]]] = []
        for call in calls:
            if call.key is None:
                claimed.append(call)
            elif (flight := self._claim_call(call.key)) is not None:
                waiting.append((call, call.key, flight))
            elif (outcome := self._look_up(call, call.key)) is not None:
                outcomes.append(outcome)
            else:
                claimed.append(call)
        outcomes += self._call_together(claimed) if len(claimed) > 1 else map(self._call_alone, claimed)
        outcomes += [self._await_result(*one) for one in waiting]
        return outcomes

    def _claim_call(self, key: str) -> Future[Value] | None:
        flight = self._store.claim_result(key)
        if flight is None:
            self._claimed.add(key)
        return flight

    def _look_up(self, call: _Call, key: str) -> CallOutcome | None:
        """Return the result of a call that this thread has claimed, if it is known."""
        value = self._store.find_result(key, call.tool.output)
        return None if value is None else self._settle_call(call, CallOutcome(call.node, value, "cached"))

    def _call_together(self, calls: Sequence[_Call]) -> list[CallOutcome]:
        """Call a tool that can process several calls together; one by one if that fails."""
        begin = time.perf_counter()
        try:
            values = self._caller.call_many(calls[0].tool, [call.inputs for call in calls], self._cancel)
        except (ToolError, Cancelled):  # one of them is the cause; separately each fails or succeeds on its own
            return [self._call_alone(call) for call in calls]
        share = (time.perf_counter() - begin) / len(calls)
        return [self._keep_result(call, value, share, 1) for call, value in zip(calls, values, strict=True)]

    def _call_alone(self, call: _Call) -> CallOutcome:
        begin = time.perf_counter()
        try:
            value, tries = self._caller.call(call.tool, call.inputs, self._cancel)
        except (ToolError, Cancelled) as error:
            return self._settle_call(call, CallOutcome(call.node, error, "failed", time.perf_counter() - begin))
        return self._keep_result(call, value, time.perf_counter() - begin, tries)

    def _keep_result(self, call: _Call, value: Value, seconds: float, tries: int) -> CallOutcome:
        self._store.count_calls(executed=1)
        outcome = CallOutcome(call.node, value, "executed", seconds, tries)
        if call.key is None:
            return outcome
        try:
            self._store.keep_result(call.key, value)
        except Exception as error:  # whatever the kind's own functions raise that measure and write its values
            problem = f"returned a value that cannot be kept: {error_line(error)}"
            failure = ToolError(call.tool.name, problem, reason="kind", cause=error)
            outcome = CallOutcome(call.node, failure, "failed", seconds, tries)
        return self._settle_call(call, outcome)

    def _settle_call(self, call: _Call, outcome: CallOutcome) -> CallOutcome:
        if call.key is not None:
            self._claimed.discard(call.key)
            self._store.settle_result(call.key, outcome.given)
        return outcome

    def _await_result(self, call: _Call, key: str, flight: Future[Value]) -> CallOutcome:
        """Return the result that another thread is computing."""
        while True:
            try:
                value = flight.result(None if self._cancel is None else POLL)
            except TimeoutError:
                if self._cancel is not None and self._cancel.is_set() and not flight.done():
                    return CallOutcome(call.node, Cancelled(), "failed")
            except Cancelled:  # cancelled elsewhere: this thread computes the result now, unless a third has started
                again = self._claim_call(key)
                if again is None:
                    return self._look_up(call, key) or self._call_alone(call)
                flight = again
            except ToolError as error:
                return CallOutcome(call.node, error, "failed")
            else:
                self._store.count_calls(shared=1)
                return CallOutcome(call.node, value, "cached")


def _call_of(node: CallNode) -> _Call:
    assert node.tool is not None
    inputs = tuple(argument.value for argument in node.arguments if argument.value is not None)
    return _Call(node, node.tool, inputs, step_key(node.tool, inputs) if node.tool.deterministic else None)
