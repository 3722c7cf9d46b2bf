"""What is held in memory: many questions in one plan, many plans in one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from time import process_time

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


def plans(count: int) -> dict[str, float | str]:
    """So many tasks, one plan for each; handed out as they come where that is possible."""
    planner = Planner(CFG.from_string("S -> cut T | paint T\nT -> wood | stone"), "test:first")
    tasks = (f"task {number}" for number in range(count))
    done = 0

    def work() -> None:
        nonlocal done
        for _ in planner.plan_each(tasks) if hasattr(planner, "plan_each") else planner.plan_all(tasks):
            done += 1

    planner.plan("warm up")
    begun = process_time()
    grown = _grown(work)
    assert done == count
    return {"MB": grown, "plans a second": count / (process_time() - begun)}


def results(count: int) -> dict[str, float | str]:
    """So many tasks in a file, their results in another one: ``formal-llm plan --tasks FILE --out FILE``."""
    from formal_llm.cli.batch import Batch, plan_tasks, read_tasks
    from formal_llm.cli.sources import LoadedRules

    rules = CFG.from_string("S -> cut T | paint T\nT -> wood | stone")
    with TemporaryDirectory() as folder:
        tasks, out = Path(folder, "tasks.txt"), Path(folder, "out.jsonl")
        with tasks.open("w") as file:
            file.writelines(f"task {number}\n" for number in range(count))
        planner, loaded = Planner(rules, "test:first"), LoadedRules(rules, rules)
        planner.plan("warm up")
        begun = process_time()
        grown = _grown(lambda: plan_tasks(planner, read_tasks(str(tasks), loaded), Batch(out, None, None, False)))
        taken = process_time() - begun
        again = _grown(lambda: plan_tasks(planner, read_tasks(str(tasks), loaded), Batch(out, None, None, False)))
    return {"MB": grown, "MB more, all done": again, "plans a second": count / taken}


CASES = [
    Case("memory of 12,000 questions", "100 MB", questions),
    Case("memory of 16,000 plans", "constant", lambda: plans(16_000)),
    Case("memory of 100,000 plans", "constant", lambda: plans(100_000)),
    Case("memory of a million plans", "constant", lambda: plans(1_000_000)),
    Case("memory of a results file, 5,000 tasks", "constant", lambda: results(5_000)),
    Case("memory of a results file, 20,000 tasks", "constant", lambda: results(20_000)),
]

if __name__ == "__main__":  # how the figure for a million was had
    print(plans(1_000_000))
