"""All plans of a task, with the decisions that lead to each; and what can be computed exactly from them.

A plan is a leaf of a tree: its inner nodes are questions, its branches are their options. The tree is found by real
walks that part at each question, so its questions are those that a rollout is asked. Where the automaton is ambiguous a
word may be at several leaves: each sequence of answers is a plan of its own, with a probability of its own, and
:func:`path` tells them apart.

On such a tree, for any policy that answers equal questions alike, the probability of every plan, the expected reward
and its gradient are finite sums. :class:`PlanTree` computes them for a tabular softmax policy: one number (a logit) for
each option of each distinct question. It is the yardstick for estimators of the gradient
(:mod:`formal_llm.rltf.advantages`); a model that is trained brings its own gradient.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formal_llm.errors import AutomatonError, InfiniteLanguage, TooManyPlans, Undecided
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget
from formal_llm.planning.walks.journal import shares
from formal_llm.planning.walks.walk import Walk
from formal_llm.rltf.episode import Episode
from formal_llm.rltf.rollout import Place, Start

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]


def path(episode: Episode) -> tuple[int, ...]:
    """The numbers that were chosen, first question first: what the plans of one task are told apart by.

    Two episodes of one task and planner have the same path exactly when they are the same leaf of its tree. (Their
    words may be equal even so, where the automaton is ambiguous.)
    """
    return tuple(decision.number for decision in episode.decisions)


# -- listing -----------------------------------------------------------------------------------------------------------


def count_plans(planner: Planner, task: Task) -> float | None:
    """How many plans a task has, each sequence of answers counted; without making any.

    Args:
        planner: whose plans.
        task: the task.

    Returns:
        The number; infinite where limits do not bound the plans (what the planner's budget of steps may bound does not
        count); None where it cannot be told beforehand: rules that are no pushdown automaton, a budget of steps below
        the usual one, or a count that takes too many states.
    """
    steps, usual = planner.budget.steps, Budget().steps
    if steps is not None and usual is not None and steps < usual:
        return None
    try:
        return planner.table(task).lookahead.count(of="derivations")
    except InfiniteLanguage:
        return math.inf
    except (Undecided, AutomatonError):
        return None


def enumerate_episodes(planner: Planner, task: Task, index: int, limit: int) -> list[Episode]:
    """All plans of a task; or an error, before any is made where they can be counted.

    Args:
        planner: whose walks make them; nobody is asked.
        task: the task.
        index: its place among the tasks of the run.
        limit: the most plans that shall be listed.

    Returns:
        The plans in the order of their paths: by the first answer, then the second, and so on. Their log-probability is
        0, since no policy made them.

    Raises:
        TooManyPlans: there are more than ``limit``; tells how many, where that is known.
        NoValidPlan: there is none.
        ValueError, Undecided: as :func:`walk_episodes` does.
    """
    if limit < 1:
        raise ValueError(f"the limit of plans counts from 1, not {limit}")
    count = count_plans(planner, task)
    if count is not None and count > limit:
        raise TooManyPlans(task.description, limit, count)
    return list(walk_episodes(planner, task, index, limit=limit))


def walk_episodes(planner: Planner, task: Task, index: int = 0, *, limit: int | None = None) -> Iterator[Episode]:
    """The plans of a task one by one, as they are asked for; in the order of their paths.

    Args:
        planner: whose walks make them.
        task: the task.
        index: its place among the tasks of the run.
        limit: the most plans that there may be; None for no bound. Each branch that waits has a plan at least, so this
            also bounds the memory.

    Raises:
        TooManyPlans: there are more than ``limit``.
        NoValidPlan: there is none.
        ValueError: the planner does not look ahead.
        Undecided: a branch that the lookahead could not decide led nowhere. Raise ``max_states`` of the planner.
    """
    if planner.lookahead != "on":
        raise ValueError("plans are listed with lookahead='on' only: else branches lead to dead ends, not to plans")
    # Of the budget only the steps decide what the plans are. Nobody is told of these walks.
    start = Walk(planner.table(task), task, wording=planner.wording, budget=Budget(steps=planner.budget.steps))
    todo: list[tuple[Place, int]] = [(Place.root(start), 0)]
    found = 0
    while todo:
        if limit is not None and found + len(todo) > limit:
            raise TooManyPlans(task.description, limit)
        place, number = todo.pop()
        if number:
            question = place.question
            after = place.after(number)
            place.next.clear()  # each branch is walked once: what it led to need not be kept
            place = after
            if place.walk.usage.backtracks:
                raise Undecided(f"an option of {question!r} led to a dead end; raise max_states of the planner")
        if place.question is None:
            found += 1
            yield place.finished(Start(index, task))
            continue
        todo += ((place, number) for number in range(len(place.question.options), 0, -1))


# -- the tree ----------------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class TreeNode:
    """A place in the tree.

    Attributes:
        question: what is asked here; None at a leaf.
        state: which of the tree's distinct questions that is; -1 at a leaf.
        children: one for each option, in their order; none at a leaf.
        leaf: the place of the finished plan among the tree's episodes; -1 where something is asked.
    """

    question: Question | None = None
    state: int = -1
    children: list[TreeNode] = field(default_factory=list)
    leaf: int = -1


class PlanTree:
    """The tree of all plans of a task, and a tabular softmax policy on it.

    The policy has one logit for each option of each distinct question: questions that read the same (their content is
    equal) share theirs, as they do for every model. Logits are one flat array; those of question ``s`` are
    ``logits[offsets[s]:offsets[s + 1]]``.

    Args:
        episodes: all plans of one task, in any order.

    Attributes:
        episodes: the plans, as given; arrays over plans are in this order.
        questions: the distinct questions.
        offsets: where the logits of each question begin, and the end of the last.
        root: the tree.

    Raises:
        ValueError: the episodes are not all plans of one task: one is missing, or there twice.
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self.episodes = tuple(episodes)
        self.root = TreeNode()
        self._state_of: dict[str, int] = {}
        self._by_identity: dict[int, int] = {}
        self.questions: list[Question] = []
        self._rows: list[tuple[int, int, int]] = []  # (plan, question, option) of each decision
        for leaf, episode in enumerate(self.episodes):
            self._add(leaf, episode)
        self.offsets = [0]
        for question in self.questions:
            self.offsets.append(self.offsets[-1] + len(question.options))
        self._check(self.root)

    @classmethod
    def of(cls, planner: Planner, task: Task, limit: int) -> PlanTree:
        """The tree of a task (see :func:`enumerate_episodes`)."""
        return cls(enumerate_episodes(planner, task, 0, limit))

    @property
    def size(self) -> int:
        """The number of logits."""
        return self.offsets[-1]

    def _state(self, question: Question) -> int:
        """The number of a distinct question. Content takes time to make, so each object is looked at once."""
        state = self._by_identity.get(id(question))
        if state is None:
            said = json.dumps(question.content, sort_keys=True)
            state = self._state_of.setdefault(said, len(self.questions))
            if state == len(self.questions):
                self.questions.append(question)
            self._by_identity[id(question)] = state
        return state

    def _add(self, leaf: int, episode: Episode) -> None:
        node = self.root
        for question, number in ((d.question, d.number) for d in episode.decisions):
            if node.question is None:
                if node.leaf >= 0:
                    raise ValueError(f"the plan {' '.join(episode.key)!r} goes on where another one ends")
                node.question, node.state = question, self._state(question)
                node.children = [TreeNode() for _ in question.options]
            self._rows.append((leaf, node.state, number - 1))
            node = node.children[number - 1]
        if node.question is not None or node.leaf >= 0:
            raise ValueError(f"the plan {' '.join(episode.key)!r} is there twice, or another one goes on where it ends")
        node.leaf = leaf

    def _check(self, root: TreeNode) -> None:
        todo = [root]
        while todo:
            node = todo.pop()
            if node.question is None and node.leaf < 0:
                raise ValueError("these are not all plans of the task: an option of a question leads to none")
            todo += node.children

    # -- a model on the tree ------------------------------------------------------------------------------------

    def probabilities_under(self, choose: Callable[[Question], Answer]) -> tuple[float, ...]:
        """The probability of each plan under an answerer, which is asked each distinct question once.

        Args:
            choose: answers a question, with probabilities; as ``llm.choose``.

        Raises:
            ValueError: an answer has no probabilities.
        """
        table: list[tuple[float, ...]] = []
        for question in self.questions:
            likely = shares(choose(question), len(question.options))
            if likely is None:
                raise ValueError(f"the answer to {question!r} has no probabilities")
            table.append(likely)
        product = [1.0] * len(self.episodes)
        for leaf, state, option in self._rows:
            product[leaf] *= table[state][option]
        return tuple(product)

    # -- the tabular policy -------------------------------------------------------------------------------------

    @cached_property
    def _arrays(self) -> tuple[Whole, Whole, Whole, Whole]:
        """(the plan, the question and the logit of each decision; the question of each logit)."""
        import numpy as np

        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 3)
        offsets = np.array(self.offsets, dtype=np.int64)
        of_logit = np.repeat(np.arange(len(self.questions)), np.diff(offsets))
        return rows[:, 0], rows[:, 1], offsets[rows[:, 1]] + rows[:, 2], of_logit

    def policy(self, logits: Any) -> Floats:
        """The probability of each option of each distinct question: softmax, question by question."""
        return self._log_policy(logits)[1]

    def _log_policy(self, logits: Any) -> tuple[Floats, Floats]:
        import numpy as np

        given = np.asarray(logits, dtype=np.float64)
        of_logit = self._arrays[3]
        if not len(of_logit):
            return given, given
        begins = np.array(self.offsets[:-1])
        shifted = given - np.maximum.reduceat(given, begins)[of_logit]
        raised = np.exp(shifted)
        total = np.add.reduceat(raised, begins)[of_logit]
        return shifted - np.log(total), raised / total

    def log_probabilities(self, logits: Any) -> Floats:
        """The natural logarithm of the probability of each plan."""
        import numpy as np

        leaf, _, logit, _ = self._arrays
        logs = self._log_policy(logits)[0][logit]
        return np.bincount(leaf, weights=logs, minlength=len(self.episodes)).astype(np.float64)

    def probabilities(self, logits: Any) -> Floats:
        """The probability of each plan; their sum is 1."""
        import numpy as np

        found: Floats = np.exp(self.log_probabilities(logits))
        return found

    def gradient(self, logits: Any, weights: Any) -> Floats:
        """The gradient of the sum of weight * log pi(plan), by the logits; the weights are constants.

        A decision raises its own option's logit by 1 and lowers those of all options by their probabilities.

        Args:
            logits: of the policy.
            weights: one for each plan.
        """
        import numpy as np

        leaf, state, logit, of_logit = self._arrays
        weight = np.asarray(weights, dtype=np.float64)[leaf]
        visits = np.bincount(state, weights=weight, minlength=len(self.questions))
        chosen = np.bincount(logit, weights=weight, minlength=self.size)
        found: Floats = chosen - visits[of_logit] * self.policy(logits)
        return found

    def expected_reward(self, logits: Any, rewards: Any) -> float:
        """J: the sum of probability * reward over all plans."""
        import numpy as np

        return float(self.probabilities(logits) @ np.asarray(rewards, dtype=np.float64))

    def exact_gradient(self, logits: Any, rewards: Any) -> Floats:
        """The gradient of J: the sum of probability * reward * grad log pi(plan) over all plans."""
        import numpy as np

        return self.gradient(logits, self.probabilities(logits) * np.asarray(rewards, dtype=np.float64))
