"""Many jobs of the benchmark at once, from threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, TypeAlias

from formal_llm.llms.llm import LLM, AsyncLLM
from formal_llm.packs.openagi.benchmark.setting import Attempt, Job

#: Takes what became of a job: an attempt, or what went wrong and may pass (the provider could not be reached).
Note: TypeAlias = Callable[[Job, "Attempt | Exception"], None]


def many_for(llm: LLM, concurrency: int | None) -> int:
    """How many jobs are under way at once: of an LLM that waits for others several, of any other one."""
    if concurrency is not None:
        return concurrency
    return 8 if isinstance(getattr(llm, "llm", llm), AsyncLLM) else 1


def threaded(work: Callable[[Job], Any], jobs: Sequence[Job], many: int) -> Iterator[tuple[Job, Any]]:
    """What the work gives for each job, or what it raises, as it comes."""

    def done(job: Job) -> Any:
        try:
            return work(job)
        except Exception as error:
            return error

    if many <= 1:
        for job in jobs:
            yield job, done(job)
        return
    pool = ThreadPoolExecutor(many, thread_name_prefix="formal-llm-bench")
    waiting = iter(jobs)
    try:
        under_way: dict[Future[Any], Job] = {pool.submit(done, job): job for job in islice(waiting, many)}
        while under_way:
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                job = under_way.pop(future)
                yield job, future.result()
                if (following := next(waiting, None)) is not None:
                    under_way[pool.submit(done, following)] = following
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
