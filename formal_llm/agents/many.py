"""Many runs of an agent, driven as many plans are: awaited, from threads, asked together, or one after the other.

Who drives the runs (:mod:`formal_llm.planning.drivers.streams`) sees questions come out of each and gives answers in.
One run advances at a time: the rules are shared, and tools are called between two answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from formal_llm.agents.acting import ActingRules
from formal_llm.agents.decoding.steps import Do, Telling, Wish, given
from formal_llm.agents.happenings import ToolCall
from formal_llm.agents.running import Run
from formal_llm.agents.transcript import Transcript
from formal_llm.automata import Behaviour
from formal_llm.automata.models.automaton import fingerprint
from formal_llm.errors import AgentStopped, Cancelled, InvalidAnswer, NotAllowed, WritingError
from formal_llm.llms.generation import Stream, in_one_piece
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import Prices, TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget, Meter


class Runnable(Protocol):
    """An agent, as many runs see it."""

    llm: LLM
    prices: Prices | None
    behaviour: Behaviour
    rules: ActingRules
    examples: tuple[Transcript, ...]
    told: str
    variant: str

    def start(self, question: str, *, name: str = "") -> Run:
        """A run before its beginning."""


@dataclass(frozen=True, slots=True, eq=False)
class AgentOutcome:
    """What became of a question among many.

    Attributes:
        index: its place among the questions, from 0.
        task: the question.
        transcript: the run, or as far as it came.
        error: why it is not whole; None where it is.
        calls: the calls of tools.
    """

    index: int
    task: Task
    transcript: Transcript
    error: Exception | None = None
    calls: tuple[ToolCall, ...] = ()

    @property
    def usage(self) -> Usage:
        """What it took."""
        return self.transcript.usage

    def unwrap(self) -> Transcript:
        """The whole transcript; raises the error if there is none."""
        if self.error is not None:
            raise self.error
        return self.transcript


class AgentRun:
    """One run among many, as those who drive it see it.

    Attributes:
        question: what is to be answered now; None at the end.
        outcome: what became of it; None before the end.
        walk: None: nothing can be pondered meanwhile.
    """

    walk = None

    def __init__(self, agent: Runnable, index: int, question: str, shared: SharedRuns | None = None) -> None:
        self.question: Question | None = None
        self.outcome: AgentOutcome | None = None
        self._index, self._asked, self._shared = index, question, shared
        self._run: Run = agent.start(question, name=str(index))
        self._steps = self._run.steps()
        self._coming: Stream | None = None  # a text that was to come piece by piece comes here in one
        self._telling = False
        self._advance(None)

    def give(self, came: Answer | Exception) -> None:
        """Take an answer to the question; or what was raised instead of one."""
        if self._shared is not None and isinstance(came, (Answer, InvalidAnswer)):
            self._shared.pay(came.usage or TokenUsage())
        if self._telling and isinstance(came, Answer):
            self._coming = in_one_piece(came)
            self._advance(next(self._coming))
        else:
            self._advance(came)

    def _advance(self, came: object) -> None:
        self.question = error = None
        try:
            while self.question is None:
                step, came = given(self._steps, came), None
                try:
                    match step:
                        case Question() | Telling():
                            self._telling = isinstance(step, Telling)
                            asked = step.asked if isinstance(step, Telling) else step
                            if self._shared is not None:
                                self._shared.take(self._run.transcript, asked)
                            self.question = asked
                        case Wish():
                            assert self._coming is not None
                            came = next(self._coming) if step is Wish.MORE else None
                        case Do(work):
                            came = work()
                except Exception as raised:
                    came = raised
        except StopIteration:
            pass
        except Exception as raised:
            error = raised
        if self.question is None:
            run = self._run
            self.outcome = AgentOutcome(self._index, Task(self._asked), run.transcript, error, tuple(run.calls))


class SharedRuns:
    """What many runs may use together, and have used."""

    def __init__(self, budget: Budget, meter: Meter) -> None:
        self._budget, self._meter = budget, meter

    def take(self, transcript: Transcript, question: Question) -> None:
        """Raise if nothing is left for another request; else count it.

        Raises:
            AgentStopped: with the transcript.
        """
        spent = self._budget.spent(self._meter.usage(0))
        if spent is not None:
            raise AgentStopped(*spent, transcript, shared=True)
        self._meter.questions += bool(question.options)

    def pay(self, tokens: TokenUsage) -> None:
        """Count what an answer took."""
        self._meter.tokens += tokens


class AgentRuns:
    """The runs of many questions, begun one by one as places become free; to be closed in the end.

    Args:
        agent: the agent.
        questions: the questions.
        budget: what all runs together may use.
        skip: places among the questions that are left out.
        on_outcome: called with each outcome as it comes.
    """

    def __init__(
        self,
        agent: Runnable,
        questions: Iterable[str],
        budget: Budget | None = None,
        skip: Container[int] = (),
        on_outcome: Callable[[AgentOutcome], None] | None = None,
    ) -> None:
        self.llm = agent.llm
        self._on_outcome = on_outcome
        self._open: set[AgentRun] = set()
        if budget is not None:
            budget.check(agent.prices)
        shared = None if budget is None else SharedRuns(budget, Meter(agent.prices))
        self._begun = (
            self._opened(AgentRun(agent, index, question, shared))
            for index, question in enumerate(questions)
            if index not in skip
        )

    def __iter__(self) -> Iterator[AgentRun]:
        """The runs, those too that end before the first question."""
        return self._begun

    def _opened(self, run: AgentRun) -> AgentRun:
        self._open.add(run)
        return run

    def note(self, ended: AgentRun) -> AgentOutcome:
        """The outcome of a run that has ended, noted."""
        assert ended.outcome is not None
        self._open.discard(ended)
        if self._on_outcome is not None:
            self._on_outcome(ended.outcome)
        return ended.outcome

    def close(self) -> None:
        """End the runs that are still under way."""
        for run in [*self._open]:
            while run.question is not None:
                run.give(Cancelled())
            self._open.discard(run)


# -- lines of a results file -------------------------------------------------------------------------------------------


def run_of(agent: Runnable) -> dict[str, str]:
    """What the runs of an agent depend on besides the question: which LLM writes, and a hash of all of it."""
    llm = agent.llm
    identity = getattr(llm, "identity", None) or {"llm": getattr(llm, "name", "") or type(llm).__name__}
    monitor = agent.rules.monitor()
    shown = [one.to_jsonl() for one in agent.examples]
    states = [(name, state.text, sorted(state.flags)) for name, state in agent.behaviour.states.items()]
    said = json.dumps([identity, states, monitor.fingerprint, agent.told, shown, agent.variant], default=str)
    return {"llm": str(identity["llm"]), "run": fingerprint([hashlib.sha256(said.encode()).hexdigest()])[:16]}


def record(outcome: AgentOutcome) -> dict[str, JSON] | None:
    """The line of an outcome, as JSON data; None for a failure that may pass before anything was asked.

    What may succeed at another time (the provider could not be reached, the money was used up) is ``stopped``.
    """
    error = outcome.error
    data: dict[str, Any] = {"index": outcome.index, "task": outcome.task.description}
    if error is None:
        data["status"] = "planned"
    else:
        lasting = isinstance(error, (WritingError, NotAllowed, InvalidAnswer, AgentStopped)) and not getattr(
            error, "shared", False
        )
        if not lasting and not outcome.usage.requests and not outcome.usage.questions:
            return None
        data |= {"status": "failed" if lasting else "stopped", "error": type(error).__name__, "message": str(error)}
    calls = [call.data() for call in outcome.calls]
    return {**data, "transcript": outcome.transcript.to_jsonl(), "calls": calls, "usage": asdict(outcome.usage)}


def outcome_of(line: dict[str, Any]) -> AgentOutcome:
    """The outcome that a line tells; of a failure the error is one that says what was said then."""
    transcript = Transcript.from_jsonl(line["transcript"])
    error = None if line["status"] == "planned" else WritingError(line.get("message", line["status"]))
    calls = tuple(ToolCall(**call) for call in line.get("calls", ()))
    return AgentOutcome(line["index"], Task(line["task"]), transcript, error, calls)
