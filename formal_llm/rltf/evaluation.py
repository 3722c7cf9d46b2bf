"""How good a policy is: the figures of its most probable plans for some tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formal_llm.planning.task import Task
from formal_llm.rltf.baselines import mean_of
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.rollout import Start, rollout
from formal_llm.rltf.setup import Setup


def evaluate(setup: Setup, tasks: Sequence[Task], metrics: Mapping[str, Reward]) -> dict[str, float]:
    """The figures of greedy plans.

    Args:
        setup: of the run.
        tasks: what plans are made for; at least one.
        metrics: more functions of plans, by name.

    Returns:
        ``reward``, the mean reward; the mean of each metric; and ``reward GROUP`` for each group of tasks, where they
        are in several.
    """
    episodes = rollout(setup.planner, setup.policy, [Start(index, task) for index, task in enumerate(tasks)])
    pairs = [(episode.task, episode.plan) for episode in episodes]
    rewards = [one.value for one in setup.reward.judge_many(pairs, setup.settings.reward_workers)]
    figures = {"reward": mean_of(rewards)}
    for name, metric in metrics.items():
        figures[name] = mean_of([one.value for one in metric.judge_many(pairs)])
    groups: dict[str, list[float]] = {}
    for task, reward in zip(tasks, rewards, strict=True):
        if task.group:
            groups.setdefault(task.group, []).append(reward)
    if len(groups) > 1:
        figures |= {f"reward {name}": mean_of(values) for name, values in sorted(groups.items())}
    return figures
