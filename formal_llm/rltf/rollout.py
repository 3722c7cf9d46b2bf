"""Rollouts: many walks that advance together, each choice drawn from the policy.

Walks for one task that have made the same choices are at the same node and ask the same question. The walks of a task
therefore share a tree: each of its nodes has one walk, one question and one answer of the policy, computed when the
first sample reaches it, and a sample only draws its path through the tree. The cost of a rollout depends on the number
of nodes, not of samples.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from formal_llm.errors import TrainingError
from formal_llm.llms.local.selections import Selecting
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.planning.walks.walk import Walk
from formal_llm.rltf.episode import Decision, Episode
from formal_llm.rltf.policy import Policy

#: The default number of concurrent walks.
TOGETHER = 1_024


@dataclass(frozen=True)
class Start:
    """A walk to perform.

    Attributes:
        index: the position of the task among the tasks of the run.
        seed: the seed of its draws; None to take the most probable option each time.
    """

    index: int
    task: Task
    seed: str | None = None


@dataclass(eq=False, slots=True)
class WalkNode:
    """A node in the tree of a task, shared by all walks that made the same choices.

    Attributes:
        walk: the walk at this node; during a selection, the walk before that question.
        parent, number: the previous node, and the number of the choice there; None and 0 at the root.
        selecting: the current selection, if there is one.
        logs: the log-probabilities of the options, once they are known.
        next: the following nodes, by number.
        episode: at the end, the episode that leads here, once it has been built.
    """

    walk: Walk
    parent: WalkNode | None = None
    number: int = 0
    selecting: Selecting | None = None
    logs: list[float] | None = None
    next: dict[int, WalkNode] = field(default_factory=dict)
    episode: Episode | None = None

    @classmethod
    def root(cls, walk: Walk) -> WalkNode:
        """Return the first node of a walk."""
        return cls(walk)._skip_forced()

    @property
    def question(self) -> Question | None:
        """The question at this node, about exactly one option; None if the plan is complete."""
        return self.walk.question if self.selecting is None else self.selecting.asked

    def after(self, number: int) -> WalkNode:
        """Return the node to which a choice leads."""
        if number not in self.next:
            if self.selecting is None:
                chosen: tuple[int, ...] = (number,)
            else:
                selecting = self.selecting.after(number)
                if selecting.asked is not None:
                    self.next[number] = WalkNode(self.walk, self, number, selecting)
                    return self.next[number]
                chosen = selecting.chosen
            walk = self.walk.fork()
            walk.answer(Answer(chosen))
            self.next[number] = WalkNode(walk, self, number)._skip_forced()
        return self.next[number]

    def _skip_forced(self) -> WalkNode:
        """Return the node of the question that the walk asks here; make a selection with only one possible result."""
        while (question := self.walk.question) is not None and question.several:
            selecting = Selecting.of(question)
            if selecting.asked is not None:
                self.selecting = selecting
                break
            self.walk.answer(Answer(selecting.chosen))
        return self

    def finished(self, start: Start) -> Episode:
        """Return the episode that ends here."""
        if self.episode is None:
            # A walk that backed out of a dead end asked anew; only the questions that led to its plan count.
            counted = set(map(id, self.walk.questions))
            decisions: list[Decision] = []
            logs: list[float] = []
            node = self
            while (parent := node.parent) is not None:
                walk_question, question = parent.walk.question, parent.question
                assert question is not None
                if id(walk_question) in counted:
                    decisions.append(Decision(question, node.number))
                    logs.append(0.0 if parent.logs is None else parent.logs[node.number - 1])
                node = parent
            self.episode = Episode(start.index, start.task, self.walk.plan, tuple(reversed(decisions)), math.fsum(logs))
        return self.episode


def rollout(
    planner: Planner, policy: Policy, starts: Iterable[Start], *, together: int = TOGETHER,
) -> list[Episode]:  # fmt: skip
    """Generate a plan for each start; the questions of all current walks, at most ``together``, are answered together.

    The draws of a walk depend on its own seed alone, so the same starts give the same plans in any order and company.

    Returns:
        The episodes, in the order of the starts. Starts that reached the same plan by the same choices share theirs.

    Raises:
        NoValidPlan, BudgetExceeded: see :meth:`Planner.plan`.
        LLMError: a question is too long for the model.
        TrainingError: the model returns a probability that is not a number; names the task and the choices so far.
    """
    episodes: dict[int, Episode] = {}
    roots: dict[Hashable, WalkNode] = {}
    coming = enumerate(starts)
    rolling: dict[int, tuple[Start, WalkNode, random.Random | None]] = {}
    while True:
        room = together - len(rolling)
        fresh = list(islice(coming, room))
        for number, start in fresh:
            root = roots.get((start.index, start.task))
            if root is None:
                root = roots[start.index, start.task] = WalkNode.root(planner.start(start.task, name=str(start.index)))
            rolling[number] = (start, root, None if start.seed is None else random.Random(start.seed))
        for number, (start, node, _) in list(rolling.items()):
            if node.question is None:
                episodes[number] = node.finished(start)
                del rolling[number]
        if rolling:
            _answer_questions(policy, [node for _, node, _ in rolling.values() if node.logs is None])
            for number, (start, node, rng) in rolling.items():
                rolling[number] = (start, node.after(_draw_option(node, rng)), rng)
        elif room and not fresh:
            return [episodes[number] for number in sorted(episodes)]


def replay(planner: Planner, start: Start, numbers: Sequence[int]) -> Episode:
    """Return the episode given by its chosen numbers (:attr:`Episode.path`).

    Its log-probability is 0, since no policy generated it here.

    Raises:
        ValueError: the numbers do not lead to a plan of the task.
    """
    node = WalkNode.root(planner.start(start.task))
    for number in numbers:
        if node.question is None or not 1 <= number <= len(node.question.options):
            raise ValueError(f"the numbers {numbers} lead to no plan of {start.task.description!r}")
        node = node.after(number)
    if node.question is not None:
        raise ValueError(f"the numbers {numbers} end before a plan of {start.task.description!r} does")
    return node.finished(start)


def _answer_questions(policy: Policy, nodes: Sequence[WalkNode]) -> None:
    """Have the policy answer the questions of some nodes; several samples may be at one node."""
    import torch

    distinct = {id(node): node for node in nodes}
    if not distinct:
        return
    questions = [node.question for node in distinct.values() if node.question is not None]
    for question in questions:
        question.hold()  # its gradient is needed, too
    with torch.no_grad():
        table = policy.log_probabilities(questions).tolist()
    for node, row in zip(distinct.values(), table, strict=True):
        assert node.question is not None
        node.logs = row[: len(node.question.options)]
        if any(map(math.isnan, node.logs)):  # sampling is impossible, and the maximum arbitrary
            chosen = " ".join(node.walk.word) or "nothing yet"
            raise TrainingError(
                f"the policy's log-probability is nan, not a finite number; met after {chosen} in "
                f"{node.walk.task.description!r}: weights are damaged, or numbers overflow (try dtype float32)"
            )


def _draw_option(node: WalkNode, rng: random.Random | None) -> int:
    """Return the number of the most probable option, or of a drawn one."""
    logs = node.logs
    assert logs is not None
    if rng is None:
        return max(range(len(logs)), key=logs.__getitem__) + 1
    return rng.choices(range(1, len(logs) + 1), [math.exp(value) for value in logs])[0]
