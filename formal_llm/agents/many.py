"""Many runs of an agent, driven as many plans are: awaited, from threads, asked together, or one after the other.

Who drives the runs (:mod:`formal_llm.planning.drivers.streams`) sees questions come out of each and gives answers in.
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


def outcome_to_data(outcome: AgentOutcome) -> dict[str, JSON] | None:
    """The line of an outcome, as JSON data; None for a failure that may pass before anything was asked.

    What may succeed at another time (the provider could not be reached, the money was used up) is ``stopped``.
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
    """The outcome that a line tells; of a failure the error is one that says what was said then."""
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
    """The answers for runs that are not finished.

    Args:
        path: the file; made where it is not there. That of another agent is begun anew: its answers are of no use.
        run: what tells the agent apart from others (:func:`~formal_llm.agents.many.identify_runs`).
        done: the runs that are finished: their answers are not needed any more.

    Raises:
        ResultsError: the file is damaged, cannot be written, or somebody is writing to it.
    """

    def __init__(self, path: str | os.PathLike[str], run: str, done: Container[int] = ()) -> None:
        self.path = Path(path)
        #: By run, its answers, each with what was asked; and how many of them are taken.
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
        if len(whole) < len(text):  # the line that was being written when the program died
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
                    # A run that asked something else from some place on has written other answers from there on.
                    answers[row["at"] :] = [(row["asked"], answer_from_data(row["answer"]))]
            except (ValueError, TypeError, KeyError) as error:
                raise ResultsError(f"{self.path}:{number}: this line is damaged: {error}; delete the file") from None
        else:
            if whole:
                return
        self._file.truncate(0)
        write_line(self._file, self.path, {"format": _FORMAT, "run": run}, "the answer")

    def replay_answer(self, index: int, question: Question) -> Answer | None:
        """The next answer of a run, where it asks what it asked then; else None, and those after it count no more."""
        answers, at = self._answers.get(index, []), self._taken.get(index, 0)
        if at < len(answers) and answers[at][0] == _hash_question(question):
            self._taken[index] = at + 1
            return answers[at][1]
        self._answers.pop(index, None)
        return None

    def record_answer(self, index: int, question: Question, answer: Answer) -> None:
        """Keep the answer that came for a run."""
        at = self._taken.get(index, 0)
        self._taken[index] = at + 1
        data = {"index": index, "at": at, "asked": _hash_question(question), "answer": answer_to_data(answer)}
        write_line(self._file, self.path, data, "the answer")

    def delete_file(self) -> None:
        """Delete the file: all runs are finished."""
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
    """A run of an agent, as those who drive it see it."""

    @property
    def transcript(self) -> Transcript:
        """What was written so far."""
        ...

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The calls of tools so far."""
        ...

    def steps(self) -> Steps[Never]:
        """The run, of nobody: what is asked for comes out, answers go in."""
        ...


class AgentRun:
    """One run among many, as those who drive it see it.

    Attributes:
        question: what is to be answered now; None at the end.
        outcome: what became of it; None before the end.
        run: the run.
        walk: None: nothing can be pondered meanwhile.
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
        self._coming: Stream | None = None  # a text that was to come piece by piece comes here in one
        self._telling = False
        self._advance_run(None)

    def take_answer(self, came: Answer | Exception) -> None:
        """Take an answer to the question; or what was raised instead of one."""
        if self._shared is not None and isinstance(came, (Answer, InvalidAnswer)):
            self._shared.count_tokens(came.usage or TokenUsage())
        if self._kept is not None and self.question is not None and isinstance(came, Answer):
            self._kept.record_answer(self._index, self.question, came)
        self._advance_run(self._unwrap_answer(came))

    def _unwrap_answer(self, came: Answer | Exception) -> object:
        """What the run is given for an answer: where it wants it piece by piece, the first piece."""
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
    """What many runs may use together, and have used."""

    def __init__(self, budget: Budget, meter: Meter) -> None:
        self._budget, self._meter = budget, meter

    def count_request(self, transcript: Transcript, question: Question) -> None:
        """Raise if nothing is left for another request; else count it.

        Raises:
            AgentStopped: with the transcript.
        """
        spent = self._budget.spent(self._meter.count_usage(0))
        if spent is not None:
            raise AgentStopped(*spent, transcript, shared=True)
        self._meter.questions += bool(question.options)

    def count_tokens(self, tokens: TokenUsage) -> None:
        """Count what an answer took."""
        self._meter.tokens += tokens


class AgentRunBatch:
    """The runs of many questions, begun one by one as places become free; to be closed in the end.

    Args:
        agent: the agent.
        questions: the questions.
        budget: what all runs together may use.
        skip: places among the questions that are left out.
        kept: answers that came before, and those that come now.
        on_outcome: called with each outcome as it comes.
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
        """The runs, those too that end before the first question."""
        return self._begun

    def _register_run(self, run: AgentRun) -> AgentRun:
        self._open.add(run)
        return run

    def record_outcome(self, ended: AgentRun) -> AgentOutcome:
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
                run.take_answer(Cancelled())
            self._open.discard(run)


class RunnableAgent(ABC):
    """An agent that runs: one question after the other, or many together.

    Attributes:
        llm: who is asked; answers all that its runs ask.
        prices: what tokens cost; None where nobody said it.
    """

    llm: LLM
    prices: Prices | None = None

    @abstractmethod
    def start(self, question: str, *, name: str = "") -> DrivableRun:
        """A run before its beginning."""

    @property
    @abstractmethod
    def variant(self) -> object:
        """What its runs depend on besides the question and the model, as JSON data."""

    def run_all(
        self,
        questions: Iterable[str],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        results: str | Path | None = None,
        on_outcome: Callable[[AgentOutcome], None] | None = None,
    ) -> list[AgentOutcome]:
        """A run for each question; many advance together, and what goes wrong in one is its own.

        Args:
            questions: the questions.
            concurrency: how many runs are under way at most, as of :meth:`Planner.plan_all`.
            budget: what all runs together may use; what is not finished by then ends with ``AgentStopped``, its
                ``shared`` True.
            results: a file to which each outcome is written when it comes. A run that was stopped, by whatever means,
                goes on with the questions that are not done in it. What models answered to those is kept beside it,
                and is not asked again; tools are called again.
            on_outcome: called with each outcome as it comes.

        Returns:
            One outcome for each question, in their order, those from the file among them.

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
    """What the runs of an agent depend on besides the question: which LLM writes, and a hash of all of it."""
    llm = agent.llm
    identity = getattr(llm, "identity", None) or {"llm": getattr(llm, "name", "") or type(llm).__name__}
    said = json.dumps([identity, agent.variant], default=str)
    return {
        "llm": str(identity.get("llm", "")),
        "run": make_fingerprint([hashlib.sha256(said.encode()).hexdigest()])[:16],
    }
