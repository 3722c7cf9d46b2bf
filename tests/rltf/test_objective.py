"""The objective: its gradient against that of whole plans, one by one, and of the enumerated expected reward."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
import torch

from formal_llm import Planner, Task
from formal_llm.errors import TrainingError
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.question import Question
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.episode import Decision, Episode
from formal_llm.rltf.objective import Objective, ObjectiveFigures, log_probabilities_of
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rollout import Start, rollout

Build = Callable[..., LocalLLM]
KINDS = ("llama", "t5", "bert")


def gradient(policy: Policy) -> torch.Tensor:
    found = torch.cat([p.grad.flatten() for p in policy.parameters])
    for parameter in policy.parameters:
        parameter.grad = None
    return found


def alone(policy: Policy, episode: Episode) -> Any:
    """The log-probability of a plan, each question asked by itself."""
    return sum(policy.log_probabilities([d.question])[0, d.number - 1] for d in episode.decisions)


def moved(policy: Policy) -> Policy:
    """With adapters that do something, so that gradients reach both of their matrices."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in policy.parameters:
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.05)
    policy.changed()
    return policy


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).abs().max() <= 2e-4 * other.abs().max())


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_the_weighted_plans(
    build: Build, planner: Planner, tasks: list[Task], kind: str
) -> None:
    policy = moved(Policy(build(kind), temperature=2))
    episodes = rollout(planner, policy, [Start(i, t, f"{i} {n}") for i, t in enumerate(tasks) for n in range(4)])
    weights = [((n * 7) % 5 - 2) / 3 for n in range(len(episodes))]
    with policy.training():
        objective = sum(w * alone(policy, e) for w, e in zip(weights, episodes, strict=True)) / 3
        (-objective).backward()
    wanted = gradient(policy)
    for size in (1, 3, 1_000):
        whole = Objective(policy, 1 / 3)
        for index in range(3):
            picked = [number for number, e in enumerate(episodes) if e.index == index]
            whole.add_episodes([episodes[n] for n in picked], [weights[n] for n in picked])
        with policy.training():
            measured = whole.backpropagate_loss(questions_per_pass=size)
        assert same(gradient(policy), wanted)
        assert measured.loss == pytest.approx(-float(objective.detach()), rel=1e-3, abs=1e-4)


def test_entropy_and_distance(build: Build, planner: Planner, tasks: list[Task]) -> None:
    policy = moved(Policy(build(), temperature=2))
    episodes = rollout(planner, policy, [Start(0, tasks[0], str(n)) for n in range(6)])
    decisions = [decision for episode in episodes for decision in episode.decisions]
    entropy: Any = 0.0
    distance: Any = 0.0
    with policy.training():
        for decision in decisions:
            count = len(decision.question.options)
            logs = policy.log_probabilities([decision.question])[0, :count]
            base = policy.reference([decision.question])[0, :count]
            entropy = entropy - (logs.exp() * logs).sum() / len(decisions)
            distance = distance + (logs.exp() * (logs - base)).sum() / len(decisions)
        (-(0.3 * entropy - 0.7 * distance)).backward()
    wanted = gradient(policy)
    whole = Objective(policy)
    whole.add_episodes(episodes, [0.0] * len(episodes))
    with policy.training():
        measured = whole.backpropagate_loss(entropy=0.3, kl=0.7, questions_per_pass=2)
    assert same(gradient(policy), wanted)
    assert measured.entropy == pytest.approx(float(entropy.detach()), rel=1e-4)
    assert measured.kl == pytest.approx(float(distance.detach()), rel=1e-3)
    assert measured.kl > 0


def test_episodes_count_for_the_entropy_by_their_shares(build: Build, planner: Planner, tasks: list[Task]) -> None:
    policy = moved(Policy(build(), temperature=2))
    leaves = enumerate_episodes(planner, tasks[0], 0, 100)
    chances = [math.exp(log) for log in log_probabilities_of(policy, leaves)]
    whole = Objective(policy)
    whole.add_episodes(leaves, [0.0] * len(leaves), chances)
    told = whole.backpropagate_loss().entropy
    # The entropy of a plan is that of all its choices; here it is told for one choice, the mean.
    entropy = -math.fsum(chance * math.log(chance) for chance in chances)
    length = math.fsum(chance * len(leaf.decisions) for chance, leaf in zip(chances, leaves, strict=True))
    assert told == pytest.approx(entropy / length, rel=1e-3)


def test_summed_over_all_plans_it_is_the_gradient_of_the_expected_reward(
    build: Build, planner: Planner, tasks: list[Task]
) -> None:
    policy = moved(Policy(build(), temperature=2))
    leaves = enumerate_episodes(planner, tasks[0], 0, 100)
    rewards = [float(len(leaf.word) == 2) + 0.1 * n for n, leaf in enumerate(leaves)]
    with policy.training():
        expected = sum(alone(policy, leaf).exp() * r for leaf, r in zip(leaves, rewards, strict=True))
        (-expected).backward()
    wanted = gradient(policy)
    chances = [math.exp(log) for log in log_probabilities_of(policy, leaves)]
    whole = Objective(policy)
    whole.add_episodes(leaves, [chance * (r - 0.4) for chance, r in zip(chances, rewards, strict=True)])
    with policy.training():
        whole.backpropagate_loss()
    assert same(gradient(policy), wanted)


def test_what_is_not_finite_is_named(build: Build, planner: Planner, tasks: list[Task]) -> None:
    policy = Policy(build())
    (episode,) = rollout(planner, policy, [Start(0, tasks[0], "1")])
    with pytest.raises(TrainingError, match=r"weight of a plan is nan.*make it alpha"):
        Objective(policy).add_episodes([episode], [math.nan])
    whole = Objective(policy)
    whole.add_episodes([episode], [1.0])
    with torch.no_grad():
        policy.parameters[0].fill_(math.inf)
        policy.parameters[1].fill_(math.inf)
    policy.changed()
    with pytest.raises(TrainingError, match=r"log-probability is nan.*make it alpha"), policy.training():
        whole.backpropagate_loss()


class _Full(torch.autograd.Function):
    """Passes values on, and runs out of memory on the way back."""

    @staticmethod
    def forward(context: Any, values: torch.Tensor) -> torch.Tensor:
        return values.clone()

    @staticmethod
    def backward(context: Any, *given: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_gradients_in_little_memory_are_the_same(
    build: Build, planner: Planner, tasks: list[Task], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = moved(Policy(build(), temperature=2))
    episodes = rollout(planner, policy, [Start(i, t, f"{i} {n}") for i, t in enumerate(tasks) for n in range(4)])

    def learned() -> ObjectiveFigures:
        whole = Objective(policy, 1 / 3)
        whole.add_episodes(episodes, [(n % 5 - 2) / 3 for n in range(len(episodes))])
        with policy.training():
            return whole.backpropagate_loss()

    figures = learned()
    wanted = gradient(policy)
    score, sizes = policy.scorer.log_probabilities, []

    def little(questions: Any) -> Any:
        sizes.append(len(questions))
        full = len(questions) > 4 and torch.is_grad_enabled()
        if full and where == "forward":
            raise torch.OutOfMemoryError("CUDA out of memory")
        values = score(questions)
        # Half of the questions come to nothing on the way back, when the others have left their gradients already.
        half = len(questions) // 2
        return torch.cat([_Full.apply(values[:half]), values[half:]]) if full else values

    monkeypatch.setattr(policy.scorer, "log_probabilities", little)
    again = learned()
    assert same(gradient(policy), wanted)
    assert (again.questions, again.gradients) == (figures.questions, figures.gradients)
    assert again.loss == pytest.approx(figures.loss, rel=1e-4)
    assert max(sizes) > 4 >= policy.room
    sizes.clear()
    learned()
    assert max(sizes) <= 4  # what worked is kept


def test_gradients_without_any_memory_are_an_error_that_changes_nothing(
    build: Build, planner: Planner, tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = moved(Policy(build()))
    whole = Objective(policy)
    episodes = rollout(planner, policy, [Start(0, tasks[0], str(n)) for n in range(3)])
    whole.add_episodes(episodes, [1.0, 2.0, -1.0])
    score = policy.scorer.log_probabilities
    monkeypatch.setattr(policy.scorer, "log_probabilities", lambda asked: _Full.apply(score(asked)))
    with policy.training(), pytest.raises(torch.OutOfMemoryError):
        whole.backpropagate_loss()
    assert all(parameter.grad is None for parameter in policy.parameters)
    assert policy.room == 1


# -- against a table: a policy with one free row of numbers for each question ------------------------------------------

COUNTS = (2, 3, 4, 2, 3)
QUESTIONS = tuple(Question(f"question {n}", [f"option {k}" for k in range(count)]) for n, count in enumerate(COUNTS))


class Table:
    """A policy and its scorer: each question has a row of parameters, whose softmax are its chances."""

    def __init__(self, memory: float = math.inf) -> None:
        generator = torch.Generator().manual_seed(5)
        rows = [torch.randn(count, generator=generator, dtype=torch.float64) for count in COUNTS]
        self.parameters = [row.requires_grad_() for row in rows]
        self.base = [torch.log_softmax(torch.randn(count, generator=generator).double(), 0) for count in COUNTS]
        self.scorer, self.room, self.memory = self, 1_000, memory
        self.passes: list[int] = []

    def key(self, question: Question) -> Hashable:
        return question

    def log_probabilities(self, questions: Sequence[Question]) -> torch.Tensor:
        self.passes.append(len(questions))
        if len(questions) > self.memory:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return filled([torch.log_softmax(self.parameters[QUESTIONS.index(one)], 0) for one in questions])

    def reference(self, questions: Sequence[Question]) -> torch.Tensor:
        return filled([self.base[QUESTIONS.index(one)] for one in questions])

    def objective(self, scale: float = 1.0) -> Objective:
        return Objective(cast("Policy", self), scale)


def filled(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack([torch.nn.functional.pad(row, (0, 4 - len(row)), value=-math.inf) for row in rows])


#: Plans as the questions that they met and what was chosen at each, from 1.
MET = (((0, 1), (1, 3)), ((0, 2), (2, 4), (3, 1)), ((0, 1), (1, 2), (4, 3)))


@pytest.fixture
def met(planner: Planner, tasks: list[Task]) -> list[Episode]:
    plans = enumerate_episodes(planner, tasks[0], 0, 100)
    return [
        replace(plan, decisions=tuple(Decision(QUESTIONS[question], number) for question, number in steps))
        for plan, steps in zip(plans, MET, strict=False)
    ]


@pytest.mark.parametrize(("entropy", "kl"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.7), (0.3, 0.7)])
@pytest.mark.parametrize("weights", [(1.0, -0.5, 0.25), (0.0, 0.0, 0.0)])
@pytest.mark.parametrize("size", [1, 2, 256])
def test_as_the_plain_formula(
    met: list[Episode], entropy: float, kl: float, weights: tuple[float, ...], size: int
) -> None:
    policy, plain, shares, scale = Table(), Table(), (1.0, 2.0, 4.0), 0.5
    whole = policy.objective(scale)
    whole.add_episodes(met, weights, shares)
    seen = whole.backpropagate_loss(entropy=entropy, kl=kl, questions_per_pass=size)
    visits = sum(share * len(steps) for share, steps in zip(shares, MET, strict=True))
    total, spread, distance = (torch.zeros((), dtype=torch.float64) for _ in range(3))
    for weight, share, steps in zip(weights, shares, MET, strict=True):
        for question, number in steps:
            logs = torch.log_softmax(plain.parameters[question], 0)
            total = total + scale * weight * logs[number - 1]
            spread = spread - scale * share / visits * (logs.exp() * logs).sum()
            distance = distance + scale * share / visits * (logs.exp() * (logs - plain.base[question])).sum()
    objective = total + entropy * spread - kl * distance
    (-objective).backward()
    for mine, other in zip(policy.parameters, plain.parameters, strict=True):
        expected = torch.zeros_like(other) if other.grad is None else other.grad
        found = torch.zeros_like(expected) if mine.grad is None else mine.grad
        assert torch.allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert seen.loss == pytest.approx(-float(objective.detach()), rel=1e-5, abs=1e-7)
    assert seen.entropy == pytest.approx(float(spread.detach()), rel=1e-5)
    assert seen.kl == pytest.approx(float(distance.detach()) if kl else 0.0, rel=1e-5)
    assert (seen.questions, seen.gradients) == (5, 5 if any(weights) or entropy or kl else 0)
    assert max(policy.passes) == min(size, 5)


def test_before_anything_is_added_all_figures_are_0() -> None:
    assert ObjectiveFigures() == ObjectiveFigures(0.0, 0.0, 0.0, 0, 0) == Table().objective().backpropagate_loss()


@pytest.mark.parametrize(("weight", "gradients"), [(1e-12, 0), (2e-12, 1), (-1e-12, 0), (-2e-12, 1)])
def test_what_rounding_leaves_has_no_gradient(met: list[Episode], weight: float, gradients: int) -> None:
    policy = Table()
    whole = policy.objective()
    whole.add_episodes([replace(met[0], decisions=met[0].decisions[:1])], [weight])
    seen = whole.backpropagate_loss()
    assert (seen.questions, seen.gradients) == (1, gradients)
    assert (policy.parameters[0].grad is not None) is bool(gradients)


@pytest.mark.parametrize("most", [4, 256])
def test_each_time_that_memory_runs_out_half_as_many_questions_are_read(
    met: list[Episode], most: int, caplog: pytest.LogCaptureFixture
) -> None:
    policy, plenty = Table(memory=1), Table()
    for one in (policy, plenty):
        whole = one.objective()
        whole.add_episodes(met, [1.0, -0.5, 0.25])
        whole.backpropagate_loss(questions_per_pass=most)
    assert policy.passes == [min(most, 5), 2, 1, 1, 1, 1, 1]
    assert policy.room == 1
    for mine, other in zip(policy.parameters, plenty.parameters, strict=True):
        assert mine.grad is not None and other.grad is not None and torch.allclose(mine.grad, other.grad)
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"memory ran out; going on with {n} questions in a backward pass" for n in (2, 1)]


@pytest.mark.parametrize("size", [1, 2, 256])
def test_the_plan_that_met_what_is_not_finite_is_named(met: list[Episode], size: int) -> None:
    policy = Table()
    whole = policy.objective()
    whole.add_episodes(met, [1.0, 1.0, 1.0])
    with torch.no_grad():
        policy.parameters[4][0] = math.nan  # only the last plan comes to it
    with pytest.raises(TrainingError, match=f"log-probability is nan.*the plan {' '.join(met[2].word)} of"):
        whole.backpropagate_loss(questions_per_pass=size)


def test_a_loss_that_is_not_finite_names_a_plan(met: list[Episode]) -> None:
    whole = Table().objective()
    whole.add_episodes([replace(met[1], decisions=met[1].decisions[:1])], [1e300])
    with pytest.raises(TrainingError, match=f"the loss is inf.*the plan {' '.join(met[1].word)} of"):
        whole.backpropagate_loss()


def test_plans_have_the_sum_of_their_log_probabilities(met: list[Episode]) -> None:
    policy = Table()
    rows = [torch.log_softmax(row.detach(), 0) for row in policy.parameters]
    expected = [math.fsum(float(rows[question][number - 1]) for question, number in steps) for steps in MET]
    for size in (1, 2, 1_024):
        found = log_probabilities_of(cast("Policy", policy), met, questions_per_pass=size)
        assert found == pytest.approx(expected, rel=1e-12)
    with torch.no_grad():
        policy.parameters[4][2] = math.nan
    with pytest.raises(TrainingError, match=f"log-probability is nan.*the plan {' '.join(met[2].word)} of"):
        log_probabilities_of(cast("Policy", policy), met)
