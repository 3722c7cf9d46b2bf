"""Taking many tasks to their end, their outcomes handed out as they come.

How many walks advance together differs by how an LLM can be asked: awaited, from threads, many questions together, or
one after the other. Each way is a generator of outcomes that holds what is under way and nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TypeVar

from formal_llm.errors import LLMError
from formal_llm.llms.llm import LLM, AsyncLLM, BatchLLM, all_answered, answered
from formal_llm.llms.question import Answer
from formal_llm.planning.drivers.batch import ManyRuns, OneOfMany
from formal_llm.planning.drivers.driving import achosen, chosen

R = TypeVar("R", bound=OneOfMany)
Ended = TypeVar("Ended")
#: How many walks are under way where nobody says: for an LLM that is awaited, and for one that is asked many together.
AWAITED, TOGETHER = 32, 64


def run(batch: ManyRuns[R, Ended], concurrency: int | None = None) -> list[Ended]:
    """Take all tasks of a batch to their end; see :meth:`Planner.plan_all`."""
    if isinstance(batch.llm, AsyncLLM):
        import asyncio  # here and below: half of what importing this library would take, and most never need it

        _check_no_loop("plan_all", "aplan_all")
        return asyncio.run(arun(batch, concurrency))
    return _in_order(stream(batch, concurrency))


async def arun(batch: ManyRuns[R, Ended], concurrency: int | None = None) -> list[Ended]:
    """As :func:`run`, on the running event loop; see :meth:`Planner.aplan_all`."""
    return _in_order([outcome async for outcome in astream(batch, concurrency)])


def _in_order(outcomes: Iterable[Ended]) -> list[Ended]:
    """The outcomes in the order of the tasks."""
    return sorted(outcomes, key=attrgetter("index"))


def stream(batch: ManyRuns[R, Ended], concurrency: int | None = None) -> Generator[Ended]:
    """The outcomes of a batch as they come; see :meth:`Planner.plan_each`."""
    llm = batch.llm
    many = _concurrency(llm, concurrency)
    if isinstance(llm, AsyncLLM):
        _check_no_loop("plan_each", "aplan_each")
        return _awaited(batch, many)
    if isinstance(llm, BatchLLM):
        return _together(batch, llm, many)
    return _threads(batch, llm, many) if many > 1 else _one_by_one(batch, llm)


async def astream(batch: ManyRuns[R, Ended], concurrency: int | None = None) -> AsyncGenerator[Ended]:
    """As :func:`stream`, on the running event loop; see :meth:`Planner.aplan_each`."""
    import asyncio

    llm = batch.llm
    if not isinstance(llm, AsyncLLM):
        outcomes = stream(batch, concurrency)
        # One thread for all: an LLM may be bound to the one in which it is asked first.
        with ThreadPoolExecutor(1, thread_name_prefix="formal-llm") as alone:
            loop = asyncio.get_running_loop()
            while (outcome := await loop.run_in_executor(alone, next, outcomes, None)) is not None:
                yield outcome
        return
    runs = iter(batch)
    # Who is ended waits until somebody takes it, so no more walks are held than are under way.
    ended: asyncio.Queue[R | None] = asyncio.Queue(1)

    async def worker() -> None:
        for begun in runs:  # shared: each worker takes the next one
            while (question := begun.question) is not None:
                begun.give(await achosen(llm, question, begun.walk))
            await ended.put(begun)
            await asyncio.sleep(0)  # so that a run whose answers are all at hand can be stopped

    workers = [asyncio.create_task(worker()) for _ in range(_concurrency(llm, concurrency))]

    async def work() -> None:
        with suppress(Exception):  # raised below
            await asyncio.gather(*workers)
        await ended.put(None)

    whole = asyncio.create_task(work())
    try:
        while (begun := await ended.get()) is not None:
            yield batch.note(begun)
        await asyncio.gather(*workers)
    finally:
        for one in (*workers, whole):
            one.cancel()
        await asyncio.gather(*workers, whole, return_exceptions=True)
        await llm.aclose()


def _check_no_loop(name: str, instead: str) -> None:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"{name} was called from a coroutine; use planner.{instead}(...) there")


def _concurrency(llm: LLM, given: int | None) -> int:
    if given is None:
        return AWAITED if isinstance(llm, AsyncLLM) else TOGETHER if isinstance(llm, BatchLLM) else 1
    if given < 1:
        raise ValueError(f"concurrency counts from 1, not {given}")
    return given


def _awaited(batch: ManyRuns[R, Ended], many: int) -> Generator[Ended]:
    """The outcomes of an LLM that is awaited, on an event loop that runs while the next one is waited for."""
    import asyncio

    outcomes = astream(batch, many)

    async def following() -> Ended | None:
        return await anext(outcomes, None)

    with asyncio.Runner() as runner:
        try:
            while (outcome := runner.run(following())) is not None:
                yield outcome
        finally:
            runner.run(outcomes.aclose())


def _one_by_one(batch: ManyRuns[R, Ended], llm: LLM) -> Generator[Ended]:
    for begun in batch:
        while begun.question is not None:
            begun.give(chosen(partial(answered, llm), begun.question))
        yield batch.note(begun)


def _threads(batch: ManyRuns[R, Ended], llm: LLM, many: int) -> Generator[Ended]:
    """Ask from ``many`` threads; the walks themselves advance in this one, since they share what they learn."""
    pool = ThreadPoolExecutor(many, thread_name_prefix="formal-llm")
    runs = iter(batch)
    waiting: dict[Future[Answer | Exception], R] = {}

    def goes_on(begun: R) -> bool:
        if begun.question is not None:
            waiting[pool.submit(chosen, partial(answered, llm), begun.question)] = begun
        return begun.question is not None

    try:
        while True:
            while len(waiting) < many and (begun := next(runs, None)) is not None:
                if not goes_on(begun):
                    yield batch.note(begun)
            if not waiting:
                return
            walks = [begun.walk for begun in waiting.values() if begun.walk is not None and begun.walk.undecided]
            while not any(future.done() for future in waiting) and any(walk.ponder() for walk in walks):
                pass
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                begun = waiting.pop(future)
                begun.give(future.result())
                if not goes_on(begun):
                    yield batch.note(begun)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _together(batch: ManyRuns[R, Ended], llm: BatchLLM, many: int) -> Generator[Ended]:
    """Ask the questions of up to ``many`` walks together, round after round."""
    runs = iter(batch)
    under_way: list[R] = []
    while True:
        while len(under_way) < many and (begun := next(runs, None)) is not None:
            if begun.question is not None:
                under_way.append(begun)
            else:
                yield batch.note(begun)
        if not under_way:
            return
        answers: list[Answer | LLMError] | list[Exception]
        try:
            answers = all_answered(llm, [e.question for e in under_way if e.question is not None])
        except Exception as error:
            answers = [error] * len(under_way)
        asked, under_way = under_way, []
        for begun, answer in zip(asked, answers, strict=True):
            begun.give(answer)
            if begun.question is not None:
                under_way.append(begun)
            else:
                yield batch.note(begun)
