"""Episodes: a plan and the decisions that led to it; the distinct questions of episodes.

The probability of a plan under a policy is the product of the probabilities of its decisions: the policy answers each
question with a distribution over its legal options. If the rules leave only one option, no question is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

from formal_llm.llms.question import Question
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.task import Task

#: A plan as the numbers of the chosen options.
PlanPath: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A question and the choice.

    Attributes:
        question: the question, about exactly one option.
        number: the number of the chosen option, from 1.
    """

    question: Question
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """A complete plan and the decisions that led to it.

    Attributes:
        index: the position of its task among the tasks of the run.
        decisions: its decisions, in the order in which they were made.
        log_probability: the natural logarithm of its probability under the policy that generated it; 0 without choices.
    """

    index: int
    task: Task
    plan: Plan
    decisions: tuple[Decision, ...]
    log_probability: float = 0.0

    @property
    def word(self) -> tuple[str, ...]:
        """The word of the plan. If the automaton is ambiguous, several plans of a task may share it."""
        return self.plan.word

    @property
    def path(self) -> PlanPath:
        """The numbers of the chosen options, in order, which distinguish the plans of a task.

        Two episodes of one task and planner have the same path if and only if they are the same plan.
        """
        return tuple(decision.number for decision in self.decisions)


class DistinctQuestions:
    """Numbers distinct questions from 0: episodes share some question objects, and other objects are equal.

    Args:
        key: what equal questions have in common. It may be slow: it is called once per object.

    Attributes:
        questions: the first question of each number, in order.
    """

    def __init__(self, key: Callable[[Question], Hashable]) -> None:
        self.questions: list[Question] = []
        self._key = key
        self._of_key: dict[Hashable, int] = {}
        self._of_object: dict[int, int] = {}
        self._seen: list[Question] = []

    def number_of(self, question: Question) -> int:
        """Return the number of a question, adding it if it is new."""
        found = self._of_object.get(id(question))
        if found is None:
            found = self._of_key.setdefault(self._key(question), len(self.questions))
            if found == len(self.questions):
                self.questions.append(question)
            self._of_object[id(question)] = found
            self._seen.append(question)  # while it is referenced, no other object has its identity
        return found
