"""What a thread does for calls: look their results up, make them, or wait for those who are making them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from formal_llm.errors import Cancelled, ExecutionError, ToolError
from formal_llm.tools.calling import POLL, Caller, said
from formal_llm.tools.graph import CallNode
from formal_llm.tools.kinds import Value
from formal_llm.tools.result import StepState
from formal_llm.tools.store import Store, step_key
from formal_llm.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What became of a call.

    Attributes:
        node: the call.
        given: its result, or why there is none.
        state, seconds, tries: as in :class:`~formal_llm.tools.result.StepResult`.
    """

    node: CallNode
    given: Value | ExecutionError
    state: StepState
    seconds: float = 0.0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with what it needs; the key of its result is None where that is not shared."""

    node: CallNode
    tool: Tool
    inputs: tuple[Value, ...]
    key: str | None


class CallRunner:
    """Brings the results of calls of one tool. For one thread.

    Args:
        store: what is known, and where results are kept.
        caller: calls tools.
        cancel: when set, nothing is waited for any more.
    """

    def __init__(self, store: Store, caller: Caller, cancel: threading.Event | None = None) -> None:
        self._store = store
        self._caller = caller
        self._cancel = cancel
        self._claimed: set[str] = set()  # what others wait for this thread to make

    def run(self, nodes: Sequence[CallNode]) -> list[CallOutcome]:
        """What becomes of the calls, in any order."""
        try:
            return self._run([_call(node) for node in nodes])
        except BaseException as error:  # nobody shall wait for ever for what this thread will not make
            for key in self._claimed:
                self._store.settle(key, error)
            raise

    def _run(self, calls: Sequence[_Call]) -> list[CallOutcome]:
        outcomes: list[CallOutcome] = []
        mine: list[_Call] = []
        waiting: list[tuple[_Call, str, Future[Value]]] = []
        for call in calls:
            if call.key is None:
                mine.append(call)
            elif (flight := self._claim(call.key)) is not None:
                waiting.append((call, call.key, flight))
            elif (known := self._look(call, call.key)) is not None:
                outcomes.append(known)
            else:
                mine.append(call)
        outcomes += self._together(mine) if len(mine) > 1 else map(self._alone, mine)
        outcomes += [self._wait(*one) for one in waiting]
        return outcomes

    def _claim(self, key: str) -> Future[Value] | None:
        flight = self._store.claim(key)
        if flight is None:
            self._claimed.add(key)
        return flight

    def _look(self, call: _Call, key: str) -> CallOutcome | None:
        """The result of a call that this thread has claimed, if it is known."""
        found = self._store.find(key, call.tool.output)
        return None if found is None else self._settled(call, CallOutcome(call.node, found, "cached"))

    def _together(self, calls: Sequence[_Call]) -> list[CallOutcome]:
        """Call a tool that can do many together; one by one if that does not work."""
        begin = time.perf_counter()
        try:
            values = self._caller.call_many(calls[0].tool, [call.inputs for call in calls], self._cancel)
        except (ToolError, Cancelled):  # one of them is to blame; by themselves each fails or succeeds on its own
            return [self._alone(call) for call in calls]
        share = (time.perf_counter() - begin) / len(calls)
        return [self._kept(call, value, share, 1) for call, value in zip(calls, values, strict=True)]

    def _alone(self, call: _Call) -> CallOutcome:
        begin = time.perf_counter()
        try:
            value, tries = self._caller.call(call.tool, call.inputs, self._cancel)
        except (ToolError, Cancelled) as error:
            return self._settled(call, CallOutcome(call.node, error, "failed", time.perf_counter() - begin))
        return self._kept(call, value, time.perf_counter() - begin, tries)

    def _kept(self, call: _Call, value: Value, seconds: float, tries: int) -> CallOutcome:
        self._store.count(executed=1)
        outcome = CallOutcome(call.node, value, "executed", seconds, tries)
        if call.key is None:
            return outcome
        try:
            self._store.keep(call.key, value)
        except Exception as error:  # whatever a kind's own functions raise that weigh and write its values
            problem = f"returned a value that cannot be kept: {said(error)}"
            failure = ToolError(call.tool.name, problem, reason="kind", cause=error)
            outcome = CallOutcome(call.node, failure, "failed", seconds, tries)
        return self._settled(call, outcome)

    def _settled(self, call: _Call, outcome: CallOutcome) -> CallOutcome:
        if call.key is not None:
            self._claimed.discard(call.key)
            self._store.settle(call.key, outcome.given)
        return outcome

    def _wait(self, call: _Call, key: str, flight: Future[Value]) -> CallOutcome:
        """The result that another thread is computing."""
        while True:
            try:
                value = flight.result(None if self._cancel is None else POLL)
            except TimeoutError:
                if self._cancel is not None and self._cancel.is_set() and not flight.done():
                    return CallOutcome(call.node, Cancelled(), "failed")
            except Cancelled:  # not ours: it is for us to compute now, unless a third has begun
                again = self._claim(key)
                if again is None:
                    return self._look(call, key) or self._alone(call)
                flight = again
            except ToolError as error:
                return CallOutcome(call.node, error, "failed")
            else:
                self._store.count(shared=1)
                return CallOutcome(call.node, value, "cached")


def _call(node: CallNode) -> _Call:
    assert node.tool is not None
    inputs = tuple(argument.value for argument in node.arguments if argument.value is not None)
    return _Call(node, node.tool, inputs, step_key(node.tool, inputs) if node.tool.deterministic else None)
