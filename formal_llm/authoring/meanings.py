"""The meanings of sentences about steps, as formulas.

Most are the templates of Declare (Pesic, Schonenberg and van der Aalst 2007, "DECLARE: Full support for
loosely-structured processes"): existence, precedence, response, chains, choices. A *group* is a set of alternative
names.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from formal_llm.automata.models.formula import (
    ANY,
    EMPTY,
    EVERYTHING,
    Formula,
    and_,
    eventually,
    implies,
    next_,
    not_,
    or_,
    until,
)  # fmt: skip

#: Alternative steps.
Group = tuple[str, ...]


def match_group(group: Group) -> Formula:
    """Match one step of the group."""
    return or_(*group)


def match_other(*groups: Group) -> Formula:
    """Match one step that is in none of the groups."""
    return and_(ANY, not_(or_(*(name for group in groups for name in group))))


def _forbid_sequence(*parts: Formula | str) -> Formula:
    return not_(eventually(next_(*parts)))


def bound_count(group: Group, least: int, most: int | None) -> Formula:
    """Require from ``least`` to ``most`` steps of the group, anywhere."""
    rest = until(match_other(group), EMPTY)
    return until(until(match_other(group), match_group(group)), rest, least, most)


def require_step(group: Group) -> Formula:
    """Require a step of the group."""
    return eventually(match_group(group))


def forbid_step(group: Group) -> Formula:
    """Forbid the steps of the group."""
    return until(match_other(group), EMPTY)


def require_before(first: Group, then: Group, least: int = 1) -> Formula:
    """Forbid ``then`` before ``least`` of ``first`` (precedence)."""
    fewer = until(
        until(match_other(first, then), match_group(first)),
        next_(until(match_other(first, then), match_group(then)), EVERYTHING),
        0,
        least - 1,
    )
    return not_(fewer)


def not_after(step: Group, before: Group) -> Formula:
    """Forbid ``step`` anywhere after a ``before`` (not succession)."""
    return _forbid_sequence(match_group(before), EVERYTHING, match_group(step))


def require_response(step: Group, answer: Group) -> Formula:
    """Require an ``answer`` after each ``step`` (response)."""
    return not_(next_(EVERYTHING, match_group(step), until(match_other(answer), EMPTY)))


def answered_within(step: Group, answer: Group, steps: int) -> Formula:
    """Require an ``answer`` among the next ``steps`` steps after each ``step``."""
    too_late = or_(until(match_other(answer), EVERYTHING, steps, steps), until(match_other(answer), EMPTY, 0, steps))
    return not_(next_(EVERYTHING, match_group(step), too_late))


def directly_answered(step: Group, answer: Group) -> Formula:
    """Require an ``answer`` as the next step after each ``step`` (chain response)."""
    return not_(next_(EVERYTHING, match_group(step), or_(EMPTY, next_(match_other(answer), EVERYTHING))))


def directly_preceded(step: Group, before: Group) -> Formula:
    """Require a ``before`` as the step before each ``step`` (chain precedence)."""
    return not_(next_(or_(EMPTY, next_(EVERYTHING, match_other(before))), match_group(step), EVERYTHING))


def not_directly_after(step: Group, before: Group) -> Formula:
    """Forbid ``step`` as the next step after a ``before`` (not chain succession)."""
    return _forbid_sequence(match_group(before), match_group(step))


def in_a_row(step: Group, most: int) -> Formula:
    """Forbid more than ``most`` consecutive steps of the group."""
    return _forbid_sequence(*[match_group(step)] * (most + 1))


def require_between(step: Group, middle: Group, then: Group) -> Formula:
    """Require one of ``middle`` between each ``step`` and each later ``then``."""
    return _forbid_sequence(match_group(step), until(match_other(middle), match_group(then)))


def between_two(step: Group, middle: Group) -> Formula:
    """Require one of ``middle`` between any two of ``step``."""
    return require_between(step, middle, step)


def require_distance(step: Group, then: Group, steps: int) -> Formula:
    """Require at least ``steps`` steps between each ``step`` and each later ``then``."""
    return _forbid_sequence(match_group(step), until(ANY, match_group(then), 0, steps - 1)) if steps else EVERYTHING


def require_alternation(one_: Group, other_: Group) -> Formula:
    """Require that the two alternate, beginning with ``one_``."""
    rest = match_other(one_, other_)
    turn = next_(until(rest, match_group(one_)), until(rest, match_group(other_)))
    return until(turn, or_(until(rest, EMPTY), next_(until(rest, match_group(one_)), until(rest, EMPTY))))


def only_between(step: Group, opening: Group, closing: Group) -> Formula:
    """Allow ``step`` only while the last of ``opening`` and ``closing`` was ``opening``."""
    neither = until(match_other(opening, closing), EMPTY)
    closed = or_(neither, next_(EVERYTHING, match_group(closing), neither))
    return not_(next_(closed, match_group(step), EVERYTHING))


def never_between(step: Group, opening: Group, closing: Group) -> Formula:
    """Forbid ``step`` after an ``opening`` and before the next ``closing``."""
    return _forbid_sequence(match_group(opening), until(match_other(closing), match_group(step)))


def only_after(step: Group, before: Group) -> Formula:
    """Forbid everything but ``step`` after a ``before``."""
    return _forbid_sequence(match_group(before), EVERYTHING, match_other(step))


def nothing_after(step: Group) -> Formula:
    """Forbid all steps after it."""
    return _forbid_sequence(match_group(step), ANY)


def nothing_before(step: Group) -> Formula:
    """Forbid all steps before its first occurrence: a plan is empty, or begins with it."""
    return or_(EMPTY, require_first(step))


def require_first(step: Group) -> Formula:
    """Require that the first step is of the group."""
    return next_(match_group(step), EVERYTHING)


def require_last(step: Group) -> Formula:
    """Require that the last step is of the group."""
    return next_(EVERYTHING, match_group(step))


def require_with(step: Group, needed: Group) -> Formula:
    """Require ``needed``, before or after, in plans with ``step`` (responded existence)."""
    return implies(require_step(step), require_step(needed))


def except_with(asked: Formula, excused: Group) -> Formula:
    """Waive a requirement in plans in which one of a group happens, earlier or later."""
    return or_(require_step(excused), asked)


def of_kinds(groups: Iterable[Group], least: int, most: int | None) -> Formula:
    """Require that from ``least`` to ``most`` of the groups happen, each any number of times."""
    kinds = [require_step(group) for group in groups]
    at_least = [or_(*kinds)] if least else []
    at_most = [
        not_(and_(a, b)) for number, a in enumerate(kinds) for b in kinds[number + 1 :] if most is not None
    ]  # fmt: skip
    return and_(*at_least, *at_most)


def in_order(groups: Iterable[Group]) -> Formula:
    """Forbid steps of an earlier group after one of a later group."""
    listed = list(groups)
    return and_(*(not_after(a, b) for number, a in enumerate(listed) for b in listed[number + 1 :]))


def bound_length(least: int, most: int | None) -> Formula:
    """Require from ``least`` to ``most`` steps."""
    return until(ANY, EMPTY, least, most)


def any_order(parts: Iterable[Formula]) -> Formula:
    """Match all parts, each once, in any order."""
    return or_(*(next_(*row) for row in permutations(parts)))
