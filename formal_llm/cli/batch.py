"""``formal-llm plan --tasks``: many tasks, their results in a file, to be stopped and continued at any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from time import monotonic
from types import NoneType
from typing import Any

import typer

from formal_llm.authored.files import parse_json, read_lines
from formal_llm.authored.tables import AlternativeShape, Items, Keys, NamedEntries, problems
from formal_llm.automata import Limits
from formal_llm.cli.console import answering_first_signal, counted, err, progress_bars
from formal_llm.cli.sources import LoadedRules
from formal_llm.errors import FormalLLMError, NotationError, ResourceNotFound, RunStopped
from formal_llm.planning import Budget, Planner, Task
from formal_llm.planning.drivers.answer_journal import AnswerJournal
from formal_llm.planning.drivers.batch import Keeping, Outcome
from formal_llm.planning.drivers.results import FAILED, Results, run_of

#: The failures in a row, none of them due to a plan, after which a run ends: the provider cannot be reached.
_IN_A_ROW = 10
#: Notations of whole files, which have no task on each line.
_NO_LINES = (".json", ".toml", ".yaml", ".yml")
#: Where no progress bar can be drawn, a line is printed whenever this many seconds have passed.
_EVERY = 30


@dataclass(frozen=True)
class Batch:
    """The options for many tasks.

    Attributes:
        out: the results file.
        concurrency: see :meth:`Planner.plan_all`.
        budget: what all plans together may use.
        retry_failed: whether tasks that failed before are planned again.
        stop: what ends the run once it is set, if the LLM is asked in batches.
    """

    out: Path
    concurrency: int | None
    budget: Budget | None
    retry_failed: bool
    stop: Event | None = None


class TaskFile:
    """The tasks of a file, read from it whenever they are gone through: they are not held in memory.

    Raises:
        NotationError: a line is no task; says which.
    """

    def __init__(self, name: str, source: LoadedRules) -> None:
        self._name = name
        self._source = source
        self._count = sum(1 for _ in self)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Task]:
        for number, line in enumerate(read_lines(self._name), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                try:
                    task = _read_task(line.strip(), self._source)
                except (FormalLLMError, ValueError, TypeError) as error:
                    raise NotationError(str(error), file=self._name, line=number, source_line=line) from None
                yield task


def read_tasks(name: str, source: LoadedRules) -> TaskFile | list[Task]:
    """The tasks of a file, or of a pack's split.

    A file has a task on each line: a sentence (of a pack also the number of a task), or a JSON object with the keys
    ``task`` and, where wanted, ``goal``, ``inputs``, ``limit`` and ``require``. Empty lines and those that begin with
    ``#`` are left out.

    Raises:
        ResourceNotFound: there is no such file or split.
        NotationError: a line is no task; says which.
    """
    path = Path(name)
    if not path.is_file():
        if source.pack is not None and not path.suffix:
            return list(source.pack.split(name))
        raise ResourceNotFound("file of tasks", name)
    if path.suffix in _NO_LINES:
        raise NotationError(
            f"a file of tasks has a task on each line, and {path.suffix} is another notation",
            file=name,
            suggestion="write a sentence on each line, or a JSON object on each line (.jsonl)",
        )
    tasks = TaskFile(name, source)
    if not len(tasks):
        raise NotationError("there is no task in it", file=name, suggestion="write a sentence on each line")
    return tasks


def _read_task(line: str, source: LoadedRules) -> Task:
    if not line.startswith("{"):
        return source.task(line)
    data: Any = parse_json(line, once=True)
    for found in problems(data, TASK):
        near = found.suggestion or (f"there are: {', '.join(found.expected)}" if found.expected else "")
        raise ValueError(f"{found.problem}; {near}" if near else found.problem)
    return task_of(data, source)


def task_of(row: Mapping[str, object], source: LoadedRules) -> Task:
    """The task of a JSON object that has the shape :data:`TASK`."""
    data: dict[str, Any] = {**row}
    task = source.task(data["task"], inputs=data.get("inputs") or (), goal=data.get("goal"))
    more = Limits(at_most=data.get("limit") or {}, at_least=data.get("require") or {})
    return replace(task, limits=task.limits & more)


#: The keys of a task on a line.
TASK = Keys(
    {
        "task": str,
        "goal": AlternativeShape((str, NoneType)),
        "inputs": AlternativeShape((Items(str), NoneType)),
        "limit": NamedEntries(AlternativeShape((int, NoneType))),
        "require": NamedEntries(int),
    },
    needed=("task",),
)


def plan_tasks(planner: Planner, tasks: TaskFile | Sequence[Task], batch: Batch) -> None:
    """Plan all tasks that the results file does not have yet, and write it.

    Raises:
        RecordError: the file cannot be used.
        LLMError: the provider failed many times in a row.
        typer.Exit: 3 when some tasks are left over, 4 when the budget is used up, 130 after Ctrl-C, 143 after SIGTERM.
    """
    run = run_of(planner)
    with ExitStack() as opened:
        results = opened.enter_context(Results(batch.out, run))
        journal = opened.enter_context(
            closing(AnswerJournal(f"{batch.out}.journal", run["run"], results.done.__contains__))
        )
        keeping = Keeping(journal) if batch.stop is None else Keeping(journal, batch.stop)
        if batch.retry_failed and (again := results.forget_failed()):
            err().print(f"{again} failed before, and are planned again")
        results.check_tasks(tasks)
        board = _Board(results, len(tasks), keeping.stop)
        after = "waiting for the answers in flight, which are paid for" if not planner.llm.blocks else ""
        if batch.stop is not None:
            after = "the batch under way is cancelled, and the same command asks its questions again"
        with board.progress, stopping_gently(keeping.stop, after) as signals:
            try:
                outcomes = planner.plan_each(
                    tasks,
                    concurrency=batch.concurrency,
                    budget=batch.budget,
                    skip=results.done,
                    begun=results.begun,
                    keeping=keeping,
                )
                with closing(outcomes):
                    for outcome in outcomes:
                        board.note(outcome)
            except BaseException:
                board.progress.stop()
                board.summary("stopped")
                raise
        if board.fatal is not None:
            board.summary("stopped")
            raise board.fatal
        board.summary("done" if board.left == 0 else "stopped" if keeping.stop.is_set() else "not all done")
        if signals:
            raise typer.Exit(128 + signals[0])
        if board.broke:
            raise typer.Exit(4)
        if board.left:
            raise typer.Exit(3)


@contextmanager
def stopping_gently(stop: Event, after: str) -> Iterator[list[int]]:
    """Have the first Ctrl-C or SIGTERM stop a run; the second one ends it at once.

    Args:
        stop: set by the first one.
        after: what is printed then; empty if the first one already ends the run at once.

    Yields:
        The list of signals that came.
    """
    if not after:
        yield []
        return
    with answering_first_signal(stop.set, after) as came:
        yield came


class _Board:
    """What a run shows of itself, on standard error."""

    def __init__(self, results: Results, count: int, stop: Event) -> None:
        self.broke = False
        self.fatal: Exception | None = None
        self._stop = stop
        self._console = err()
        self._results = results
        self._count = count
        self._before = len(results.done)
        self._failed = results.places.counts[FAILED]
        self._passing = 0
        self._in_a_row = 0
        self._last: Exception | None = None
        self._reported_at = monotonic()
        # What a plan that was stopped took is part of what it takes in the end.
        self._sum = results.usage_of_done
        self._begun = len(results.stopped)
        self.progress = progress_bars()
        self._bar = self.progress.add_task("", total=count, completed=self._before, said=self._describe_status())

    @property
    def left(self) -> int:
        """How many tasks are not in the file."""
        return self._count - len(self._results.done)

    def note(self, outcome: Outcome) -> None:
        """Write an outcome and show it."""
        self._sum += outcome.usage
        if self._results.add(outcome):
            self._in_a_row = 0
            self._failed += outcome.plan is None
            self.progress.advance(self._bar)
        elif not isinstance(outcome.error, RunStopped):
            self._passing += 1
            self._last = outcome.error
            if getattr(outcome.error, "shared", False):
                self.broke = True
            else:
                self._in_a_row += 1
                if self._in_a_row >= _IN_A_ROW and self.fatal is None:
                    self.fatal = outcome.error
                    self._stop.set()  # what is in flight is awaited: it is paid for
        self.progress.update(self._bar, said=self._describe_status())
        if self.progress.disable and monotonic() - self._reported_at > _EVERY:
            self._reported_at = monotonic()
            self._console.print(f"{len(self._results.done)} of {self._count}: {self._describe_status()}")

    def _describe_status(self) -> str:
        status = (
            f"{len(self._results.done) - self._failed} plans, {self._failed} failed, {self._sum.questions} questions"
        )
        if self._sum.input_tokens:
            status += f", {self._sum.input_tokens + self._sum.output_tokens:,} tokens"
        return status if self._sum.cost is None else f"{status}, cost {self._sum.cost:.4f}"

    def summary(self, how: str) -> None:
        """The last word."""
        console, path = self._console, self._results.path
        self._sum = self._results.usage
        done = f"{len(self._results.done)} of {self._count} tasks in {path}"
        console.print(f"{how}: {done}: {self._describe_status()}")
        if self._before:
            console.print(f"{self._before} of them were there before")
        if self._begun:
            console.print(f"{counted(self._begun, 'plan')} went on from the question at which the last run broke")
        if self._passing:
            console.print(f"{self._passing} could not be planned now; the last one: {self._last}")
        if self.left:
            console.print(f"{self.left} are left; the same command goes on with them")
        if self._failed:
            console.print(f"{self._failed} have no plan; --retry-failed plans them again")
