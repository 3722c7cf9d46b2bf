"""What a hard case is and what is measured of it."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import process_time


@dataclass(frozen=True, slots=True)
class Case:
    """One hard case.

    Attributes:
        name: a short name, unique among all cases.
        aim: what it should take, as people read it: "5 / 30 ms".
        measure: what it takes, by name: figures in the unit of the aim ("p50", "worst", "start"), counts ("unknown").
    """

    name: str
    aim: str
    measure: Callable[[], dict[str, float | str]]


def milliseconds(work: Callable[[], object]) -> float:
    """The processor time of a call, in milliseconds."""
    gc.collect()
    begun = process_time()
    work()
    return 1_000 * (process_time() - begun)


def spread(times: Iterable[float]) -> dict[str, float | str]:
    """The median and the worst of some times."""
    found = list(times)
    return {"p50": statistics.median(found), "worst": max(found)}


def spread_of_questions(times: list[float]) -> dict[str, float | str]:
    """The :func:`spread` of what questions took, and how many took longer than they may."""
    slow = sum(time > 80 for time in times)
    return {**spread(times), "over 80 ms": float(slow), "questions": float(len(times))}
