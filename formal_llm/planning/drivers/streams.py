"""Taking many tasks to their end, their outcomes handed out as they come.

One loop serves all LLMs: as many runs as are best under way at once wait for their answers, and who is
answered goes on.
The loop itself does not wait, so it is written once for both who block and who await. An LLM that blocks is asked in
this thread (in a coroutine: in another one), or from as many threads as runs are under way.
"""

from __future__ import annotations

import queue
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from operator import attrgetter
from typing import Self, TypeVar

from formal_llm.llms.llm import LLM, outcome_of, submit_in_thread
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.drivers.batch import ConcurrentRun, RunBatch

R = TypeVar("R", bound=ConcurrentRun)
Ended = TypeVar("Ended")
_Future = Future[Answer]


def run_batch(batch: RunBatch[R, Ended], concurrency: int | None = None) -> list[Ended]:
    """Take all tasks of a batch to their end; see :meth:`Planner.plan_all`."""
    return _sort_outcomes(stream_outcomes(batch, concurrency))


async def arun_batch(batch: RunBatch[R, Ended], concurrency: int | None = None) -> list[Ended]:
    """As :func:`run_batch`, on the running event loop; see :meth:`Planner.aplan_all`."""
    return _sort_outcomes([outcome async for outcome in astream_outcomes(batch, concurrency)])


def _sort_outcomes(outcomes: Iterable[Ended]) -> list[Ended]:
    return sorted(outcomes, key=attrgetter("index"))


def stream_outcomes(batch: RunBatch[R, Ended], concurrency: int | None = None) -> Generator[Ended]:
    """The outcomes of a batch as they come; see :meth:`Planner.plan_each`."""
    many = _resolve_concurrency(batch.llm, concurrency)
    return _stream_outcomes(batch, many)


def _stream_outcomes(batch: RunBatch[R, Ended], many: int) -> Generator[Ended]:
    done: queue.SimpleQueue[_Future] = queue.SimpleQueue()
    with _Asking(batch.llm, many, done.put, in_thread=False) as asking:
        for outcome in _advance_runs(batch, asking, many):
            if outcome is not None:
                yield outcome
            else:
                asking.take(done.get())
                while not done.empty():
                    asking.take(done.get())


async def astream_outcomes(batch: RunBatch[R, Ended], concurrency: int | None = None) -> AsyncGenerator[Ended]:
    """As :func:`stream_outcomes`, on the running event loop; see :meth:`Planner.aplan_each`."""
    import asyncio  # half of what importing this library would take, and most never need it

    many, loop = _resolve_concurrency(batch.llm, concurrency), asyncio.get_running_loop()
    done: asyncio.Queue[_Future] = asyncio.Queue()

    def note(future: _Future) -> None:
        if not loop.is_closed():  # whoever stopped waiting may have ended it
            loop.call_soon_threadsafe(done.put_nowait, future)

    with _Asking(batch.llm, many, note, in_thread=True) as asking:
        for outcome in _advance_runs(batch, asking, many):
            if outcome is not None:
                yield outcome
                await asyncio.sleep(0)  # so that a run whose answers are all at hand can be stopped
            else:
                asking.take(await done.get())
                while not done.empty():
                    asking.take(done.get_nowait())


class _Asking:
    """The questions under way: whose they are, and which are answered.

    Args:
        note: is called with each future that is done, in whichever thread.
        in_thread: whether an LLM that blocks is asked in another thread.
    """

    def __init__(self, llm: LLM, many: int, note: Callable[[_Future], None], *, in_thread: bool) -> None:
        self._llm, self._note = llm, note
        #: Whether all that is under way is answered before anything else is asked.
        self.in_rounds = llm.blocks and llm.at_once > 1
        # One thread, unless more are asked for: an LLM may be bound to the one in which it is asked first. Whoever
        # stops waiting does not wait for the answers in flight.
        threads = 1 if self.in_rounds else many
        uses_pool = llm.blocks and (in_thread or (many > 1 and not self.in_rounds))
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="formal-llm") if uses_pool else None
        self.waiting: dict[_Future, ConcurrentRun] = {}
        self.answered: list[tuple[ConcurrentRun, Answer | Exception]] = []

    def submit(self, runs: Sequence[ConcurrentRun]) -> None:
        """Ask the questions of some runs."""
        questions = [run.question for run in runs if run.question is not None]
        for run, future in zip(runs, self._submit(questions), strict=True):
            self.waiting[future] = run
            future.add_done_callback(self._note)

    def _submit(self, questions: list[Question]) -> list[_Future]:
        if self._pool is None:
            return self._llm.submit(questions)
        together = [questions] if self.in_rounds else [[question] for question in questions]
        return [one for some in together for one in submit_in_thread(self._llm, some, self._pool.submit)]

    def take(self, future: _Future) -> None:
        """Take a future that is done."""
        if (run := self.waiting.pop(future, None)) is not None:
            self.answered.append((run, outcome_of(future)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for future in [*self.waiting]:
            future.cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _advance_runs(batch: RunBatch[R, Ended], asking: _Asking, many: int) -> Iterator[Ended | None]:
    """Yield the outcomes of runs, up to ``many`` of which are under way; None where an answer is to be waited for."""
    runs = iter(batch)
    while True:
        due: list[ConcurrentRun] = []
        answered, asking.answered = asking.answered, []
        for run, answer in answered:
            run.take_answer(answer)
            if run.question is not None:
                due.append(run)
            else:
                yield batch.record_outcome(run)  # type: ignore[arg-type]  # it is one of the batch
        while len(asking.waiting) + len(due) < many and (new := next(runs, None)) is not None:
            if new.question is not None:
                due.append(new)
            else:
                yield batch.record_outcome(new)
        if due:
            asking.submit(due)
        elif not asking.waiting:
            return
        yield None
        while asking.in_rounds and asking.waiting:
            yield None


def _resolve_concurrency(llm: LLM, given: int | None) -> int:
    if given is not None and given < 1:
        raise ValueError(f"concurrency counts from 1, not {given}")
    return given or llm.at_once
