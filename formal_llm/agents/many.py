"""Many runs of an agent, driven as many plans are: awaited, from threads, in batches, or one after the other.

The driver (:mod:`formal_llm.planning.drivers.streams`) takes questions out of each run and passes the answers in.
One run advances at a time: the rules are shared, and tools are called between two answers.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Never, Protocol

from formal_llm.agents.decoding.steps import Do, Steps, Telling, Wish
from formal_llm.agents.run_events import ToolCall
from formal_llm.agents.transcript import Transcript
from formal_llm.automata.models.automaton import make_fingerprint
from formal_llm.errors import AgentError, AgentStopped, Cancelled, InvalidAnswer, ToolError, WritingError
from formal_llm.llms.driven import resumed
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import Stream, in_one_piece
from formal_llm.llms.usage import Prices, TokenUsage
from formal_llm.planning.drivers.answer_journal import AnswerJournal
from formal_llm.planning.drivers.results import Results
from formal_llm.planning.drivers.streams import run_batch as run_many
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget, Meter


@dataclass(frozen=True, slots=True, eq=False)
class AgentOutcome:
    """The outcome of one question among many.

    Attributes:
        index: the position of the question, from 0.
        task: the question.
        transcript: the transcript of the run, complete or not.
        error: why the run is incomplete; None if it is complete.
    """

    index: int
    task: Task
    transcript: Transcript
    error: Exception | None = None
    calls: tuple[ToolCall, ...] = ()

    @property
    def usage(self) -> Usage:
        """The usage of the run."""
        return self.transcript.usage

    def unwrap(self) -> Transcript:
        """Return the complete transcript; raise the error if the run is incomplete."""
        if self.error is not None:
            raise self.error
        return self.transcript


def outcome_to_data(outcome: AgentOutcome) -> dict[str, JSON] | None:
    """Return the line of an outcome as JSON data; None for a temporary failure before any request.

    A run that may succeed at another time (the provider could not be reached, the budget was used up) is ``stopped``.
    """
    error = outcome.error
    data: dict[str, Any] = {"index": outcome.index, "task": outcome.task.description}
    if error is None:
        data["status"] = "planned"
    else:
        lasting = isinstance(error, (AgentError, InvalidAnswer, ToolError)) and not getattr(error, "shared", False)
        if not lasting and not outcome.usage.requests and not outcome.usage.questions:
            return None
        data |= {"status": "failed" if lasting else "stopped", "error": type(error).__name__, "message": str(error)}
    calls = [call.to_data() for call in outcome.calls]
    return {**data, "transcript": outcome.transcript.to_jsonl(), "calls": calls, "usage": asdict(outcome.usage)}


def outcome_from_data(line: dict[str, Any]) -> AgentOutcome:
    """Read an outcome from its line; a failure becomes an error with the recorded message."""
    transcript = Transcript.from_jsonl(line["transcript"])
    error = None if line["status"] == "planned" else WritingError(line.get("message", line["status"]))
    calls = tuple(ToolCall(**call) for call in line.get("calls", ()))
    return AgentOutcome(line["index"], Task(line["task"]), transcript, error, calls)


class DrivableRun(Protocol):
    """A run of an agent, as a driver sees it."""

    @property
    def transcript(self) -> Transcript:
        """What was written so far."""
        ...

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The tool calls so far."""
        ...

    def steps(self) -> Steps[Never]:
        """Run as a generator that asks no model itself: it yields requests and receives the answers."""
        ...


class AgentRun:
    """One run among many, as a driver sees it.

    Attributes:
        question: the question to answer now; None at the end.
        outcome: the outcome; None before the end.
    """

    def __init__(
        self,
        agent: RunnableAgent,
        index: int,
        question: str,
        shared: SharedRunBudget | None = None,
        kept: AnswerJournal | None = None,
    ) -> None:
        self.question: Question | None = None
        self.outcome: AgentOutcome | None = None
        self._index, self._asked, self._shared, self._kept = index, question, shared, kept
        self.run = agent.start(question, name=str(index))
        self._steps = self.run.steps()
        self._coming: Stream | None = None  # a text requested piece by piece, delivered in one piece
        self._telling = False
        self._advance_run(None)

    def take_answer(self, came: Answer | Exception) -> None:
        """Take an answer to the question, or the exception that was raised instead."""
        if self._shared is not None and isinstance(came, (Answer, InvalidAnswer)):
            self._shared.count_tokens(came.usage or TokenUsage())
        if self._kept is not None and self.question is not None and isinstance(came, Answer):
            self._kept.record(self._index, self.question, came)
        self._advance_run(self._unwrap_answer(came))

    def _unwrap_answer(self, came: Answer | Exception) -> object:
        """Return what to send into the run for an answer: the first piece if it wants the text piece by piece."""
        if not self._telling or not isinstance(came, Answer):
            return came
        self._coming = in_one_piece(came)
        return next(self._coming)

    def _advance_run(self, came: object) -> None:
        self.question = error = None
        try:
            while self.question is None:
                step, came = resumed(self._steps, came), None
                try:
                    match step:
                        case Question() | Telling():
                            self._telling = isinstance(step, Telling)
                            asked = step.asked if isinstance(step, Telling) else step
                            known = None if self._kept is None else self._kept.take(self._index, asked)
                            if known is not None:
                                came = self._unwrap_answer(known)
                                continue
                            if self._shared is not None:
                                self._shared.count_request(self.run.transcript, asked)
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
            run = self.run
            self.outcome = AgentOutcome(self._index, Task(self._asked), run.transcript, error, tuple(run.calls))


class SharedRunBudget:
    """A budget shared by many runs, with what they have used of it."""

    def __init__(self, budget: Budget, meter: Meter) -> None:
        self._budget, self._meter = budget, meter

    def count_request(self, transcript: Transcript, question: Question) -> None:
        """Count a request.

        Raises:
            AgentStopped: nothing is left for another request; carries the transcript.
        """
        spent = self._budget.spent(self._meter.count_usage(0))
        if spent is not None:
            raise AgentStopped(*spent, transcript, shared=True)
        self._meter.questions += bool(question.options)

    def count_tokens(self, tokens: TokenUsage) -> None:
        """Count the tokens of an answer."""
        self._meter.tokens += tokens


class AgentRunBatch:
    """The runs of many questions, started one by one as slots become free; close it in the end.

    Args:
        budget: how much all runs together may use.
        skip: positions of questions to leave out.
        kept: the journal of earlier answers, to which new ones are added.
        on_outcome: called with each outcome as soon as it is known.
    """

    def __init__(
        self,
        agent: RunnableAgent,
        questions: Iterable[str],
        budget: Budget | None = None,
        skip: Container[int] = (),
        kept: AnswerJournal | None = None,
        on_outcome: Callable[[AgentOutcome], None] | None = None,
    ) -> None:
        self.llm = agent.llm
        self._on_outcome = on_outcome
        self._open: set[AgentRun] = set()
        if budget is not None:
            budget.check(agent.prices)
        shared = None if budget is None else SharedRunBudget(budget, Meter(agent.prices))
        self._begun = (
            self._register_run(AgentRun(agent, index, question, shared, kept))
            for index, question in enumerate(questions)
            if index not in skip
        )

    def __iter__(self) -> Iterator[AgentRun]:
        """Iterate over the runs, including those that end before the first question."""
        return self._begun

    def _register_run(self, run: AgentRun) -> AgentRun:
        self._open.add(run)
        return run

    def record_outcome(self, ended: AgentRun) -> AgentOutcome:
        """Record and return the outcome of a run that has ended."""
        assert ended.outcome is not None
        self._open.discard(ended)
        if self._on_outcome is not None:
            self._on_outcome(ended.outcome)
        return ended.outcome

    def close(self) -> None:
        """Cancel the runs that are still in progress."""
        for run in [*self._open]:
            while run.question is not None:
                run.take_answer(Cancelled())
            self._open.discard(run)


class RunnableAgent(ABC):
    """An agent that can run, on one question after the other or on many together.

    Attributes:
        llm: the model that answers all requests of its runs.
        prices: the prices of tokens; None if they are not known.
    """

    llm: LLM
    prices: Prices | None = None

    @abstractmethod
    def start(self, question: str, *, name: str = "") -> DrivableRun:
        """Create a run without starting it."""

    @property
    @abstractmethod
    def variant(self) -> object:
        """What runs depend on besides the question and the model, as JSON data."""

    def run_all(
        self,
        questions: Iterable[str],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        results: str | Path | None = None,
        on_outcome: Callable[[AgentOutcome], None] | None = None,
    ) -> list[AgentOutcome]:
        """Run the agent on each question; many runs advance together, and a failure of one does not affect the others.

        Args:
            questions: the questions.
            concurrency: the maximum number of runs in progress, as for :meth:`Planner.plan_all`.
            budget: how much all runs together may use; unfinished runs then end with ``AgentStopped``, whose
                ``shared`` is True.
            results: a file to which each outcome is written as soon as it is known. After an interruption of any kind,
                calling again continues with the questions that are not finished in it. Answers of models to those are
                kept beside it and are not requested again; tools are called again.
            on_outcome: called with each outcome as soon as it is known.

        Returns:
            One outcome for each question, in order, including those from the file.

        Raises:
            RecordError: the file is in use, belongs to another agent or other questions, or is damaged.
        """
        asked = list(questions)
        if results is None:
            return self._run_all(AgentRunBatch(self, asked, budget, on_outcome=on_outcome), concurrency)
        run = identify_runs(self)
        with Results(results, run, outcome_to_data) as file:
            file.check_tasks([Task(question) for question in asked])

            def store_outcome(outcome: AgentOutcome) -> None:
                file.add(outcome)
                if on_outcome is not None:
                    on_outcome(outcome)

            done = {index: outcome_from_data(line) for index, line in file.done.items()}
            journal = AnswerJournal(f"{results}.journal", run["run"], file.done.__contains__, paid_only=False)
            with closing(journal):
                new = self._run_all(AgentRunBatch(self, asked, budget, done, journal, store_outcome), concurrency)
        return sorted([*done.values(), *new], key=lambda outcome: outcome.index)

    @staticmethod
    def _run_all(runs: AgentRunBatch, concurrency: int | None) -> list[AgentOutcome]:
        with closing(runs):
            return run_many(runs, concurrency)


def identify_runs(agent: RunnableAgent) -> dict[str, str]:
    """Identify what the runs of an agent depend on besides the question: the LLM, and a hash of everything."""
    llm = agent.llm
    identity = llm.identity or {"llm": llm.name or type(llm).__name__}
    identity_text = json.dumps([identity, agent.variant], default=str)
    return {
        "llm": str(identity.get("llm", "")),
        "run": make_fingerprint([hashlib.sha256(identity_text.encode()).hexdigest()])[:16],
    }
