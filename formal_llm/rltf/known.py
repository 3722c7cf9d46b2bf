"""Questions with known right answers: those on the way to known plans.

They are the questions that a model would be asked if all its answers were right (teacher forcing), so a wrong answer
does not change the following questions.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from formal_llm.automata.models.automaton import Word
from formal_llm.errors import NoValidPlan
from formal_llm.llms.question import Question
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.episode import PlanPath
from formal_llm.rltf.warm_start import ReferenceLimits, retrace

#: The maximum number of known plans of a task, all of which are examined.
MOST_PLANS = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class KnownQuestion:
    """A question, and which of its options lead to a known plan.

    Attributes:
        index: the position of its task.
        question: the question, about exactly one option.
        right: the numbers of the right options.
    """

    index: int
    question: Question
    right: frozenset[int]


def known_questions(
    planner: Planner, task: Task, words: Sequence[Word], *, index: int = 0, count: int = 1, seed: int = 0
) -> list[KnownQuestion]:
    """Return the questions on the way to some known plans of a task, each once.

    Args:
        planner: provides the walks; no LLM is asked.
        task: the task.
        words: all its known plans. An option is right if it leads to one of them.
        index: the position of the task.
        count: the number of plans to follow; they are drawn at random.
        seed: the seed of that draw.

    Raises:
        ValueError: a word is not a plan of the task.
    """
    rng = random.Random(f"{seed} known {index}")
    paths: dict[Word, list[tuple[Question, int]]] = {}
    right: dict[PlanPath, set[int]] = {}
    for word in dict.fromkeys(words):
        paths[word] = [(one.question, one.number) for one in retrace(planner, task, word, index).decisions]
        numbers = tuple(number for _, number in paths[word])
        for place, number in enumerate(numbers):
            right.setdefault(numbers[:place], set()).add(number)
    questions: dict[PlanPath, KnownQuestion] = {}
    for word in rng.sample(sorted(paths), min(count, len(paths))):
        path: PlanPath = ()
        for question, number in paths[word]:
            questions.setdefault(path, KnownQuestion(index, question, frozenset(right[path])))
            path = (*path, number)
    return list(questions.values())


def reference_words(planner: Planner, task: Task, references: ReferenceLimits) -> list[Word]:
    """Return all plans of a task within the limits of its reference plans; empty if there are none.

    Raises:
        TooManyPlans: there are more than 1,000.
    """
    narrow = replace(task, limits=task.limits & references(task))
    try:
        return list(dict.fromkeys(one.plan.word for one in enumerate_episodes(planner, narrow, 0, MOST_PLANS)))
    except NoValidPlan:
        return []


def questions_of(
    planner: Planner, known: Mapping[Task, Sequence[Word]], *, count: int = 1, seed: int = 0
) -> list[KnownQuestion]:
    """Return the questions on the way to the known plans of several tasks; see :func:`known_questions`."""
    tasks = enumerate(known.items())
    return [
        one
        for index, (task, words) in tasks
        for one in known_questions(planner, task, words, index=index, count=count, seed=seed)
    ]
