"""Questions of which the right answers are known: those on the way to known plans.

They are the questions that an answerer would be asked if all its answers were right (teacher forcing), so one wrong
answer does not make the next questions other ones.
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

#: The most known plans of a task, all of which are looked at.
MOST_PLANS = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class KnownQuestion:
    """A question, and which of its options lead on to a known plan.

    Attributes:
        index: the place of its task.
        question: the question; of exactly one option.
        right: the numbers of these options.
    """

    index: int
    question: Question
    right: frozenset[int]


def known_questions(
    planner: Planner, task: Task, words: Sequence[Word], *, index: int = 0, count: int = 1, seed: int = 0
) -> list[KnownQuestion]:
    """The questions on the way to some known plans of a task, each once.

    Args:
        planner: whose walks ask them; nobody answers.
        task: the task.
        words: all its known plans. An option is right where it leads to one of them.
        index: the place of the task.
        count: how many of the plans are gone along; they are drawn at random.
        seed: of that draw.

    Raises:
        ValueError: a word is no plan of the task.
    """
    rng = random.Random(f"{seed} known {index}")
    paths: dict[Word, list[tuple[Question, int]]] = {}
    right: dict[PlanPath, set[int]] = {}
    for word in dict.fromkeys(words):
        paths[word] = [(one.question, one.number) for one in retrace(planner, task, word, index).decisions]
        numbers = tuple(number for _, number in paths[word])
        for place, number in enumerate(numbers):
            right.setdefault(numbers[:place], set()).add(number)
    found: dict[PlanPath, KnownQuestion] = {}
    for word in rng.sample(sorted(paths), min(count, len(paths))):
        before: PlanPath = ()
        for question, number in paths[word]:
            found.setdefault(before, KnownQuestion(index, question, frozenset(right[before])))
            before = (*before, number)
    return list(found.values())


def reference_words(planner: Planner, task: Task, references: ReferenceLimits) -> list[Word]:
    """All plans of a task within the limits that its reference plans keep; none where there is none.

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
    """The questions on the way to the known plans of several tasks; see :func:`known_questions`."""
    tasks = enumerate(known.items())
    return [
        one
        for index, (task, words) in tasks
        for one in known_questions(planner, task, words, index=index, count=count, seed=seed)
    ]
