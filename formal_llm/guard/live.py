"""One run of an agent in progress: the state of its guard, shared by everything that calls tools for it.

A guard's state is an immutable value. A run has a current state, and calls that come from several threads or tasks.
``GuardedRun`` protects it by a lock, so that checking and accepting a call is one step; it asks a person for approval
and writes the record if it was given functions for this.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from formal_llm.guard.events import Call, Decision, GuardEvent, Result, Said
from formal_llm.guard.guard import Guard, GuardState

_log = logging.getLogger("formal_llm.guard")

#: A function that asks a person whether a call may be made; in asynchronous runs it may be a coroutine function.
Approve: TypeAlias = Callable[[Call, Decision], bool | Awaitable[bool]]

#: The text added to the reason of a decision if a person rejected the call.
SAID_NO = "A person was asked and said no."
E = TypeVar("E", bound=GuardEvent)


@dataclass(frozen=True)
class Noted:
    """One line of the record of a run.

    Args:
        event: what happened or was requested; None if the agent wanted to stop.
        decision: the decision on a call or a stop; None for results and texts.
        told: whether the state accepted the event. It does not accept a refused call.
        approved: the answer of a person about a call; None if no person was asked.
    """

    event: GuardEvent | None
    decision: Decision | None = None
    told: bool = True
    approved: bool | None = None


#: A function that receives each line of the record, in the order of the state changes, while the run is locked.
Audit: TypeAlias = Callable[[Noted], None]


class GuardedRun:
    """One run under a guard: safe for threads and tasks, shared by everything that makes calls in it.

    Args:
        state: the state from which the run continues, such as ``guard.resume(snapshot)``; by default the start state.
        approve: asks a person about the calls for which the rules require approval. Without it such a call stays open:
            ``begin`` returns "ask", and its caller has to obtain the approval.
        audit: receives each line of the record before the state changes; if it raises, the state does not change.
        final: whether an answer of the agent ends the run. In a conversation the answer hands over to the user, which
            is also allowed if the next event on the shortest way is a text of the user.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        state: GuardState | None = None,
        approve: Approve | None = None,
        audit: Audit | None = None,
        final: bool = True,
    ) -> None:
        self.guard = guard
        self._state = guard.start() if state is None else state
        self._approve = approve
        self._audit = audit
        self._final = final
        self._lock = threading.RLock()
        self._turn: list[tuple[Call, Decision]] = []

    @property
    def state(self) -> GuardState:
        """The current state of the run: an immutable value that can be queried and kept."""
        return self._state

    # -- calls --------------------------------------------------------------------------------------------------

    def begin(self, call: Call, *, approved: bool | None = None) -> Decision:
        """Check a call and, if it may be made, accept it, in one step.

        A call with the id, the tool and the arguments of another call of the same turn is a retry: it gets the same
        decision and is accepted once.

        Args:
            call: the call that is about to be made.
            approved: the answer that a person has already given; None to ask if the rules require it.

        Returns:
            The decision. After "block" the call must not be made, nor after "ask", which is returned only if the run
            has no approval function. A call that a person approved is allowed, and one that was rejected is blocked.

        Raises:
            TypeError: the approval function is a coroutine function; use ``abegin``.
        """
        decision = self._decide_without_person(call, approved)
        if decision.action != "ask" or self._approve is None or approved is not None:
            return decision
        answer = self._approve(call, decision)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise TypeError("the approval is asynchronous and the run is not; give a plain function, or use abegin")
        return self._decide_after_answer(call, answer)

    async def abegin(self, call: Call, *, approved: bool | None = None) -> Decision:
        """Do the same as ``begin`` in asynchronous runs; a synchronous approval function is called in a thread."""
        decision = self._decide_without_person(call, approved)
        if decision.action != "ask" or self._approve is None or approved is not None:
            return decision
        if inspect.iscoroutinefunction(self._approve):
            answer = await self._approve(call, decision)
        else:
            pending = await asyncio.to_thread(self._approve, call, decision)
            answer = await pending if inspect.isawaitable(pending) else pending
        return self._decide_after_answer(call, answer)

    def begin_all(self, calls: Iterable[Call]) -> tuple[Decision, ...]:
        """Begin a new turn with the calls of one answer of the model; each is checked after those before it."""
        self.new_turn()
        return tuple(self.begin(call) for call in calls)

    async def abegin_all(self, calls: Iterable[Call]) -> tuple[Decision, ...]:
        """Do the same as ``begin_all`` in asynchronous runs."""
        self.new_turn()
        return tuple([await self.abegin(call) for call in calls])

    def new_turn(self) -> None:
        """Forget the ids of calls for a new answer of the model; some servers number its calls from 0 each time."""
        with self._lock:
            self._turn.clear()

    def decided(self, calls: Iterable[tuple[Call, Decision]]) -> None:
        """Add earlier decisions of the turn that this run continues; the state already contains these calls."""
        with self._lock:
            self._turn.extend(calls)

    def _decide_without_person(self, call: Call, approved: bool | None) -> Decision:
        """Decide before a person is asked; accept the call if no approval is needed."""
        with self._lock:
            call = self._state.timed(call)
            known = next((decision for past, decision in self._turn if call.id and is_same_call(past, call)), None)
            if known is not None:
                return known
            if approved is not None:
                return self._decide_after_answer(call, approved)
            decision = self._state.check(call)
            if decision.action != "ask":
                return self._settle_call(call, decision, None)
            if self._approve is None:
                self._write_record(Noted(call, decision, told=False))
            return decision

    def _decide_after_answer(self, call: Call, approved: bool) -> Decision:
        """Decide after a person has answered; the run may have advanced meanwhile, so the call is checked again."""
        with self._lock:
            call = self._state.timed(call)
            decision = self._state.check(call)
            if not approved:
                decision = replace(decision, action="block", reason=f"{decision.reason} {SAID_NO}".strip())
            else:
                # The rules may test the approval, so their decision on an approved call counts.
                if_approved = self._state.check(replace(call, approved=True))
                approval_suffices = decision.action == "ask" and if_approved.runs
                decision = replace(decision, action="allow") if approval_suffices else if_approved
            return self._settle_call(call, decision, approved)

    def _settle_call(self, call: Call, decision: Decision, approved: bool | None) -> Decision:
        if decision.action == "block":
            self._write_record(Noted(call, decision, told=False, approved=approved))
            self._turn.append((call, decision))
            return decision
        taken = replace(call, approved=True) if approved else call
        after = self._state.after(taken)
        self._write_record(Noted(taken, decision, approved=approved))
        self._state = after
        self._turn.append((call, decision))
        return decision

    # -- other events -------------------------------------------------------------------------------------------

    def result(self, result: Result) -> None:
        """Record what a call returned, or that it failed, in the order in which results arrive."""
        self._record_event(result)

    def made(self, call: Call) -> None:
        """Record a call that was made without a check, such as one of a history older than the guard."""
        self._record_event(call)

    def said(self, said: Said) -> None:
        """Record a text of a person or the assistant."""
        self._record_event(said)

    def _record_event(self, event: GuardEvent) -> None:
        with self._lock:
            event = self._state.timed(event)
            after = self._state.after(event)
            self._write_record(Noted(event))
            self._state = after

    def stop(self) -> Decision:
        """Decide whether the run may end here; "ask" also means no, because no person is asked about an end."""
        with self._lock:
            decision = self._state.may_stop(final=self._final)
            self._write_record(Noted(None, decision, told=False))
            return decision

    def _write_record(self, line: Noted) -> None:
        if line.decision is not None and line.decision.action in ("warn", "log"):
            level = logging.WARNING if line.decision.action == "warn" else logging.INFO
            _log.log(level, "%s: %s", "the end" if line.event is None else line.event, line.decision.reason)
        if self._audit is not None:
            self._audit(line)


def is_same_call(one: Call, other: Call) -> bool:
    """Return whether two calls of one turn are one that is tried again."""
    return one.id == other.id and one.tool == other.tool and one.arguments == other.arguments
