"""A warm start: plans that are known to be good are imitated first.

A model that has never seen such questions chooses nearly at random, and a random plan of a large language is hardly
ever rewarded. Reference plans come from the exact sampler, drawn evenly from a task's language; where it is known which
tools a plan should use, from the plans with just these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from formal_llm.automata import Limits
from formal_llm.errors import NoValidPlan, TrainingError
from formal_llm.llms.question import Answer
from formal_llm.planning.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.planning.walk import Walk
from formal_llm.rltf.episode import Decision, Episode

#: Which plans of a task are references: limits besides those of its rules.
References = Callable[[Task], Limits]


def retrace(planner: Planner, task: Task, word: Sequence[str], index: int = 0) -> Episode:
    """The decisions that lead to a plan, from its word.

    Args:
        planner: whose rules and wording.
        task: the task.
        word: the word of the plan. Where the automaton is ambiguous, the first sequence of answers counts.
        index: the place of the task among the tasks of the run.

    Raises:
        ValueError: no plan of the task has this word, or it takes a selection.
    """
    target = tuple(word)
    for walk, decisions in _paths(planner.start(task), (), target):
        if walk.done and walk.word == target:
            return Episode(index, task, walk.plan, decisions)
    raise ValueError(f"no plan of {task.description!r} has the word {' '.join(target) or 'ε'}")


def _paths(
    walk: Walk, made: tuple[Decision, ...], target: tuple[str, ...]
) -> Iterator[tuple[Walk, tuple[Decision, ...]]]:
    """The walks whose terminals are a beginning of the word, to their ends."""
    if walk.word != target[: len(walk.word)]:
        return
    question = walk.question
    if question is None:
        yield walk, made
        return
    if question.several:
        raise ValueError("a plan with selections cannot be retraced")
    for option in question.options:
        branch = walk.fork()
        branch.answer(Answer((option.number,)))
        yield from _paths(branch, (*made, Decision(question, option.number)), target)


def reference_plans(
    planner: Planner, tasks: Sequence[Task], count: int, *, references: References | None = None, seed: int = 0
) -> list[list[Episode]]:
    """For each task plans to imitate, drawn evenly; with fewer plans than asked for, some twice.

    Args:
        planner: whose rules and wording.
        tasks: the tasks.
        count: how many plans for each.
        references: which plans may be drawn; all where left out.
        seed: of the draws.

    Raises:
        TrainingError: a task has no such plan.
        Undecided: a language is too large to be counted.
    """
    found = []
    for index, task in enumerate(tasks):
        rng = random.Random(f"{seed} reference {index}")
        limits = task.limits & references(task) if references is not None else task.limits
        narrow = Task(task.description, goal=task.goal, limits=limits, inputs=task.inputs, group=task.group)
        try:
            lookahead = planner.table(narrow).lookahead
            words = [lookahead.sample(rng) for _ in range(count)]
        except NoValidPlan as error:
            raise TrainingError(f"there is no reference plan for {task.description!r}: {error}") from None
        if any(word is None for word in words):
            raise TrainingError(f"there is no reference plan for {task.description!r}")
        # Retraced under the task's own rules: the questions are those that the policy will be asked.
        found.append([retrace(planner, task, word, index) for word in words if word is not None])
    return found
