"""Asking the models of a run: from its journal, within its budget, every correction on record."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, replace
from typing import Any

from formal_llm.agents.decoding.steps import Step
from formal_llm.agents.modular.journal import Given, RunJournal
from formal_llm.agents.modular.prompts import summary_messages, summary_schema
from formal_llm.agents.modular.role_llms import RoleRequest
from formal_llm.agents.modular.run import ModularRun, ProgressEvent, Role, RunBudget
from formal_llm.agents.modular.scratchpad import Memory, shorten_text
from formal_llm.agents.modular.setup import Setup
from formal_llm.agents.transcript import Correction
from formal_llm.errors import AgentStopped, InvalidAnswer, LLMError, ResultsError
from formal_llm.llms.driven import resumed
from formal_llm.llms.generation import GeneratedObject, ObjectLLM
from formal_llm.llms.objects import Check, object_steps
from formal_llm.llms.question import Answer, Message
from formal_llm.llms.schemas import Schema, problem_in
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.json_data import JSON

#: How much of what a model wrote is kept in a correction.
_MOST_WRITTEN = 2_000

Progress = Callable[[ProgressEvent], None]


class AskingRun:
    """A run, as far as it asks models.

    Attributes:
        now: what was done so far.
        monitor: where it stands in the rules.
    """

    def __init__(
        self, setup: Setup, request: str, memory: Memory, budget: RunBudget, journal: RunJournal, progress: Progress
    ) -> None:
        self.setup = setup
        self.budget = budget
        self.journal = journal
        self.progress = progress
        self.monitor = setup.monitor
        self.now = ModularRun(request, memory=memory)
        for gave in journal.vain:
            role: Role = next((one for one in setup.llms if one == gave.get("role")), "planner")
            self._record_usage(role, self._read_usage(gave))

    # -- asking -----------------------------------------------------------------------------------------------------

    def _ask_model(
        self,
        role: Role,
        messages: tuple[Message, ...],
        schema: Schema,
        check: Check | None = None,
        *,
        may_fail: bool = False,
    ) -> Generator[Step, Any, tuple[dict[str, object], str]]:
        """What a model writes, as an object and as text; an empty object where it may fail, and did."""
        corrections: list[dict[str, JSON]] = []
        vain = TokenUsage()

        def record_retry(error: InvalidAnswer) -> None:
            nonlocal vain
            vain += error.usage or TokenUsage()
            corrections.append(_describe_correction(error))
            self._check_budget(role, vain)

        def request_answer() -> Generator[Step, Any, Given]:
            self._check_budget(role, vain)
            try:
                made = yield from self._request_object(role, messages, schema, check, record_retry)
            except InvalidAnswer as error:
                if not may_fail:
                    raise
                failed = [*corrections, _describe_correction(error)]
                return {"value": {}, "text": "", "corrections": failed, "usage": asdict(error.usage or TokenUsage())}
            return {"value": made.value, "text": made.text, "corrections": corrections, "usage": asdict(made.usage)}

        replayed = self.journal.is_replaying
        asked: JSON = [[list(message) for message in messages], json.dumps(schema, sort_keys=True)]
        try:
            gave = self.journal.replay_answer(role, asked)
            if gave is None:
                gave = self.journal.record_answer(role, asked, (yield from request_answer()))
        except LLMError as error:
            self._record_waste(role, error.usage or TokenUsage())
            raise
        return self._read_answer(role, gave, schema, check, may_fail, replayed)

    def _request_object(
        self,
        role: Role,
        messages: tuple[Message, ...],
        schema: Schema,
        check: Check | None,
        again: Callable[[InvalidAnswer], None],
    ) -> Generator[Step, Any, GeneratedObject]:
        """What a model writes, asked for once more where it cannot be used; each request names its role."""
        held, most = isinstance(self.setup.llms[role], ObjectLLM), self.setup.sizes.max_tokens
        steps = object_steps(messages, schema, held=held, max_tokens=most, check=check, before_again=again)
        came: Answer | Exception | None = None
        while True:
            try:
                asked = resumed(steps, came)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # the value of a generator's return
            try:
                came = yield RoleRequest(asked, role)
            except Exception as error:
                came = error

    def _read_answer(
        self, role: Role, gave: Given, schema: Schema, check: Check | None, may_fail: bool, replayed: bool
    ) -> tuple[dict[str, object], str]:
        try:
            value, text, usage = dict(gave["value"]), str(gave["text"]), self._read_usage(gave)
            corrections = [(str(one["problem"]), str(one["written"])) for one in gave["corrections"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ResultsError(f"{self.journal.path}: an answer of the {role} cannot be read: {error!r}") from None
        if value or not may_fail:
            problem = problem_in(value, schema) or (check(value) if check is not None else None)
            if problem is not None:  # a journal that somebody changed
                raise ResultsError(f"{self.journal.path}: an answer of the {role} is not legal here: {problem}")
        self._record_usage(role, usage)
        place = len(self.now.scratchpad)
        for problem, written in corrections:
            correction = Correction(place, written, done=text[:_MOST_WRITTEN], reason=f"{role}: {problem}")
            self.now = replace(self.now, corrections=(*self.now.corrections, correction))
            self._notify_progress("corrected", {"role": role, "problem": problem, "written": written}, replayed)
        return value, text

    def _read_usage(self, gave: Given) -> TokenUsage:
        usage = gave.get("usage")
        if not isinstance(usage, dict) or not all(type(one) is int and one >= 0 for one in usage.values()):
            raise ResultsError(f"{self.journal.path}: what an answer cost cannot be read: {usage!r}")
        try:
            return TokenUsage(**usage)
        except TypeError as error:
            raise ResultsError(f"{self.journal.path}: what an answer cost cannot be read: {error}") from None

    def _check_budget(self, role: Role, vain: TokenUsage) -> None:
        used = self.now.usage + vain
        for kind, have, budget in (
            ("requests", used.requests, self.budget.requests),
            ("tokens", used.tokens, self.budget.tokens),
        ):
            if budget is not None and have >= budget:
                self._record_waste(role, vain)
                raise AgentStopped(kind, budget, self.now.transcript, run=self.now)

    def _record_waste(self, role: Role, usage: TokenUsage) -> None:
        """What was spent without an answer."""
        self._record_usage(role, usage)
        if usage != TokenUsage():
            self.journal.record_waste({"role": role, "usage": asdict(usage)})

    def _record_usage(self, role: Role, usage: TokenUsage) -> None:
        self.now = replace(self.now, spent={**self.now.spent, role: self.now.spent.get(role, TokenUsage()) + usage})

    def _notify_progress(self, kind: str, data: Mapping[str, JSON], replayed: bool | None = None) -> None:
        self.progress(ProgressEvent(kind, len(self.now.scratchpad), data, bool(replayed)))

    def _summarise_text(self, text: str, task: str, most: int) -> Generator[Step, Any, str]:
        """A text of at most about ``most`` characters: a summary, or where none can be had, the text cut visibly."""
        messages = summary_messages(text, task, most, self.setup.sizes.read)
        value, _ = yield from self._ask_model("summarizer", messages, summary_schema(most), may_fail=True)
        if value:
            summary = str(value["summary"])
            self._notify_progress("summarised", {"from": len(text), "summary": summary})
            return summary
        self._notify_progress("shortened", {"from": len(text), "to": most})
        return shorten_text(text, most)


def _describe_correction(error: InvalidAnswer) -> dict[str, Any]:
    written = error.transcript[-1][1] if error.transcript else ""
    # Half of a surrogate pair fits into no file.
    return {"problem": error.problem, "written": written[:_MOST_WRITTEN].encode(errors="replace").decode()}
