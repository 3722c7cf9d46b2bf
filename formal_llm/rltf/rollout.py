"""Rollouts: many walks that advance together, each choice drawn from the policy.

Walks for one task that have made the same choices stand at the same node and are asked the same question. So the walks
of a task share a tree: each node of it is one walk, one question and one answer of the policy, made when the first
sample comes there, and a sample only draws its way through. What a rollout costs goes with the nodes, not with the
samples.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from formal_llm.errors import TrainingError
from formal_llm.llms.local.selections import Selecting
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.planning.walks.walk import Walk
from formal_llm.rltf.episode import Decision, Episode

if TYPE_CHECKING:
    import torch

#: How many walks are under way together where nobody says.
TOGETHER = 1_024


class Drawn(Protocol):
    """What options are drawn from: a policy, or one as a server answers for it."""

    def log_probabilities(self, questions: Sequence[Question]) -> torch.Tensor:
        """As :meth:`formal_llm.rltf.policy.Policy.log_probabilities`."""


@dataclass(frozen=True)
class Start:
    """One walk to be made.

    Attributes:
        index: the place of the task among the tasks of the run.
        task: the task.
        seed: where its draws come from; None: the most probable option is taken each time.
    """

    index: int
    task: Task
    seed: str | None = None


@dataclass(eq=False, slots=True)
class WalkNode:
    """A node in the tree of a task: where all walks stand that made the same choices.

    Attributes:
        walk: stands here; before the question that is under way, where that is a selection.
        parent, number: the node before it, and what was chosen there; None and 0 at the root.
        selecting: the selection that is under way, where there is one.
        logs: the logarithms of the options' probabilities, once they are known.
        next: the nodes after it, by number.
        episode: at the end, the episode that leads here, once it has been made.
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
        """The first node of a walk."""
        return cls(walk)._skip_forced()

    @property
    def question(self) -> Question | None:
        """The question here, of exactly one option; None where the plan is finished."""
        return self.walk.question if self.selecting is None else self.selecting.asked

    def after(self, number: int) -> WalkNode:
        """The node to which a choice leads."""
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
        """With the question that the walk asks here; a selection of which there is only one is made."""
        while (asked := self.walk.question) is not None and asked.several:
            selecting = Selecting.of(asked)
            if selecting.asked is not None:
                self.selecting = selecting
                break
            self.walk.answer(Answer(selecting.chosen))
        return self

    def finished(self, start: Start) -> Episode:
        """The episode that ends here."""
        if self.episode is None:
            # A walk that backed out of a dead end asked anew; what counts are the questions that its plan came from.
            counted = set(map(id, self.walk.questions))
            decisions: list[Decision] = []
            logs: list[float] = []
            node = self
            while (before := node.parent) is not None:
                asked, told = before.walk.question, before.question
                assert told is not None
                if id(asked) in counted:
                    decisions.append(Decision(told, node.number))
                    logs.append(0.0 if before.logs is None else before.logs[node.number - 1])
                node = before
            self.episode = Episode(start.index, start.task, self.walk.plan, tuple(reversed(decisions)), math.fsum(logs))
        return self.episode


def rollout(
    planner: Planner, policy: Drawn, starts: Iterable[Start], *, together: int = TOGETHER,
) -> list[Episode]:  # fmt: skip
    """Make a plan for each start; the questions of all walks under way, at most ``together``, are answered together.

    A walk's draws depend on its own seed alone, so the same starts make the same plans in whatever order and company.

    Returns:
        The episodes, in the order of the starts. Starts that came to the same plan by the same choices share theirs.

    Raises:
        NoValidPlan, BudgetExceeded: as :meth:`Planner.plan` does.
        LLMError: a question is too long for the model.
        TrainingError: the model gives a probability that is no number; names the task and what was chosen by then.
    """
    found: dict[int, Episode] = {}
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
                found[number] = node.finished(start)
                del rolling[number]
        if rolling:
            _answer_questions(policy, [node for _, node, _ in rolling.values() if node.logs is None])
            for number, (start, node, rng) in rolling.items():
                rolling[number] = (start, node.after(_draw_option(node, rng)), rng)
        elif room and not fresh:
            return [found[number] for number in sorted(found)]


def replay(planner: Planner, start: Start, numbers: Sequence[int]) -> Episode:
    """The episode of which only the chosen numbers are known (:attr:`Episode.path`).

    Its log-probability is 0, since no policy made it here.

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


def _answer_questions(policy: Drawn, nodes: Sequence[WalkNode]) -> None:
    """Have the policy answer the questions of some nodes; several samples may stand at one."""
    import torch

    distinct = {id(node): node for node in nodes}
    if not distinct:
        return
    asked = [node.question for node in distinct.values() if node.question is not None]
    for question in asked:
        question.hold()  # its gradient is wanted, too
    with torch.no_grad():
        table = policy.log_probabilities(asked).tolist()
    for node, row in zip(distinct.values(), table, strict=True):
        assert node.question is not None
        node.logs = row[: len(node.question.options)]
        if any(map(math.isnan, node.logs)):  # nothing can be drawn, and the most probable one would be any
            made = " ".join(node.walk.word) or "nothing yet"
            raise TrainingError(
                f"the policy's log-probability is nan, not a finite number; met after {made} in "
                f"{node.walk.task.description!r}: weights are damaged, or numbers overflow (try dtype float32)"
            )


def _draw_option(node: WalkNode, rng: random.Random | None) -> int:
    """The number of the most probable option, or of one that is drawn."""
    logs = node.logs
    assert logs is not None
    if rng is None:
        return max(range(len(logs)), key=logs.__getitem__) + 1
    return rng.choices(range(1, len(logs) + 1), [math.exp(value) for value in logs])[0]
