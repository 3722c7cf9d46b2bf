"""The objective of an update, and its gradient question by question.

Every estimator maximizes sum_i w_i log pi(plan_i), and log pi(plan) is the sum over the decisions of the plan. The
objective is therefore linear in the log-probabilities of the options::

    sum over distinct questions q and options a of  c[q, a] * log pi(a | q)

where c[q, a] sums the weights of all plans that chose a at q. However many plans an update has, each distinct question
is read once, and the backward pass is divided into parts of as many questions as memory allows. Entropy and the
distance to the reference model are means over the questions asked, so they are sums over distinct questions too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from formal_llm.errors import TrainingError
from formal_llm.llms.local.memory import fitted
from formal_llm.llms.question import Question
from formal_llm.rltf.episode import DistinctQuestions, Episode
from formal_llm.rltf.policy import Policy

if TYPE_CHECKING:
    import torch


T = TypeVar("T")

#: Coefficients up to this size are rounding errors of plans that cancel out; such a question has no gradient.
_NOTHING = 1e-12


@dataclass(eq=False)
class _Asked:
    """A distinct question.

    Attributes:
        coefficients: the coefficient of the log-probability of each option.
        episode: an episode that contains it, to name in errors.
        visits: its share of the questions asked; the shares of a task sum to 1.
    """

    question: Question
    coefficients: list[float]
    episode: Episode
    visits: float = 0.0


@dataclass(frozen=True)
class ObjectiveFigures:
    """Measurements of an objective during its gradient computation; those of several parts can be added.

    Attributes:
        loss: minus the objective; a surrogate, of which the gradient matters and not the value.
        entropy: the mean entropy of the choices, in nats.
        kl: the mean distance to the base model, in nats; 0 if not requested.
        questions: the number of distinct questions.
        gradients: the number of questions that had a gradient.
    """

    loss: float = 0.0
    entropy: float = 0.0
    kl: float = 0.0
    questions: int = 0
    gradients: int = 0

    def __add__(self, other: ObjectiveFigures) -> ObjectiveFigures:
        return ObjectiveFigures(*map(operator.add, astuple(self), astuple(other)))


class Objective:
    """The objective of one update.

    Args:
        scale: the factor of the weights of all tasks: 1 / number of tasks.
    """

    def __init__(self, policy: Policy, scale: float = 1.0) -> None:
        self.policy = policy
        self.scale = scale
        self._distinct = DistinctQuestions(policy.scorer.key)
        self._asked: list[_Asked] = []

    def add_episodes(
        self, episodes: Sequence[Episode], weights: Sequence[float], shares: Sequence[float] | None = None
    ) -> None:
        """Add the episodes of one task, each with the factor of its log-probability.

        ``shares`` specify how much each counts for entropy and distance, in any unit; default: all equally.

        Raises:
            TrainingError: a weight is not a finite number.
        """
        counts = (1.0,) * len(episodes) if shares is None else shares
        whole = math.fsum(count * len(e.decisions) for count, e in zip(counts, episodes, strict=True))
        for episode, weight, count in zip(episodes, weights, counts, strict=True):
            if not math.isfinite(weight):
                raise _training_error("the weight of a plan", weight, episode)
            for decision in episode.decisions:
                number = self._distinct.number_of(decision.question)
                if number == len(self._asked):
                    self._asked.append(_Asked(decision.question, [0.0] * len(decision.question.options), episode))
                question = self._asked[number]
                question.coefficients[decision.number - 1] += weight * self.scale
                if whole:
                    question.visits += self.scale * count / whole

    def backpropagate_loss(
        self, *, entropy: float = 0.0, kl: float = 0.0, questions_per_pass: int = 256
    ) -> ObjectiveFigures:
        """Add the gradient of the loss to those of the policy's parameters.

        Args:
            entropy: the factor of the mean entropy of the choices, in nats, in the objective: above 0 it keeps the
                policy from converging too early.
            kl: the factor of the mean distance KL(policy || base model) of the choices, in nats, which is subtracted.
            questions_per_pass: the maximum number of distinct questions in a backward pass, which bounds memory. If
                memory runs out, the number is halved from then on (``policy.room``).

        Raises:
            TrainingError: a probability or the loss is not finite; names a task and a plan.
        """
        import torch

        quiet = not (entropy or kl)
        moving = [one for one in self._asked if not quiet or max(map(abs, one.coefficients)) > _NOTHING]
        figures, left = ObjectiveFigures(), moving
        while left:
            seen = self._backpropagate_part(left, entropy, kl, questions_per_pass)
            figures += seen
            left = left[seen.gradients :]
        still = [one for one in self._asked if quiet and max(map(abs, one.coefficients)) <= _NOTHING]
        with torch.no_grad():  # they have no gradient; only their entropy is reported
            for part in _split_parts(still, questions_per_pass):
                figures += self._compute_loss(part, entropy, kl)[1]
        return figures

    def _save_gradients(self) -> Callable[[], None]:
        """Return a function that restores the current gradients: a pass that runs out of memory has changed some."""
        collect = self.policy.parameters
        gradients = [None if one.grad is None else one.grad.clone() for one in collect]

        def restore_gradients() -> None:
            for one, gradient in zip(collect, gradients, strict=True):
                one.grad = None if gradient is None else gradient.clone()

        return restore_gradients

    def _backpropagate_part(self, moving: Sequence[_Asked], entropy: float, kl: float, most: int) -> ObjectiveFigures:
        """Run one backward pass over the first questions, as many as there is room for."""
        policy, restore = self.policy, self._save_gradients()

        def run_pass() -> ObjectiveFigures:
            part = moving[: min(most, policy.room)]
            loss, seen = self._compute_loss(part, entropy, kl)
            loss.backward()
            return replace(seen, loss=float(loss.detach()), gradients=len(part))

        def shrink_pass() -> str:
            restore()
            count = min(most, policy.room, len(moving))
            if count < 2:
                return ""
            policy.room = count // 2
            return f"{count // 2} questions in a backward pass"

        return fitted(run_pass, shrink_pass)

    def _compute_loss(self, part: Sequence[_Asked], entropy: float, kl: float) -> tuple[torch.Tensor, ObjectiveFigures]:
        """Return the loss of some questions, and their measurements."""
        import torch

        questions = [asked.question for asked in part]
        logs = self.policy.log_probabilities(questions)
        legal = torch.zeros(logs.shape, dtype=torch.bool)
        coefficients = torch.zeros(logs.shape)
        for row, asked in enumerate(part):
            legal[row, : len(asked.coefficients)] = True
            coefficients[row, : len(asked.coefficients)] = torch.tensor(asked.coefficients)
        legal = legal.to(logs.device)
        finite = torch.isfinite(logs.detach()) | ~legal
        if not bool(finite.all()):
            row = int((~finite).any(dim=1).nonzero()[0])
            value = float(logs.detach()[row][legal[row]].sum())
            raise _training_error("the policy's log-probability", value, part[row].episode)
        logs = logs.masked_fill(~legal, 0.0)
        visits = torch.tensor([asked.visits for asked in part], device=logs.device)
        chances = logs.exp().masked_fill(~legal, 0.0)
        spread = (visits * -(chances * logs).sum(dim=1)).sum()
        objective = (coefficients.to(logs.device) * logs).sum() + entropy * spread
        far = 0.0
        if kl:
            base = self.policy.reference(questions).to(logs.device).masked_fill(~legal, 0.0)
            distance = (visits * (chances * (logs - base)).sum(dim=1)).sum()
            objective = objective - kl * distance
            far = float(distance.detach())
        loss = -objective
        if not bool(torch.isfinite(loss.detach())):
            raise _training_error("the loss", float(loss.detach()), part[0].episode)
        return loss, ObjectiveFigures(entropy=float(spread.detach()), kl=far, questions=len(part))


def _split_parts(asked: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (asked[begin : begin + size] for begin in range(0, len(asked), size))


def log_probabilities_of(policy: Policy, episodes: Sequence[Episode], *, questions_per_pass: int = 1024) -> list[float]:
    """Return the natural logarithm of the probability of each plan under a policy, reading each question once.

    Raises:
        TrainingError: one is not a number; names a task and a plan.
    """
    import torch

    distinct = DistinctQuestions(policy.scorer.key)
    numbers = [[distinct.number_of(one.question) for one in episode.decisions] for episode in episodes]
    rows: list[list[float]] = []
    with torch.no_grad():
        for part in _split_parts(distinct.questions, questions_per_pass):
            rows += policy.log_probabilities(part).tolist()
    results = []
    for episode, places in zip(episodes, numbers, strict=True):
        chosen = zip(places, episode.decisions, strict=True)
        results.append(math.fsum(rows[place][one.number - 1] for place, one in chosen))
        if math.isnan(results[-1]):
            raise _training_error("the policy's log-probability", results[-1], episode)
    return results


def _training_error(what: str, value: float, episode: Episode) -> TrainingError:
    context = f"; met with the plan {' '.join(episode.word)} of {episode.task.description!r}"
    return TrainingError(f"{what} is {value}, not a finite number{context}")
