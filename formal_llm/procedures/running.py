"""Running a procedure: models, users and tools answer its requests; a journal lets a run go on after a crash.

Each row of the journal is on the disk before the run goes on, and names the hash of the row before it
(:mod:`formal_llm.guard.audit`). A call is recorded before it is made and again when it has returned. If the process
ends in between, its result is unknown: it is made again if the tool may be called twice, else a person decides.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from inspect import isawaitable
from typing import TypeAlias, TypedDict, Unpack, cast

from formal_llm.automata.models.automaton import make_fingerprint
from formal_llm.errors import InputError, RecordError, ToolError, WritesNoText
from formal_llm.guard.audit import AuditLog, HeldLog
from formal_llm.llms import LLM, TextRequest
from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.providers import LLMLike, resolve
from formal_llm.llms.question import Answer, CallRequest, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.procedures.procedure import Procedure, ProcedureTool
from formal_llm.procedures.record import Call, MadeCall
from formal_llm.procedures.run import (
    ApprovalRequest,
    ProcedureOutcome,
    ProcedureRun,
    Request,
    ToolRequest,
    ValuesRequest,
)
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.tool import Tool

#: Tools by name: a toolkit, tools, or functions.
Tools: TypeAlias = "Mapping[str, Callable[..., object]] | Iterable[Tool]"
#: Answers a request for values: a mapping, or a text as the user wrote it; None if there is no answer.
User: TypeAlias = Callable[[ValuesRequest], object]
#: Decides about a call: whether it may be made, or why not.
Approver: TypeAlias = Callable[[Call], "bool | str"]
#: Decides about a call whose result was lost: what it returned, or None if it was not made.
Clarifier: TypeAlias = Callable[[Call], "MadeCall | None"]


class RunOptions(TypedDict, total=False):
    """The settings of a run.

    Attributes:
        known: values that are known from the start, by name.
        goal: the goal, if it is known.
        user: asks the user for values; values that nobody provides are absent.
        approve: decides about a call of a tool that needs approval: True, or the reason why not; without it, or if the
            answer is no, the run is handed over.
        clarify: decides about a call whose result was lost; without it the run ends with an error.
        journal: a file that keeps the run; a run that was interrupted goes on from it.
        timeout: seconds for one call of a tool. If an action that is not idempotent takes longer, nobody knows whether
            it was done: the run is handed over.
        native: whether the model chooses the goal by a call of it (:class:`~formal_llm.procedures.run.ProcedureRun`).
    """

    known: Mapping[str, JSON] | None
    goal: str | None
    user: User | None
    approve: Approver | None
    clarify: Clarifier | None
    journal: str | os.PathLike[str] | None
    timeout: float | None
    native: bool


def run_procedure(
    procedure: Procedure, request: str, llm: LLMLike | None, tools: Tools, **options: Unpack[RunOptions]
) -> ProcedureOutcome:
    """Run a procedure: do what a user wants if it may be done, else say why not.

    Args:
        procedure: the procedure.
        request: what the user wants, in words.
        llm: the model that chooses the goal and between ways that cost the same; None if the goal is given; the first
            way is then taken.
        tools: the tools.
        **options: the settings.

    Raises:
        InputError: a tool is missing, a value is unknown or of another type, or a model is needed and there is none.
        LLMError: the model gave no answer.
        WritesNoText: the model is to call the goal, and calls no tools.
        RecordError: the journal is another run's, or was changed.
    """
    answerer = RequestAnswerer(procedure, request, llm, tools, options)
    with answerer.open() as record:

        def reply(asked: Request) -> object:
            replayed = record.replay(asked)
            return replayed[0] if replayed is not None else record.note(asked, answerer.answer(asked))

        return driven(answerer.run.steps(), reply)


async def arun_procedure(
    procedure: Procedure, request: str, llm: LLMLike | None, tools: Tools, **options: Unpack[RunOptions]
) -> ProcedureOutcome:
    """Run a procedure like :func:`run_procedure`, without blocking the event loop; ``user`` may be a coroutine."""
    answerer = RequestAnswerer(procedure, request, llm, tools, options)
    with answerer.open() as record:

        async def reply(asked: Request) -> object:
            replayed = record.replay(asked)
            return replayed[0] if replayed is not None else record.note(asked, await answerer.aanswer(asked))

        return await adriven(answerer.run.steps(), reply)


class RequestAnswerer:
    """All who answer the requests of a run.

    Args:
        procedure, request, llm, tools, options: see :func:`run_procedure`.
    """

    def __init__(
        self, procedure: Procedure, request: str, llm: LLMLike | None, tools: Tools, options: RunOptions
    ) -> None:
        native = options.get("native", False)
        self.run = ProcedureRun(
            procedure, request, options.get("known"), options.get("goal"), has_model=llm is not None, native=native
        )
        by_name = dict(tools) if isinstance(tools, Mapping) else {tool.name: tool for tool in tools}
        missing = [name for name in procedure.tools if name not in by_name]
        if missing:
            raise InputError(f"the tools have no {', '.join(missing)}, which the procedure names")
        self._tools = {name: _forbid_retries(by_name[name], tool) for name, tool in procedure.tools.items()}
        self._llm = resolve(llm) if llm is not None else None
        if native and self._llm is not None and "call" not in self._llm.can:
            raise WritesNoText(self._llm, "call the goal", "let it choose the goal, without native")
        self._options = options
        self._caller = Caller(CallLimits(timeout=options.get("timeout")))

    def open(self) -> AbstractContextManager[ProcedureJournal]:
        """Open the journal."""
        return _open_journal(self._options.get("journal"), self.run, self._options.get("clarify"))

    def answer(self, asked: Request) -> object:
        """Answer a request."""
        match asked:
            case Question():
                return self._require_model().ask(asked)
            case ToolRequest(call):
                return call_tool(self._tools[call.tool], call, self._caller)
            case _:
                return self._ask_person(asked)

    async def aanswer(self, asked: Request) -> object:
        """Answer a request like :meth:`answer`, without blocking the event loop."""
        import asyncio

        match asked:
            case Question():
                return await self._require_model().aask(asked)
            case ToolRequest(call):
                tool = self._tools[call.tool]
                if isinstance(tool, Tool):
                    return await acall_tool(tool, call, self._caller)
                return await asyncio.to_thread(call_tool, tool, call, self._caller)
            case _:
                reply = self._ask_person(asked)
                return await reply if isawaitable(reply) else reply

    def _ask_person(self, asked: ValuesRequest | ApprovalRequest) -> object:
        if isinstance(asked, ValuesRequest):
            user = self._options.get("user")
            return user(asked) if user is not None else None
        approve = self._options.get("approve")
        return approve(asked.call) if approve is not None else "there is nobody to approve it"

    def _require_model(self) -> LLM:
        if self._llm is None:
            raise InputError("a model has to choose the goal, and there is none; give llm=, or the goal")
        return self._llm


def _forbid_retries(tool: Callable[..., object], declared: ProcedureTool) -> Callable[..., object]:
    """Return a tool that is never called twice for one call, if it must not be."""
    return replace(tool, retries=0) if isinstance(tool, Tool) and not declared.may_repeat() else tool


def call_tool(tool: Callable[..., object], call: Call, caller: Caller) -> MadeCall:
    """Call a tool or a function; a failure is part of what is returned."""
    try:
        if isinstance(tool, Tool):
            bound = tool.signature.bind(call.arguments)
            return MadeCall(call, to_json(caller.call(tool, bound.values, named=bound.named)[0].get()))
        return MadeCall(call, to_json(caller.call_function(call.tool, lambda: tool(**call.arguments))))
    except Exception as error:
        return _make_failed(call, error)


async def acall_tool(tool: Tool, call: Call, caller: Caller) -> MadeCall:
    """Call a tool like :func:`call_tool`, without blocking the event loop."""
    try:
        bound = tool.signature.bind(call.arguments)
        return MadeCall(call, to_json((await caller.acall(tool, bound.values, bound.named))[0].get()))
    except Exception as error:
        return _make_failed(call, error)


def _make_failed(call: Call, error: Exception) -> MadeCall:
    """Return a call that failed; only if its arguments did not fit, or it raised, is it known that it was not done."""
    problem = error.problem if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"
    is_clear = isinstance(error, InputError) or (isinstance(error, ToolError) and error.reason == "failed")
    return MadeCall(call, error=problem, unclear=not is_clear)


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
        clarify: decides about calls of others whose results were lost.
    """

    def __init__(
        self,
        log: HeldLog | None,
        rows: Iterable[Mapping[str, JSON]] = (),
        repeatable: Collection[str] = (),
        clarify: Clarifier | None = None,
    ) -> None:
        self._log = log
        self._repeatable = repeatable
        self._ask_about = clarify
        self._rows = [row for row in rows if "asked" in row or "calling" in row]
        self._place = 0

    def replay(self, asked: Request) -> tuple[object] | None:
        """Return the recorded answer to a request; None if there is none, and a call is then recorded as begun."""
        if self._place >= len(self._rows):
            self._begin(asked)
            return None
        row = self._rows[self._place]
        self._place += 1
        if isinstance(asked, ToolRequest):
            if row.get("calling") != asked.call.to_data():
                raise RecordError("the journal is of a run that went another way; begin a new file")
            if self._place < len(self._rows) and self._rows[self._place].get("asked") == "call":
                returned = self._rows[self._place]
                self._place += 1
                return (MadeCall.from_data(cast("Mapping[str, object]", returned["reply"])),)
            return self._clarify(asked)
        if row.get("asked") != _describe_request(asked):
            raise RecordError("the journal is of a run that went another way; begin a new file")
        return (_read_reply(asked, row["reply"]),)

    def _clarify(self, asked: ToolRequest) -> tuple[object] | None:
        """Decide about a call that was begun and whose result is unknown."""
        if asked.call.tool in self._repeatable:
            return None
        if self._ask_about is None:
            raise InputError(
                f"{asked.call} was begun when the run was interrupted; whether it was done is not known: find out, and "
                "give clarify= what it returned, or None if it was not done"
            )
        made = self._ask_about(asked.call)
        return None if made is None else (self.note(asked, made),)

    def _begin(self, asked: Request) -> None:
        if self._log is not None and isinstance(asked, ToolRequest):
            self._log.append({"calling": asked.call.to_data()})

    def note(self, asked: Request, reply: object) -> object:
        """Record an answer, and return it."""
        if self._log is not None:
            self._log.append({"asked": _describe_request(asked), "reply": _write_reply(reply)})
        return reply


@contextmanager
def _open_journal(
    path: str | os.PathLike[str] | None, run: ProcedureRun, clarify: Clarifier | None
) -> Iterator[ProcedureJournal]:
    if path is None:
        yield ProcedureJournal(None)
        return
    rules = make_fingerprint([str(run.procedure), run.request, run.goal, json.dumps(run.known, sort_keys=True)])
    with AuditLog(path, rules).held() as log:
        reading = log.read()
        if reading.faults:
            raise RecordError(f"the journal {path} was changed: {reading.faults[0]}")
        if reading.entries and reading.rules != rules:
            raise RecordError(f"the journal {path} is of another procedure or request; begin a new file")
        repeatable = [name for name, tool in run.procedure.tools.items() if tool.may_repeat()]
        yield ProcedureJournal(log, [entry.row for entry in reading.entries], repeatable, clarify)


def _describe_request(asked: Request) -> str:
    match asked:
        case TextRequest():
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
