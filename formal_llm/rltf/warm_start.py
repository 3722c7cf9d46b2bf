"""A warm start: plans that are known to be good are imitated first.

A model that has never seen such questions chooses nearly at random, and a random plan of a large language is hardly
ever rewarded. Reference plans come from the exact sampler, drawn evenly from a task's language; where it is known which
tools a plan should use, from the plans with just these.
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

#: Which plans of a task are references: limits besides those of its rules.
ReferenceLimits = Callable[[Task], Limits]


def retrace(planner: Planner, task: Task, word: Sequence[str], index: int = 0) -> Episode:
    """The decisions that lead to a plan, from its word; a selection is in it option by option, as a policy is asked.

    Where the automaton is ambiguous, a short sequence of answers counts, and of those the first.

    Raises:
        ValueError: no plan of the task has this word.
    """
    target = tuple(word)
    root = WalkNode.root(planner.start(task))
    answers, more = 2 * len(target) + 8, planner.table(task).automaton.accepts(target)
    while more:  # rules that may read nothing for ever have no longest sequence of answers
        end, more = _find_end(root, target, answers)
        if end is not None:
            return end.finished(Start(index, task))
        answers *= 2
    raise ValueError(f"no plan of {task.description!r} has the word {' '.join(target) or 'ε'}")


def _find_end(root: WalkNode, target: tuple[str, ...], answers: int) -> tuple[WalkNode | None, bool]:
    """Where a walk ends that reads a word, with at most so many answers; and whether more might."""
    todo, more = [(root, 0)], False
    while todo:
        node, made = todo.pop()
        read = (*node.walk.word, *_read_selection(node))
        if read != target[: len(read)]:
            continue
        if node.question is None:
            if node.walk.done and read == target:
                return node, False
        elif made < answers:
            todo += [
                (node.after(number), made + 1) for number in reversed(_fitting_options(node, len(target) - len(read)))
            ]
        else:
            more = True
    return None, more


def _fitting_options(node: WalkNode, left: int) -> list[int]:
    """The numbers of the options after which a plan can end with at most so many terminals more."""
    assert node.question is not None
    outlook = None if node.selecting else node.question.outlook
    if outlook is None:
        return [option.number for option in node.question.options]
    return [n for n, one in enumerate(outlook.prospects, 1) if one.length + len(one.uses) <= left]


def _read_selection(node: WalkNode) -> tuple[str, ...]:
    """What a selection that is under way will read, as far as it has come."""
    if node.selecting is None or not node.selecting.chosen:
        return ()
    outlook = node.selecting.question.outlook
    assert outlook is not None
    return tuple(outlook.prospects[number - 1].uses[0].name for number in node.selecting.chosen)


def reference_plans(
    planner: Planner, tasks: Sequence[Task], count: int, *, references: ReferenceLimits | None = None, seed: int = 0
) -> list[list[Episode]]:
    """For each task plans to imitate, drawn evenly; with fewer plans than asked for, some twice.

    Of rules with so many ambiguous plans that equal words cannot be told from one another, derivations are drawn
    evenly instead. ``count`` plans are drawn for each task, of all where ``references`` are left out.

    Raises:
        TrainingError: a task has no such plan.
        InfiniteLanguage: a task has plans without end; limits or a budget have to bound them.
        Undecided: a language is too large to be counted.
    """
    found = []
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
        found.append([retrace(planner, task, word, index) for word in words if word is not None])
    return found


def _draw_words(lookahead: Lookahead, rng: random.Random, count: int) -> list[tuple[str, ...] | None]:
    state = rng.getstate()
    try:
        return [lookahead.sample(rng) for _ in range(count)]
    except Undecided:
        rng.setstate(state)
        return [lookahead.sample(rng, of="derivations") for _ in range(count)]
