"""Running a procedure: models, users and tools answer its requests; a journal lets a run go on after a crash.

Each row of the journal is on the disk before the run goes on, and names the hash of the row before it
(:mod:`formal_llm.guard.audit`). A call is recorded before it is made and again when it has returned. If the process
ends in between, its result is unknown: it is made again if the tool may be called twice, else a person decides.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from formal_llm.automata.models.automaton import make_fingerprint
from formal_llm.errors import AuditError, InputError, ToolError, WritesNoText
from formal_llm.guard.audit import AuditLog, HeldLog
from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.generation import ToolCallingLLM, ToolTurn
from formal_llm.llms.llm import LLMLike, aanswered, answered, resolve
from formal_llm.llms.question import Answer, CallRequest, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.procedures.procedure import Procedure
from formal_llm.procedures.record import Call, MadeCall
from formal_llm.procedures.run import (
    ApprovalRequest,
    ProcedureOutcome,
    ProcedureRun,
    Request,
    ToolRequest,
    ValuesRequest,
)
from formal_llm.tools.calling import Caller, CallLimits, run_awaitable
from formal_llm.tools.tool import Tool

#: Tools by name: a toolkit, tools, or functions.
Tools: TypeAlias = "Mapping[str, Callable[..., object]] | Iterable[Tool]"
#: Answers a request for values: a mapping, or a text as the user wrote it; None if there is no answer.
User: TypeAlias = Callable[[ValuesRequest], object]
#: Decides about a call: whether it may be made, or why not.
Approver: TypeAlias = Callable[[Call], "bool | str"]
#: Decides about a call whose result was lost: what it returned, or None if it was not made.
Clarifier: TypeAlias = Callable[[Call], "MadeCall | None"]


@dataclass(frozen=True)
class Party:
    """All who answer the requests of a run.

    Attributes:
        llm: the model; None if the goal is known and no ways are to be chosen.
        tools: the tools by name.
        user: answers requests for values.
        approve: decides about calls that need approval.
        clarify: decides about calls whose results were lost.
        caller: calls tools.
    """

    llm: LLMLike | None
    tools: Mapping[str, Callable[..., object]]
    user: User | None = None
    approve: Approver | None = None
    clarify: Clarifier | None = None
    caller: Caller = field(default_factory=lambda: Caller(CallLimits()))


def run_procedure(
    procedure: Procedure,
    request: str,
    llm: LLMLike | None,
    tools: Tools,
    *,
    known: Mapping[str, JSON] | None = None,
    goal: str | None = None,
    user: User | None = None,
    approve: Approver | None = None,
    clarify: Clarifier | None = None,
    journal: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    native: bool = False,
) -> ProcedureOutcome:
    """Run a procedure.

    Args:
        procedure: the procedure.
        request: what the user wants, in words.
        llm: the model that chooses the goal, and between ways that cost the same; None if ``goal`` is given: then the
            first of such ways is taken.
        tools: the tools.
        known: values that are known from the start, by name.
        goal: the goal, if it is known.
        user: asks the user for values; values that nobody provides are absent.
        approve: decides about a call of a tool that needs approval: True, or the reason why not; without it, or if the
            answer is no, the run is handed over.
        clarify: decides about a call whose result was lost; without it the run ends with an error.
        journal: a file that keeps the run; a run that was interrupted goes on from it.
        timeout: seconds for one call of a tool.
        native: whether the model chooses the goal by a call of it (:class:`~formal_llm.procedures.run.ProcedureRun`).

    Raises:
        InputError: a tool is missing, a value is unknown or of another type, or a model is needed and there is none.
        WritesNoText: the model is to call the goal, and calls no tools.
        LLMError: the model gave no answer.
        AuditError: the journal is another run's, or was changed.
    """
    run = ProcedureRun(procedure, request, known, goal, has_model=llm is not None, native=native)
    party = _gather(run, llm, tools, user, approve, clarify, timeout)
    with _open_journal(journal, run) as record:
        return driven(run.steps(), lambda asked: record.answer(asked, lambda one: _answer(party, one), party))


async def arun_procedure(
    procedure: Procedure,
    request: str,
    llm: LLMLike | None,
    tools: Tools,
    *,
    known: Mapping[str, JSON] | None = None,
    goal: str | None = None,
    user: User | None = None,
    approve: Approver | None = None,
    clarify: Clarifier | None = None,
    journal: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    native: bool = False,
) -> ProcedureOutcome:
    """Run a procedure like :func:`run_procedure`, without blocking the event loop; ``user`` may be a coroutine."""
    run = ProcedureRun(procedure, request, known, goal, has_model=llm is not None, native=native)
    party = _gather(run, llm, tools, user, approve, clarify, timeout)
    with _open_journal(journal, run) as record:

        async def reply(asked: Request) -> object:
            replayed = record.replay(asked, party)
            return record.note(asked, await _aanswer(party, asked)) if replayed is None else replayed[0]

        return await adriven(run.steps(), reply)


def _gather(
    run: ProcedureRun,
    llm: LLMLike | None,
    tools: Tools,
    user: User | None,
    approve: Approver | None,
    clarify: Clarifier | None,
    timeout: float | None,
) -> Party:
    by_name = dict(tools) if isinstance(tools, Mapping) else {tool.name: tool for tool in tools}
    missing = [name for name in run.procedure.tools if name not in by_name]
    if missing:
        raise InputError(f"the tools have no {', '.join(missing)}, which the procedure names")
    model = resolve(llm) if llm is not None else None
    if run.native and model is not None and not isinstance(model, ToolCallingLLM):
        raise WritesNoText(model, "call the goal", "let it choose the goal, without native")
    return Party(model, by_name, user, approve, clarify, Caller(CallLimits(timeout=timeout)))


# -- answers -----------------------------------------------------------------------------------------------------------


def _answer(party: Party, asked: Request) -> object:
    match asked:
        case Question():
            return answered(resolve(_require_model(party)), asked)
        case ToolRequest(call):
            return call_tool(party.tools[call.tool], call, party.caller)
        case ValuesRequest():
            return party.user(asked) if party.user is not None else None
        case ApprovalRequest(call):
            return party.approve(call) if party.approve is not None else "there is nobody to approve it"


async def _aanswer(party: Party, asked: Request) -> object:
    import asyncio

    match asked:
        case Question():
            return await aanswered(resolve(_require_model(party)), asked)
        case ToolRequest(call):
            tool = party.tools[call.tool]
            if isinstance(tool, Tool):
                return await acall_tool(tool, call, party.caller)
            return await asyncio.to_thread(call_tool, tool, call, party.caller)
    reply = _answer(party, asked)
    return await cast("Awaitable[object]", reply) if hasattr(reply, "__await__") else reply


def _require_model(party: Party) -> LLMLike:
    if party.llm is None:
        raise InputError("a model has to choose the goal, and there is none; give llm=, or the goal")
    return party.llm


def call_tool(tool: Callable[..., object], call: Call, caller: Caller) -> MadeCall:
    """Call a tool or a function; a failure is part of what is returned."""
    try:
        if isinstance(tool, Tool):
            bound = tool.signature.bind(call.arguments)
            return MadeCall(call, to_json(caller.call(tool, bound.values, named=bound.named)[0].get()))
        return MadeCall(call, to_json(run_awaitable(tool(**call.arguments))))
    except Exception as error:
        return MadeCall(call, error=_describe_failure(error))


async def acall_tool(tool: Tool, call: Call, caller: Caller) -> MadeCall:
    """Call a tool like :func:`call_tool`, without blocking the event loop."""
    try:
        bound = tool.signature.bind(call.arguments)
        return MadeCall(call, to_json((await caller.acall(tool, bound.values, bound.named))[0].get()))
    except Exception as error:
        return MadeCall(call, error=_describe_failure(error))


def _describe_failure(error: Exception) -> str:
    return error.problem if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"


def to_json(value: object) -> JSON:
    """Return a copy of a value as JSON data."""
    from pydantic_core import to_jsonable_python

    return cast("JSON", to_jsonable_python(value, serialize_unknown=True))


# -- the journal -------------------------------------------------------------------------------------------------------


class ProcedureJournal:
    """The rows of a run: those of an earlier process are replayed, then new ones are written.

    Args:
        log: the log, locked; None if nothing is kept.
        rows: the rows that it has already.
        repeatable: the tools that may be called again if a result was lost.
    """

    def __init__(
        self, log: HeldLog | None, rows: Iterable[Mapping[str, JSON]] = (), repeatable: Collection[str] = ()
    ) -> None:
        self._log = log
        self._repeatable = repeatable
        self._rows = [row for row in rows if "asked" in row or "calling" in row]
        self._place = 0

    def answer(self, asked: Request, live: Callable[[Request], object], party: Party) -> object:
        """Return the recorded answer to a request, else that of ``live``, which is recorded."""
        replayed = self.replay(asked, party)
        if replayed is not None:
            return replayed[0]
        return self.note(asked, live(asked))

    def replay(self, asked: Request, party: Party) -> tuple[object] | None:
        """Return the recorded answer to a request; None if there is none, and a call is then recorded as begun."""
        if self._place >= len(self._rows):
            self._begin(asked)
            return None
        row = self._rows[self._place]
        self._place += 1
        if isinstance(asked, ToolRequest):
            if row.get("calling") != {"tool": asked.call.tool, "arguments": asked.call.arguments}:
                raise AuditError("the journal is of a run that went another way; begin a new file")
            if self._place < len(self._rows) and self._rows[self._place].get("asked") == "call":
                returned = self._rows[self._place]
                self._place += 1
                return (_read_made(asked.call, returned["reply"]),)
            return self._clarify(asked, party)
        if row.get("asked") != _describe_request(asked):
            raise AuditError("the journal is of a run that went another way; begin a new file")
        return (_read_reply(asked, row["reply"]),)

    def _clarify(self, asked: ToolRequest, party: Party) -> tuple[object] | None:
        """Decide about a call that was begun and whose result is unknown."""
        if asked.call.tool in self._repeatable:
            return None
        if party.clarify is None:
            raise InputError(
                f"{asked.call} was begun when the run was interrupted; whether it was done is not known: find out, and "
                "give clarify= what it returned, or None if it was not done"
            )
        made = party.clarify(asked.call)
        return None if made is None else (self.note(asked, made),)

    def _begin(self, asked: Request) -> None:
        if self._log is not None and isinstance(asked, ToolRequest):
            self._log.append({"calling": {"tool": asked.call.tool, "arguments": dict(asked.call.arguments)}})

    def note(self, asked: Request, reply: object) -> object:
        """Record an answer, and return it."""
        if self._log is not None:
            self._log.append({"asked": _describe_request(asked), "reply": _write_reply(reply)})
        return reply


@contextmanager
def _open_journal(path: str | os.PathLike[str] | None, run: ProcedureRun) -> Iterator[ProcedureJournal]:
    if path is None:
        yield ProcedureJournal(None)
        return
    rules = make_fingerprint([str(run.procedure), run.request, run.goal, json.dumps(run.known, sort_keys=True)])
    with AuditLog(path, rules).held() as log:
        reading = log.read()
        if reading.faults:
            raise AuditError(f"the journal {path} was changed: {reading.faults[0]}")
        if reading.entries and reading.rules != rules:
            raise AuditError(f"the journal {path} is of another procedure or request; begin a new file")
        repeatable = [name for name, tool in run.procedure.tools.items() if tool.may_repeat()]
        yield ProcedureJournal(log, [entry.row for entry in reading.entries], repeatable)


def _describe_request(asked: Request) -> str:
    match asked:
        case ToolTurn():
            return f"call: {make_fingerprint([json.dumps(asked.content, sort_keys=True)])}"
        case Question():
            return f"choose: {make_fingerprint([option.text for option in asked.options])}"
        case ToolRequest():
            return "call"
        case ValuesRequest(names):
            return f"values: {', '.join(names)}"
        case ApprovalRequest(call):
            return f"approve: {call}"


def _write_reply(reply: object) -> JSON:
    match reply:
        case Answer():
            usage = reply.usage
            counts = [usage.input_tokens, usage.output_tokens, usage.requests]
            return {"numbers": list(reply.numbers), "usage": counts, "calls": [list(call) for call in reply.calls]}
        case MadeCall():
            return reply.to_data()
    return to_json(reply)


def _read_reply(asked: Request, reply: JSON) -> object:
    if isinstance(asked, Question):
        assert isinstance(reply, Mapping)
        numbers, usage = cast("list[int]", reply["numbers"]), cast("list[int]", reply["usage"])
        calls = tuple(CallRequest(*call) for call in cast("list[list[str]]", reply.get("calls", [])))
        return Answer(tuple(numbers), usage=TokenUsage(usage[2], usage[0], usage[1]), calls=calls)
    return reply


def _read_made(call: Call, reply: Any) -> MadeCall:
    return MadeCall(call, reply.get("value"), reply.get("error", ""))
