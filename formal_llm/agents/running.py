"""One run of an agent: the writer writes, tools answer, the monitor watches both.

The functions that write states of the environment receive the :class:`Run` (:mod:`formal_llm.agents.worlds`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Never

from formal_llm.agents import run_events
from formal_llm.agents.acting import NO_TOOL, StatesMonitor
from formal_llm.agents.actions import Action, actions_of, report_unknown_tool
from formal_llm.agents.decoding.contents import Content, FreeText, OneOf
from formal_llm.agents.decoding.steps import Asks, Do, Step, Steps, Telling, adriven, driven, relay_steps
from formal_llm.agents.decoding.writer import ContentOf, Due, SegmentBegan, Spent, Text, Writer
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.pausing import InnerPaused, InnerRun, PausedRun, Waiting, WaitingRun, WorldRecord, read_number
from formal_llm.agents.roles import RunSettings
from formal_llm.agents.run_events import RunEvent, RunEventCallback, ToolCall
from formal_llm.agents.tool_calls import (
    ERROR,
    acall_tool,
    call_concurrently,
    call_tool,
    parse_arguments,
    read_arguments,
)
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.automata import Limits
from formal_llm.errors import (
    AgentPaused,
    AgentStopped,
    LLMError,
    NotAllowed,
    Pending,
    RecordError,
    WritingError,
)
from formal_llm.llms.driven import resumed
from formal_llm.llms.llm import LLM, asking
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import Messages, TextRequest
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage
from formal_llm.tools.calling import Caller
from formal_llm.tools.signature import BoundValues
from formal_llm.tools.tool import Tool
from formal_llm.tools.toolkit import Toolkit

_ids = count(1)


class Run:
    """A run in progress.

    Args:
        writer: the writer that turns answers of the model into states.
        name: the name of the run, to distinguish it among many.
        prompt: what the model reads before the run.
        outer: the run that this one is part of, if its agent is called as a tool.

    Attributes:
        transcript: what was written so far.
        calls: the tool calls so far.
        inner: the runs of agents that were called as tools.
        fingerprint: the fingerprint of the rules with which the run began.
        id: a number that no other run in this process has; its events carry it.
    """

    def __init__(
        self,
        settings: RunSettings,
        writer: Writer,
        llm: LLM,
        toolkit: Toolkit,
        question: str,
        on_event: RunEventCallback | None = None,
        name: str = "",
        prompt: str = "",
        outer: Run | None = None,
    ) -> None:
        self.settings = settings
        self.llm = llm
        self.prompt = prompt
        self._writer = writer
        self.toolkit = toolkit
        self.question = question
        self.name = name
        self.id = next(_ids)
        self.transcript = Transcript(settings.rules.behaviour.name)
        self.calls: list[ToolCall] = []
        self.inner: list[InnerRun] = []
        self.outer = outer
        self.caller = Caller(settings.calls)
        self._on_event = on_event
        self._writing = ""  # the state of the world that is being written
        self._refused: dict[int, str] = {}
        self._monitor = settings.rules.start
        self.fingerprint = self._monitor.fingerprint
        self._narrowed: dict[str, int] = {}
        self._world = WorldRecord()
        self._pausing, self._is_asked, self._is_waiting = False, False, False
        #: The transcript and the state of the writer at the beginning of the turn.
        self._begun: tuple[Transcript, Mapping[str, JSON]] | None = None

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments written so far."""
        return self.transcript.segments

    @property
    def output(self) -> object:
        """The answer: of the type that was asked for, else a text.

        Raises:
            ValueError: the run has not ended with such an answer.
        """
        answer, read = self.transcript.answer, self.settings.read_output
        return answer if read is None else read(answer)

    @property
    def writing(self) -> str:
        """The state that the environment is writing; empty where it is not."""
        return self._writing

    @property
    def monitor(self) -> Monitor:
        """The monitor at the current position in the rules."""
        return self._monitor

    def run_to_end(self) -> Transcript:
        """Run to the end.

        Returns:
            The transcript: a word of the behaviour.

        Raises:
            AgentStopped: the budget is used up.
            WritingError: a bound of the writer was reached.
            NotAllowed: the text so far leaves no way to an end.
            LLMError: the model could not be reached.
        """
        for _ in driven(self.steps(), self.llm):
            pass
        return self.transcript

    async def arun_to_end(self) -> Transcript:
        """Do the same as :meth:`run_to_end` without blocking the event loop; tools are called in threads."""
        async for _ in adriven(self.steps(), self.llm):
            pass
        return self.transcript

    # -- pausing ------------------------------------------------------------------------------------------------

    def pause(self) -> str:
        """Pause the run before its next turn, request of the environment, or call of a tool.

        What is under way is finished first. The run then raises :class:`AgentPaused`.

        Returns:
            The state of the run now: that of a run that is not under way. One that is under way raises its own.
        """
        self._pausing = True
        return self.build_state().to_json()

    def build_state(self, waiting: Sequence[Waiting] = ()) -> PausedRun:
        """Return the state of the run, which waits for some calls."""
        world = self._world
        transcript = self.transcript
        writer: Mapping[str, JSON] = self._writer.save()
        if self._begun is not None and not self._writing and not self._is_asked:
            transcript, writer = self._begun  # what comes without a request in this turn comes again
        return PausedRun(
            self.fingerprint, self.question, transcript,
            tuple(self.calls[: world.calls_before] if self._writing else self.calls), self._refused,
            writer, self._narrowed, self._writing, world.carried, tuple(world.answers), world.approved, tuple(waiting),
            self.toolkit.save_state(), tuple(self.inner),
            {number: one.state for number, one in world.paused.items()},
        )  # fmt: skip

    def restore(self, state: PausedRun, approved: Mapping[str, bool | str], results: Mapping[str, str]) -> None:
        """Take up a state, before the first step.

        ``approved`` has, for calls that wait for an approval, True, or False or a reason if a person
        declined; ``results`` has what calls give whose results were missing.

        Raises:
            RecordError: the transcript is no run of this agent, or a call is not one that it waits for.
        """
        try:
            self._writer.restore(state.writer)
            if state.narrowed:
                self.narrow(Limits(state.narrowed))
            self._follow_transcript(state.transcript, state.inner)
            self.toolkit.restore_state(state.tools)
        except (NotAllowed, ValueError) as error:
            raise RecordError(f"the state of the run cannot be taken up: {error}") from error
        self.transcript, self.calls, self._refused = state.transcript, [*state.calls], dict(state.refused)
        self._writing = state.world
        self._world = WorldRecord(len(self.calls), dict(state.carried), [*state.answers], dict(state.approved))
        known = {one.id: one for one in state.waiting}
        for name in (*approved, *results):
            kind = "approval" if name in approved else "result"
            if name not in known or known[name].kind != kind:
                waits = ", ".join(f"{one.id} ({one.kind})" for one in state.waiting) or "nothing"
                raise RecordError(f"the run does not wait for the {kind} of {name!r}; it waits for {waits}")
        self._world.paused = {number: WaitingRun(one) for number, one in state.paused.items()}
        for name, given in (*approved.items(), *results.items()):
            outermost, _, inner = name.partition("/")
            number = read_number(outermost)
            if inner:
                paused = self._world.paused[number]
                paused.take_up(inner, given, is_approval=name in approved)
            elif name in approved:
                self._world.approved[number] = given
            else:
                call = ToolCall(len(self.segments), known[name].tool, known[name].input, str(given))
                self._world.carried[number] = call

    def _follow_transcript(self, transcript: Transcript, inner: Iterable[InnerRun]) -> None:
        """Follow what was written before the run paused with the monitors of this run and of the outer ones."""
        self.inner, rules = [*inner], self.settings.rules
        for place in range(len(transcript) + 1):
            for tool in (tool for one in self.inner if one.position == place for tool in one.calls):
                self.note_call(tool)
            if place < len(transcript):
                segment = transcript.segments[place]
                if segment.state in self.settings.roles.worlds:
                    self._allow_failed_runs(segment.state)
                self._monitor = self._monitor.after(segment.event)
                if segment.state == self.settings.roles.action:
                    named = segment.text.strip()
                    self._follow_named_tool(named, is_legal=named in rules.list_callable(self._monitor))

    def steps(self) -> Steps[Never]:
        """Run as a generator that asks no model itself: it yields requests and receives the answers.

        Watchers are notified of each event. The steps of a run can be taken only once.
        """
        error: BaseException | None = None
        try:
            if self.settings.roles.asks and not self.segments:
                self._write_question()
            if self._writing:
                yield from relay_steps(self._ask_world(self._writing), self._relay_step)
            going = True
            while going:
                self._is_asked = False
                self._begun = self.transcript, self._writer.save()
                going = yield from relay_steps(self._take_turn(), self._relay_step)
        except BaseException as caught:
            closed = isinstance(caught, GeneratorExit) and self.settings.rules.behaviour.endless  # its only end
            error = None if closed else caught
            # What was paid for in vain; an inner run has recorded its own.
            if isinstance(caught, LLMError) and caught.usage is not None and self._is_waiting:
                self._record_spent(Spent.from_tokens(self._writing, caught.usage))
            raise
        finally:
            self.notify_watchers(run_events.Ended(self.transcript, error, self.name))

    def narrow(self, limits: Limits) -> None:
        """Allow less from here on.

        Raises:
            NotAllowed: what is being written, or what follows it, cannot keep the limits; the run stays as it is.
        """
        rules, monitor = self.settings.rules.narrow(limits, self._monitor)
        refused = StatesMonitor(rules, [monitor]).why(self._writing) if self._writing else None
        if refused is not None:
            raise NotAllowed(refused)
        self._monitor, self.settings = monitor, replace(self.settings, rules=rules)
        self._narrowed |= {name: most for name, most in limits.at_most.items() if most is not None}

    def _relay_step(self, step: Step) -> bool:
        if not isinstance(step, Question | Telling | Do):
            return True
        if self.is_pausing and (self._writing or not self._is_asked):
            raise AgentPaused(self.build_state().to_json(), self.transcript)
        self._is_asked = True
        if isinstance(step, Question | Telling):
            self.check_budget()
            self._is_waiting = True
            self.notify_watchers(run_events.Requested(step.asked if isinstance(step, Telling) else step, self.name))
        return True

    @property
    def is_pausing(self) -> bool:
        """Whether this run or an outer one was asked to pause."""
        return self._pausing or (self.outer is not None and self.outer.is_pausing)

    @property
    def is_watched(self) -> bool:
        """Whether somebody is notified of events."""
        return self._on_event is not None

    def notify_watchers(self, event: RunEvent) -> None:
        """Notify the watchers of an event."""
        if self._on_event is not None:
            self._on_event(replace(event, id=self.id))

    # -- writing ------------------------------------------------------------------------------------------------

    def _write_question(self) -> None:
        states = self.settings.rules.behaviour.states
        first = next(name for name in self._monitor.allowed() if not states[name].from_environment)
        self.notify_watchers(run_events.Began(first, "user", self.name))
        self.notify_watchers(run_events.Wrote(first, self.question, self.name))
        self._add_segment(Segment(first, self.question, "user"))

    def _take_turn(self) -> Asks[bool]:
        """Have the model write until the environment is due, and let it write; return False at the end."""
        last = self.settings.rules.last
        if last and any(call.ok and call.tool in last for call in self.calls):
            return (yield from self._write_rest())
        states = self.settings.rules.behaviour.states
        outside = {name for name, state in states.items() if state.from_environment}
        allowed = tuple(self._monitor.allowed())
        due = allowed if set(allowed) <= outside else (yield from self._follow_writer(outside))
        if due:
            yield from self._ask_world(due[0])
            return True
        refused = self._monitor.why()
        if refused is not None:
            raise NotAllowed(refused)
        return False

    def _write_rest(self) -> Asks[bool]:
        """Write the shortest way to the end of a run that another agent has taken over, with that one's answer."""
        states, rules = self.settings.rules.behaviour.states, self.settings.rules
        while not self._monitor.may_stop():
            left = {name: way.shortest for name, way in self._monitor.allowed().items()}
            state = min(left, key=lambda name: math.inf if (count := left[name]) is None else count)
            if states[state].from_environment:
                yield from self._ask_world(state)
            else:
                answer = self.calls[-1].output if state in rules.answer_states else ""
                self.notify_watchers(run_events.Began(state, "forced", self.name))
                self._record_segment(Segment(state, answer, "forced"), was_streamed=False)
        return False

    def _follow_writer(self, outside: set[str]) -> Asks[tuple[str, ...]]:
        """Record what a writer reports, and return the states that are due at its end."""
        rules = self.settings.rules
        state, pieces, begun = "", False, list[str]()
        known = rules.action is None and not rules.behaviour.endless
        monitor = self._monitor if known else StatesMonitor(rules, [self._monitor])
        steps = self._writer.steps(self.transcript, monitor, until=outside, contents=self._build_contents())
        came: object = None
        while True:
            try:
                event = resumed(steps, came)
            except StopIteration:
                return ()
            came = None
            match event:
                case SegmentBegan():
                    if pieces or event.state in begun:
                        self._withdraw_states(begun)
                    state, pieces = event.state, False
                    begun.append(state)
                    self.notify_watchers(run_events.Began(state, "model", self.name))
                case Text():
                    pieces = True
                    self.notify_watchers(run_events.Wrote(state, event.text, self.name))
                case Segment():
                    self._record_segment(event, was_streamed=pieces and event.state == state)
                    pieces, begun = pieces and event.state != state, begun[1:]
                case Correction():
                    self._record_correction(event)
                case Spent():
                    self._record_spent(event)
                case Due():
                    return event.states
                case _:
                    try:
                        came = yield event
                    except Exception as error:
                        came = error

    def _withdraw_states(self, begun: list[str]) -> None:
        """Notify the watchers that these states, which have begun, are not written, the latest first."""
        while begun:
            self.notify_watchers(run_events.Withdrawn(begun.pop(), self.name))

    def _record_segment(self, segment: Segment, *, was_streamed: bool) -> None:
        """Add a segment that the writer has ended, and note the tool if it names one."""
        if not was_streamed and segment.text:
            self.notify_watchers(run_events.Wrote(segment.state, segment.text, self.name))
        self._add_segment(segment)
        if segment.state == self.settings.roles.action:
            self._name_tool(segment.text.strip())

    def _build_contents(self) -> dict[str, ContentOf]:
        roles = self.settings.roles
        contents: dict[str, ContentOf] = dict.fromkeys(self.settings.rules.answer_states, FreeText(whole=True))
        contents |= self.settings.contents
        if roles.action is not None:
            contents.setdefault(roles.action, self._find_callable_tools)
        if roles.label is not None:
            contents.setdefault(roles.label, lambda transcript: OneOf(f"#E{_count_state(transcript, roles.label) + 1}"))
        return contents

    def _find_callable_tools(self, transcript: Transcript) -> Content:
        """Return the tools that may be called after a transcript that ends before an action."""
        rules = self.settings.rules
        tools = rules.tools
        if rules.action is not None:
            monitor = self._monitor.after_all(rules.list_events(transcript.segments[len(self.segments) :]))
            tools = tuple(rules.list_callable(monitor.after(rules.action)))
        return OneOf(*tools)

    # -- tools --------------------------------------------------------------------------------------------------

    def _name_tool(self, named: str) -> None:
        """Record the tool that the last action names; one that cannot be called is refused when it is due."""
        rules, place = self.settings.rules, len(self.segments) - 1
        legal = tuple(rules.list_callable(self._monitor))
        if named not in legal:
            self._refused[place] = why = self._explain_refusal(named, legal)
            self._record_correction(Correction(place, named, legal, named, why))
        self._follow_named_tool(named, is_legal=named in legal)

    def _follow_named_tool(self, named: str, *, is_legal: bool) -> None:
        if self.settings.rules.action is not None:
            self._monitor = self.settings.rules.name_tool(self._monitor, named)
        if is_legal and self.outer is not None:
            self.outer.note_call(named)

    def _explain_refusal(self, named: str, legal: Sequence[str]) -> str:
        """Explain why a name is not a tool that may be called, in the words that the agent reads."""
        if named in self.settings.rules.tools:
            refused = self._monitor.why(named)
            return f"{named} may not be called now" + (f": {refused.reason}" if refused is not None else "")
        return report_unknown_tool(named, self.settings.rules.tools, legal)

    def call_tool(self, action: Action) -> ToolCall:
        """Call the tool of an action if that is allowed; the output of a refused or failed call is the reason."""
        if action.refused:
            return self._end_call(action, ERROR + action.refused, False)
        made = call_tool(self.toolkit[action.tool], partial(self.read_input, action), self.caller)
        return self._end_call(action, *made)

    async def acall_tool(self, action: Action) -> ToolCall:
        """Do the same as :meth:`call_tool` without blocking the event loop: asynchronous tools run on it."""
        if action.refused:
            return self._end_call(action, ERROR + action.refused, False)
        made = await acall_tool(self.toolkit[action.tool], partial(self.read_input, action), self.caller)
        return self._end_call(action, *made)

    def read_input(self, action: Action) -> BoundValues:
        """Read the input of an action as the arguments of its tool.

        Raises:
            BadArguments: it does not fit.
        """
        tool = self.toolkit[action.tool]
        if self.settings.native:
            return read_arguments(tool, action.input, strict=True)
        return parse_arguments(tool, action.input)

    def _end_call(self, action: Action, output: str, ok: bool) -> ToolCall:
        return ToolCall(len(self.segments), action.tool, action.input, output, ok, action.label)

    def record_call(self, call: ToolCall) -> ToolCall:
        """Record a call; the watchers know of one that was carried out here."""
        self.calls.append(call)
        if not any(call is one for one in self._world.carried.values()):
            self.notify_watchers(run_events.Called(call, self.name))
        return call

    # -- the world ----------------------------------------------------------------------------------------------

    def _ask_world(self, state: str) -> Asks[None]:
        self.notify_watchers(run_events.Began(state, "environment", self.name))
        if not self._writing:
            self._writing, self._world = state, WorldRecord(len(self.calls))
        self._world.asked = self._world.acted = 0
        answer = self.settings.roles.worlds[state](self)
        text = answer if isinstance(answer, str) else (yield from answer)
        self._writing = ""
        self.notify_watchers(run_events.Wrote(state, text, self.name))
        self._allow_failed_runs(state)
        self._add_segment(Segment(state, text, "environment"))

    def list_actions(self) -> list[Action]:
        """List the tool calls requested since the environment last wrote, each with everything known about it."""
        tools = self.settings.rules.tools or tuple(self.toolkit.tools)
        return actions_of(self.segments, self.settings.roles, self._refused, tools)

    def carry_out(self, actions: Sequence[Action]) -> Asks[list[ToolCall]]:
        """Carry out actions and return their calls in order, without recording them.

        Tools that depend on their input alone are called concurrently, the others one after the other. A call that was
        carried out before the run paused is not repeated.

        Raises:
            AgentPaused: a call waits for an approval or for its result; those before it were carried out.
        """
        first = self._world.acted
        self._world.acted += len(actions)
        numbered = dict(enumerate(actions, first))
        carried, waiting = self._world.carried, self._list_unapproved(numbered)
        left = {n: one for n, one in numbered.items() if n not in carried and n not in waiting}
        alone = [n for n, one in left.items() if one.refused or self.toolkit[one.tool].pure]
        pending: dict[int, list[Waiting]] = {}
        for group in ([alone] if alone else []) + [[n] for n in left if n not in alone]:
            if len(group) == 1 and group != alone and any(n < group[0] for n in (*waiting, *pending)):
                break  # the order of these calls matters
            for number in group:
                self.notify_watchers(run_events.Calling(left[number].tool, left[number].input, self.name))
            if left[group[0]].tool in self.settings.rules.inner and group != alone:
                made = [(yield from self._call_agent(left[group[0]], group[0]))]
            else:
                made = yield call_concurrently([left[number] for number in group], self.call_tool, self.acall_tool)
            for number, outcome in zip(group, made, strict=True):
                if isinstance(outcome, Pending):
                    pending[number] = self._list_waiting(left[number], number, outcome)
                else:
                    carried[number] = outcome
                    self.notify_watchers(run_events.Called(outcome, self.name))
        if waiting or pending:
            calls = [one for _, ones in sorted((waiting | pending).items()) for one in ones]
            raise AgentPaused(self.build_state(calls).to_json(), self.transcript, calls)
        return [carried[number] for number in numbered]

    def _list_unapproved(self, numbered: Mapping[int, Action]) -> dict[int, list[Waiting]]:
        """The calls that wait for an approval; those that a person declined are carried out as errors."""
        waiting: dict[int, list[Waiting]] = {}
        for number, action in numbered.items():
            if action.refused or number in self._world.carried or action.tool not in self.settings.approve:
                continue
            given = self._world.approved.get(number)
            if given is None:
                waiting[number] = [Waiting(self._name_call(number), "approval", action.tool, action.input)]
            elif given is not True:
                reason = given or "no reason was given"
                self._world.carried[number] = self._end_call(
                    action, f"{ERROR}a person declined this call: {reason}", False
                )
        return waiting

    def _list_waiting(self, action: Action, number: int, pending: Pending) -> list[Waiting]:
        """What a call waits for: its result, or what a run of an agent waits for."""
        name = self._name_call(number)
        if isinstance(pending, InnerPaused):
            self._world.paused[number] = WaitingRun(pending.state)
            return [replace(one, id=f"{name}/{one.id}") for one in pending.waiting]
        return [Waiting(name, "result", action.tool, action.input, pending.question)]

    def _name_call(self, number: int) -> str:
        return f"{len(self.segments)}.{number}"

    # -- agents as tools ----------------------------------------------------------------------------------------

    def _call_agent(self, action: Action, number: int) -> Asks[ToolCall | Pending]:
        """Carry out the call of an agent, whose calls are noted while it runs."""
        self._world.noted = []
        inner = self.settings.rules.inner
        later = Counter(one.tool for one in self.list_actions() if one.tool in inner and not one.refused)
        later -= Counter([action.tool, *(call.tool for call in self._world.carried.values())])
        tool = self.toolkit[action.tool]
        assert isinstance(tool, RunTool)
        made = yield from tool.call_in_run(self, action, later, self._world.paused.pop(number, None))
        return made if isinstance(made, Pending) else self._end_call(action, *made)

    def note_call(self, tool: str) -> None:
        """Note that an agent called a tool that was itself called as a tool: the rules of this run know of it."""
        if self.settings.rules.action is not None:
            self._monitor = self._monitor.after(tool)
            self._world.noted.append(tool)
        if self.outer is not None:
            self.outer.note_call(tool)

    def _allow_failed_runs(self, state: str) -> None:
        """Have the rules continue where the call of an agent came to nothing, or to less than one of its runs."""
        rules = self.settings.rules
        if rules.action is not None and rules.inner and not self._monitor.allows(state):
            with suppress(NotAllowed):
                self._monitor = rules.name_tool(self._monitor, NO_TOOL)

    def record_inner_usage(self, usage: Usage) -> None:
        """Count what an agent used that is called as a tool, for the state that is written."""
        self._record_spent(Spent(self._writing, usage))

    def record_inner_run(self, tool: str, transcript: Transcript) -> None:
        """Record the run of an agent that was called as a tool, at its end."""
        self.inner.append(InnerRun(len(self.segments), tool, transcript, tuple(self._world.noted)))

    def write(self, messages: Messages, *, temperature: float = 0.0) -> Asks[str]:
        """Request a text that belongs to no state from the model: an evaluation, a summary; use ``yield from``."""
        asked = TextRequest(messages, max_tokens=self.settings.max_tokens, temperature=temperature, walk=self.name)
        answer = yield from self._ask(asked, 0)
        return answer.text.strip()

    def choose(self, question: Question) -> Asks[int]:
        """Return the number of the option that the model chooses; use ``yield from``."""
        return (yield from self._ask(question, 1)).number

    def _ask(self, request: Question, questions: int) -> Asks[Answer]:
        """Ask the model for the environment; what it answered before the run paused is not asked again."""
        place = self._world.asked
        self._world.asked += 1
        if place < len(self._world.answers):
            return self._world.answers[place]
        answer: Answer = yield from asking(request)
        self._world.answers.append(answer)
        self._record_spent(Spent.from_tokens(self._writing, answer.usage, questions=questions))
        return answer

    # -- accounts -----------------------------------------------------------------------------------------------

    def _record_spent(self, spent: Spent) -> None:
        prices, usage = self.settings.prices, spent.usage
        if prices is not None and usage.cost is None:
            usage += Usage(cost=prices.cost(usage.token_usage))
        self.transcript = self.transcript.plus(usage=usage, state=spent.state)
        if self.outer is not None:
            self.outer.record_inner_usage(usage)
        if self._is_waiting:  # else the usage is not that of a request
            self._is_waiting = False
            self.notify_watchers(run_events.Received(usage, self.name))

    def check_budget(self) -> None:
        """Raise if nothing is left for another request of this run or of an outer one.

        Raises:
            AgentStopped: nothing is left.
        """
        if self.outer is not None:
            self.outer.check_budget()
        spent = self.settings.budget.spent(self.transcript.usage)
        if spent is not None:
            raise AgentStopped(*spent, self.transcript)

    def _record_correction(self, correction: Correction) -> None:
        self.transcript = self.transcript.plus(corrections=[correction])
        self.notify_watchers(run_events.Corrected(correction, self.name))

    def _add_segment(self, segment: Segment) -> None:
        try:
            self._monitor = self._monitor.after(segment.event)
        except NotAllowed as error:
            raise WritingError(f"{segment.state} was written where it cannot come: {error}") from error
        self.transcript = self.transcript.plus(segment)


class RunTool(Tool, ABC):
    """A tool that the run which calls it takes part in: an agent."""

    @abstractmethod
    def call_in_run(
        self, outer: Run, action: Action, later: Iterable[str], paused: WaitingRun | None
    ) -> Asks[tuple[str, bool] | InnerPaused]:
        """Carry out a call.

        Args:
            outer: the run that calls it.
            action: the call.
            later: the agents that are called after it before the environment of that run writes.
            paused: the run that an earlier attempt began, if that has paused.

        Returns:
            The output, and whether there is one; else the error, as a text for the model. For a run that has paused the
            exception that describes it.
        """


def _count_state(transcript: Transcript, state: str | None) -> int:
    return sum(segment.state == state for segment in transcript.segments)
