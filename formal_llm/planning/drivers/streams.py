"""Taking many tasks to their end, their outcomes handed out as they come.

How many walks advance together differs by how an LLM can be asked: awaited, from threads, many questions together, or
one after the other. Each way is a generator of outcomes that holds what is under way and nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import aclosing, suppress
from functools import partial
from operator import attrgetter
from typing import Generic, TypeVar

from formal_llm.llms.llm import LLM, AsyncLLM, BatchLLM, all_answered, answered
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.drivers.batch import ConcurrentRun, RunBatch
from formal_llm.planning.drivers.driving import atry_answer, try_answer

R = TypeVar("R", bound=ConcurrentRun)
Ended = TypeVar("Ended")
#: How many walks are under way by default: for an LLM that is awaited, and for one that is asked many together.
AWAITED, TOGETHER = 32, 64


def run_batch(batch: RunBatch[R, Ended], concurrency: int | None = None) -> list[Ended]:
    """Take all tasks of a batch to their end; see :meth:`Planner.plan_all`."""
    if isinstance(batch.llm, AsyncLLM):
        import asyncio  # here and below: half of what importing this library would take, and most never need it

        _check_no_loop("plan_all", "aplan_all")
        return asyncio.run(arun_batch(batch, concurrency))
    return _sort_outcomes(stream_outcomes(batch, concurrency))


async def arun_batch(batch: RunBatch[R, Ended], concurrency: int | None = None) -> list[Ended]:
    """As :func:`run_batch`, on the running event loop; see :meth:`Planner.aplan_all`."""
    return _sort_outcomes([outcome async for outcome in astream_outcomes(batch, concurrency)])


def _sort_outcomes(outcomes: Iterable[Ended]) -> list[Ended]:
    return sorted(outcomes, key=attrgetter("index"))


def stream_outcomes(batch: RunBatch[R, Ended], concurrency: int | None = None) -> Generator[Ended]:
    """The outcomes of a batch as they come; see :meth:`Planner.plan_each`."""
    llm = batch.llm
    many = _resolve_concurrency(llm, concurrency)
    if isinstance(llm, AsyncLLM):
        _check_no_loop("plan_each", "aplan_each")
        return _stream_awaited(batch, many)
    if isinstance(llm, BatchLLM):
        return _stream_together(batch, llm, many)
    return _stream_threads(batch, llm, many) if many > 1 else _stream_serially(batch, llm)


async def astream_outcomes(batch: RunBatch[R, Ended], concurrency: int | None = None) -> AsyncGenerator[Ended]:
    """As :func:`stream_outcomes`, on the running event loop; see :meth:`Planner.aplan_each`."""
    llm, many = batch.llm, _resolve_concurrency(batch.llm, concurrency)
    if isinstance(llm, AsyncLLM):
        try:
            async with aclosing(_stream_workers(batch, partial(atry_answer, llm), many)) as outcomes:
                async for outcome in outcomes:
                    yield outcome
        finally:
            await llm.aclose()
        return
    import asyncio

    loop, together = asyncio.get_running_loop(), isinstance(llm, BatchLLM)
    # One thread, unless more are asked for: an LLM may be bound to the one in which it is asked first. Whoever stops
    # waiting does not wait for the answers in flight.
    pool = ThreadPoolExecutor(1 if together else many, thread_name_prefix="formal-llm")
    try:
        if isinstance(llm, BatchLLM):
            rounds, answers = _Rounds(batch, many), list[Answer | Exception]()
            while True:
                for outcome in rounds.take_answers(answers):
                    yield outcome
                if not rounds.questions:
                    return
                answers = await loop.run_in_executor(pool, _answer_round, llm, rounds.questions)

        def ask(question: Question) -> Awaitable[Answer | Exception]:
            return loop.run_in_executor(pool, try_answer, partial(answered, llm), question)

        async with aclosing(_stream_workers(batch, ask, many)) as outcomes:
            async for outcome in outcomes:
                yield outcome
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


async def _stream_workers(
    batch: RunBatch[R, Ended], ask: Callable[[Question], Awaitable[Answer | Exception]], many: int
) -> AsyncGenerator[Ended]:
    """The outcomes of ``many`` workers, each of which takes one run to its end and then the next one."""
    import asyncio

    runs = iter(batch)
    # Who is ended waits until somebody takes it, so no more walks are held than are under way.
    ended: asyncio.Queue[R | None] = asyncio.Queue(1)

    async def run_worker() -> None:
        for begun in runs:  # shared: each worker takes the next one
            while (question := begun.question) is not None:
                begun.take_answer(await ask(question))
            await ended.put(begun)
            await asyncio.sleep(0)  # so that a run whose answers are all at hand can be stopped

    workers = [asyncio.create_task(run_worker()) for _ in range(many)]

    async def await_workers() -> None:
        with suppress(Exception):  # raised below
            await asyncio.gather(*workers)
        await ended.put(None)

    whole = asyncio.create_task(await_workers())
    try:
        while (begun := await ended.get()) is not None:
            yield batch.record_outcome(begun)
        await asyncio.gather(*workers)
    finally:
        for one in (*workers, whole):
            one.cancel()
        await asyncio.gather(*workers, whole, return_exceptions=True)


def _check_no_loop(name: str, instead: str) -> None:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"{name} was called from a coroutine; use planner.{instead}(...) there")


def _resolve_concurrency(llm: LLM, given: int | None) -> int:
    if given is None:
        together = getattr(llm, "together", None) or TOGETHER
        return AWAITED if isinstance(llm, AsyncLLM) else together if isinstance(llm, BatchLLM) else 1
    if given < 1:
        raise ValueError(f"concurrency counts from 1, not {given}")
    return given


def _stream_awaited(batch: RunBatch[R, Ended], many: int) -> Generator[Ended]:
    """The outcomes of an LLM that is awaited, on an event loop that runs while the next one is waited for."""
    import asyncio

    outcomes = astream_outcomes(batch, many)

    async def await_outcome() -> Ended | None:
        return await anext(outcomes, None)

    with asyncio.Runner() as runner:
        try:
            while (outcome := runner.run(await_outcome())) is not None:
                yield outcome
        finally:
            runner.run(outcomes.aclose())


def _stream_serially(batch: RunBatch[R, Ended], llm: LLM) -> Generator[Ended]:
    for begun in batch:
        while begun.question is not None:
            begun.take_answer(try_answer(partial(answered, llm), begun.question))
        yield batch.record_outcome(begun)


def _stream_threads(batch: RunBatch[R, Ended], llm: LLM, many: int) -> Generator[Ended]:
    """Ask from ``many`` threads; the walks themselves advance in this one, since they share what they learn."""
    pool = ThreadPoolExecutor(many, thread_name_prefix="formal-llm")
    runs = iter(batch)
    waiting: dict[Future[Answer | Exception], R] = {}

    def submit_next(begun: R) -> bool:
        if begun.question is not None:
            waiting[pool.submit(try_answer, partial(answered, llm), begun.question)] = begun
        return begun.question is not None

    try:
        while True:
            while len(waiting) < many and (begun := next(runs, None)) is not None:
                if not submit_next(begun):
                    yield batch.record_outcome(begun)
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                begun = waiting.pop(future)
                begun.take_answer(future.result())
                if not submit_next(begun):
                    yield batch.record_outcome(begun)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _stream_together(batch: RunBatch[R, Ended], llm: BatchLLM, many: int) -> Generator[Ended]:
    """Ask the questions of up to ``many`` walks together, round after round."""
    rounds, answers = _Rounds(batch, many), list[Answer | Exception]()
    while True:
        yield from rounds.take_answers(answers)
        if not rounds.questions:
            return
        answers = _answer_round(llm, rounds.questions)


class _Rounds(Generic[R, Ended]):
    """Up to ``many`` runs under way, whose questions are asked together."""

    def __init__(self, batch: RunBatch[R, Ended], many: int) -> None:
        self._batch = batch
        self._runs = iter(batch)
        self._many = many
        self._under_way: list[R] = []

    @property
    def questions(self) -> list[Question]:
        """The questions of this round; none at the end."""
        return [begun.question for begun in self._under_way if begun.question is not None]

    def take_answers(self, answers: Iterable[Answer | Exception]) -> Iterator[Ended]:
        """Take the answers to :attr:`questions`, begin runs in free places, and yield the outcomes of those ended."""
        asked, self._under_way = self._under_way, []
        for begun, answer in zip(asked, answers, strict=True):
            begun.take_answer(answer)
            if begun.question is not None:
                self._under_way.append(begun)
            else:
                yield self._batch.record_outcome(begun)
        while len(self._under_way) < self._many and (new := next(self._runs, None)) is not None:
            if new.question is not None:
                self._under_way.append(new)
            else:
                yield self._batch.record_outcome(new)


def _answer_round(llm: BatchLLM, questions: list[Question]) -> list[Answer | Exception]:
    """The answers to all questions of a round, or what was raised in their place."""
    try:
        return list(all_answered(llm, questions))
    except Exception as error:
        return [error] * len(questions)
