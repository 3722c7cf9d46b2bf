"""Many runs of an agent, driven as many plans are: awaited, from threads, in batches, or one after the other.

The driver (:mod:`formal_llm.planning.drivers.streams`) takes questions out of each run and passes the answers in.
One run advances at a time: the rules are shared, and tools are called between two answers.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Never, Protocol, Self

from formal_llm.agents.decoding.steps import Do, Steps, Telling, Wish
from formal_llm.agents.happenings import ToolCall
from formal_llm.agents.transcript import Transcript
from formal_llm.authored.files import parse_json
from formal_llm.authored.tables import AlternativeShape, Keys, NamedEntries, problems
from formal_llm.automata.models.automaton import make_fingerprint
from formal_llm.errors import AgentError, AgentStopped, Cancelled, InvalidAnswer, ResultsError, ToolError, WritingError
from formal_llm.llms.driven import resumed
from formal_llm.llms.generation import Stream, in_one_piece
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.recorded.answer_data import answer_from_data, answer_to_data
from formal_llm.llms.usage import Prices, TokenUsage
from formal_llm.planning.drivers.json_lines import open_exclusively, write_line
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
        calls: the tool calls.
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


_FORMAT = "formal_llm.calls/1"
_BUSY = "another run is writing to this file; wait for it, or name another results file"
_HEAD = Keys({"format": AlternativeShape(texts=(_FORMAT,)), "run": str}, needed=("format", "run"))
_ROW = Keys(
    {"index": int, "at": int, "asked": str, "answer": NamedEntries(object)}, needed=("index", "at", "asked", "answer")
)


class AnswerJournal:
    """A file with the answers for unfinished runs.

    Args:
        path: the file, created if missing. A file of another agent is emptied: its answers are of no use.
        run: distinguishes the agent from others (:func:`~formal_llm.agents.many.identify_runs`).
        done: the finished runs, whose answers are no longer needed.

    Raises:
        ResultsError: the file is damaged, cannot be written, or is being written by another process.
    """

    def __init__(self, path: str | os.PathLike[str], run: str, done: Container[int] = ()) -> None:
        self.path = Path(path)
        #: The answers of each run, each with the hash of its question; and how many of them were replayed.
        self._answers: dict[int, list[tuple[str, Answer]]] = {}
        self._taken: dict[int, int] = {}
        self._file = open_exclusively(self.path, what="file of answers", busy=_BUSY)
        try:
            self._read_file(run, done)
        except BaseException:
            self._file.close()
            raise

    def _read_file(self, run: str, done: Container[int]) -> None:
        self._file.seek(0)
        text = self._file.readall() or b""
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):  # an incomplete line, left when the program died while writing
            self._file.truncate(len(whole))
        for number, line in enumerate(whole.split(b"\n")[:-1], 1):
            try:
                row: Any = parse_json(line)
                problem = next((one.problem for one in problems(row, _HEAD if number == 1 else _ROW)), None)
                if problem is not None:
                    raise ValueError(problem)
                if number == 1:
                    if row["run"] != run:
                        break
                elif row["index"] not in done:
                    answers = self._answers.setdefault(row["index"], [])
                    # If a run asked different questions from some position on, its later answers replace the earlier.
                    answers[row["at"] :] = [(row["asked"], answer_from_data(row["answer"]))]
            except (ValueError, TypeError, KeyError) as error:
                raise ResultsError(f"{self.path}:{number}: this line is damaged: {error}; delete the file") from None
        else:
            if whole:
                return
        self._file.truncate(0)
        write_line(self._file, self.path, {"format": _FORMAT, "run": run}, "the answer")

    def replay_answer(self, index: int, question: Question) -> Answer | None:
        """Return the next recorded answer of a run if its question is unchanged; else drop the remaining ones."""
        answers, at = self._answers.get(index, []), self._taken.get(index, 0)
        if at < len(answers) and answers[at][0] == _hash_question(question):
            self._taken[index] = at + 1
            return answers[at][1]
        self._answers.pop(index, None)
        return None

    def record_answer(self, index: int, question: Question, answer: Answer) -> None:
        """Record an answer for a run."""
        at = self._taken.get(index, 0)
        self._taken[index] = at + 1
        data = {"index": index, "at": at, "asked": _hash_question(question), "answer": answer_to_data(answer)}
        write_line(self._file, self.path, data, "the answer")

    def delete_file(self) -> None:
        """Delete the file, once all runs are finished."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _hash_question(question: Question) -> str:
    return hashlib.sha256(json.dumps(question.content, sort_keys=True, default=str).encode()).hexdigest()[:16]


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
        run: the run.
        walk: always None: there is nothing to ponder while an answer is pending.
    """

    walk = None

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
            self._kept.record_answer(self._index, self.question, came)
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
                            known = None if self._kept is None else self._kept.replay_answer(self._index, asked)
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
        agent: the agent.
        questions: the questions.
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
            ResultsError: the file is in use, belongs to another agent or other questions, or is damaged.
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
            with AnswerJournal(f"{results}.calls", run["run"], done) as kept:
                new = self._run_all(AgentRunBatch(self, asked, budget, done, kept, store_outcome), concurrency)
                if len(file.done) == len(asked):
                    kept.delete_file()
        return sorted([*done.values(), *new], key=lambda outcome: outcome.index)

    @staticmethod
    def _run_all(runs: AgentRunBatch, concurrency: int | None) -> list[AgentOutcome]:
        with closing(runs):
            return run_many(runs, concurrency)


def identify_runs(agent: RunnableAgent) -> dict[str, str]:
    """Identify what the runs of an agent depend on besides the question: the LLM, and a hash of everything."""
    llm = agent.llm
    identity = getattr(llm, "identity", None) or {"llm": getattr(llm, "name", "") or type(llm).__name__}
    identity_text = json.dumps([identity, agent.variant], default=str)
    return {
        "llm": str(identity.get("llm", "")),
        "run": make_fingerprint([hashlib.sha256(identity_text.encode()).hexdigest()])[:16],
    }
