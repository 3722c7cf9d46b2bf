"""What a run is made of: one value that all its parts share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.rltf.distributed import Processes
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.served import ServedPolicy
from formal_llm.rltf.settings import Settings, count_updates
from formal_llm.rltf.warm_start import ReferenceLimits

#: Settings that not every version had: left at their defaults they are not told, so that older runs can go on.
_LATER = frozenset({"template", "validation", "rollout_cap", "scoring"})
#: Settings that may change when a run goes on: they do not change what it computes.
_MAY_CHANGE = frozenset({
    "model", "updates", "epochs", "evaluate_every", "patience", "checkpoint_every", "keep_checkpoints", "processes",
    "tensorboard", "device", "threads", "reward_workers", "reward_timeout", "data", "questions_per_pass",
    "batch_tokens", "cache_bytes", "graph_bytes", "device_map", "rollouts", "rollout_folder", "rollout_timeout",
    "wandb",
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrainingSetup:
    """What is trained, on what, by what, and how.

    Attributes:
        planner: whose rules and wording; its LLM is not asked.
        policy: what is trained.
        reward: of plans.
        tasks: what it is trained on.
        settings: of the run.
        references: which plans a warm start imitates; all where left out.
        world: the processes of the run.
        served: the policy on the server that makes the plans, where one does.
    """

    planner: Planner
    policy: Policy
    reward: Reward
    tasks: tuple[Task, ...]
    settings: Settings
    references: ReferenceLimits | None = None
    world: Processes = field(default_factory=Processes)
    served: ServedPolicy | None = None

    @property
    def updates(self) -> int:
        """How many updates the run has, those of the warm start included."""
        return count_updates(self.settings, len(self.tasks))

    @property
    def fingerprint(self) -> dict[str, object]:
        """What the run computes depends on, as JSON data."""
        usual = {name for name in _LATER if getattr(self.settings, name) == Settings.model_fields[name].default}
        told = self.settings.model_dump(exclude=set(_MAY_CHANGE | usual))
        tasks = hash_values([task.description for task in self.tasks])
        return {**told, "tasks": tasks, "weights": self.policy.trainable}


def hash_values(values: Sequence[object]) -> str:
    """A short hash of values, by their texts: 16 hexadecimal digits."""
    return hashlib.sha256("\n".join(map(str, values)).encode()).hexdigest()[:16]
