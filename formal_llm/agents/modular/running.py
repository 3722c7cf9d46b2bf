"""One run of a modular agent, from its request to its answer."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from formal_llm.agents.events import Event
from formal_llm.agents.modular.binding import Call
from formal_llm.agents.modular.journal import Given, Journal
from formal_llm.agents.modular.memory import Memory
from formal_llm.agents.modular.prompts import (
    call_messages,
    plan_messages,
    plan_schema,
    summary_messages,
    summary_schema,
)
from formal_llm.agents.modular.run import Decision, Happening, ModularRun, Role, RunBudget
from formal_llm.agents.modular.scratchpad import Scratchpad, Step, shortened
from formal_llm.agents.modular.setup import Setup
from formal_llm.agents.transcript import Correction
from formal_llm.errors import (
    AgentError,
    InputError,
    InvalidAnswer,
    LLMError,
    NotAllowed,
    OutOfBudget,
    ResultsError,
    ToolError,
)
from formal_llm.llms.objects import Check, generate_object
from formal_llm.llms.question import Message
from formal_llm.llms.schemas import Schema, problem_in
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.tools.kinds import TEXT, Value

#: How many steps stay as they are when a scratchpad is summarised, and how many turns of a conversation.
KEPT_STEPS, KEPT_TURNS = 2, 3
#: How much of what a model wrote is kept in a correction.
_MOST_WRITTEN = 2_000

Progress = Callable[[Happening], None]


class Running:
    """A run under way.

    Attributes:
        now: what was done so far.
        monitor: where it stands in the rules.
    """

    def __init__(
        self, setup: Setup, request: str, memory: Memory, budget: RunBudget, journal: Journal, progress: Progress
    ) -> None:
        self.setup = setup
        self.budget = budget
        self.journal = journal
        self.progress = progress
        self.monitor = setup.monitor
        self.now = ModularRun(request, memory=memory)
        for gave in journal.vain:
            role: Role = next((one for one in setup.llms if one == gave.get("role")), "planner")
            self._spend(role, self._usage(gave))

    @property
    def left(self) -> int:
        """How many steps are left."""
        return self.budget.steps - len(self.now.scratchpad)

    def run(self) -> ModularRun:
        """The whole run."""
        while self.now.answer is None:
            decision = self._decide()
            call = self._bind(decision)
            value = self._carry_out(call, decision.task, outermost=True)
            if value is not None and self.setup.modules[call.tool.name].final:
                self._end(_text(value))
            else:
                self._compact()
        return self.now

    # -- the planner, and who calls the tools -----------------------------------------------------------------------

    def _decide(self) -> Decision:
        setup, now = self.setup, self.now
        legal = setup.legal(self.monitor, self.left)
        if not legal:
            if self.monitor.allowed():
                raise OutOfBudget("steps", self.budget.steps, now)
            raise AgentError(
                "no tool can be used any more, and the run cannot end: the rules were too large to look ahead"
            )
        messages = plan_messages(now.request, now.memory, now.scratchpad, list(setup.modules.values()), legal)
        schema = plan_schema(legal)
        value, text = self._ask("planner", messages, schema)
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
        self._tell("decided", {"tool": tool, "task": decision.task, "thoughts": decision.thoughts})
        return decision

    def _bind(self, decision: Decision) -> Call:
        setup, now = self.setup, self.now
        module = setup.modules[decision.tool]
        if not module.tool.inputs:
            return Call(module.tool, ())
        schema = setup.binder.schema(module.tool, setup.inner(self.monitor, module.name, self.left))
        if schema is None:
            raise AgentError(f"{module.name} cannot be called here: what one of its arguments needs may not come now")
        messages = call_messages(module, now.request, decision.task, now.memory, now.scratchpad)
        value, _ = self._ask("caller", messages, schema, lambda value: self._objection(decision.tool, value))
        call = setup.binder.read(module.tool, value)
        self._tell("bound", {"tool": decision.tool, "call": str(call)})
        return call

    def _objection(self, tool: str, value: Mapping[str, object]) -> str | None:
        """What is wrong with a call beyond its schema: its values, or the order of the tools in it."""
        try:
            word = self.setup.binder.read(self.setup.modules[tool].tool, value).word
            after = self.monitor.after_all(word)
        except ValueError as error:
            return str(error)
        except NotAllowed as error:
            return f"the calls in it come in the order {', '.join(word)}, and {error}"
        needed = after.shortest_way()
        if len(word) + (0 if needed is None else len(needed)) > self.left:
            return f"{self.left} uses of tools are left, and this call leaves too few to come to an end"
        return None

    # -- tools ------------------------------------------------------------------------------------------------------

    def _carry_out(self, call: Call, task: str, *, outermost: bool) -> Value | None:
        """What a call gives; None where it, or a call in it, failed."""
        values: list[Value] = []
        for argument in call.arguments:
            if isinstance(argument, Call):
                inner = self._carry_out(argument, f"for {call.tool.name}: {task}", outermost=False)
                if inner is None:
                    return None
                argument = inner
            values.append(argument)
        return self._use(call, values, task, outermost)

    def _use(self, call: Call, values: list[Value], task: str, outermost: bool) -> Value | None:
        module = self.setup.modules[call.tool.name]
        # First the rules: what they do not allow is not done.
        self.monitor = self.monitor.after(Event(module.name, {"call": str(call)}))

        def give() -> Given:
            try:
                value, _ = self.setup.caller.call(call.tool, values)
            except ToolError as error:
                return {"error": error.problem, "reason": error.reason}
            if value.kind == TEXT:
                return {"text": value.get()}
            return {"data": base64.b64encode(value.dump()).decode()}

        asked: JSON = [module.name, [value.key for value in values]]
        replayed = self.journal.replaying
        gave = self.journal.answer("tool", asked, give)
        if "error" in gave:
            problem = str(gave["error"])
            self._note(Step(module.name, task, problem, str(call), failed=True))
            self._tell("failed", {"tool": module.name, "problem": problem}, replayed)
            if module.final:
                raise ToolError(module.name, problem, reason=str(gave.get("reason", "failed")))
            return None
        value = self._value(call, gave)
        text = _text(value)
        self._tell("used", {"tool": module.name, "result": text}, replayed)
        if module.summarised and outermost and len(text) > self.setup.sizes.summary:
            text = self._summary(text, task, self.setup.sizes.summary)
        self._note(Step(module.name, task, text, str(call)))
        return value

    def _value(self, call: Call, gave: Given) -> Value:
        kind = call.tool.output
        try:
            if kind == TEXT:
                return Value(kind, kind.accept(gave["text"]))
            return Value(kind, kind.read(base64.b64decode(gave["data"], validate=True)))
        except (KeyError, TypeError, binascii.Error, InputError) as error:
            raise ResultsError(f"{self.journal.path}: what {call.tool.name} gave cannot be read: {error}") from None

    def _note(self, step: Step) -> None:
        self.now = replace(self.now, scratchpad=self.now.scratchpad.plus(step))

    # -- what grows too long ------------------------------------------------------------------------------------------

    def _compact(self) -> None:
        pad = self.now.scratchpad
        count = len(pad) - KEPT_STEPS
        if len(pad.text()) > self.setup.sizes.scratchpad and count > pad.summarised:
            told = Scratchpad(pad.steps[:count], pad.summary, pad.summarised).text()
            summary = self._summary(told, self.now.request, self.setup.sizes.scratchpad // 4)
            self.now = replace(self.now, scratchpad=pad.with_summary(summary, count))

    def _end(self, answer: str) -> None:
        memory = self.now.memory.plus(self.now.request, answer)
        if len(memory.turns) > self.setup.sizes.turns:
            older = Memory(memory.turns[:-KEPT_TURNS], memory.summary).text()
            summary = self._summary(older, "what the user may come back to later", self.setup.sizes.summary)
            memory = Memory(memory.turns[-KEPT_TURNS:], summary)
        self.now = replace(self.now, answer=answer, memory=memory)
        self._tell("answered", {"answer": answer})

    def _summary(self, text: str, task: str, most: int) -> str:
        """A text of at most about ``most`` characters: a summary, or where none can be had, the text cut visibly."""
        messages = summary_messages(text, task, most, self.setup.sizes.read)
        value, _ = self._ask("summarizer", messages, summary_schema(most), may_fail=True)
        if value:
            summary = str(value["summary"])
            self._tell("summarised", {"from": len(text), "summary": summary})
            return summary
        self._tell("shortened", {"from": len(text), "to": most})
        return shortened(text, most)

    # -- asking -----------------------------------------------------------------------------------------------------

    def _ask(
        self,
        role: Role,
        messages: tuple[Message, ...],
        schema: Schema,
        check: Check | None = None,
        *,
        may_fail: bool = False,
    ) -> tuple[dict[str, object], str]:
        """What a model writes, as an object and as text; an empty object where it may fail, and did."""
        corrections: list[dict[str, JSON]] = []
        vain = TokenUsage()

        def again(error: InvalidAnswer) -> None:
            nonlocal vain
            vain += error.usage or TokenUsage()
            corrections.append(_correction(error))
            self._afford(role, vain)

        def give() -> Given:
            self._afford(role, vain)
            try:
                made = generate_object(
                    self.setup.llms[role],
                    messages,
                    schema,
                    max_tokens=self.setup.sizes.max_tokens,
                    check=check,
                    before_again=again,
                )
            except InvalidAnswer as error:
                if not may_fail:
                    raise
                failed = [*corrections, _correction(error)]
                return {"value": {}, "text": "", "corrections": failed, "usage": asdict(error.usage or TokenUsage())}
            return {"value": made.value, "text": made.text, "corrections": corrections, "usage": asdict(made.usage)}

        replayed = self.journal.replaying
        asked: JSON = [[list(message) for message in messages], json.dumps(schema, sort_keys=True)]
        try:
            gave = self.journal.answer(role, asked, give)
        except LLMError as error:
            self._waste(role, error.usage or TokenUsage())
            raise
        return self._read(role, gave, schema, check, may_fail, replayed)

    def _read(
        self, role: Role, gave: Given, schema: Schema, check: Check | None, may_fail: bool, replayed: bool
    ) -> tuple[dict[str, object], str]:
        try:
            value, text, usage = dict(gave["value"]), str(gave["text"]), self._usage(gave)
            told = [(str(one["problem"]), str(one["written"])) for one in gave["corrections"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ResultsError(f"{self.journal.path}: an answer of the {role} cannot be read: {error!r}") from None
        if value or not may_fail:
            problem = problem_in(value, schema) or (check(value) if check is not None else None)
            if problem is not None:  # a journal that somebody changed
                raise ResultsError(f"{self.journal.path}: an answer of the {role} is not legal here: {problem}")
        self._spend(role, usage)
        place = len(self.now.scratchpad)
        for problem, written in told:
            correction = Correction(place, written, done=text[:_MOST_WRITTEN], reason=f"{role}: {problem}")
            self.now = replace(self.now, corrections=(*self.now.corrections, correction))
            self._tell("corrected", {"role": role, "problem": problem, "written": written}, replayed)
        return value, text

    def _usage(self, gave: Given) -> TokenUsage:
        usage = gave.get("usage")
        if not isinstance(usage, dict) or not all(type(one) is int and one >= 0 for one in usage.values()):
            raise ResultsError(f"{self.journal.path}: what an answer cost cannot be read: {usage!r}")
        try:
            return TokenUsage(**usage)
        except TypeError as error:
            raise ResultsError(f"{self.journal.path}: what an answer cost cannot be read: {error}") from None

    def _afford(self, role: Role, vain: TokenUsage) -> None:
        used = self.now.usage + vain
        for kind, have, budget in (
            ("requests", used.requests, self.budget.requests),
            ("tokens", used.tokens, self.budget.tokens),
        ):
            if budget is not None and have >= budget:
                self._waste(role, vain)
                raise OutOfBudget(kind, budget, self.now)

    def _waste(self, role: Role, usage: TokenUsage) -> None:
        """What was spent without an answer."""
        self._spend(role, usage)
        if usage != TokenUsage():
            self.journal.spent_in_vain({"role": role, "usage": asdict(usage)})

    def _spend(self, role: Role, usage: TokenUsage) -> None:
        self.now = replace(self.now, spent={**self.now.spent, role: self.now.spent.get(role, TokenUsage()) + usage})

    def _tell(self, kind: str, data: Mapping[str, JSON], replayed: bool | None = None) -> None:
        self.progress(Happening(kind, len(self.now.scratchpad), data, bool(replayed)))


def _correction(error: InvalidAnswer) -> dict[str, Any]:
    written = error.transcript[-1][1] if error.transcript else ""
    # Half of a surrogate pair fits into no file.
    return {"problem": error.problem, "written": written[:_MOST_WRITTEN].encode(errors="replace").decode()}


def _text(value: Value) -> str:
    """A value as models are shown it."""
    inside = value.get()
    if isinstance(inside, str):
        return inside
    return json.dumps(inside) if isinstance(inside, (bool, int, float)) else f"<{value.kind}>"
