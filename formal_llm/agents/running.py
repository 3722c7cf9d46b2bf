"""One run of an agent: the writer writes, tools answer, the monitor watches both.

The functions that write states of the environment receive the :class:`Run` (:mod:`formal_llm.agents.agent`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple, Never

from formal_llm.agents import happenings
from formal_llm.agents.acting import AgentRules, StatesMonitor
from formal_llm.agents.decoding.contents import Content, FreeText, OneOf
from formal_llm.agents.decoding.steps import Asks, Do, Step, Steps, Telling, adriven, driven, relay_steps
from formal_llm.agents.decoding.writer import ContentOf, Due, SegmentBegan, Spent, Text, Writer
from formal_llm.agents.happenings import Happening, ToolCall
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.pausing import PausedRun, Waiting
from formal_llm.agents.roles import Roles
from formal_llm.agents.tool_calls import (
    ERROR,
    acall_with_arguments,
    acall_with_text,
    call_with_arguments,
    call_with_text,
)
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.automata import Limits
from formal_llm.errors import (
    AgentPaused,
    AgentStopped,
    LLMError,
    NotAllowed,
    Pending,
    SnapshotError,
    WritingError,
    did_you_mean,
)
from formal_llm.llms.driven import resumed
from formal_llm.llms.generation import Messages, Writing
from formal_llm.llms.llm import LLM, asking
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import Prices
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.walks.budget import Budget
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.toolkit import Toolkit


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings that all runs of an agent share.

    Attributes:
        rules: the rules, including the tools.
        roles: the purposes of the states.
        contents: the texts that states may have.
        budget: how much a run may use.
        prices: the prices of tokens.
        calls: limits on each tool call.
        max_tokens: the maximum number of tokens of a text that the environment requests from the model.
        approve: the tools whose calls a person has to approve.
        native: whether inputs are arguments by the strict schemas of tools, as a native turn writes them.
        read_output: reads the answer as the type that was asked for; None if it is a text.
    """

    rules: AgentRules
    roles: Roles
    contents: Mapping[str, ContentOf] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    prices: Prices | None = None
    calls: CallLimits = field(default_factory=lambda: CallLimits(timeout=60.0))
    max_tokens: int = 512
    approve: frozenset[str] = frozenset()
    native: bool = False
    read_output: Callable[[str], object] | None = None


class Action(NamedTuple):
    """A tool call that a run requests.

    Attributes:
        tool: the name in the action.
        input: the text after it.
        label: the label, if there is one.
        refused: why the tool cannot be called; empty if it can.
    """

    tool: str = ""
    input: str = ""
    label: str = ""
    refused: str = ""


def actions_of(
    segments: Sequence[Segment], roles: Roles, refused: Mapping[int, str], tools: Iterable[str]
) -> list[Action]:
    """List the tool calls requested since the environment last wrote, each with everything known about it.

    Args:
        segments: the segments written so far.
        roles: which states are actions, labels, inputs, or written by the environment.
        refused: why actions cannot be carried out, by their positions among the segments.
        tools: the available tools, which the error for an input without an action names.
    """
    found: list[Action] = []
    begin, tools = max((at for at, one in enumerate(segments, 1) if one.state in roles.worlds), default=0), tuple(tools)
    open_ = Action()
    for at, segment in enumerate(segments[begin:], begin):
        if segment.state == roles.label:
            open_ = open_._replace(label=segment.text.strip())
        elif segment.state == roles.action:
            open_ = open_._replace(tool=segment.text.strip(), refused=refused.get(at, ""))
        elif segment.state == roles.calls:
            found += find_calls(segment.text, tools)
        elif segment.state == roles.input:
            without = f"no action stands before this input; name one of {', '.join(tools)}"
            found.append(open_._replace(input=segment.text.strip(), refused=open_.refused if open_.tool else without))
            open_ = Action()
    return found


_CALL = re.compile(r"\[Action\](.*?)\[Action Input\](.*?)(?=\[Action\]|\n\s*\[|\Z)", re.DOTALL)


def find_calls(text: str, tools: Sequence[str]) -> list[Action]:
    """List the tool calls in a text: ``[Action] search [Action Input] Danube``; refused where there is no such tool."""
    calls = [Action(name.strip(), given.strip()) for name, given in _CALL.findall(text)]
    return [call if call.tool in tools else call._replace(refused=_report_unknown_tool(call.tool, tools, tools))
            for call in calls]  # fmt: skip


def _report_unknown_tool(named: str, tools: Sequence[str], legal: Sequence[str]) -> str:
    near = did_you_mean(named, tools)
    guess = f" (did you mean {near}?)" if near else ""
    return f"there is no tool {named[:100]!r}{guess}; the tools are {', '.join(legal)}"


_ids = count(1)
#: The maximum number of concurrent tool calls.
_AT_ONCE = 8


@dataclass
class _WorldRecord:
    """What was done for the state that the environment is writing, so that a run that pauses does not repeat it.

    Attributes:
        calls_before: the number of calls recorded before.
        carried: the calls that were carried out, by their numbers.
        answers: what the model answered.
        approved: what a person decided about calls, by their numbers.
        acted: the number of actions since the function that writes the state began.
        asked: the number of requests since then.
    """

    calls_before: int = 0
    carried: dict[int, ToolCall] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    approved: dict[int, bool | str] = field(default_factory=dict)
    acted: int = 0
    asked: int = 0


def _read_number(name: str) -> int:
    """The number of a call within its turn, by the name that :class:`Waiting` has for it."""
    return int(name.rpartition(".")[2])


class Run:
    """A run in progress.

    Args:
        settings: the settings of the agent.
        writer: the writer that turns answers of the model into states.
        llm: the model.
        toolkit: the tools.
        question: the question.
        tell: called with each event.
        name: the name of the run, to distinguish it among many.
        told: the instructions that the model reads before the run.

    Attributes:
        transcript: what was written so far.
        calls: the tool calls so far.
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
        tell: Callable[[Happening], None] | None = None,
        name: str = "",
        told: str = "",
    ) -> None:
        self.settings = settings
        self.llm = llm
        self.told = told
        self._writer = writer
        self.toolkit = toolkit
        self.question = question
        self.name = name
        self.id = next(_ids)
        self.transcript = Transcript(settings.rules.behaviour.name)
        self.calls: list[ToolCall] = []
        self.caller = Caller(settings.calls)
        self._tell = tell
        self._writing = ""  # the state of the world that is being written
        self._refused: dict[int, str] = {}
        self._monitor = settings.rules.get_monitor()
        self.fingerprint = self._monitor.fingerprint
        self._narrowed: dict[str, int] = {}
        self._world = _WorldRecord()
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
            self.toolkit.save_state(),
        )  # fmt: skip

    def restore(self, state: PausedRun, approved: Mapping[str, bool | str], results: Mapping[str, str]) -> None:
        """Take up a state, before the first step.

        Args:
            state: the state.
            approved: for calls that wait for an approval: True, or False or a reason if a person declined.
            results: for calls whose results were missing: what they give.

        Raises:
            SnapshotError: the transcript is no run of this agent, or a call is not one that it waits for.
        """
        try:
            self._writer.restore(state.writer)
            if state.narrowed:
                self.narrow(Limits(state.narrowed))
            for segment in state.transcript.segments:
                self._monitor = self._monitor.after(segment.event)
                if segment.state == self.settings.roles.action and self.settings.rules.action is not None:
                    self._monitor = self.settings.rules.name_tool(self._monitor, segment.text.strip())
            self.toolkit.restore_state(state.tools)
        except (NotAllowed, ValueError) as error:
            raise SnapshotError(f"the state of the run cannot be taken up: {error}") from error
        self.transcript, self.calls, self._refused = state.transcript, [*state.calls], dict(state.refused)
        self._writing = state.world
        self._world = _WorldRecord(len(self.calls), dict(state.carried), [*state.answers], dict(state.approved))
        known = {one.id: one for one in state.waiting}
        for name in (*approved, *results):
            kind = "approval" if name in approved else "result"
            if name not in known or known[name].kind != kind:
                waits = ", ".join(f"{one.id} ({one.kind})" for one in state.waiting) or "nothing"
                raise SnapshotError(f"the run does not wait for the {kind} of {name!r}; it waits for {waits}")
        self._world.approved |= {_read_number(name): given for name, given in approved.items()}
        for name, output in results.items():
            call = ToolCall(len(self.segments), known[name].tool, known[name].input, output)
            self._world.carried[_read_number(name)] = call

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
            if isinstance(caught, LLMError) and caught.usage is not None:  # what was paid for in vain
                self._record_spent(Spent.from_tokens(self._writing, caught.usage))
            raise
        finally:
            self.notify_watchers(happenings.Ended(self.transcript, error, self.name))

    def narrow(self, limits: Limits) -> None:
        """Allow less from here on.

        Raises:
            NotAllowed: what is being written, or what follows it, cannot keep the limits; the run stays as it is.
        """
        rules, monitor = self.settings.rules.narrow(limits, self._monitor)
        refused = monitor.why(self._writing) if self._writing else None
        if refused is not None:
            raise NotAllowed(refused)
        self._monitor, self.settings = monitor, replace(self.settings, rules=rules)
        self._narrowed |= {name: most for name, most in limits.at_most.items() if most is not None}

    def _relay_step(self, step: Step) -> bool:
        if not isinstance(step, Question | Telling | Do):
            return True
        if self._pausing and (self._writing or not self._is_asked):
            raise AgentPaused(self.build_state().to_json(), self.transcript)
        self._is_asked = True
        if isinstance(step, Question | Telling):
            self._check_budget()
            self._is_waiting = True
            self.notify_watchers(happenings.Requested(step.asked if isinstance(step, Telling) else step, self.name))
        return True

    def notify_watchers(self, happening: Happening) -> None:
        """Notify the watchers of an event."""
        if self._tell is not None:
            self._tell(replace(happening, id=self.id))

    # -- writing ------------------------------------------------------------------------------------------------

    def _write_question(self) -> None:
        states = self.settings.rules.behaviour.states
        first = next(name for name in self._monitor.allowed() if not states[name].from_environment)
        self.notify_watchers(happenings.Began(first, "user", self.name))
        self.notify_watchers(happenings.Wrote(first, self.question, self.name))
        self._add_segment(Segment(first, self.question, "user"))

    def _take_turn(self) -> Asks[bool]:
        """Have the model write until the environment is due, and let it write; return False at the end."""
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
                    self.notify_watchers(happenings.Began(state, "model", self.name))
                case Text():
                    pieces = True
                    self.notify_watchers(happenings.Wrote(state, event.text, self.name))
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
            self.notify_watchers(happenings.Withdrawn(begun.pop(), self.name))

    def _record_segment(self, segment: Segment, *, was_streamed: bool) -> None:
        """Add a segment that the writer has ended, and note the tool if it names one."""
        if not was_streamed and segment.text:
            self.notify_watchers(happenings.Wrote(segment.state, segment.text, self.name))
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
            tools = tuple(name for name in monitor.after(rules.action).allowed() if name in tools)
        return OneOf(*tools)

    # -- tools --------------------------------------------------------------------------------------------------

    def _name_tool(self, named: str) -> None:
        """Record the tool that the last action names; one that cannot be called is refused when it is due."""
        rules, place = self.settings.rules, len(self.segments) - 1
        allowed = self._monitor.allowed()
        legal = tuple(name for name in rules.tools if rules.action is None or name in allowed)
        if named not in legal:
            self._refused[place] = why = self._explain_refusal(named, legal)
            self._record_correction(Correction(place, named, legal, named, why))
        if rules.action is not None:
            self._monitor = rules.name_tool(self._monitor, named)

    def _explain_refusal(self, named: str, legal: Sequence[str]) -> str:
        """Explain why a name is not a tool that may be called, in the words that the agent reads."""
        if named in self.settings.rules.tools:
            refused = self._monitor.why(named)
            return f"{named} may not be called now" + (f": {refused.reason}" if refused is not None else "")
        return _report_unknown_tool(named, self.settings.rules.tools, legal)

    def call_tool(self, action: Action) -> ToolCall:
        """Call the tool of an action if that is allowed; the output of a refused or failed call is the reason."""
        if action.refused:
            return self._end_call(action, ERROR + action.refused, False)
        tool = self.toolkit[action.tool]
        if self.settings.native:
            return self._end_call(action, *call_with_arguments(tool, action.input, self.caller, strict=True))
        return self._end_call(action, *call_with_text(tool, action.input, self.caller))

    async def acall_tool(self, action: Action) -> ToolCall:
        """Do the same as :meth:`call_tool` without blocking the event loop: asynchronous tools run on it."""
        if action.refused:
            return self._end_call(action, ERROR + action.refused, False)
        tool = self.toolkit[action.tool]
        if self.settings.native:
            return self._end_call(action, *await acall_with_arguments(tool, action.input, self.caller, strict=True))
        return self._end_call(action, *await acall_with_text(tool, action.input, self.caller))

    def _end_call(self, action: Action, output: str, ok: bool) -> ToolCall:
        return ToolCall(len(self.segments), action.tool, action.input, output, ok, action.label)

    def record_call(self, call: ToolCall) -> ToolCall:
        """Record a call; the watchers know of one that was carried out here."""
        self.calls.append(call)
        if not any(call is one for one in self._world.carried.values()):
            self.notify_watchers(happenings.Called(call, self.name))
        return call

    # -- the world ----------------------------------------------------------------------------------------------

    def _ask_world(self, state: str) -> Asks[None]:
        self.notify_watchers(happenings.Began(state, "environment", self.name))
        if not self._writing:
            self._writing, self._world = state, _WorldRecord(len(self.calls))
        self._world.asked = self._world.acted = 0
        answer = self.settings.roles.worlds[state](self)
        text = answer if isinstance(answer, str) else (yield from answer)
        self._writing = ""
        self.notify_watchers(happenings.Wrote(state, text, self.name))
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
        alone = [n for n, one in left.items() if one.refused or self.toolkit[one.tool].deterministic]
        pending: dict[int, Waiting] = {}
        for group in ([alone] if alone else []) + [[n] for n in left if n not in alone]:
            if len(group) == 1 and group != alone and any(n < group[0] for n in (*waiting, *pending)):
                break  # the order of these calls matters
            for number in group:
                self.notify_watchers(happenings.Calling(left[number].tool, left[number].input, self.name))
            made = yield self._build_work([left[number] for number in group])
            for number, outcome in zip(group, made, strict=True):
                if isinstance(outcome, Pending):
                    question = outcome.question
                    pending[number] = Waiting(
                        self._name_call(number), "result", left[number].tool, left[number].input, question
                    )
                else:
                    carried[number] = outcome
                    self.notify_watchers(happenings.Called(outcome, self.name))
        if waiting or pending:
            by_number = sorted({**waiting, **pending}.items())
            raise AgentPaused(self.build_state([one for _, one in by_number]).to_json(), self.transcript,
                              [one for _, one in by_number])  # fmt: skip
        return [carried[number] for number in numbered]

    def _list_unapproved(self, numbered: Mapping[int, Action]) -> dict[int, Waiting]:
        """The calls that wait for an approval; those that a person declined are carried out as errors."""
        waiting = {}
        for number, action in numbered.items():
            if action.refused or number in self._world.carried or action.tool not in self.settings.approve:
                continue
            given = self._world.approved.get(number)
            if given is None:
                waiting[number] = Waiting(self._name_call(number), "approval", action.tool, action.input)
            elif given is not True:
                reason = given or "no reason was given"
                self._world.carried[number] = self._end_call(
                    action, f"{ERROR}a person declined this call: {reason}", False
                )
        return waiting

    def _name_call(self, number: int) -> str:
        return f"{len(self.segments)}.{number}"

    def _build_work(self, actions: Sequence[Action]) -> Do:
        """The work of calling tools, concurrently; it returns their calls, or what they wait for."""

        def call_tool(action: Action) -> ToolCall | Pending:
            try:
                return self.call_tool(action)
            except Pending as waits:
                return waits

        def call_tools() -> list[ToolCall | Pending]:
            if len(actions) == 1:
                return [call_tool(actions[0])]
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="formal-llm-action") as pool:
                return [*pool.map(call_tool, actions)]

        async def await_tools() -> list[ToolCall | Pending]:
            import asyncio

            room = asyncio.Semaphore(_AT_ONCE)

            async def await_tool(action: Action) -> ToolCall | Pending:
                async with room:
                    try:
                        return await self.acall_tool(action)
                    except Pending as waits:
                        return waits

            return [*await asyncio.gather(*map(await_tool, actions))]

        return Do(call_tools, await_tools)

    def write(self, messages: Messages, *, temperature: float = 0.0) -> Asks[str]:
        """Request a text that belongs to no state from the model: an evaluation, a summary; use ``yield from``."""
        asked = Writing(messages, max_tokens=self.settings.max_tokens, temperature=temperature, walk=self.name)
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
        if self._is_waiting:  # else the usage is not that of a request
            self._is_waiting = False
            self.notify_watchers(happenings.Received(usage, self.name))

    def _check_budget(self) -> None:
        """Raise if nothing is left for another request."""
        spent = self.settings.budget.spent(self.transcript.usage)
        if spent is not None:
            raise AgentStopped(*spent, self.transcript)

    def _record_correction(self, correction: Correction) -> None:
        self.transcript = self.transcript.plus(corrections=[correction])
        self.notify_watchers(happenings.Corrected(correction, self.name))

    def _add_segment(self, segment: Segment) -> None:
        try:
            self._monitor = self._monitor.after(segment.event)
        except NotAllowed as error:
            raise WritingError(f"{segment.state} was written where it cannot come: {error}") from error
        self.transcript = self.transcript.plus(segment)


def _count_state(transcript: Transcript, state: str | None) -> int:
    return sum(segment.state == state for segment in transcript.segments)
