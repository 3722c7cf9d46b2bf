"""One run of a modular agent, from its request to its answer."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Generator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Never

from formal_llm.agents.decoding.steps import Do, Steps, adriven, driven
from formal_llm.agents.decoding.steps import Step as Doing
from formal_llm.agents.modular.asking import AskingRun
from formal_llm.agents.modular.binding import Call
from formal_llm.agents.modular.journal import Given
from formal_llm.agents.modular.prompts import (
    call_messages,
    plan_messages,
    plan_schema,
)
from formal_llm.agents.modular.role_llms import RoleLLMs
from formal_llm.agents.modular.run import Decision, ModularRun
from formal_llm.agents.modular.scratchpad import Memory, Scratchpad, Step
from formal_llm.agents.monitor import Event
from formal_llm.agents.run_events import ToolCall
from formal_llm.agents.transcript import Transcript
from formal_llm.errors import (
    AgentError,
    AgentStopped,
    InputError,
    NotAllowed,
    ResultsError,
    ToolError,
)
from formal_llm.planning.json_data import JSON
from formal_llm.tools.kinds import TEXT, Value
from formal_llm.tools.signature import BoundValues

#: How many steps stay as they are when a scratchpad is summarised, and how many turns of a conversation.
KEPT_STEPS, KEPT_TURNS = 2, 3


class ModularRunner(AskingRun):
    """A run under way."""

    @property
    def steps_left(self) -> int:
        """How many steps are left."""
        return self.budget.steps - len(self.now.scratchpad)

    @property
    def transcript(self) -> Transcript:
        """What was done so far, in the form of all agents."""
        return self.now.transcript

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools so far."""
        return self.now.calls

    def run_to_end(self) -> ModularRun:
        """The whole run."""
        for _ in driven(self.steps(), RoleLLMs(self.setup.llms)):
            pass
        return self.now

    async def arun_to_end(self) -> ModularRun:
        """As :meth:`run_to_end`, without blocking the event loop; tools are called in threads."""
        async for _ in adriven(self.steps(), RoleLLMs(self.setup.llms)):
            pass
        return self.now

    def steps(self) -> Steps[Never]:
        """As :meth:`run_to_end`, sans I/O: requests come out, answers go in."""
        while self.now.answer is None:
            decision = yield from self._decide_step()
            call = yield from self._bind_call(decision)
            value = yield from self._carry_out(call, decision.task, outermost=True)
            if value is not None and self.setup.modules[call.tool.name].final:
                yield from self._end_run(_format_value(value))
            else:
                yield from self._compact_scratchpad()

    # -- the planner, and who calls the tools -----------------------------------------------------------------------

    def _decide_step(self) -> Generator[Doing, Any, Decision]:
        setup, now = self.setup, self.now
        legal = setup.legal(self.monitor, self.steps_left)
        if not legal:
            if self.monitor.allowed():
                raise AgentStopped("steps", self.budget.steps, now.transcript, run=now)
            raise AgentError(
                "no tool can be used any more, and the run cannot end: the rules were too large to look ahead"
            )
        most, modules = setup.sizes.planned, list(setup.modules.values())
        messages = plan_messages(now.request, now.memory, now.scratchpad, modules, legal, most)
        schema = plan_schema(legal, most)
        value, text = yield from self._ask_model("planner", messages, schema)
        tool = str(value.get("tool", legal[0]))
        decision = Decision(
            messages,
            text,
            schema,
            legal,
            tool,
            str(value["task"]),
            str(value["context_summary"]),
            str(value["thoughts"]),
        )
        self.now = replace(self.now, decisions=(*self.now.decisions, decision))
        self._notify_progress("decided", {"tool": tool, "task": decision.task, "thoughts": decision.thoughts})
        return decision

    def _bind_call(self, decision: Decision) -> Generator[Doing, Any, Call]:
        setup, now = self.setup, self.now
        module = setup.modules[decision.tool]
        if not module.tool.signature.parameters:
            return Call(module.tool, ())
        schema = setup.binder.build_schema(module.tool, setup.inner(self.monitor, module.name, self.steps_left))
        if schema is None:
            raise AgentError(f"{module.name} cannot be called here: what one of its arguments needs may not come now")
        messages = call_messages(module, now.request, decision.task, now.memory, now.scratchpad)
        check = partial(self._find_objection, decision.tool)
        value, _ = yield from self._ask_model("caller", messages, schema, check)
        call = setup.binder.read_call(module.tool, value)
        self._notify_progress("bound", {"tool": decision.tool, "call": str(call)})
        return call

    def _find_objection(self, tool: str, value: Mapping[str, object]) -> str | None:
        """What is wrong with a call beyond its schema: its values, or the order of the tools in it."""
        try:
            word = self.setup.binder.read_call(self.setup.modules[tool].tool, value).word
            after = self.monitor.after_all(word)
        except ValueError as error:
            return str(error)
        except NotAllowed as error:
            return f"the calls in it come in the order {', '.join(word)}, and {error}"
        needed = after.shortest_way()
        if len(word) + (0 if needed is None else len(needed)) > self.steps_left:
            return f"{self.steps_left} uses of tools are left, and this call leaves too few to come to an end"
        return None

    # -- tools ------------------------------------------------------------------------------------------------------

    def _carry_out(self, call: Call, task: str, *, outermost: bool) -> Generator[Doing, Any, Value | None]:
        """What a call gives; None where it, or a call in it, failed."""
        values: list[Value] = []
        for argument in (*call.arguments, *call.named.values()):
            if isinstance(argument, Call):
                inner = yield from self._carry_out(argument, f"for {call.tool.name}: {task}", outermost=False)
                if inner is None:
                    return None
                argument = inner
            values.append(argument)
        count = len(call.arguments)
        named = dict(zip(call.named, values[count:], strict=True))
        return (yield from self._use_tool(call, BoundValues(tuple(values[:count]), named), task, outermost))

    def _use_tool(
        self, call: Call, bound: BoundValues, task: str, outermost: bool
    ) -> Generator[Doing, Any, Value | None]:
        module = self.setup.modules[call.tool.name]
        # First the rules: what they do not allow is not done.
        self.monitor = self.monitor.after(Event(module.name, {"call": str(call)}))

        caller = self.setup.caller

        def call_tool() -> Given:
            try:
                return _dump_result(caller.call(call.tool, bound.values, named=bound.named)[0])
            except ToolError as error:
                return {"error": error.problem, "reason": error.reason}

        async def await_tool() -> Given:
            try:
                return _dump_result((await caller.acall(call.tool, bound.values, bound.named))[0])
            except ToolError as error:
                return {"error": error.problem, "reason": error.reason}

        named: list[JSON] = [{name: value.key for name, value in bound.named.items()}] if bound.named else []
        asked: JSON = [module.name, [value.key for value in bound.values], *named]
        replayed = self.journal.is_replaying
        gave = self.journal.replay_answer("tool", asked)
        if gave is None:
            gave = self.journal.record_answer("tool", asked, (yield Do(call_tool, await_tool)))
        if "error" in gave:
            problem = str(gave["error"])
            self._record_step(Step(module.name, task, problem, str(call), failed=True))
            self._notify_progress("failed", {"tool": module.name, "problem": problem}, replayed)
            if module.final:
                raise ToolError(module.name, problem, reason=str(gave.get("reason", "failed")))
            return None
        value = self._read_value(call, gave)
        text = _format_value(value)
        self._notify_progress("used", {"tool": module.name, "result": text}, replayed)
        if module.summarised and outermost and len(text) > self.setup.sizes.summary:
            text = yield from self._summarise_text(text, task, self.setup.sizes.summary)
        self._record_step(Step(module.name, task, text, str(call)))
        return value

    def _read_value(self, call: Call, gave: Given) -> Value:
        kind = call.tool.output
        try:
            if kind == TEXT:
                return Value(kind, kind.accept(gave["text"]))
            return Value(kind, kind.read(base64.b64decode(gave["data"], validate=True)))
        except (KeyError, TypeError, binascii.Error, InputError) as error:
            raise ResultsError(f"{self.journal.path}: what {call.tool.name} gave cannot be read: {error}") from None

    def _record_step(self, step: Step) -> None:
        self.now = replace(self.now, scratchpad=self.now.scratchpad.plus(step))

    # -- what grows too long ------------------------------------------------------------------------------------------

    def _compact_scratchpad(self) -> Generator[Doing, Any, None]:
        pad = self.now.scratchpad
        count = len(pad) - KEPT_STEPS
        if len(pad.text()) > self.setup.sizes.scratchpad and count > pad.summarised:
            turns = Scratchpad(pad.steps[:count], pad.summary, pad.summarised).text()
            summary = yield from self._summarise_text(turns, self.now.request, self.setup.sizes.scratchpad // 4)
            self.now = replace(self.now, scratchpad=pad.with_summary(summary, count))

    def _end_run(self, answer: str) -> Generator[Doing, Any, None]:
        memory = self.now.memory.plus(self.now.request, answer)
        if len(memory.turns) > self.setup.sizes.turns:
            older = Memory(memory.turns[:-KEPT_TURNS], memory.summary).text()
            summary = yield from self._summarise_text(
                older, "what the user may come back to later", self.setup.sizes.summary
            )
            memory = Memory(memory.turns[-KEPT_TURNS:], summary)
        self.now = replace(self.now, answer=answer, memory=memory)
        self._notify_progress("answered", {"answer": answer})


def _dump_result(value: Value) -> Given:
    if value.kind == TEXT:
        return {"text": value.get()}
    return {"data": base64.b64encode(value.dump()).decode()}


def _format_value(value: Value) -> str:
    """A value as models are shown it."""
    return value.kind.to_text(value.get())
