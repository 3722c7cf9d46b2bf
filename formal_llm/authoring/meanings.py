"""The meanings of sentences of free English about steps: the templates of Declare, and a few more."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from formal_llm.automata.models.declare import (
    Group,
    bound_count,
    bound_length,
    forbid_sequence,
    forbid_step,
    match_group,
    match_other,
    require_before,
    require_between,
    require_first,
    require_kinds,
    require_last,
    require_next,
    require_order,
    require_step,
)
from formal_llm.automata.models.declare import allow_after as only_after
from formal_llm.automata.models.declare import allow_between as only_between
from formal_llm.automata.models.declare import forbid_after as not_after
from formal_llm.automata.models.declare import forbid_between as never_between
from formal_llm.automata.models.declare import forbid_next as not_directly_after
from formal_llm.automata.models.declare import require_response as require_answer
from formal_llm.automata.models.declare import require_with as require_needed
from formal_llm.automata.models.formula import ANY, EMPTY, EVERYTHING, Formula, next_, not_, or_, until

__all__ = [
    "Group", "bound_count", "bound_length", "forbid_step", "match_group", "match_other", "never_between", "not_after",
    "not_directly_after", "only_after", "only_between", "require_before", "require_between", "require_first",
    "require_last", "require_step",
]  # fmt: skip


def require_response(step: Group, answer: Group) -> Formula:
    """Require an ``answer`` after each ``step``."""
    return require_answer(answer, step)


def directly_answered(step: Group, answer: Group) -> Formula:
    """Require an ``answer`` as the next step after each ``step``."""
    return require_next(answer, step)


def require_with(step: Group, needed: Group) -> Formula:
    """Require ``needed``, before or after, in plans with ``step``."""
    return require_needed(needed, step)


def between_two(step: Group, middle: Group) -> Formula:
    """Require one of ``middle`` between any two of ``step``."""
    return require_between(step, middle, step)


def of_kinds(groups: Iterable[Group], least: int, most: int | None) -> Formula:
    """Require that from ``least`` to ``most`` of the groups happen, each any number of times."""
    return require_kinds([*groups], least, most)


def in_order(groups: Iterable[Group]) -> Formula:
    """Forbid steps of an earlier group after one of a later group."""
    return require_order([*groups])


def answered_within(step: Group, answer: Group, steps: int) -> Formula:
    """Require an ``answer`` among the next ``steps`` steps after each ``step``."""
    too_late = or_(until(match_other(answer), EVERYTHING, steps, steps), until(match_other(answer), EMPTY, 0, steps))
    return not_(next_(EVERYTHING, match_group(step), too_late))


def directly_preceded(step: Group, before: Group) -> Formula:
    """Require a ``before`` as the step before each ``step`` (chain precedence)."""
    return not_(next_(or_(EMPTY, next_(EVERYTHING, match_other(before))), match_group(step), EVERYTHING))


def in_a_row(step: Group, most: int) -> Formula:
    """Forbid more than ``most`` consecutive steps of the group."""
    return forbid_sequence(*[match_group(step)] * (most + 1))


def require_distance(step: Group, then: Group, steps: int) -> Formula:
    """Require at least ``steps`` steps between each ``step`` and each later ``then``."""
    return forbid_sequence(match_group(step), until(ANY, match_group(then), 0, steps - 1)) if steps else EVERYTHING


def require_alternation(one_: Group, other_: Group) -> Formula:
    """Require that the two alternate, beginning with ``one_``."""
    rest = match_other(one_, other_)
    turn = next_(until(rest, match_group(one_)), until(rest, match_group(other_)))
    return until(turn, or_(until(rest, EMPTY), next_(until(rest, match_group(one_)), until(rest, EMPTY))))


def nothing_after(step: Group) -> Formula:
    """Forbid all steps after it."""
    return forbid_sequence(match_group(step), ANY)


def nothing_before(step: Group) -> Formula:
    """Forbid all steps before its first occurrence: a plan is empty, or begins with it."""
    return or_(EMPTY, require_first(step))


def except_with(asked: Formula, excused: Group) -> Formula:
    """Waive a requirement in plans in which one of a group happens, earlier or later."""
    return or_(require_step(excused), asked)


def any_order(parts: Iterable[Formula]) -> Formula:
    """Match all parts, each once, in any order."""
    return or_(*(next_(*row) for row in permutations(parts)))
