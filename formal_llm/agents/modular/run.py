"""What a run of a modular agent was: its steps and decisions, what was corrected, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from formal_llm.agents.modular.scratchpad import Memory, Scratchpad
from formal_llm.agents.run_events import ToolCall
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.automata import Word
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.llms.question import Message
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage

#: Who is asked.
Role = Literal["planner", "caller", "summarizer"]


@dataclass(frozen=True, slots=True)
class RunBudget:
    """What a run may take.

    Attributes:
        steps: uses of tools, nested ones too. Tools from which the end cannot be reached in the steps that are left are
            not offered, so a run ends in time wherever the rules let it.
        requests: requests to models; None for no bound.
        tokens: tokens read and written; None for no bound.
    """

    steps: int = 20
    requests: int | None = 100
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "requests", "tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"a budget of {value} {name} is none")


@dataclass(frozen=True, slots=True)
class Decision:
    """What the planner decided at one step.

    Attributes:
        messages: what it was shown.
        completion: what it wrote, as JSON text.
        schema: what it was held to.
        legal: the tools that it could choose from; of one alone it was not asked.
        task: what it is to do.
        context, thoughts: what it wrote besides.
    """

    messages: tuple[Message, ...]
    completion: str
    schema: Mapping[str, object] = field(hash=False)
    legal: tuple[str, ...]
    tool: str
    task: str
    context: str = ""
    thoughts: str = ""


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """Something that happened in a run, for those who watch it.

    Attributes:
        kind: ``"decided"`` (the planner chose a tool), ``"bound"`` (its call is there), ``"used"`` or ``"failed"`` (it
            gave a result, or an error), ``"summarised"``, ``"corrected"`` (what a model wrote was not used),
            ``"shortened"`` (no summary could be had, the text was cut), ``"answered"``.
        step: the number of steps before it.
        data: what is known of it.
        replayed: whether it comes from the journal.
    """

    kind: str
    step: int
    data: Mapping[str, JSON] = field(default=FrozenDict(), hash=False)
    replayed: bool = False


#: Called with each event as it happens.
Progress = Callable[[ProgressEvent], None]


@dataclass(frozen=True, slots=True)
class ModularRun:
    """What a run of a modular agent was.

    Attributes:
        request: what was asked.
        answer: what was answered; None while it has not ended.
        scratchpad: the uses of tools, in order.
        decisions: those of the planner, in order.
        memory: the conversation, with this request and its answer.
        corrections: what models wrote that was not used, and why.
        spent: what each of the models took.
    """

    request: str
    answer: str | None = None
    scratchpad: Scratchpad = field(default_factory=Scratchpad)
    decisions: tuple[Decision, ...] = ()
    memory: Memory = field(default_factory=Memory)
    corrections: tuple[Correction, ...] = ()
    spent: Mapping[Role, TokenUsage] = field(default=FrozenDict(), hash=False)

    @property
    def word(self) -> Word:
        """The tools in the order in which they were used: a word of the rules, or the beginning of one."""
        return self.scratchpad.word

    @property
    def complete(self) -> bool:
        """Whether it has ended."""
        return self.answer is not None

    @property
    def usage(self) -> TokenUsage:
        """What all models took."""
        return sum(self.spent.values(), TokenUsage())

    def __str__(self) -> str:
        return f"{self.scratchpad.text()}\n{'' if self.answer is None else self.answer}".strip()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The uses of tools, in the form of the other agents."""
        return tuple(
            ToolCall(place, step.tool, step.call or step.task, step.result, not step.failed)
            for place, step in enumerate(self.scratchpad.steps)
        )

    @property
    def transcript(self) -> Transcript:
        """The run in the form of the other agents: a segment for each use of a tool, its text what it gave."""
        last = len(self.scratchpad)
        segments = tuple(
            Segment(step.tool, step.result, "model" if number == last and self.complete else "environment")
            for number, step in enumerate(self.scratchpad.steps, 1)
        )
        usage = Usage(questions=len(self.decisions), **asdict(self.usage))
        return Transcript("modular", segments, self.corrections, {"": usage})
