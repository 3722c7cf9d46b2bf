"""All plans of a task, with the decisions that lead to each.

A plan is a leaf of a tree: its inner nodes are questions, its branches are their options. The tree is found by real
walks that part at each question, so its questions are those that a rollout is asked. Where the automaton is ambiguous a
word may be at several leaves: each sequence of answers is a plan of its own, with a probability of its own, and
:attr:`Episode.path` tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from formal_llm.errors import AutomatonError, InfiniteLanguage, TooManyPlans, Undecided
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget
from formal_llm.planning.walks.walk import Walk
from formal_llm.rltf.episode import Episode
from formal_llm.rltf.rollout import Start, WalkNode


def count_plans(planner: Planner, task: Task) -> float | None:
    """How many plans a task has, each sequence of answers counted; without making any.

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
    """All plans of a task, as :func:`walk_episodes` finds them, at most ``limit``.

    Raises:
        TooManyPlans: there are more, which is told before any is made where they can be counted; says how many.
        NoValidPlan, ValueError, Undecided: as :func:`walk_episodes` does.
    """
    if limit < 1:
        raise ValueError(f"the limit of plans counts from 1, not {limit}")
    count = count_plans(planner, task)
    if count is not None and count > limit:
        raise TooManyPlans(task.description, limit, count)
    return list(walk_episodes(planner, task, index, limit=limit))


def walk_episodes(planner: Planner, task: Task, index: int = 0, *, limit: int | None = None) -> Iterator[Episode]:
    """The plans of a task one by one, as they are asked for.

    They come in the order of their paths: by the first answer, then the second, and so on. Their log-probability is 0,
    since no policy made them.

    Args:
        planner: whose walks make them; nobody is asked.
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
    todo: list[tuple[WalkNode, int]] = [(WalkNode.root(start), 0)]
    found = 0
    while todo:
        if limit is not None and found + len(todo) > limit:
            raise TooManyPlans(task.description, limit)
        node, number = todo.pop()
        if number:
            question, before = node.question, node
            node = before.after(number)
            before.next.clear()  # each branch is walked once: what it led to need not be kept
            if node.walk.usage.backtracks:
                raise Undecided(f"an option of {question!r} led to a dead end; raise max_states of the planner")
        if node.question is None:
            found += 1
            yield node.finished(Start(index, task))
            continue
        todo += ((node, number) for number in range(len(node.question.options), 0, -1))
