"""An agent as a tool of another one: its run is an inner run, which keeps the rules of both.

The rules of the outer agent speak of the tools of the inner one as of its own (:mod:`formal_llm.agents.acting`). Each
call of the inner run is reported to the outer run, whose monitor follows it. What the inner run uses counts for the
outer one, and its events reach the outer run's watchers under a name such as ``0/researcher``. Where the inner run
pauses, so does the outer one, with the state of the inner run in its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from formal_llm.agents.acting import AgentRules
from formal_llm.agents.actions import Action
from formal_llm.agents.decoding.steps import Asks, Do
from formal_llm.agents.pausing import InnerPaused, PausedRun, WaitingRun
from formal_llm.agents.running import Run, RunTool
from formal_llm.agents.tool_calls import ERROR, BadArguments, format_result
from formal_llm.errors import AgentError, AgentPaused, NotAllowed
from formal_llm.tools.kinds import Value


class Within(NamedTuple):
    """What an inner run is part of.

    Attributes:
        run: the outer run.
        rules: the rules of both.
    """

    run: Run
    rules: AgentRules


@dataclass(frozen=True)
class AgentTool(RunTool):
    """A tool that is an agent; made by :meth:`Agent.as_tool`.

    Attributes:
        rules: the rules of the agent.
        start: begins a run of it: :meth:`Agent.start`.
        calls_in_texts: whether its calls of tools are parts of texts, of which no rule knows.
        takes_over: whether its answer is that of the run that calls it, which then ends.
    """

    rules: AgentRules = field(kw_only=True, compare=False, repr=False)
    start: Callable[..., Run] = field(kw_only=True, compare=False, repr=False)
    calls_in_texts: bool = field(default=False, kw_only=True, compare=False, repr=False)
    takes_over: bool = False

    def call_in_run(
        self, outer: Run, action: Action, later: Iterable[str], paused: WaitingRun | None
    ) -> Asks[tuple[str, bool] | InnerPaused]:
        """Carry out a call, see :meth:`RunTool.call_in_run`."""
        try:
            request = str(outer.read_input(action).values[0].get())
            run = self._start_run(request, Within(outer, outer.settings.rules.enter(self.name, outer.monitor, later)))
            if paused is not None:
                run.restore(PausedRun.from_json(paused.state, run.fingerprint), paused.approved, paused.results)
        except (BadArguments, NotAllowed) as error:
            return f"{ERROR}{self.name} was not called: {error}", False
        try:
            yield Do(run.run_to_end, run.arun_to_end)
            made = format_result(Value(self.output, run.output)), True
        except AgentPaused as error:
            if error.transcript is not run.transcript:
                raise  # the outer run has paused before this one began
            return InnerPaused(error)
        except AgentError as error:
            outer.check_budget()  # where that is used up, it is the outer run that ends
            made = f"{ERROR}{self.name} came to no end: {error}", False
        outer.record_inner_run(self.name, run.transcript)
        return made

    def _start_run(self, request: str, within: Within) -> Run:
        outer = within.run
        name = f"{outer.name}/{self.name}".removeprefix("/")
        on_event = outer.notify_watchers if outer.is_watched else None
        if not self.takes_over:
            return self.start(request, name=name, on_event=on_event, within=within)
        message = (
            f"Another agent has handed over to you. What was written so far:\n{outer.transcript}\n"
            f"Its message: {request}\n"
        )
        return self.start(outer.question, name=name, on_event=on_event, within=within, before=[message])
