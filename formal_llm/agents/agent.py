"""Agents: a behaviour that declares which states may follow one another, a model that writes, and tools.

::

    from formal_llm.agents import Agent
    from formal_llm.agents.tools import agent_toolkit

    agent = Agent("react", "openai:MODEL", agent_toolkit)
    print(agent.run("Into which sea does the Danube flow?").answer)

Whatever the model writes, the transcript is a word of the behaviour and satisfies the additional rules and limits.

An agent may be a tool of another one (:class:`AgentTool`). Its run is then an inner run, which keeps the rules of both
(:mod:`formal_llm.agents.acting`): each of its calls is reported to the outer run, whose monitor follows it. What it
uses counts for the outer run, and its events reach the watchers of that one under a name such as ``0/researcher``.
Where it pauses, so does the outer run, with the state of the inner run in its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from formal_llm.agents.acting import AgentRules, Rule
from formal_llm.agents.actions import Action
from formal_llm.agents.decoding.chatting import ChattingWriter
from formal_llm.agents.decoding.contents import OutputType, Validated
from formal_llm.agents.decoding.continuing import ContinuingWriter
from formal_llm.agents.decoding.native import NativeWriter, ToolStates
from formal_llm.agents.decoding.steps import Asks, Do
from formal_llm.agents.decoding.writer import Bounds, ContentOf, Writer
from formal_llm.agents.examples import load_examples
from formal_llm.agents.many import RunnableAgent, identify_runs
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.pausing import InnerPaused, PausedRun, WaitingRun
from formal_llm.agents.published.rewoo import DESCRIBED_WORKER, LLM_WORKER, OFFERED_WORKER
from formal_llm.agents.roles import Roles, RunSettings, World
from formal_llm.agents.run_events import RunEvent, RunEventCallback
from formal_llm.agents.running import Run, RunTool
from formal_llm.agents.tool_calls import ERROR, BadArguments, check_texts, describe_tool, format_result, offer_tool
from formal_llm.agents.transcript import Transcript
from formal_llm.agents.worlds import WORLDS
from formal_llm.automata import Behaviour, Limits
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.errors import (
    AgentError,
    AgentPaused,
    AutomatonError,
    NotAllowed,
    RecordError,
    ToolkitError,
    WritesNoText,
    unknown,
)
from formal_llm.llms.doubles import TEXTS, TURNS, RandomLLM
from formal_llm.llms.llm import LLM
from formal_llm.llms.providers import LLMLike, resolve
from formal_llm.llms.text_request import ToolOffer
from formal_llm.llms.usage import Prices
from formal_llm.planning.walks.budget import Budget
from formal_llm.tools.calling import CallLimits
from formal_llm.tools.kinds import Value
from formal_llm.tools.tool import Tool, tool
from formal_llm.tools.toolkit import Toolkit

#: The tools of an agent: a toolkit shared by all runs, or a function that creates one for each run.
Tools: TypeAlias = Toolkit | Iterable[Tool] | Callable[[], Toolkit]
#: Creates a writer from the model, the behaviour and the instructions that the model reads before the run.
WriterOf: TypeAlias = Callable[[LLM, Behaviour, str], Writer]
#: How often each state and each tool may occur in a run by default.
TIMES = 12


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


class Agent(RunnableAgent):
    """An agent: a behaviour, a model that writes its states, and tools.

    Args:
        spec: the behaviour, the name of a shipped one (``"react"``), or the path of an ``.agent`` file.
        llm: the model that writes.
        tools: the tools. If they keep state (a search, and lookups on the page it found), pass a function that creates
            the toolkit, such as ``agent_toolkit``, so that each run has its own.
        examples: runs to show to the model; by default those beside the ``.agent`` file, or none for native calls.
        instructions: what the agent is and how it is to behave, in words, for the model.
        output_type: the type of the answer: anything that pydantic reads from JSON. A model that answers with something
            else is asked again with the reason. :attr:`Run.output` is the answer as a value. Default: a text.
        native: whether the model calls tools by its provider's own means, which takes one request for each round of
            tools; see :mod:`formal_llm.agents.decoding.native`. Otherwise it writes texts behind markers. Default:
            where the behaviour calls tools, the model can, it cannot continue texts instead (as models on servers of
            your own do, of which many call no tools), and there is no ``writer``.
        rules: additional rules on states and tools, see :class:`~formal_llm.agents.acting.AgentRules`: formulas such as
            ``"(eventually search)"``, behaviours, grammars, automata.
        limits: bounds on states and tools.
        times: how often each state and each tool that ``limits`` does not name may occur; None for no bound, which a
            behaviour that never ends by itself has always.
        worlds: functions that write states of the environment, by state or marker; they override the defaults.
        roles: the purposes of the states, if their markers do not determine them.
        contents: the texts that states may have.
        budget: how much a run may use: questions, requests, tokens, cost.
        calls: limits on each tool call.
        approve: the tools whose calls a person has to approve: the run then pauses (:class:`AgentPaused`).
        hand_over: agents that may take a run over, by name: the model calls ``hand_over_to_NAME``. It may do so where
            the run can end without another call of its own. The answer of the other agent is that of the run.
        temperature: 0 for the most probable texts.
        bounds: limits on the writer: tokens per state, corrections, requests.
        streaming: whether to report texts while they are written, if the model supports it.
        writer: creates the writer; by default it depends on whether the model continues texts or chats.
        on_event: called with each event (:mod:`formal_llm.agents.run_events`). Many runs call it in their threads,
            one after the other.

    Attributes:
        native: whether the model calls tools by its provider's own means.
        output_type: the type of the answer; None if it is a text.
        rules: the rules, including the tools.
        prompt: what the model reads before a run: the instructions, the tools, the examples.

    Raises:
        ResourceNotFound: there is no such behaviour, or nothing writes a state of the environment.
        NotationError: the behaviour, an example or a rule cannot be read.
        ToolkitError: the behaviour calls tools and there are none, or the arguments of a tool cannot be written.
        AutomatonError: a tool has the name of a state, a limit names neither, or the run begins with no question.
        NotAllowed: no run satisfies the rules.
        RecordError: an example is not a run of the behaviour.
    """

    def __init__(
        self,
        spec: Behaviour | str | Path,
        llm: LLMLike,
        tools: Tools | None = None,
        *,
        instructions: str = "",
        output_type: object = None,
        native: bool | None = None,
        examples: Sequence[Transcript] | None = None,
        rules: Iterable[Rule] = (),
        limits: Limits | None = None,
        times: int | None = TIMES,
        worlds: Mapping[str, World] | None = None,
        roles: Roles | None = None,
        contents: Mapping[str, ContentOf] | None = None,
        budget: Budget | None = None,
        prices: Prices | None = None,
        calls: CallLimits | None = None,
        approve: Collection[str] = (),
        hand_over: Mapping[str, Agent] = FrozenDict(),
        temperature: float = 0.0,
        bounds: Bounds | None = None,
        streaming: bool = False,
        writer: WriterOf | None = None,
        on_event: RunEventCallback | None = None,
    ) -> None:
        self.behaviour = spec if isinstance(spec, Behaviour) else Behaviour.load(str(spec))
        self.llm = resolve(llm) if writer is not None else ensure_text_llm(resolve(llm), calls_tools=native is True)
        self.on_event = on_event
        self.temperature = temperature
        self.prices = prices
        self.budget = budget or Budget()
        self.budget.check(prices)
        roles = roles or Roles.from_markers(self.behaviour, {**WORLDS, **(worlds or {})})
        self._make_tools = _make_toolkit_factory(tools, [_make_hand_over(one, name) for name, one in hand_over.items()])
        toolkit = self._make_tools()
        has_worker = roles.label is not None
        # The rules do not know of calls in texts.
        names = () if roles.calls is not None else (*toolkit.tools, *([LLM_WORKER] if has_worker else []))
        _check_tools(self.behaviour, roles.action or roles.calls, toolkit, approve, names)
        limits = limits or Limits()
        if limits.default is None and not self.behaviour.endless:
            limits = replace(limits, default=times)
        self.rules: AgentRules = _compile_rules(self.behaviour, roles, toolkit, names, rules, limits)
        states = _find_tool_states(roles)
        can_call = "call" in self.llm.can and "continue" not in self.llm.can
        self.native = (can_call and states is not None and writer is None) if native is None else native
        if self.native and states is None:
            raise ToolkitError([f"{self.behaviour.name} has no states for an action and its input, so native=False"])
        if examples is None:
            shown = not isinstance(spec, Behaviour) and not self.native
            examples = load_examples(str(spec)) if shown else ()
        self.examples = tuple(examples)
        for number, one in enumerate(self.examples, 1):
            if not (found := one.verify(self.behaviour)).valid:
                raise RecordError(f"example {number} is no run of {self.behaviour.name}: {found.reason}")
        output = self.output_type = OutputType.of(output_type) if output_type is not None else None
        self.prompt = self._write_prompt(instructions, roles, toolkit)
        by = {state: getattr(world, "__qualname__", repr(world)) for state, world in roles.worlds.items()}
        versions = [(tool.name, tool.version) for tool in toolkit]
        self._variant = f"temperature {temperature}, {bounds}, {by}, {versions}, {output_type}, {self.native}"
        contents = dict(contents or {})
        if output is not None:
            contents |= dict.fromkeys(self.rules.answer_states, Validated(output.find_problem, output.schema))
        self._settings = RunSettings(
            self.rules, roles, contents, self.budget, prices, calls or CallLimits(timeout=60.0),
            approve=frozenset(approve), native=self.native, read_output=output.read if output is not None else None,
        )  # fmt: skip
        make: Callable[..., Writer] = make_writer
        if self.native:
            assert states is not None
            make = partial(
                NativeWriter,
                states=states,
                tools=[*map(offer_tool, toolkit), *([OFFERED_WORKER] if has_worker else [])],
                output=ToolOffer("final_answer", "Gives the answer.", output.schema) if output is not None else None,
            )
        self._writer_of: WriterOf = (not self.native and writer) or partial(
            make, temperature=temperature, bounds=bounds, streaming=streaming
        )

    def _write_prompt(self, instructions: str, roles: Roles, toolkit: Toolkit) -> str:
        """Write what the model reads before a run; of native calls, the tools are offered."""
        if self.native:
            labels = _LABELS if roles.label is not None else ""
            parts = [instructions, labels, write_examples(self.behaviour, self.examples)]
            return "\n\n".join(filter(None, parts))
        described = [] if roles.action is roles.calls is None else [*map(describe_tool, toolkit)]
        if roles.label is not None and described:
            described.append(DESCRIBED_WORKER)
        parts = [instructions, write_instructions(self.behaviour, described, self.examples).rstrip()]
        parts += [self.output_type.request] if self.output_type is not None else []
        return "\n\n".join(filter(None, parts)) + "\n\n"

    @property
    def monitor(self) -> Monitor:
        """The monitor of the rules, including the tools, before any event."""
        return self.rules.get_monitor()

    @property
    def version(self) -> str:
        """A fingerprint of all that runs depend on besides the question."""
        return identify_runs(self)["run"]

    @property
    def calls_in_texts(self) -> bool:
        """Whether calls of tools are parts of texts, of which no rule knows."""
        return self._settings.roles.calls is not None

    @property
    def variant(self) -> object:
        """What runs depend on besides question and model: the behaviour, the rules, the tools and their data."""
        states = [(name, state.text, sorted(state.flags)) for name, state in self.behaviour.states.items()]
        shown = [one.to_jsonl() for one in self.examples]
        return [states, self.monitor.fingerprint, self.prompt, shown, self._variant]

    def run(self, question: str) -> Transcript:
        """Answer a question in one run and return its transcript.

        Raises:
            AgentStopped: the budget is used up; the exception carries the transcript.
            WritingError: a bound of the writer was reached.
            LLMError: the model could not be reached.
        """
        return self.start(question).run_to_end()

    async def arun(self, question: str) -> Transcript:
        """Do the same as :meth:`run` without blocking the event loop; tools are called in threads."""
        return await self.start(question).arun_to_end()

    def start(
        self,
        question: str,
        *,
        llm: LLM | None = None,
        name: str = "",
        before: Sequence[Transcript | str] = (),
        on_event: RunEventCallback | None = None,
        streaming: bool | None = None,
        within: Within | None = None,
    ) -> Run:
        """Create a run without starting it; it gives access to more than the transcript, such as the tool calls.

        Args:
            question: the question.
            llm: the model to use instead of the agent's own.
            name: the name of the run, which its events carry.
            before: earlier runs of the same conversation, to show to the model, or what is to be known of them.
            on_event: called with each event, instead of the agent's own callback.
            streaming: whether to report texts while they are written; default: as the agent does.
            within: the run that calls this agent as a tool, and the rules of both.
        """
        instructions = self.prompt
        chat = [one for one in before if isinstance(one, Transcript)] if self.native else []
        if texts := [one if isinstance(one, str) else one.to_text(self.behaviour) for one in before if one not in chat]:
            instructions += "\n".join(["Earlier in this conversation:", *texts, ""])
        if question and not self._settings.roles.asks:
            instructions += f"The question: {question}\n\n"
        llm = llm or self.llm
        how = {} if streaming is None or not isinstance(self._writer_of, partial) else {"streaming": streaming}
        writer = self._writer_of(llm, self.behaviour, instructions, **how)
        if isinstance(writer, NativeWriter):
            writer.earlier = tuple(chat)
        on_event = on_event or self.on_event
        outer, settings = (
            (within.run, replace(self._settings, rules=within.rules)) if within else (None, self._settings)
        )
        return Run(settings, writer, llm, self._make_tools(), question, on_event, name, instructions, outer)

    def as_tool(self, name: str, description: str) -> AgentTool:
        """Return this agent as a tool of another one, which is given a request and returns the answer.

        The runs that the other agent begins keep the rules of both: where its rules and limits name a tool of this
        agent, they count what this agent calls. In a plan, and called directly, it is a tool like others.

        The model reads the ``description``: what the tool is for, in words.

        Raises:
            AutomatonError: this agent's behaviour never ends by itself.
        """
        if self.behaviour.endless:
            raise AutomatonError(f"{self.behaviour.name} never ends by itself, so it cannot be a tool")

        def answer(request: str) -> object:
            run = self.start(request)
            run.run_to_end()
            return run.output

        plain = tool(name, output=str if self.output_type is None else self.output_type.hint.annotation)(answer)
        return AgentTool(
            name, plain.inputs, plain.output, answer, description, version=self.version,
            parameters=plain.parameters, signature=plain.signature, rules=self.rules, start=self.start,
            calls_in_texts=self.calls_in_texts,
        )  # fmt: skip

    def resume(
        self,
        state: str,
        *,
        approved: Mapping[str, bool | str] | None = None,
        results: Mapping[str, str] | None = None,
        llm: LLM | None = None,
        on_event: RunEventCallback | None = None,
    ) -> Run:
        """Create the run of a state that :meth:`Run.pause` or :class:`AgentPaused` gave, to continue it.

        It may be resumed in another process, and by an agent that was made anew from the same behaviour, rules, limits
        and names of tools. No question is asked and no tool is called again.

        Args:
            state: the state, as JSON text.
            approved: for each call that waits for an approval its name (:attr:`Waiting.id`), and True; or False, or a
                reason in words, if a person declined: the model then reads that as the result of the call.
            results: for each call that waits for its result its name, and the result.
            llm: the model to use instead of the agent's own.
            on_event: called with each event, instead of the agent's own callback.

        Raises:
            RecordError: the state is damaged, or of another behaviour; the run does not wait for one of these calls.
        """
        read = PausedRun.from_json(state, self.monitor.fingerprint)
        run = self.start(read.question, llm=llm, on_event=on_event)
        run.restore(read, approved or {}, results or {})
        return run

    async def stream(self, question: str, *, llm: LLM | None = None) -> AsyncGenerator[RunEvent]:
        """Run, and yield each event as it happens: pieces of texts, calls, results, corrections; last :class:`Ended`.

        ::

            async for event in agent.stream("How long is the Danube?"):
                if isinstance(event, Wrote):
                    print(event.text, end="")

        Raises:
            AgentError, LLMError: as for :meth:`run`, after the events before it.
        """
        import asyncio

        events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
        run = self.start(question, llm=llm, on_event=events.put_nowait, streaming=True)
        task = asyncio.create_task(run.arun_to_end())
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _compile_rules(
    behaviour: Behaviour, roles: Roles, toolkit: Toolkit, names: Sequence[str], more: Iterable[Rule], limits: Limits
) -> AgentRules:
    """The rules of an agent with its tools, of which some are agents.

    Raises:
        ToolkitError: the rules would not see what an agent among the tools calls.
        AutomatonError: the run begins with no question.
    """
    agents = {tool.name: tool for tool in toolkit if isinstance(tool, AgentTool)}
    inner = {name: tool.rules for name, tool in agents.items()}
    last = [name for name, tool in agents.items() if tool.takes_over]
    rules = AgentRules(behaviour, roles.action, names, more, limits, inner, last)
    for name, called in agents.items():
        if rules.action is not None and called.calls_in_texts:
            what = f"{name} calls tools in texts, so the rules of {behaviour.name} would not see its calls"
            raise ToolkitError([what])
    first = [behaviour.states[name] for name in rules.get_monitor().allowed()]
    if not behaviour.endless and all(state.from_environment for state in first):
        raise AutomatonError(f"{behaviour.name} begins with the environment; a run begins with what is asked")
    return rules


def _find_tool_states(roles: Roles) -> ToolStates | None:
    """The states by which tools are called; None if there are none."""
    if roles.action is None or roles.input is None:
        return None
    return ToolStates(roles.action, roles.input, roles.label)


def _check_tools(
    behaviour: Behaviour, calling: str | None, toolkit: Toolkit, approve: Collection[str], names: Sequence[str]
) -> None:
    """Raise for tools that are missing, that an agent cannot call, or that are not there to be approved."""
    check_texts(toolkit)
    if calling is not None and not toolkit.tools:
        what = f"{behaviour.name} calls tools in {calling} and has none; give it some: tools=agent_toolkit"
        raise ToolkitError([what])
    for name in approve:
        if name not in names:
            raise ToolkitError([unknown("tool whose calls are to be approved", name, names)])


def make_writer(
    llm: LLM,
    behaviour: Behaviour,
    instructions: str = "",
    *,
    temperature: float = 0.0,
    bounds: Bounds | None = None,
    streaming: bool = False,
) -> Writer:
    """Create the writer that suits a model: one for models that continue a text, another for models that chat."""
    if not {"continue", "write"} & {*llm.can}:
        raise WritesNoText(llm, "write as an agent")
    kind = ContinuingWriter if "continue" in llm.can else ChattingWriter
    return kind(llm, behaviour, instructions, temperature=temperature, bounds=bounds, streaming=streaming)


def write_instructions(behaviour: Behaviour, tools: Sequence[str], examples: Sequence[Transcript]) -> str:
    """Write the instructions that a model reads before a run: the states, the tools, and examples."""
    states = [state for state in behaviour.states.values() if state.text]
    world = ", ".join(state.text for state in states if state.from_environment)
    parts = [
        f"You answer by writing texts behind markers, one after the other: {', '.join(one.text for one in states)}."
        + (f" What stands behind {world} comes from outside; you read it." if world else "")
    ]
    if tools:
        own = any(state.text == "[Action]" for state in states)
        how = "An [Action] is" if own else "You call a tool by [Action] NAME [Action Input] INPUT; NAME is"
        parts.append("\n".join([f"{how} the name of one of these tools:", *tools]))
    if examples:
        parts.append(write_examples(behaviour, examples))
    return "\n\n".join(parts) + "\n\n"


def write_examples(behaviour: Behaviour, examples: Sequence[Transcript]) -> str:
    """Write examples as a model reads them; nothing if there are none."""
    if not examples:
        return ""
    markers = Markers.of(behaviour)
    return "\n".join(["Examples:", *(f"\n{one.to_text(markers)}" for one in examples)]).rstrip()


#: What a model has to know about labels, if it calls tools natively.
_LABELS = (
    "Request all calls that the answer needs at once; you see none of their results. The first is labelled #E1, the "
    "second #E2, and so on. In an argument a label stands for the result of that earlier call."
)


#: The vocabulary of the random text model: words, and markers that may turn up where they are not allowed.
_WORDS = (
    "Danube ", "rivers ", "the ", "so ", "42 ", "3 * 7 ", "#E1 ", "[Thought] ", "[Action] ", "[Answer] ", "[Remark] ",
)  # fmt: skip


def ensure_text_llm(llm: LLM, *, calls_tools: bool = False) -> LLM:
    """Return an LLM that writes text; ``test:random``, which only chooses, is replaced by one writing random words.

    Args:
        llm: the model.
        calls_tools: whether ``test:random`` calls tools by itself, too.

    Raises:
        WritesNoText: any other LLM that only chooses.
    """
    if isinstance(llm, RandomLLM) and llm.can == LLM.can:
        writer = RandomLLM(llm.draw_seed(), can=TURNS if calls_tools else TEXTS, words=_WORDS)
        writer.name = "test:random"
        return writer
    if not {"write", "continue", "call"} & {*llm.can}:
        raise WritesNoText(llm, "write as an agent")
    return llm


def _make_hand_over(agent: Agent, name: str) -> AgentTool:
    description = f"Hands over to {name}, which continues and gives the answer. The request is what it has to know."
    return replace(agent.as_tool(f"hand_over_to_{name}", description), takes_over=True)


def _make_toolkit_factory(tools: Tools | None, more: Sequence[Tool]) -> Callable[[], Toolkit]:
    if callable(tools):
        return lambda: _add_tools(tools(), more)
    made = _add_tools(tools if isinstance(tools, Toolkit) else Toolkit(tools or []), more)
    return lambda: made


def _add_tools(toolkit: Toolkit, more: Sequence[Tool]) -> Toolkit:
    return Toolkit([*toolkit, *more], toolkit.inputs, session=toolkit.session) if more else toolkit
