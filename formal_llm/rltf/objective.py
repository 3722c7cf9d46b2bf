"""What an update makes larger, and its gradient in the order of the questions.

Every estimator wants sum_i w_i log pi(plan_i), and log pi(plan) is the sum over the decisions of the plan. So the
whole is linear in the log-probabilities of the options::

    sum over distinct questions q and options a of  c[q, a] * log pi(a | q)

where c[q, a] sums the weights of all plans that chose a at q. However many plans an update has, each distinct question
is read once, and the backward pass goes in parts of as many questions as memory allows. Entropy and the distance to the
reference model are means over the questions that were met, so they are sums over distinct questions too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from formal_llm.errors import TrainingError
from formal_llm.llms.local.memory import fitted
from formal_llm.llms.question import Question
from formal_llm.rltf.episode import DistinctQuestions, Episode
from formal_llm.rltf.policy import Policy

if TYPE_CHECKING:
    import torch

    from formal_llm.llms.local.scorer import Scorer

T = TypeVar("T")

#: A coefficient up to this is what rounding leaves of plans that outweigh each other; such a question has no gradient.
_NOTHING = 1e-12


#: A gradient of fewer questions than this share reads them again: a kept pass is gone through with all that is in it.
_MANY = 0.5


class Scored(Protocol):
    """What gives plans their probabilities: a policy, or one as a server answers for it."""

    @property
    def scorer(self) -> Scorer:
        """What scores options."""

    def log_probabilities(self, questions: Sequence[Question]) -> torch.Tensor:
        """As :meth:`Policy.log_probabilities`."""


@dataclass(eq=False)
class _Asked:
    """A distinct question.

    Attributes:
        question: the question.
        coefficients: of the log-probability of each option.
        episode: one that met it, to name in errors.
        visits: its share of the questions that were met; the shares of a task sum to 1.
    """

    question: Question
    coefficients: list[float]
    episode: Episode
    visits: float = 0.0


@dataclass(frozen=True)
class ObjectiveFigures:
    """What is seen of an objective while its gradient is computed; figures of several parts can be added.

    Attributes:
        loss: minus the objective; a surrogate, whose gradient counts and not its value.
        entropy: the mean entropy of the choices, in nats.
        kl: the mean distance to the base model, in nats; 0 where it is not asked for.
        questions: how many distinct questions there were.
        gradients: how many of them had a gradient.
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
        policy: the policy.
        scale: what the weights of all tasks are multiplied with: 1 / number of tasks.
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

        ``shares`` say how much each counts for entropy and distance, in any unit; all alike where left out.

        Raises:
            TrainingError: a weight is no finite number.
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
                asked = self._asked[number]
                asked.coefficients[decision.number - 1] += weight * self.scale
                if whole:
                    asked.visits += self.scale * count / whole

    def backpropagate_loss(
        self, *, entropy: float = 0.0, kl: float = 0.0, questions_per_pass: int = 256
    ) -> ObjectiveFigures:
        """Add the gradient of the loss to those of the policy's parameters.

        Args:
            entropy: times the mean entropy of the choices, in nats, is added to the objective: above 0 it keeps the
                policy from settling too soon.
            kl: times the mean distance KL(policy || base model) of the choices, in nats, is subtracted.
            questions_per_pass: how many distinct questions a backward pass has at most: the bound on memory. Where
                memory runs out, it has half as many from then on (``policy.room``).

        Raises:
            TrainingError: a probability or the loss is not finite; names a task and a plan.
        """
        import torch

        quiet = not (entropy or kl)
        moving = [one for one in self._asked if not quiet or max(map(abs, one.coefficients)) > _NOTHING]
        if len(moving) < _MANY * len(self._asked):
            self.policy.scorer.drop_graphs()
        restore = self._save_gradients()

        def run_passes() -> ObjectiveFigures:
            figures, left = ObjectiveFigures(), moving
            while left:
                seen = self._backpropagate_part(left, entropy, kl, questions_per_pass)
                figures += seen
                left = left[seen.gradients :]
            self.policy.scorer.settle()
            return figures

        def shrink_pass() -> str:
            restore()
            return self.policy.scorer.drop_graphs()

        figures = fitted(run_passes, shrink_pass)
        still = [one for one in self._asked if quiet and max(map(abs, one.coefficients)) <= _NOTHING]
        with torch.no_grad():  # they have no gradient; only their entropy is told
            for part in _split_parts(still, questions_per_pass):
                figures += self._compute_loss(part, entropy, kl)[1]
        return figures

    def _save_gradients(self) -> Callable[[], None]:
        """What makes the gradients as they are now: a pass that runs out of memory has changed some of them."""
        collect = [*self.policy.parameters, *self.policy.scorer.leaves]
        before = [None if one.grad is None else one.grad.clone() for one in collect]

        def restore_gradients() -> None:
            for one, gradient in zip(collect, before, strict=True):
                one.grad = None if gradient is None else gradient.clone()

        return restore_gradients

    def _backpropagate_part(self, moving: Sequence[_Asked], entropy: float, kl: float, most: int) -> ObjectiveFigures:
        """One backward pass: of the first questions, as many as there is room for."""
        policy, restore = self.policy, self._save_gradients()

        def run_passes() -> ObjectiveFigures:
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

        return fitted(run_passes, shrink_pass)

    def _compute_loss(self, part: Sequence[_Asked], entropy: float, kl: float) -> tuple[torch.Tensor, ObjectiveFigures]:
        """The loss of some questions, and what is seen besides."""
        import torch

        questions = [asked.question for asked in part]
        logs = self.policy.log_probabilities(questions)
        legal = torch.zeros(logs.shape, dtype=torch.bool)
        wanted = torch.zeros(logs.shape)
        for row, asked in enumerate(part):
            legal[row, : len(asked.coefficients)] = True
            wanted[row, : len(asked.coefficients)] = torch.tensor(asked.coefficients)
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
        objective = (wanted.to(logs.device) * logs).sum() + entropy * spread
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


def log_probabilities_of(policy: Scored, episodes: Sequence[Episode], *, questions_per_pass: int = 1024) -> list[float]:
    """The natural logarithm of the probability of each plan under a policy; each distinct question is read once.

    Raises:
        TrainingError: one is no number; names a task and a plan.
    """
    import torch

    distinct = DistinctQuestions(policy.scorer.key)
    numbers = [[distinct.number_of(one.question) for one in episode.decisions] for episode in episodes]
    rows: list[list[float]] = []
    with torch.no_grad():
        for part in _split_parts(distinct.questions, questions_per_pass):
            rows += policy.log_probabilities(part).tolist()
    found = []
    for episode, places in zip(episodes, numbers, strict=True):
        chosen = zip(places, episode.decisions, strict=True)
        found.append(math.fsum(rows[place][one.number - 1] for place, one in chosen))
        if math.isnan(found[-1]):
            raise _training_error("the policy's log-probability", found[-1], episode)
    return found


def _training_error(what: str, value: float, episode: Episode) -> TrainingError:
    where = f"; met with the plan {' '.join(episode.word)} of {episode.task.description!r}"
    return TrainingError(f"{what} is {value}, not a finite number{where}")
