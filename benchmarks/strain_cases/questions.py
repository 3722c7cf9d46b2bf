"""What a question costs where nothing is hard: the planner's own part of it."""

from __future__ import annotations

from time import process_time

from benchmarks.strain_cases.case import Case
from formal_llm import Planner, RandomLLM, TaskPack


def overhead() -> dict[str, float | str]:
    """Microseconds a question of random plans over the paper's 17 test tasks; many short measurements, the least ones.

    The median tells more of what else the machine does.
    """
    pack = TaskPack.load("openagi")
    tasks = pack.split("test")
    planner = Planner(pack.cfg, RandomLLM(0), wording=pack.wording)
    times = []
    for seed in range(180):  # the first sixty fill the tables
        planner.llm = RandomLLM(seed)
        begun = process_time()
        questions = sum(planner.plan(task).usage.questions for _ in range(3) for task in tasks)
        times.append((process_time() - begun) / questions * 1e6)
    kept = sorted(times[60:])
    return {"least": kept[0], "tenth": kept[len(kept) // 10], "p50": kept[len(kept) // 2]}


CASES = [Case("overhead of a question, random plans of OpenAGI", "26 us", overhead)]
