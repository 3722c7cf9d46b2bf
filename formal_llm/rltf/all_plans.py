"""All plans of a task, with the decisions that lead to each.

A plan is a leaf of a tree whose inner nodes are questions and whose branches are options. Real walks that branch at
each question traverse the tree, so its questions are those of a rollout. If the automaton is ambiguous, a word may be
at several leaves: each sequence of answers is a separate plan with its own probability, and :attr:`Episode.path`
distinguishes them.
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
    """Count the plans of a task, that is, the sequences of answers, without generating them.

    Returns:
        The number; infinite if limits do not bound the plans (regardless of the planner's budget of steps); None if it
        cannot be determined in advance: the rules are not a pushdown automaton, the budget of steps is below the
        default, or counting takes too many states.
    """
    steps, default = planner.budget.steps, Budget().steps
    if steps is not None and default is not None and steps < default:
        return None
    try:
        return planner.table(task).lookahead.count(of="derivations")
    except InfiniteLanguage:
        return math.inf
    except (Undecided, AutomatonError):
        return None


def enumerate_episodes(planner: Planner, task: Task, index: int, limit: int) -> list[Episode]:
    """Return all plans of a task as :func:`walk_episodes` finds them, at most ``limit``.

    Raises:
        TooManyPlans: there are more (raised before generating any if they can be counted); specifies how many.
        NoValidPlan, ValueError, Undecided: see :func:`walk_episodes`.
    """
    if limit < 1:
        raise ValueError(f"the limit of plans counts from 1, not {limit}")
    count = count_plans(planner, task)
    if count is not None and count > limit:
        raise TooManyPlans(task.description, limit, count)
    return list(walk_episodes(planner, task, index, limit=limit))


def walk_episodes(planner: Planner, task: Task, index: int = 0, *, limit: int | None = None) -> Iterator[Episode]:
    """Yield the plans of a task one by one, on demand.

    They are in the order of their paths: by the first answer, then the second, and so on. Their log-probability is 0,
    since no policy generated them.

    Args:
        planner: provides the walks; no LLM is asked.
        task: the task.
        index: the position of the task among the tasks of the run.
        limit: the maximum number of plans; None for no bound. Each pending branch has at least one plan, so this also
            bounds the memory.

    Raises:
        TooManyPlans: there are more than ``limit``.
        NoValidPlan: there is none.
        ValueError: the planner has no lookahead.
        Undecided: a branch that the lookahead could not decide led nowhere. Increase ``max_states`` of the planner.
    """
    if planner.lookahead != "on":
        raise ValueError("plans are listed with lookahead='on' only: else branches lead to dead ends, not to plans")
    # Of the budget, only the steps determine the plans. These walks are not reported to observers.
    start = Walk(planner.table(task), task, wording=planner.wording, budget=Budget(steps=planner.budget.steps))
    todo: list[tuple[WalkNode, int]] = [(WalkNode.root(start), 0)]
    count = 0
    while todo:
        if limit is not None and count + len(todo) > limit:
            raise TooManyPlans(task.description, limit)
        node, number = todo.pop()
        if number:
            question, parent = node.question, node
            node = parent.after(number)
            parent.next.clear()  # each branch is walked once, so its results need not be kept
            if node.walk.usage.backtracks:
                raise Undecided(f"an option of {question!r} led to a dead end; raise max_states of the planner")
        if node.question is None:
            count += 1
            yield node.finished(Start(index, task))
            continue
        todo += ((node, number) for number in range(len(node.question.options), 0, -1))
