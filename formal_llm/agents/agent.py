"""Agents: a behaviour that declares which states may follow one another, a model that writes, and tools.

::

    from formal_llm.agents import Agent
    from formal_llm.agents.tools import agent_toolkit

    agent = Agent("react", "openai:MODEL", agent_toolkit)
    print(agent.run("Into which sea does the Danube flow?").answer)

Whatever the model writes, the transcript is a word of the behaviour and satisfies the additional rules and limits.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from formal_llm.agents.acting import AgentRules, Rule
from formal_llm.agents.agent_tool import AgentTool, Within
from formal_llm.agents.decoding.chatting import ChattingWriter
from formal_llm.agents.decoding.contents import OutputType, Validated
from formal_llm.agents.decoding.continuing import ContinuingWriter
from formal_llm.agents.decoding.native import NativeWriter, ToolStates
from formal_llm.agents.decoding.steps import Asks
from formal_llm.agents.decoding.writer import Bounds, ContentOf, Writer
from formal_llm.agents.examples import load_examples
from formal_llm.agents.happenings import Happening, HappeningCallback
from formal_llm.agents.many import RunnableAgent, identify_runs
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.pausing import PausedRun
from formal_llm.agents.person import hear
from formal_llm.agents.published.rewoo import LLM_WORKER, REQUEST, solve
from formal_llm.agents.published.summaries import Summarise, list_results
from formal_llm.agents.roles import Roles, World
from formal_llm.agents.run_settings import RunSettings
from formal_llm.agents.running import Run
from formal_llm.agents.tool_calls import ERROR, check_texts, describe_tool, offer_tool
from formal_llm.agents.transcript import Transcript
from formal_llm.automata import Behaviour, Limits
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.errors import AutomatonError, ToolkitError, TranscriptError, WritesNoText, unknown
from formal_llm.llms.doubles import RandomLLM
from formal_llm.llms.generation import ContinuingLLM, TextLLM, ToolCallingLLM, ToolOffer
from formal_llm.llms.llm import LLM, LLMLike, resolve
from formal_llm.llms.schemas import closed
from formal_llm.llms.text_doubles import RandomTextLLM, RandomTurnLLM
from formal_llm.llms.usage import Prices
from formal_llm.planning.walks.budget import Budget
from formal_llm.tools.calling import CallLimits
from formal_llm.tools.tool import Tool, tool
from formal_llm.tools.toolkit import Toolkit


def observe(run: Run) -> Asks[str]:
    """Write an observation: the output of the tool that was called; of several, each after its call."""
    asked = run.list_actions()
    if not asked:
        return f"{ERROR}no action with an input stands before this observation"
    made = yield from run.carry_out(asked)
    calls = [run.record_call(call) for call in made]
    if len(calls) == 1:
        return calls[0].output
    return "\n\n".join(f"{call.tool}({call.input}):\n{call.output}" for call in calls)


EVALUATION = """A proposed answer to a question is to be judged, by what was observed alone.

Question: {question}

{trace}

Is the proposed answer right, and does it follow from what was observed? Write one or two sentences; begin with Right, \
Wrong or Unsure."""


def evaluate(run: Run) -> Asks[str]:
    """Write an evaluation: the model judges what it wrote and observed, without seeing the correct answer."""
    behaviour = run.settings.rules.behaviour
    trace = "\n".join(f"{behaviour.states[one.state].text} {one.text}" for one in run.segments if one.source != "user")
    return (yield from run.write(EVALUATION.format(question=run.question, trace=trace))) or "Unsure."


#: The functions that write the environment's states, by marker or by the name of the state.
WORLDS: Mapping[str, World] = {
    "[Observation]": observe,
    "[Summary]": Summarise(),
    "List-Results": list_results,
    "[User]": hear,
    "[Evaluation]": evaluate,
    "[Answer]": solve,
}


#: The tools of an agent: a toolkit shared by all runs, or a function that creates one for each run.
Tools: TypeAlias = Toolkit | Iterable[Tool] | Callable[[], Toolkit]
#: Creates a writer from the model, the behaviour and the instructions that the model reads before the run.
WriterOf: TypeAlias = Callable[[LLM, Behaviour, str], Writer]
#: How often each state and each tool may occur in a run by default.
TIMES = 12


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
        prices: the prices of tokens.
        calls: limits on each tool call.
        approve: the tools whose calls a person has to approve: the run then pauses (:class:`AgentPaused`).
        hand_over: agents that may take a run over, by name: the model calls ``hand_over_to_NAME``. It may do so where
            the run can end without another call of its own. The answer of the other agent is that of the run.
        temperature: 0 for the most probable texts.
        bounds: limits on the writer: tokens per state, corrections, requests.
        streaming: whether to report texts while they are written, if the model supports it.
        writer: creates the writer; by default it depends on whether the model continues texts or chats.
        on_event: called with each event (:mod:`formal_llm.agents.happenings`). Many runs call it in their threads,
            one after the other.

    Attributes:
        native: whether the model calls tools by its provider's own means.
        output_type: the type of the answer; None if it is a text.
        rules: the rules, including the tools.
        told: the instructions that the model reads before a run.
        temperature: the temperature of the texts.

    Raises:
        ResourceNotFound: there is no such behaviour, or nothing writes a state of the environment.
        NotationError: the behaviour, an example or a rule cannot be read.
        ToolkitError: the behaviour calls tools and there are none, or the arguments of a tool cannot be written.
        AutomatonError: a tool has the name of a state, a limit names neither, or the run begins with no question.
        NotAllowed: no run satisfies the rules.
        TranscriptError: an example is not a run of the behaviour.
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
        on_event: HappeningCallback | None = None,
    ) -> None:
        self.behaviour = spec if isinstance(spec, Behaviour) else Behaviour.load(str(spec))
        self.llm = resolve(llm) if writer is not None else ensure_text_llm(resolve(llm), calls_tools=native is True)
        self.on_event = on_event
        roles = roles or Roles.from_markers(self.behaviour, {**WORLDS, **(worlds or {})})
        self._make_tools = _make_toolkit_factory(tools, [_make_hand_over(one, name) for name, one in hand_over.items()])
        helpers = (LLM_WORKER,) if roles.label is not None else ()
        toolkit = self._make_tools()
        names = () if roles.calls is not None else (*toolkit.tools, *helpers)  # the rules do not know of such calls
        calling = roles.action or roles.calls
        _check_tools(self.behaviour, calling, toolkit, approve, names)
        limits = limits or Limits()
        if limits.default is None and not self.behaviour.endless:
            limits = replace(limits, default=times)
        agents = {tool.name: tool for tool in toolkit if isinstance(tool, AgentTool)}
        inner = {name: tool.rules for name, tool in agents.items()}
        last = [tool.name for tool in agents.values() if tool.takes_over]
        self.rules: AgentRules = AgentRules(self.behaviour, roles.action, names, rules, limits, inner, last)
        for name, called in agents.items():
            if self.rules.action is not None and called.calls_in_texts:
                what = f"{name} calls tools in texts, so the rules of {self.behaviour.name} would not see its calls"
                raise ToolkitError([what])
        states = self.behaviour.states
        if not self.behaviour.endless and all(states[name].from_environment for name in self.monitor.allowed()):
            raise AutomatonError(f"{self.behaviour.name} begins with the environment; a run begins with what is asked")
        has_states = None not in (roles.action, roles.input)
        can_call = isinstance(self.llm, ToolCallingLLM) and not isinstance(self.llm, ContinuingLLM)
        self.native = (can_call and has_states and writer is None) if native is None else native
        if self.native and not has_states:
            raise ToolkitError([f"{self.behaviour.name} has no states for an action and its input, so native=False"])
        if examples is None:
            shown = not isinstance(spec, Behaviour) and not self.native
            examples = load_examples(str(spec)) if shown else ()
        self.examples = tuple(examples)
        for number, one in enumerate(self.examples, 1):
            if not (found := one.verify(self.behaviour)).valid:
                raise TranscriptError(f"example {number} is no run of {self.behaviour.name}: {found.reason}")
        descriptions = (
            [*map(describe_tool, toolkit), *(_HELPERS[name] for name in helpers)] if calling is not None else []
        )
        output = self.output_type = OutputType.of(output_type) if output_type is not None else None
        if self.native:
            labels = _LABELS if roles.label is not None else ""
            parts = [instructions, labels, write_examples(self.behaviour, self.examples)]
        else:
            parts = [instructions, write_instructions(self.behaviour, descriptions, self.examples).rstrip()]
            parts += [output.request] if output is not None else []
        self.told = "\n\n".join(part for part in parts if part) + ("" if self.native else "\n\n")
        by = {state: getattr(world, "__qualname__", repr(world)) for state, world in roles.worlds.items()}
        versions = [(tool.name, tool.version) for tool in toolkit]
        self._ways = f"temperature {temperature}, {bounds}, {by}, {versions}, {output_type}, {self.native}"
        self.temperature = temperature
        self.prices = prices
        self.budget = budget or Budget()
        self.budget.check(prices)
        contents = dict(contents or {})
        if output is not None:
            contents |= dict.fromkeys(self.rules.answer_states, Validated(output.find_problem, output.schema))
        self._settings = RunSettings(
            self.rules, roles, contents, self.budget, prices, calls or CallLimits(timeout=60.0),
            approve=frozenset(approve), native=self.native, read_output=output.read if output is not None else None,
        )  # fmt: skip
        self._writer_of: WriterOf
        if self.native:
            assert roles.action is not None and roles.input is not None
            self._writer_of = partial(
                NativeWriter,
                states=ToolStates(roles.action, roles.input, roles.label),
                tools=[*map(offer_tool, toolkit), *([_OFFERED_WORKER] if helpers else [])],
                bounds=bounds,
                temperature=temperature,
                streaming=streaming,
                output=ToolOffer("final_answer", "Gives the answer.", output.schema) if output is not None else None,
            )
        else:
            self._writer_of = writer or partial(
                make_writer, temperature=temperature, bounds=bounds, streaming=streaming
            )

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
        return [states, self.monitor.fingerprint, self.told, shown, self._ways]

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
        on_event: HappeningCallback | None = None,
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
        instructions = self.told
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

        Args:
            name: the name of the tool.
            description: what it is for, in words, for the model.

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
            name, plain.inputs, plain.output, answer, description, version=self.version, deterministic=False,
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
        on_event: HappeningCallback | None = None,
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
            SnapshotError: the state is damaged, or of another behaviour; the run does not wait for one of these calls.
        """
        read = PausedRun.from_json(state, self.monitor.fingerprint)
        run = self.start(read.question, llm=llm, on_event=on_event)
        run.restore(read, approved or {}, results or {})
        return run

    async def stream(self, question: str, *, llm: LLM | None = None) -> AsyncGenerator[Happening]:
        """Run, and yield each event as it happens: pieces of texts, calls, results, corrections; last :class:`Ended`.

        ::

            async for event in agent.stream("How long is the Danube?"):
                if isinstance(event, Wrote):
                    print(event.text, end="")

        Raises:
            AgentError, LLMError: as for :meth:`run`, after the events before it.
        """
        import asyncio

        events: asyncio.Queue[Happening | None] = asyncio.Queue()
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


#: The model as a worker, as it is offered.
_OFFERED_WORKER = ToolOffer(
    LLM_WORKER, "Answers a request by itself, without tools.", closed({REQUEST: {"type": "string"}})
)
_HELPERS = {LLM_WORKER: f"{LLM_WORKER}(request): Answers a request by itself, without tools."}


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
    if isinstance(llm, ContinuingLLM):
        return ContinuingWriter(
            llm, behaviour, instructions=instructions, temperature=temperature, bounds=bounds, streaming=streaming
        )
    if not isinstance(llm, TextLLM):
        raise WritesNoText(llm, "write as an agent")
    return ChattingWriter(
        llm, behaviour, instructions=instructions, temperature=temperature, bounds=bounds, streaming=streaming
    )


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
    if isinstance(llm, RandomLLM):
        return (RandomTurnLLM if calls_tools else RandomTextLLM)(llm.draw_seed(), _WORDS)
    if not isinstance(llm, TextLLM | ContinuingLLM | ToolCallingLLM):
        raise WritesNoText(llm, "write as an agent")
    return llm


def _make_hand_over(agent: Agent, name: str) -> AgentTool:
    """Make the tool that hands a run over to another agent."""
    description = f"Hands over to {name}, which continues and gives the answer. The request is what it has to know."
    return replace(agent.as_tool(f"hand_over_to_{name}", description), takes_over=True)


def _make_toolkit_factory(tools: Tools | None, more: Sequence[Tool]) -> Callable[[], Toolkit]:
    if callable(tools):
        return lambda: _add_tools(tools(), more)
    made = _add_tools(tools if isinstance(tools, Toolkit) else Toolkit(tools or []), more)
    return lambda: made


def _add_tools(toolkit: Toolkit, more: Sequence[Tool]) -> Toolkit:
    return Toolkit([*toolkit, *more], toolkit.inputs, session=toolkit.session) if more else toolkit
