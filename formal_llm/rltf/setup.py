"""The setup of a run: one value that all its parts share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from formal_llm.llms.question import Question
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.rltf.distributed import Processes
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.settings import Settings, count_updates
from formal_llm.rltf.warm_start import ReferenceLimits

#: Settings that may change when a run is resumed, since they do not change what it computes.
_MAY_CHANGE = frozenset({
    "model", "updates", "epochs", "evaluate_every", "patience", "checkpoint_every", "keep_checkpoints", "processes",
    "tensorboard", "device", "threads", "reward_workers", "data", "questions_per_pass",
    "batch_tokens", "device_map", "wandb",
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrainingSetup:
    """The setup of a training run.

    Attributes:
        planner: provides the rules and the wording; its LLM is not asked.
        references: the plans that a warm start imitates; default: all.
    """

    planner: Planner
    policy: Policy
    reward: Reward
    tasks: tuple[Task, ...]
    settings: Settings
    references: ReferenceLimits | None = None
    world: Processes = field(default_factory=Processes)

    @property
    def updates(self) -> int:
        """The number of updates of the run, including those of the warm start."""
        return count_updates(self.settings, len(self.tasks))

    @property
    def fingerprint(self) -> dict[str, object]:
        """What the results of the run depend on, as JSON data."""
        settings = self.settings.model_dump(exclude=set(_MAY_CHANGE))
        tasks = hash_values([task.description for task in self.tasks])
        return {**settings, "tasks": tasks, "weights": self.policy.trainable}


def hash_values(values: Sequence[object]) -> str:
    """Return a short hash of the texts of values: 16 hexadecimal digits."""
    return hashlib.sha256("\n".join(map(str, values)).encode()).hexdigest()[:16]


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
    return f"one thread is {several / one:.1f} times as fast as {many} here: give threads = 1, or set OMP_NUM_THREADS=1"


def _time_policy(policy: Policy, questions: list[Question]) -> float:
    import torch

    policy.scorer.forget()
    begin = perf_counter()
    with torch.no_grad():
        policy.log_probabilities(questions)
    passed = perf_counter() - begin
    policy.scorer.forget()
    return passed
