"""The best number of threads for a run, measured: on small models and busy machines one may be the fastest."""

from __future__ import annotations

from time import perf_counter

from formal_llm.llms.question import Question
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.setup import TrainingSetup

#: The number of tasks whose first questions are asked, and of repetitions with each number of threads.
_QUESTIONS, _TIMES = 4, 3
#: The duration in seconds from which on a pass is not repeated, as it is one of a large model.
_LONG = 2.0
#: The minimum speedup of one thread that is reported.
_TELLING = 1.1


def slow_threads(setup: TrainingSetup) -> str:
    """Return advice if one thread is faster than torch's default number on a CPU, else an empty text.

    A few questions are asked; afterwards the policy and all draws are as before. Nothing is changed: the number of
    threads may affect the last bits of a sum, so the decision is left to a person.
    """
    import torch

    default = torch.get_num_threads()
    if default == 1 or setup.policy.device.type != "cpu":
        return ""
    walks = [setup.planner.start(task) for task in setup.tasks[:_QUESTIONS]]
    questions = [walk.question for walk in walks if walk.question is not None and not walk.question.several]
    if not questions or _time_policy(setup.policy, questions) > _LONG:  # the first pass also warms up
        return ""
    taken: dict[int, float] = {1: float("inf"), default: float("inf")}
    try:
        for _ in range(_TIMES):  # alternate, so that other load on the machine affects both
            for threads in taken:
                torch.set_num_threads(threads)
                taken[threads] = min(taken[threads], _time_policy(setup.policy, questions))
    finally:
        torch.set_num_threads(default)
    return advise_threads(taken[1], taken[default], default)


def advise_threads(one: float, several: float, many: int) -> str:
    """Return advice from the seconds that one thread and several took; empty if several are about as fast."""
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
