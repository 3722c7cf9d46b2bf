"""Rollouts: many walks that advance together, each choice drawn from the policy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from formal_llm.llms.local.selections import one_by_one
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.planning.walk import Walk
from formal_llm.rltf.episode import Decision, Episode
from formal_llm.rltf.policy import Policy

#: How many walks are under way together where nobody says.
TOGETHER = 1_024


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


@dataclass(eq=False)
class _Rolling:
    """A walk under way."""

    start: Start
    walk: Walk
    rng: random.Random | None
    #: For each question of the walk, by identity, its decisions and their log-probability. A walk that backs out of a
    #: dead end asks anew; what counts are the questions that its plan came from.
    made: dict[int, tuple[Question, list[Decision], float]] = field(default_factory=dict)
    asked: Question | None = None
    choosing: Generator[Question, int, tuple[int, ...]] | None = None
    decisions: list[Decision] = field(default_factory=list)
    log_probability: float = 0.0


def rollout(
    planner: Planner, policy: Policy, starts: Iterable[Start], *, together: int = TOGETHER,
    on_done: Callable[[Episode], None] | None = None,
) -> list[Episode]:  # fmt: skip
    """Make a plan for each start; the questions of all walks that are under way are answered together.

    A walk's draws depend on its own seed alone, so the same starts make the same plans in whatever order and company.

    Args:
        planner: whose rules and wording; its LLM is not asked.
        policy: answers the questions.
        starts: the walks.
        together: how many are under way at most.
        on_done: called with each episode as it ends.

    Returns:
        The episodes, in the order of the starts.

    Raises:
        NoValidPlan, BudgetExceeded: as :meth:`Planner.plan` does.
        LLMError: a question is too long for the model.
    """
    found: dict[int, Episode] = {}
    coming = enumerate(starts)
    rolling: dict[int, _Rolling] = {}
    while True:
        room = together - len(rolling)
        fresh = list(islice(coming, room))
        for number, start in fresh:
            rng = None if start.seed is None else random.Random(start.seed)
            one = rolling[number] = _Rolling(start, planner.start(start.task, name=str(number)), rng)
            one.asked = _next_question(one)
        for number in [number for number, one in rolling.items() if one.asked is None]:
            found[number] = _ended(rolling.pop(number))
            if on_done is not None:
                on_done(found[number])
        if rolling:
            _answer(policy, list(rolling.values()))
        elif room and not fresh:
            return [found[number] for number in sorted(found)]


def replay(planner: Planner, start: Start, numbers: Sequence[int]) -> Episode:
    """The episode of which only the chosen numbers are known (:func:`formal_llm.rltf.plan_tree.path`).

    Its log-probability is 0, since no policy made it here.

    Raises:
        ValueError: the numbers do not lead to a plan of the task.
    """
    one = _Rolling(start, planner.start(start.task), None)
    one.asked = _next_question(one)
    for number in numbers:
        if one.asked is None or not 1 <= number <= len(one.asked.options):
            raise ValueError(f"the numbers {numbers} lead to no plan of {start.task.description!r}")
        one.decisions.append(Decision(one.asked, number))
        one.asked = _advance(one, number)
    if one.asked is not None:
        raise ValueError(f"the numbers {numbers} end before a plan of {start.task.description!r} does")
    return _ended(one)


def _answer(policy: Policy, rolling: Sequence[_Rolling]) -> None:
    """One round: the policy's distribution for each question, a number drawn from it, the next question."""
    import torch

    with torch.no_grad():
        table = policy.log_probabilities([one.asked for one in rolling if one.asked is not None]).tolist()
    for one, row in zip(rolling, table, strict=True):
        assert one.asked is not None
        logs = row[: len(one.asked.options)]
        if one.rng is None:
            number = max(range(len(logs)), key=logs.__getitem__) + 1
        else:
            number = one.rng.choices(range(1, len(logs) + 1), [math.exp(value) for value in logs])[0]
        one.decisions.append(Decision(one.asked, number))
        one.log_probability += logs[number - 1]
        one.asked = _advance(one, number)


def _advance(one: _Rolling, number: int) -> Question | None:
    """The next question of exactly one option; None at the end of the walk."""
    numbers = (number,)
    if one.choosing is not None:
        try:
            return one.choosing.send(number)
        except StopIteration as end:
            numbers = end.value
    question = one.walk.question
    assert question is not None
    one.made[id(question)] = (question, one.decisions, one.log_probability)
    one.walk.answer(Answer(numbers))
    return _next_question(one)


def _next_question(one: _Rolling) -> Question | None:
    one.choosing, one.decisions, one.log_probability = None, [], 0.0
    while (question := one.walk.question) is not None:
        if not question.several:
            return question
        choosing = one_by_one(question)
        try:
            first = next(choosing)
        except StopIteration as end:  # one option: nothing to ask
            one.made[id(question)] = (question, [], 0.0)
            one.walk.answer(Answer(end.value))
        else:
            one.choosing = choosing
            return first
    return None


def _ended(one: _Rolling) -> Episode:
    plan = one.walk.plan
    steps = [one.made[id(question)] for question in one.walk.questions if id(question) in one.made]
    return Episode(
        one.start.index,
        one.start.task,
        plan,
        tuple(decision for _, decisions, _ in steps for decision in decisions),
        math.fsum(value for _, _, value in steps),
    )
