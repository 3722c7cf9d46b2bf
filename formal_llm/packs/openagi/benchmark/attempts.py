"""What a method is asked to do and what it makes: plans to be made, attempts at them, many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

from formal_llm.llms.llm import LLM, AsyncLLM
from formal_llm.llms.usage import TokenUsage
from formal_llm.packs.openagi.benchmark.conditions import Conditions, Method

T = TypeVar("T")


class PlanKey(NamedTuple):
    """Which plan it is: whose, by which method, for the task of which number, and which of the repeats, from 0."""

    llm: str
    method: Method
    task: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """A plan as a method made it, valid or not.

    Attributes:
        word: its word; empty where there is none.
        steps: its steps in the order in which they are carried out, as they were written.
        questions: how many questions were answered for it.
        usage: what they cost.
        text: what the model wrote, of free text.
        error: why there is no word, where the method itself failed.
    """

    word: tuple[str, ...]
    steps: tuple[str, ...] = ()
    questions: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a method has to do.

    Attributes:
        llm: who answers.
        jobs: the plans to be made; all of this LLM and one method.
        conditions: what all methods share.
        note: called in this thread with what became of each job, as it comes: an attempt, or what went wrong and may
            pass (the provider could not be reached); what it raises ends the run.
        concurrency: how many jobs are under way at most; as suits the LLM where left out.
    """

    llm: LLM
    jobs: Sequence[PlanKey]
    conditions: Conditions
    note: Callable[[PlanKey, Attempt | Exception], None]
    concurrency: int | None = None

    def each(self, work: Callable[[PlanKey], T]) -> Iterator[tuple[PlanKey, T | Exception]]:
        """What the work gives for each job, or what it raises, as it comes.

        Several jobs are under way at once, in threads, for an LLM that waits for others; one for any other.
        """

        def done(key: PlanKey) -> T | Exception:
            try:
                return work(key)
            except Exception as error:  # handed on, and raised at the end of the run
                return error

        many = self.concurrency or (8 if isinstance(getattr(self.llm, "llm", self.llm), AsyncLLM) else 1)
        if many <= 1:
            for key in self.jobs:
                yield key, done(key)
            return
        pool = ThreadPoolExecutor(many, thread_name_prefix="formal-llm-bench")
        waiting = iter(self.jobs)
        try:
            under_way: dict[Future[T | Exception], PlanKey] = {
                pool.submit(done, key): key for key in islice(waiting, many)
            }
            while under_way:
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    key = under_way.pop(future)
                    yield key, future.result()
                    if (following := next(waiting, None)) is not None:
                        under_way[pool.submit(done, following)] = following
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
