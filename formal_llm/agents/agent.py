"""Agents: a behaviour that declares which states may follow one another, a model that writes, and tools.

::

    from formal_llm.agents import Agent
    from formal_llm.agents.tools import agent_toolkit

    agent = Agent("react", "openai:MODEL", agent_toolkit)
    print(agent.run("Into which sea does the Danube flow?").answer)

Whatever the model writes, the transcript is a word of the behaviour and satisfies the additional rules and limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from formal_llm.agents.acting import AgentRules, Rule
from formal_llm.agents.decoding.choosing import ChoosingWriter
from formal_llm.agents.decoding.continuing import ContinuingWriter
from formal_llm.agents.decoding.steps import Asks
from formal_llm.agents.decoding.writer import Bounds, ContentOf, Writer
from formal_llm.agents.examples import load_examples
from formal_llm.agents.happenings import HappeningCallback
from formal_llm.agents.many import RunnableAgent
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.person import hear
from formal_llm.agents.published.rewoo import LLM_WORKER, solve
from formal_llm.agents.published.summaries import Summarise, list_results
from formal_llm.agents.roles import Roles, World
from formal_llm.agents.running import Run, RunSettings
from formal_llm.agents.tool_calls import ERROR, check_texts, describe_tool
from formal_llm.agents.transcript import Transcript
from formal_llm.automata import Behaviour, Limits
from formal_llm.errors import AutomatonError, ToolkitError, TranscriptError, WritesNoText
from formal_llm.llms.doubles import RandomLLM
from formal_llm.llms.generation import ContinuingLLM, TextLLM
from formal_llm.llms.llm import LLM, LLMLike, resolve
from formal_llm.llms.text_doubles import RandomTextLLM
from formal_llm.llms.usage import Prices
from formal_llm.planning.walks.budget import Budget
from formal_llm.tools.calling import CallLimits
from formal_llm.tools.tool import Tool
from formal_llm.tools.toolkit import Toolkit


def observe(run: Run) -> Asks[str]:
    """Write an observation: the output of the last action's tool for the last input."""
    asked = run.list_actions()
    if not asked:
        return f"{ERROR}no action with an input stands before this observation"
    (call,) = yield from run.carry_out(asked[-1:])
    return run.record_call(call).output


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
        examples: runs to show to the model; by default those beside the ``.agent`` file.
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
        temperature: 0 for the most probable texts.
        bounds: limits on the writer: tokens per state, corrections, requests.
        streaming: whether to report texts while they are written, if the model supports it.
        writer: creates the writer; by default it depends on whether the model continues texts or chats.
        on_event: called with each event (:mod:`formal_llm.agents.happenings`). Many runs call it in their threads,
            one after the other.

    Attributes:
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
        temperature: float = 0.0,
        bounds: Bounds | None = None,
        streaming: bool = False,
        writer: WriterOf | None = None,
        on_event: HappeningCallback | None = None,
    ) -> None:
        self.behaviour = spec if isinstance(spec, Behaviour) else Behaviour.load(str(spec))
        self.llm = ensure_text_llm(resolve(llm))
        self.on_event = on_event
        roles = roles or Roles.from_markers(self.behaviour, {**WORLDS, **(worlds or {})})
        self._make_tools = _make_toolkit_factory(tools)
        helpers = (LLM_WORKER,) if roles.label is not None else ()
        toolkit = self._make_tools()
        check_texts(toolkit)
        names = () if roles.calls is not None else (*toolkit.tools, *helpers)  # the rules do not know of such calls
        calling = roles.action or roles.calls
        if calling is not None and not toolkit.tools:
            raise ToolkitError(
                [f"{self.behaviour.name} calls tools in {calling} and has none; give it some: tools=agent_toolkit"]
            )
        limits = limits or Limits()
        if limits.default is None and not self.behaviour.endless:
            limits = replace(limits, default=times)
        self.rules = AgentRules(self.behaviour, roles.action, names, rules, limits)
        states = self.behaviour.states
        if not self.behaviour.endless and all(states[name].from_environment for name in self.monitor.allowed()):
            raise AutomatonError(f"{self.behaviour.name} begins with the environment; a run begins with what is asked")
        if examples is None:
            examples = () if isinstance(spec, Behaviour) else load_examples(str(spec))
        self.examples = tuple(examples)
        for number, one in enumerate(self.examples, 1):
            if not (found := one.verify(self.behaviour)).valid:
                raise TranscriptError(f"example {number} is no run of {self.behaviour.name}: {found.reason}")
        descriptions = (
            [*map(describe_tool, toolkit), *(_HELPERS[name] for name in helpers)] if calling is not None else []
        )
        self.told = write_instructions(self.behaviour, descriptions, self.examples)
        by = {state: getattr(world, "__qualname__", repr(world)) for state, world in roles.worlds.items()}
        versions = [(tool.name, tool.version) for tool in toolkit]
        self._ways = f"temperature {temperature}, {bounds}, {by}, {versions}"
        self.temperature = temperature
        self.prices = prices
        self.budget = budget or Budget()
        self.budget.check(prices)
        self._settings = RunSettings(
            self.rules, roles, dict(contents or {}), self.budget, prices, calls or CallLimits(timeout=60.0)
        )
        self._writer_of = writer or partial(make_writer, temperature=temperature, bounds=bounds, streaming=streaming)

    @property
    def monitor(self) -> Monitor:
        """The monitor of the rules, including the tools, before any event."""
        return self.rules.get_monitor()

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

    def start(self, question: str, *, llm: LLM | None = None, name: str = "", before: Sequence[Transcript] = ()) -> Run:
        """Create a run without starting it; it gives access to more than the transcript, such as the tool calls.

        Args:
            question: the question.
            llm: the model to use instead of the agent's own.
            name: the name of the run, which its events carry.
            before: earlier runs of the same conversation, to show to the model.
        """
        instructions = self.told
        if before:
            instructions += "\n".join(
                ["Earlier in this conversation:", *(one.to_text(self.behaviour) for one in before), ""]
            )

        if question and not self._settings.roles.asks:
            instructions += f"The question: {question}\n\n"
        llm = llm or self.llm
        writer = self._writer_of(llm, self.behaviour, instructions)
        return Run(self._settings, writer, llm, self._make_tools(), question, self.on_event, name, instructions)


_HELPERS = {LLM_WORKER: f"{LLM_WORKER}(request): Answers a request by itself, without tools."}


def make_writer(
    llm: LLM,
    behaviour: Behaviour,
    told: str = "",
    *,
    temperature: float = 0.0,
    bounds: Bounds | None = None,
    streaming: bool = False,
) -> Writer:
    """Create the writer that suits a model: one for models that continue a text, another for models that chat."""
    if isinstance(llm, ContinuingLLM):
        return ContinuingWriter(
            llm, behaviour, instructions=told, temperature=temperature, bounds=bounds, streaming=streaming
        )
    if not isinstance(llm, TextLLM):
        raise WritesNoText(llm, "write as an agent")
    return ChoosingWriter(
        llm, behaviour, instructions=told, temperature=temperature, bounds=bounds, streaming=streaming
    )


def write_instructions(behaviour: Behaviour, tools: Sequence[str], examples: Sequence[Transcript]) -> str:
    """Write the instructions that a model reads before a run: the states, the tools, and examples."""
    states = [state for state in behaviour.states.values() if state.text]
    world = ", ".join(state.text for state in states if state.from_environment)
    markers = Markers.of(behaviour)
    parts = [
        f"You answer by writing texts behind markers, one after the other: {', '.join(one.text for one in states)}."
        + (f" What stands behind {world} comes from outside; you read it." if world else "")
    ]
    if tools:
        own = any(state.text == "[Action]" for state in states)
        how = "An [Action] is" if own else "You call a tool by [Action] NAME [Action Input] INPUT; NAME is"
        parts.append("\n".join([f"{how} the name of one of these tools:", *tools]))
    if examples:
        parts.append("\n".join(["Examples:", *(f"\n{one.to_text(markers)}" for one in examples)]).rstrip())
    return "\n\n".join(parts) + "\n\n"


#: The vocabulary of the random text model: words, and markers that may turn up where they are not allowed.
_WORDS = (
    "Danube ", "rivers ", "the ", "so ", "42 ", "3 * 7 ", "#E1 ", "[Thought] ", "[Action] ", "[Answer] ", "[Remark] ",
)  # fmt: skip


def ensure_text_llm(llm: LLM) -> LLM:
    """Return an LLM that writes text; ``test:random``, which only chooses, is replaced by one writing random words.

    Raises:
        WritesNoText: any other LLM that only chooses.
    """
    if isinstance(llm, RandomLLM):
        return RandomTextLLM(llm.draw_seed(), _WORDS)
    if not isinstance(llm, TextLLM | ContinuingLLM):
        raise WritesNoText(llm, "write as an agent")
    return llm


def _make_toolkit_factory(tools: Tools | None) -> Callable[[], Toolkit]:
    if tools is None:
        return lambda: Toolkit([])
    if isinstance(tools, Toolkit):
        return lambda: tools
    if callable(tools):
        return tools
    made = Toolkit(tools)
    return lambda: made
