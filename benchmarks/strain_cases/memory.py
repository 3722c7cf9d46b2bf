"""What is held in memory: many questions in one plan, many plans in one run."""

from __future__ import annotations

from collections.abc import Callable
from resource import RUSAGE_SELF, getrusage

from benchmarks.strain_cases.case import Case
from formal_llm import CFG, Budget, Planner
from formal_llm.llms.question import Answer, Question


def _grown(work: Callable[[], object]) -> float:
    """By how much the most memory of this process grew in a call, in megabytes; each case has a process of its own."""
    before = getrusage(RUSAGE_SELF).ru_maxrss
    work()
    return (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024


def _reader(last: int) -> Callable[[Question], Answer]:
    """One who reads every hundredth question, as reading all of them takes minutes; the plan ends after the last."""
    asked = 0

    def answer(question: Question) -> Answer:
        nonlocal asked
        asked += 1
        if asked % 100 == 0:
            _ = question.messages
        return Answer((2 if asked > last else 1,))

    return answer


def questions(count: int = 12_000) -> dict[str, float | str]:
    """One plan of so many questions, each of them looked at."""
    planner = Planner(CFG.from_string("S -> a S | b"), _reader(count), budget=Budget(questions=None, steps=None))
    figures: dict[str, float | str] = {"MB": _grown(lambda: planner.plan("a long day"))}
    return figures


CASES = [Case("memory of 12,000 questions", "100 MB", questions)]
