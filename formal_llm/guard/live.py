"""One run of an agent as it lives: the state of its guard, shared by all that call tools for it.

A guard's state is a value. A run has one that changes, and calls that come from several threads or tasks at once.
``GuardedRun`` holds it behind a lock, so that to check a call and to take it is one step; it asks a person and writes
the record where it was told how.
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

#: Asks a person whether a call may be made: a function, or a coroutine function in asynchronous runs.
Approve: TypeAlias = Callable[[Call, Decision], bool | Awaitable[bool]]

#: What stands in the reason of a call to which a person said no.
SAID_NO = "A person was asked and said no."
E = TypeVar("E", bound=GuardEvent)


@dataclass(frozen=True)
class Noted:
    """One line of the record of a run.

    Args:
        event: what happened or was asked for; None where the agent wanted to stop.
        decision: what was decided on a call or a stop; None for results and for what was said.
        told: whether the state took the event. It did not take a call that was refused.
        approved: what a person said of a call; None where nobody was asked.
    """

    event: GuardEvent | None
    decision: Decision | None = None
    told: bool = True
    approved: bool | None = None


#: Is told each line of the record, in the order in which the state took them, while the run is locked.
Audit: TypeAlias = Callable[[Noted], None]


class GuardedRun:
    """One run under a guard: safe for threads and tasks, shared by all that make calls in it.

    Args:
        guard: the guard.
        state: where the run goes on, such as ``guard.resume(snapshot)``; by default its beginning.
        approve: asks a person about the calls for which the rules want one. Without it such a call stays open:
            ``begin`` answers "ask", and whoever called it asks in his own way.
        audit: is told each line of the record before the state changes; where it raises, the state does not change.
        final: whether an answer of the agent is the end of the run. In a conversation it hands over to the user, and it
            may do so too where the next thing on the way is the user's to say.
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
        """Where the run stands now: a value, to ask and to keep."""
        return self._state

    # -- calls --------------------------------------------------------------------------------------------------

    def begin(self, call: Call, *, approved: bool | None = None) -> Decision:
        """Check a call and, where it may be made, take it, in one step.

        A call with the id, the tool and the arguments of one of the same turn is a second try of it: it gets the same
        decision and is taken once.

        Args:
            call: the call that is about to be made.
            approved: what a person already said of it; None to ask where the rules want it.

        Returns:
            The decision. After "block" the call must not be made, nor after "ask", which comes only where nobody can be
            asked here. A call that a person approved is allowed, and one that he did not is blocked.

        Raises:
            TypeError: the person is asked by a coroutine function; ``abegin`` waits for it.
        """
        decision = self._decide_without_person(call, approved)
        if decision.action != "ask" or self._approve is None or approved is not None:
            return decision
        said = self._approve(call, decision)
        if inspect.isawaitable(said):
            if inspect.iscoroutine(said):
                said.close()
            raise TypeError("the approval is asynchronous and the run is not; give a plain function, or use abegin")
        return self._decide_after_answer(call, said)

    async def abegin(self, call: Call, *, approved: bool | None = None) -> Decision:
        """As ``begin``, for asynchronous runs: a plain approval function is asked in a thread of its own."""
        decision = self._decide_without_person(call, approved)
        if decision.action != "ask" or self._approve is None or approved is not None:
            return decision
        if inspect.iscoroutinefunction(self._approve):
            said = await self._approve(call, decision)
        else:
            answer = await asyncio.to_thread(self._approve, call, decision)
            said = await answer if inspect.isawaitable(answer) else answer
        return self._decide_after_answer(call, said)

    def begin_all(self, calls: Iterable[Call]) -> tuple[Decision, ...]:
        """A new turn: the calls of one answer of the model, each checked after those before it."""
        self.new_turn()
        return tuple(self.begin(call) for call in calls)

    async def abegin_all(self, calls: Iterable[Call]) -> tuple[Decision, ...]:
        """As ``begin_all``, for asynchronous runs."""
        self.new_turn()
        return tuple([await self.abegin(call) for call in calls])

    def new_turn(self) -> None:
        """Forget the ids of calls: the model answered anew, and some servers number their calls from 0 each time."""
        with self._lock:
            self._turn.clear()

    def decided(self, calls: Iterable[tuple[Call, Decision]]) -> None:
        """What was decided before in the turn in which this run goes on; the state was told of these calls."""
        with self._lock:
            self._turn.extend(calls)

    def _decide_without_person(self, call: Call, approved: bool | None) -> Decision:
        """The decision before a person is asked; takes the call where none has to be."""
        with self._lock:
            call = self._state.timed(call)
            known = next((decision for made, decision in self._turn if call.id and _is_same_call(made, call)), None)
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
        """The decision after a person was asked; the run may have gone on meanwhile, so it is checked again."""
        with self._lock:
            call = self._state.timed(call)
            decision = self._state.check(call)
            if not approved:
                decision = replace(decision, action="block", reason=f"{decision.reason} {SAID_NO}".strip())
            else:
                # The rules may look at the approval, so what they say of an approved call counts.
                seen = self._state.check(replace(call, approved=True))
                asked = decision.action == "ask" and seen.runs
                decision = replace(decision, action="allow") if asked else seen
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

    # -- what else happens --------------------------------------------------------------------------------------

    def result(self, result: Result) -> None:
        """Tell what a call returned, or that it failed, in the order in which results come."""
        self._record_event(result)

    def made(self, call: Call) -> None:
        """Tell a call that was made without asking here, such as one of a history from before the guard."""
        self._record_event(call)

    def said(self, said: Said) -> None:
        """Tell what a person or the assistant said."""
        self._record_event(said)

    def _record_event(self, event: GuardEvent) -> None:
        with self._lock:
            event = self._state.timed(event)
            after = self._state.after(event)
            self._write_record(Noted(event))
            self._state = after

    def stop(self) -> Decision:
        """Whether the run may end here; "ask" says no, too: nobody is asked about an end."""
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


def _is_same_call(one: Call, other: Call) -> bool:
    return one.id == other.id and one.tool == other.tool and one.arguments == other.arguments
