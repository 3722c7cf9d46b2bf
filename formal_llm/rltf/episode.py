"""Episodes: a plan, and the decisions that led to it; their distinct questions.

The probability of a plan under a policy is the product of the probabilities of its decisions: the policy answers each
question with a distribution over its legal options, and where a rule leaves one option nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

from formal_llm.llms.question import Question
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.task import Task

#: A plan as the numbers that were chosen.
PlanPath: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """One question and what was chosen.

    Attributes:
        question: the question; of exactly one option.
        number: the number of the chosen option, from 1.
    """

    question: Question
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """One finished plan and the decisions that led to it.

    Attributes:
        index: the place of its task among the tasks of the run.
        task: the task.
        plan: the plan.
        decisions: its decisions, in the order in which they were made.
        log_probability: of the plan under the policy that made it, natural logarithm; 0 where there was no choice.
    """

    index: int
    task: Task
    plan: Plan
    decisions: tuple[Decision, ...]
    log_probability: float = 0.0

    @property
    def word(self) -> tuple[str, ...]:
        """The word of the plan. Where the automaton is ambiguous, plans of one task may share it."""
        return self.plan.word

    @property
    def path(self) -> PlanPath:
        """The numbers that were chosen, first question first: what the plans of one task are told apart by.

        Two episodes of one task and planner have the same path exactly when they are the same plan.
        """
        return tuple(decision.number for decision in self.decisions)


class DistinctQuestions:
    """Numbers questions from 0, those that are equal alike: episodes share some objects, and others ask the same.

    Args:
        key: what two questions have in common that count as one. It may take time: each object is looked at once.

    Attributes:
        questions: the first of each number, in their order.
    """

    def __init__(self, key: Callable[[Question], Hashable]) -> None:
        self.questions: list[Question] = []
        self._key = key
        self._of_key: dict[Hashable, int] = {}
        self._of_object: dict[int, int] = {}
        self._seen: list[Question] = []

    def number_of(self, question: Question) -> int:
        """The number of a question; a new one is added."""
        found = self._of_object.get(id(question))
        if found is None:
            found = self._of_key.setdefault(self._key(question), len(self.questions))
            if found == len(self.questions):
                self.questions.append(question)
            self._of_object[id(question)] = found
            self._seen.append(question)  # as long as it is there, no other one has its identity
        return found
