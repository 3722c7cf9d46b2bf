"""An update: what goes into it, what it leaves, and that an error changes nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm import Planner, Task
from formal_llm.errors import RewardError, TrainingError
from formal_llm.planning import Plan
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.distributed import Processes
from formal_llm.rltf.objective import log_probabilities_of
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.setup import TrainingSetup
from formal_llm.rltf.task_memory import TaskMemory, TaskOutcome
from formal_llm.rltf.update import Learner, PlanCollector, explain_error
from tests.rltf import training_runs as runs


def learner(reward: Any = runs.wanted_tool, **settings: Any) -> Learner:
    how = Settings.of({"samples": 4, "tasks_per_update": 3, "learning_rate": 3e-3, **settings})
    planner = Planner(runs.RULES, "test:first")
    return Learner(TrainingSetup(planner, runs.tiny_policy(), Reward(reward, name="wanted"), tuple(runs.TASKS), how))


def weights(made: Learner) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in made.setup.policy.parameters]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_an_update_changes_the_weights_and_tells_what_it_measured() -> None:
    made = learner(kl=0.1)
    before = weights(made)
    figures = made.update()
    assert made.step == 1
    assert made.whole
    assert not same(before, weights(made))
    assert list(figures) == [
        "reward", "reward_spread", "failed", "samples", "loss", "entropy", "gradient_norm", "learning_rate",
        "questions", "gradients", "kl",
    ]  # fmt: skip
    assert figures["samples"] == 12
    assert figures["learning_rate"] == 3e-3
    assert set(made.memory.baselines.values) == {"0", "1", "2"}


def test_an_update_depends_on_its_number_the_weights_and_the_memory_alone() -> None:
    one, other = learner(advantage="rloo", dropout=0.2), learner(advantage="rloo", dropout=0.2)
    torch.manual_seed(7)  # whoever drew from torch before does not matter
    assert [one.update(), one.update()] == [other.update(), other.update()]
    assert same(weights(one), weights(other))


def test_a_warm_start_imitates_all_tasks_and_leaves_the_memory_empty() -> None:
    made = learner(warm_start=1, tasks_per_update=1, updates=1)
    warm, first = made.update(), made.update()
    assert warm["warm"] == 1.0
    assert "reward" not in warm
    assert "warm" not in first
    assert set(made.memory.baselines.values) < {"0", "1", "2"}
    assert not learner(warm_start=1, updates=0).memory.baselines.values


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_reward_that_is_no_number_changes_nothing(value: float) -> None:
    def reward(task: Task, plan: Plan) -> float:
        return value

    made = learner(reward)
    before, memory = weights(made), made.memory
    with pytest.raises(RewardError, match="not a finite number"):
        made.update()
    assert same(before, weights(made))
    assert (made.step, made.memory, made.whole, made.error_is_shared) == (0, memory, True, True)


def test_a_gradient_that_is_not_finite_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = runs.small_trainer(tmp_path, updates=2)
    monkeypatch.setattr(Processes, "sum_gradients", lambda _, parameters: parameters[0].grad.fill_(math.nan))
    before = weights(trainer.learner)
    with pytest.raises(TrainingError, match=r"the gradient in step 1 is nan, not finite .*make it"):
        trainer.run()
    assert same(before, weights(trainer.learner))


def test_what_another_process_could_not_do_is_an_error_here(monkeypatch: pytest.MonkeyPatch) -> None:
    made = learner()
    before = weights(made)
    monkeypatch.setattr(Processes, "gather", lambda _, mine: {**mine, 1: "no such luck"})
    with pytest.raises(TrainingError, match="process 1 failed: no such luck"):
        made.update()
    assert made.error_is_shared
    assert same(before, weights(made))


def test_memory_that_ran_out_is_told_apart_from_other_errors() -> None:
    other = ValueError("hm")
    assert explain_error(other, 3) is other
    cause = MemoryError()
    told = explain_error(cause, 3)
    assert isinstance(told, TrainingError)
    assert "memory ran out in step 3, though as little as can be was computed together" in str(told)
    assert told.__cause__ is cause


def collector(**settings: Any) -> PlanCollector:
    planner, policy = Planner(runs.RULES, "test:first"), runs.tiny_policy(temperature=3)
    how = Settings.of({"samples": 4, **settings})
    return PlanCollector(TrainingSetup(planner, policy, Reward(runs.wanted_tool), tuple(runs.TASKS), how))


def test_the_baseline_starts_from_the_greedy_plan() -> None:
    plans = collector(advantage="reinforce")
    (first,) = plans.collect_groups(1, [(0, 0)], TaskMemory())
    greedy = first.outcome.greedy
    assert greedy is not None
    assert len(first.episodes) == 4  # the greedy plan is no sample
    assert first.weights == pytest.approx([(r - greedy) / 4 for r in first.outcome.rewards])
    memory = TaskMemory().with_outcomes([first.outcome])
    mean = sum(first.outcome.rewards) / 4
    baseline = memory.baselines.get("0")
    assert baseline is not None
    assert baseline.value == pytest.approx(0.8 * greedy + 0.2 * mean)
    (second,) = plans.collect_groups(2, [(0, 0)], memory)
    assert second.outcome.greedy is None
    assert second.weights == pytest.approx([(r - baseline.value) / 4 for r in second.outcome.rewards])


def test_an_exact_group_has_all_plans_and_no_sample() -> None:
    plans = collector(advantage="exact")
    (group,) = plans.collect_groups(1, [(0, 2)], TaskMemory())
    leaves = enumerate_episodes(plans._setup.planner, runs.TASKS[2], 2, 100)
    assert [e.path for e in group.episodes] == [e.path for e in leaves]
    chances = [math.exp(log) for log in log_probabilities_of(plans._setup.policy, leaves)]
    rewards = [runs.wanted_tool(e.task, e.plan) for e in leaves]
    expected = sum(c * r for c, r in zip(chances, rewards, strict=True))
    assert group.outcome.value == pytest.approx(expected, abs=1e-5)
    assert group.weights == pytest.approx([c * (r - expected) for c, r in zip(chances, rewards, strict=True)], abs=1e-5)
    assert group.outcome.rewards == ()
    assert group.outcome.known is None  # they are known as long as the run lasts


def test_a_language_too_large_for_all_plans_is_stratified() -> None:
    plans = collector(advantage="exact", exact_plans=10, known_plans=5)
    places = [(0, 0), (1, 2)]  # 16 plans, and 5
    large, small = plans.collect_groups(1, places, TaskMemory())
    assert len(large.outcome.rewards) == 4
    assert small.outcome.rewards == ()
    memory = TaskMemory().with_outcomes([large.outcome, small.outcome])
    known = memory.known[0]
    assert 0 < len(known) <= 5
    again, _ = plans.collect_groups(2, places, memory)
    assert [e.path for e in again.episodes[: len(known)]] == [numbers for numbers, _ in known]
    repeated = {numbers for numbers, _ in known}
    for episode, weight in zip(again.episodes[len(known) :], again.weights[len(known) :], strict=True):
        if episode.path in repeated:
            assert weight == 0  # it is in the sum already
    assert len(TaskMemory().with_outcomes([again.outcome]).known[0]) <= 5


def test_known_plans_are_the_most_probable_ones() -> None:
    plans = collector(advantage="stratified", known_plans=3, samples=12)
    (group,) = plans.collect_groups(1, [(0, 0)], TaskMemory())
    chances = {e.path: e.log_probability for e in group.episodes}
    best = sorted(chances, key=lambda numbers: -chances[numbers])[:3]
    assert {numbers for numbers, _ in group.outcome.known or ()} == set(best)


def test_groups_do_not_depend_on_their_company() -> None:
    plans = collector(advantage="rloo")
    both = plans.collect_groups(5, [(0, 0), (1, 1)], TaskMemory())
    alone = [plans.collect_groups(5, [place], TaskMemory())[0] for place in ((0, 0), (1, 1))]
    assert [[e.path for e in g.episodes] for g in both] == [[e.path for e in g.episodes] for g in alone]
    other = plans.collect_groups(6, [(0, 0)], TaskMemory())
    assert [e.path for e in other[0].episodes] != [e.path for e in both[0].episodes]


def test_plans_that_nobody_knows_any_more_are_not_kept() -> None:
    plans = collector(advantage="stratified")
    (first,) = plans.collect_groups(1, [(0, 0)], TaskMemory())
    known = first.outcome.known or ()
    assert len(known) > 1
    memory = TaskMemory().with_outcomes([TaskOutcome(0, (), 0.0, known=known[:1])])  # as another process has left it
    plans._begin_group(0, 0, memory)
    assert list(plans._episodes[0]) == [known[0][0]]


def test_what_is_imitated_has_equal_weights_and_leaves_the_memory_as_it_was() -> None:
    plans = collector(warm_plans=3, seed=4)
    groups = plans.collect_references([(0, 2), (1, 0)])
    assert [group.outcome.index for group in groups] == [2, 0]
    for group in groups:
        assert [episode.index for episode in group.episodes] == [group.outcome.index] * 3
        assert group.weights == group.shares == (1 / 3,) * 3
        assert TaskMemory().with_outcomes([group.outcome]) == TaskMemory()
    again = collector(warm_plans=3, seed=4).collect_references([(0, 2)])
    assert [e.path for e in again[0].episodes] == [e.path for e in groups[0].episodes]
