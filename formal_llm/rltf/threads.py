"""How many threads a run does best with: measured, since on small models and busy machines one may be the fastest."""

from __future__ import annotations

from time import perf_counter

from formal_llm.llms.question import Question
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.setup import TrainingSetup

#: How many tasks' first questions are asked, and how often with each number of threads.
_QUESTIONS, _TIMES = 4, 3
#: A pass that takes so many seconds is one of a large model: it is not repeated.
_LONG = 2.0
#: By how much one thread has to be faster for it to be told.
_TELLING = 1.1


def slow_threads(setup: TrainingSetup) -> str:
    """What to do where one thread is faster than as many as torch uses; empty where it is not, or not on a CPU.

    A few questions are asked; the policy and all draws are as they were afterwards. Nothing is changed: how many
    threads compute a sum may show in its last bits, so it is for a person to say.
    """
    import torch

    many = torch.get_num_threads()
    if many == 1 or setup.policy.device.type != "cpu":
        return ""
    walks = [setup.planner.start(task) for task in setup.tasks[:_QUESTIONS]]
    asked = [walk.question for walk in walks if walk.question is not None and not walk.question.several]
    if not asked or _time_policy(setup.policy, asked) > _LONG:  # the first pass also warms up
        return ""
    taken: dict[int, float] = {1: float("inf"), many: float("inf")}
    try:
        for _ in range(_TIMES):  # in turn, so that what else the machine does meets both
            for threads in taken:
                torch.set_num_threads(threads)
                taken[threads] = min(taken[threads], _time_policy(setup.policy, asked))
    finally:
        torch.set_num_threads(many)
    return advise_threads(taken[1], taken[many], many)


def advise_threads(one: float, several: float, many: int) -> str:
    """What to do, from the seconds that one thread and several took; empty where several are about as fast."""
    if several < _TELLING * one:
        return ""
    return f"one thread is {several / one:.1f} times as fast as {many} here: give --threads 1, or set OMP_NUM_THREADS=1"


def _time_policy(policy: Policy, questions: list[Question]) -> float:
    import torch

    policy.scorer.forget()
    begin = perf_counter()
    with torch.no_grad():
        policy.log_probabilities(questions)
    passed = perf_counter() - begin
    policy.scorer.forget()
    return passed
