"""A warm start: the first updates imitate plans that are known to be good.

A model that has never seen such questions chooses nearly at random, and a random plan of a large language is hardly
ever rewarded. Reference plans are drawn uniformly from a task's language by the exact sampler; if the tools that a plan
should use are known, from the plans with exactly these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from formal_llm.automata import Limits
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.errors import NoValidPlan, TrainingError, Undecided
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.rltf.episode import Episode
from formal_llm.rltf.rollout import Start, WalkNode

#: The reference plans of a task, as limits in addition to those of its rules.
ReferenceLimits = Callable[[Task], Limits]


def retrace(planner: Planner, task: Task, word: Sequence[str], index: int = 0) -> Episode:
    """Return the decisions that lead to a word; a selection is made option by option, as a policy is asked.

    If the automaton is ambiguous, the result is the first of the short sequences of answers.

    Raises:
        ValueError: no plan of the task has this word.
    """
    target = tuple(word)
    root = WalkNode.root(planner.start(task))
    answers, may_continue = 2 * len(target) + 8, planner.table(task).automaton.accepts(target)
    while may_continue:  # rules that may read nothing forever have no longest sequence of answers
        end, may_continue = _find_end(root, target, answers)
        if end is not None:
            return end.finished(Start(index, task))
        answers *= 2
    raise ValueError(f"no plan of {task.description!r} has the word {' '.join(target) or 'ε'}")


def _find_end(root: WalkNode, target: tuple[str, ...], answers: int) -> tuple[WalkNode | None, bool]:
    """Find the end of a walk that reads a word with a limited number of answers, and whether more could find one."""
    todo, may_continue = [(root, 0)], False
    while todo:
        node, answered = todo.pop()
        read = (*node.walk.word, *_read_selection(node))
        if read != target[: len(read)]:
            continue
        if node.question is None:
            if node.walk.done and read == target:
                return node, False
        elif answered < answers:
            todo += [
                (node.after(number), answered + 1)
                for number in reversed(_fitting_options(node, len(target) - len(read)))
            ]
        else:
            may_continue = True
    return None, may_continue


def _fitting_options(node: WalkNode, left: int) -> list[int]:
    """Return the numbers of the options after which a plan can end within the given number of terminals."""
    assert node.question is not None
    outlook = None if node.selecting else node.question.outlook
    if outlook is None:
        return [option.number for option in node.question.options]
    return [n for n, one in enumerate(outlook.prospects, 1) if one.length + len(one.uses) <= left]


def _read_selection(node: WalkNode) -> tuple[str, ...]:
    """Return what the current selection will read, as far as it has been made."""
    if node.selecting is None or not node.selecting.chosen:
        return ()
    outlook = node.selecting.question.outlook
    assert outlook is not None
    return tuple(outlook.prospects[number - 1].uses[0].name for number in node.selecting.chosen)


def reference_plans(
    planner: Planner, tasks: Sequence[Task], count: int, *, references: ReferenceLimits | None = None, seed: int = 0
) -> list[list[Episode]]:
    """Return plans to imitate for each task, drawn uniformly; some twice if there are fewer than requested.

    For rules with so many ambiguous plans that equal words cannot be recognized, derivations are drawn uniformly
    instead. ``count`` plans are drawn for each task; without ``references``, from all its plans.

    Raises:
        TrainingError: a task has no such plan.
        InfiniteLanguage: the number of plans of a task is infinite; limits or a budget must bound them.
        Undecided: a language is too large to count.
    """
    plans = []
    for index, task in enumerate(tasks):
        rng = random.Random(f"{seed} reference {index}")
        limits = task.limits & references(task) if references is not None else task.limits
        try:
            words = _draw_words(planner.table(replace(task, limits=limits)).lookahead, rng, count)
        except NoValidPlan as error:
            raise TrainingError(f"there is no reference plan for {task.description!r}: {error}") from None
        if any(word is None for word in words):
            raise TrainingError(f"there is no reference plan for {task.description!r}")
        # Retraced under the task's own rules: the questions are those that the policy will be asked.
        plans.append([retrace(planner, task, word, index) for word in words if word is not None])
    return plans


def _draw_words(lookahead: Lookahead, rng: random.Random, count: int) -> list[tuple[str, ...] | None]:
    state = rng.getstate()
    try:
        return [lookahead.sample(rng) for _ in range(count)]
    except Undecided:
        rng.setstate(state)
        return [lookahead.sample(rng, of="derivations") for _ in range(count)]
