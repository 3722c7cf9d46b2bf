"""An agent as a tool of another one: its run is an inner run, which keeps the rules of both.

The rules of the outer agent speak of the tools of the inner one as of its own (:mod:`formal_llm.agents.acting`). Each
call of the inner run is reported to the outer run, whose monitor follows it. What the inner run uses counts for the
outer one, and its events reach the outer run's watchers under a name such as ``0/researcher``. Where the inner run
pauses, so does the outer one, with the state of the inner run in its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, cast

from formal_llm.agents.acting import AgentRules
from formal_llm.agents.actions import Action
from formal_llm.agents.decoding.contents import OutputType
from formal_llm.agents.decoding.steps import Asks, Do
from formal_llm.agents.happenings import Happening, HappeningCallback
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.pausing import PausedRun, Waiting, WaitingRun
from formal_llm.agents.run_settings import RunSettings
from formal_llm.agents.tool_calls import ERROR, BadArguments, format_result, parse_arguments, read_arguments
from formal_llm.agents.transcript import Transcript
from formal_llm.automata import Behaviour
from formal_llm.errors import AgentError, AgentPaused, AutomatonError, NotAllowed, Pending
from formal_llm.planning.plans.usage import Usage
from formal_llm.tools.kinds import Value
from formal_llm.tools.tool import Tool, tool
from formal_llm.tools.toolkit import Toolkit


class CalledRun(Protocol):
    """The run of an agent that is called as a tool."""

    fingerprint: str
    transcript: Transcript

    @property
    def output(self) -> object:
        """Its answer."""
        ...

    def restore(self, state: PausedRun, approved: Mapping[str, bool | str], results: Mapping[str, str]) -> None:
        """Take up a state, before the first step."""
        ...

    def run_to_end(self) -> Transcript:
        """Run to the end."""
        ...

    async def arun_to_end(self) -> Transcript:
        """Do the same without blocking the event loop."""
        ...


class CallableAgent(Protocol):
    """An agent that can be called as a tool: an ``Agent``."""

    behaviour: Behaviour
    rules: AgentRules
    output_type: OutputType | None

    @property
    def version(self) -> str:
        """A fingerprint of all that its runs depend on."""
        ...

    @property
    def calls_in_texts(self) -> bool:
        """Whether calls of tools are parts of texts, of which no rule knows."""
        ...

    def start(
        self,
        question: str,
        *,
        name: str = "",
        before: Sequence[Transcript | str] = (),
        on_event: HappeningCallback | None = None,
        within: Within | None = None,
    ) -> CalledRun:
        """Create a run without starting it."""
        ...


class OuterRun(Protocol):
    """A run that calls an agent as a tool: a ``Run``."""

    settings: RunSettings
    toolkit: Toolkit
    name: str
    question: str
    transcript: Transcript

    @property
    def monitor(self) -> Monitor:
        """Where its rules are."""
        ...

    @property
    def is_pausing(self) -> bool:
        """Whether it was asked to pause."""
        ...

    @property
    def is_watched(self) -> bool:
        """Whether somebody is notified of events."""
        ...

    def notify_watchers(self, happening: Happening) -> None:
        """Notify the watchers of an event."""
        ...

    def check_budget(self) -> None:
        """Raise if nothing is left for another request."""
        ...

    def note_call(self, tool: str) -> None:
        """Note a call of an inner run."""
        ...

    def record_inner_usage(self, usage: Usage) -> None:
        """Count what an inner run used."""
        ...

    def record_inner_run(self, tool: str, transcript: Transcript) -> None:
        """Record an inner run at its end."""
        ...


@dataclass(frozen=True)
class AgentTool(Tool):
    """A tool that is an agent; made by :meth:`Agent.as_tool`.

    Attributes:
        agent: the agent.
        takes_over: whether its answer is that of the run that calls it, which then ends.
    """

    agent: CallableAgent = field(kw_only=True, compare=False, repr=False)
    takes_over: bool = False


class Within(NamedTuple):
    """What an inner run is part of.

    Attributes:
        run: the outer run.
        rules: the rules of both.
    """

    run: OuterRun
    rules: AgentRules


class InnerPaused(Pending):
    """An inner run has paused.

    Attributes:
        state: its state.
        waiting: the calls that it waits for.
    """

    def __init__(self, paused: AgentPaused) -> None:
        self.state = paused.state
        self.waiting = cast("Sequence[Waiting]", paused.waiting)
        super().__init__(str(paused))


#: The output of a call and whether there is one, or what the run waits for.
InnerResult = tuple[str, bool] | InnerPaused


def make_agent_tool(agent: CallableAgent, name: str, description: str) -> AgentTool:
    """Make the tool that an agent is; see :meth:`Agent.as_tool`."""
    if agent.behaviour.endless:
        raise AutomatonError(f"{agent.behaviour.name} never ends by itself, so it cannot be a tool")

    def ask(request: str) -> object:
        run = agent.start(request)
        run.run_to_end()
        return run.output

    plain = tool(name, output=str if agent.output_type is None else agent.output_type.hint.annotation)(ask)
    return AgentTool(
        name, plain.inputs, plain.output, ask, description, version=agent.version, deterministic=False,
        parameters=plain.parameters, signature=plain.signature, agent=agent,
    )  # fmt: skip


def make_hand_over(agent: CallableAgent, name: str) -> AgentTool:
    """Make the tool that hands a run over to another agent."""
    description = f"Hands over to {name}, which continues and gives the answer. The request is what it has to know."
    return replace(make_agent_tool(agent, f"hand_over_to_{name}", description), takes_over=True)


def call_agent(outer: OuterRun, action: Action, later: Iterable[str], paused: WaitingRun | None) -> Asks[InnerResult]:
    """Carry out the call of an agent.

    Args:
        outer: the run that calls it.
        action: the call.
        later: the agents that are called after it before the environment of the outer run writes.
        paused: its run, if that has paused.

    Returns:
        The output, and whether there is one; else the error, as a text for the outer agent. For a run that has paused
        the exception that describes it.
    """
    called, native = outer.toolkit[action.tool], outer.settings.native
    assert isinstance(called, AgentTool)
    try:
        bound = read_arguments(called, action.input, strict=True) if native else parse_arguments(called, action.input)
        within = Within(outer, outer.settings.rules.enter(called.name, outer.monitor, later))
        run = _start_run(called, str(bound.values[0].get()), within)
        if paused is not None:
            run.restore(PausedRun.from_json(paused.state, run.fingerprint), paused.approved, paused.results)
    except (BadArguments, NotAllowed) as error:
        return f"{ERROR}{called.name} was not called: {error}", False
    made: InnerResult
    try:
        yield Do(run.run_to_end, run.arun_to_end)
        made = format_result(Value(called.output, run.output)), True
    except AgentPaused as error:
        if error.transcript is not run.transcript:
            raise  # the outer run has paused before this one began
        return InnerPaused(error)
    except AgentError as error:
        outer.check_budget()  # where that is used up, it is the outer run that ends
        made = f"{ERROR}{called.name} came to no end: {error}", False
    outer.record_inner_run(called.name, run.transcript)
    return made


def _start_run(called: AgentTool, request: str, within: Within) -> CalledRun:
    outer = within.run
    name, on_event = (
        f"{outer.name}/{called.name}".removeprefix("/"),
        outer.notify_watchers if outer.is_watched else None,
    )
    if not called.takes_over:
        return called.agent.start(request, name=name, on_event=on_event, within=within)
    said = (
        f"Another agent has handed over to you. What was written so far:\n{outer.transcript}\nIts message: {request}\n"
    )
    return called.agent.start(outer.question, name=name, on_event=on_event, within=within, before=[said])
