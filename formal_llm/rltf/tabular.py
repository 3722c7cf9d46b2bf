"""A tabular policy: the exact expected reward of a task and its gradient.

On the tree of all plans of a task (:mod:`formal_llm.rltf.all_plans`), for any policy that answers equal questions
alike, the probability of every plan, the expected reward and its gradient are finite sums. :class:`TabularPolicy`
computes them for a softmax policy with one number (a logit) for each option of each distinct question. It is the
reference for estimators of the gradient (:mod:`formal_llm.rltf.advantages`); a trained model computes its own
gradient.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.episode import DistinctQuestions, Episode, PlanPath

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]


class TabularPolicy:
    """A tabular softmax policy on the tree of all plans of a task.

    It has one logit for each option of each distinct question: questions with equal content share their logits, as they
    do for every model. Logits are one flat array; those of question ``s`` are
    ``logits[offsets[s]:offsets[s + 1]]``.

    Attributes:
        episodes: all plans of one task, as given; arrays over plans are in this order.
        offsets: the start of the logits of each question, and the end of the last.

    Raises:
        ValueError: the episodes are not all plans of one task: one is missing or duplicated.
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self.episodes = tuple(episodes)
        _check_whole(self.episodes)
        distinct = DistinctQuestions(lambda question: json.dumps(question.content, sort_keys=True))
        self._rows = [  # (plan, question, option) of each decision
            (leaf, distinct.number_of(decision.question), decision.number - 1)
            for leaf, episode in enumerate(self.episodes)
            for decision in episode.decisions
        ]
        self.questions = distinct.questions
        self.offsets = [0, *itertools.accumulate(len(question.options) for question in self.questions)]

    @classmethod
    def from_task(cls, planner: Planner, task: Task, limit: int) -> TabularPolicy:
        """Build the policies of a task (see :func:`enumerate_episodes`)."""
        return cls(enumerate_episodes(planner, task, 0, limit))

    @property
    def size(self) -> int:
        """The number of logits."""
        return self.offsets[-1]

    @cached_property
    def _arrays(self) -> tuple[Whole, Whole, Whole, Whole]:
        """The plan, the question and the logit of each decision; the question of each logit."""
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 3)
        offsets = np.array(self.offsets, dtype=np.int64)
        of_logit = np.repeat(np.arange(len(self.questions)), np.diff(offsets))
        return rows[:, 0], rows[:, 1], offsets[rows[:, 1]] + rows[:, 2], of_logit

    def option_probabilities(self, logits: ArrayLike) -> Floats:
        """Return the probability of each option of each distinct question: softmax, question by question."""
        return self._log_policy(logits)[1]

    def _log_policy(self, logits: ArrayLike) -> tuple[Floats, Floats]:
        values = np.asarray(logits, dtype=np.float64)
        of_logit = self._arrays[3]
        if not len(of_logit):
            return values, values
        begins = np.array(self.offsets[:-1])
        shifted = values - np.maximum.reduceat(values, begins)[of_logit]
        raised = np.exp(shifted)
        total = np.add.reduceat(raised, begins)[of_logit]
        return shifted - np.log(total), raised / total

    def log_probabilities(self, logits: ArrayLike) -> Floats:
        """Return the natural logarithm of the probability of each plan."""
        leaf, _, logit, _ = self._arrays
        logs = self._log_policy(logits)[0][logit]
        return np.bincount(leaf, weights=logs, minlength=len(self.episodes)).astype(np.float64)

    def compute_probabilities(self, logits: ArrayLike) -> Floats:
        """Return the probability of each plan; their sum is 1."""
        result: Floats = np.exp(self.log_probabilities(logits))
        return result

    def compute_gradient(self, logits: ArrayLike, weights: ArrayLike) -> Floats:
        """Return the gradient of the sum of weight * log pi(plan) by the logits, with a constant weight for each plan.

        A decision increases the logit of its own option by 1 and decreases those of all options by their probabilities.
        """
        leaf, state, logit, of_logit = self._arrays
        weight = np.asarray(weights, dtype=np.float64)[leaf]
        visits = np.bincount(state, weights=weight, minlength=len(self.questions))
        chosen = np.bincount(logit, weights=weight, minlength=self.size)
        result: Floats = chosen - visits[of_logit] * self.option_probabilities(logits)
        return result

    def expected_reward(self, logits: ArrayLike, rewards: ArrayLike) -> float:
        """Return J: the sum of probability * reward over all plans."""
        return float(self.compute_probabilities(logits) @ np.asarray(rewards, dtype=np.float64))

    def exact_gradient(self, logits: ArrayLike, rewards: ArrayLike) -> Floats:
        """Return the gradient of J: the sum of probability * reward * grad log pi(plan) over all plans."""
        return self.compute_gradient(logits, self.compute_probabilities(logits) * np.asarray(rewards, dtype=np.float64))


def _check_whole(episodes: Sequence[Episode]) -> None:
    """Raise an error unless these are the leaves of a tree, each once."""
    leaves: set[PlanPath] = set()
    inner: dict[PlanPath, int] = {}  # the paths of questions, and their numbers of options
    for episode in episodes:
        if episode.path in leaves:
            raise ValueError(f"the plan {' '.join(episode.word)!r} is there twice")
        leaves.add(episode.path)
        inner |= {episode.path[:n]: len(one.question.options) for n, one in enumerate(episode.decisions)}
    if both := leaves & inner.keys():
        raise ValueError(f"a plan goes on after the numbers {min(both)}, where another one ends")
    reached = {(*path, number) for path, options in inner.items() for number in range(1, options + 1)} or {()}
    if reached - inner.keys() != leaves:
        raise ValueError("these are not all plans of the task: an option of a question leads to none")
