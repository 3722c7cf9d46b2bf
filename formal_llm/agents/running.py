"""One run of an agent: the writer writes, tools answer, the monitor watches both.

The functions that write states of the environment receive the :class:`Run` (:mod:`formal_llm.agents.agent`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Never

from formal_llm.agents import happenings
from formal_llm.agents.acting import NO_TOOL, AgentRules, StatesMonitor
from formal_llm.agents.decoding.contents import Content, OneOf
from formal_llm.agents.decoding.steps import Asks, Do, Step, Steps, Telling, adriven, driven, relay_steps
from formal_llm.agents.decoding.writer import ContentOf, Due, SegmentBegan, Spent, Text, Writer
from formal_llm.agents.happenings import Happening, ToolCall
from formal_llm.agents.monitor import Event, Monitor
from formal_llm.agents.roles import Roles
from formal_llm.agents.tool_calls import ERROR, call_with_text
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.automata import Limits
from formal_llm.errors import AgentStopped, NotAllowed, WritingError, did_you_mean
from formal_llm.llms.driven import resumed
from formal_llm.llms.generation import Messages, Writing
from formal_llm.llms.llm import LLM, asking
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import Prices
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
    """

    rules: AgentRules
    roles: Roles
    contents: Mapping[str, ContentOf] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    prices: Prices | None = None
    calls: CallLimits = field(default_factory=lambda: CallLimits(timeout=60.0))
    max_tokens: int = 512


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


#: The maximum number of concurrent tool calls.
_AT_ONCE = 8


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
        self.transcript = Transcript(settings.rules.behaviour.name)
        self.calls: list[ToolCall] = []
        self.caller = Caller(settings.calls)
        self._tell = tell
        self._slips = 0
        self._writing = ""  # the state of the world that is being written
        self._refused: dict[int, str] = {}
        self._monitor = settings.rules.get_monitor()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments written so far."""
        return self.transcript.segments

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

    def steps(self) -> Steps[Never]:
        """Run as a generator that asks no model itself: it yields requests and receives the answers.

        Watchers are notified of each event. The steps of a run can be taken only once.
        """
        error: BaseException | None = None
        try:
            if self.settings.roles.asks:
                self._write_question()
            going = True
            while going:
                going = yield from relay_steps(self._take_turn(), self._check_step_budget)
        except BaseException as caught:
            closed = isinstance(caught, GeneratorExit) and self.settings.rules.behaviour.endless  # its only end
            error = None if closed else caught
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

    def _check_step_budget(self, step: Step) -> bool:
        if isinstance(step, Question | Telling):
            self._check_budget()
        return True

    def notify_watchers(self, happening: Happening) -> None:
        """Notify the watchers of an event."""
        if self._tell is not None:
            self._tell(happening)

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
        if due is None:
            return True
        if due:
            yield from self._ask_world(due[0])
            return True
        refused = self._monitor.why()
        if refused is not None:
            raise NotAllowed(refused)
        return False

    def _follow_writer(self, outside: set[str]) -> Asks[tuple[str, ...] | None]:
        """Record what a writer reports.

        Returns:
            The states that are due at its end; None if it was stopped because the named tool determines what may come.
        """
        rules = self.settings.rules
        state, pieces = "", False
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
                    state, pieces = event.state, False
                    self.notify_watchers(happenings.Began(state, "model", self.name))
                case Text():
                    pieces = True
                    self.notify_watchers(happenings.Wrote(state, event.text, self.name))
                case Segment():
                    self._record_segment(event, was_streamed=pieces)
                    if event.state == self.settings.roles.action and rules.action is not None:
                        steps.close()
                        return None
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

    def _record_segment(self, segment: Segment, *, was_streamed: bool) -> None:
        """Add a segment that the writer has ended, and note the tool if it names one."""
        if not was_streamed and segment.text:
            self.notify_watchers(happenings.Wrote(segment.state, segment.text, self.name))
        self._add_segment(segment)
        if segment.state == self.settings.roles.action:
            self._name_tool(segment.text.strip())

    def _build_contents(self) -> dict[str, ContentOf]:
        roles = self.settings.roles
        contents = dict(self.settings.contents)
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
        if named in legal:
            event = named
        else:
            self._refused[place] = why = self._explain_refusal(named, legal)
            self._record_correction(Correction(place, named, legal, named, why))
            event = NO_TOOL
        if rules.action is None:
            return
        if event == NO_TOOL:  # lookahead does not foresee it: continue with rules that permit one more slip
            self._slips += 1
            self._monitor = rules.get_monitor(self._slips).after_all(self._monitor.history)
        self._monitor = self._monitor.after(event)

    def _explain_refusal(self, named: str, legal: Sequence[str]) -> str:
        """Explain why a name is not a tool that may be called, in the words that the agent reads."""
        if named in self.settings.rules.tools:
            refused = self._monitor.why(named)
            return f"{named} may not be called now" + (f": {refused.reason}" if refused is not None else "")
        return _report_unknown_tool(named, self.settings.rules.tools, legal)

    def call_tool(self, action: Action) -> ToolCall:
        """Call the tool of an action if that is allowed; the output of a refused or failed call is the reason."""
        if action.refused:
            output, ok = ERROR + action.refused, False
        else:
            output, ok = call_with_text(self.toolkit[action.tool], action.input, self.caller)
        return ToolCall(len(self.segments), action.tool, action.input, output, ok, action.label)

    def record_call(self, call: ToolCall) -> ToolCall:
        """Record a call and notify the watchers."""
        self.calls.append(call)
        self.notify_watchers(happenings.Called(call, self.name))
        return call

    # -- the world ----------------------------------------------------------------------------------------------

    def _ask_world(self, state: str) -> Asks[None]:
        self.notify_watchers(happenings.Began(state, "environment", self.name))
        self._writing = state
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

        Tools that depend on their input alone are called concurrently, the others one after the other.
        """

        def call_tools() -> list[ToolCall]:
            alone = [one for one in actions if not one.refused and self.toolkit[one.tool].deterministic]
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="formal-llm-action") as pool:
                together = dict(zip(map(id, alone), pool.map(self.call_tool, alone), strict=True))
            return [together.get(id(one)) or self.call_tool(one) for one in actions]

        return (yield Do(call_tools))  # type: ignore[no-any-return]  # what the work returns

    def write(self, messages: Messages, *, temperature: float = 0.0) -> Asks[str]:
        """Request a text that belongs to no state from the model: an evaluation, a summary; use ``yield from``."""
        asked = Writing(messages, max_tokens=self.settings.max_tokens, temperature=temperature, walk=self.name)
        answer: Answer = yield asked
        self._record_spent(Spent.from_tokens(self._writing, answer.usage))
        return answer.text.strip()

    def choose(self, question: Question) -> Asks[int]:
        """Return the number of the option that the model chooses; use ``yield from``."""
        answer = yield from asking(question)
        self._record_spent(Spent.from_tokens(self._writing, answer.usage, questions=1))
        return answer.number

    # -- accounts -----------------------------------------------------------------------------------------------

    def _record_spent(self, spent: Spent) -> None:
        prices, usage = self.settings.prices, spent.usage
        if prices is not None and usage.cost is None:
            usage += Usage(cost=prices.cost(usage.token_usage))
        self.transcript = self.transcript.plus(usage=usage, state=spent.state)

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
            event = Event(segment.state, {"text": segment.text, "source": segment.source})
            self._monitor = self._monitor.after(event)
        except NotAllowed as error:
            raise WritingError(f"{segment.state} was written where it cannot come: {error}") from error
        self.transcript = self.transcript.plus(segment)


def _count_state(transcript: Transcript, state: str | None) -> int:
    return sum(segment.state == state for segment in transcript.segments)
