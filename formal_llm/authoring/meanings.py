"""What sentences about steps mean, as formulas.

Most are the templates of Declare (Pesic, Schonenberg and van der Aalst 2007, "DECLARE: Full support for
loosely-structured processes"): existence, precedence, response, chains, choices. A *group* is a set of names, any of
which will do.
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

#: Steps any of which will do.
Group = tuple[str, ...]


def one(group: Group) -> Formula:
    """One step of the group."""
    return or_(*group)


def other(*groups: Group) -> Formula:
    """One step that is in none of the groups."""
    return and_(ANY, not_(or_(*(name for group in groups for name in group))))


def _nowhere(*parts: Formula | str) -> Formula:
    return not_(eventually(next_(*parts)))


def counted(group: Group, least: int, most: int | None) -> Formula:
    """From ``least`` to ``most`` steps of the group, wherever."""
    rest = until(other(group), EMPTY)
    return until(until(other(group), one(group)), rest, least, most)


def happens(group: Group) -> Formula:
    """A step of the group happens."""
    return eventually(one(group))


def never(group: Group) -> Formula:
    """No step of the group happens."""
    return until(other(group), EMPTY)


def preceded(first: Group, then: Group, least: int = 1) -> Formula:
    """No ``then`` before ``least`` of ``first`` (precedence)."""
    fewer = until(
        until(other(first, then), one(first)), next_(until(other(first, then), one(then)), EVERYTHING), 0, least - 1
    )
    return not_(fewer)


def not_after(step: Group, before: Group) -> Formula:
    """No ``step`` anywhere after a ``before`` (not succession)."""
    return _nowhere(one(before), EVERYTHING, one(step))


def answered(step: Group, answer: Group) -> Formula:
    """After each ``step`` there is an ``answer`` later (response)."""
    return not_(next_(EVERYTHING, one(step), until(other(answer), EMPTY)))


def answered_within(step: Group, answer: Group, steps: int) -> Formula:
    """After each ``step`` there is an ``answer`` among the next ``steps`` steps."""
    too_late = or_(until(other(answer), EVERYTHING, steps, steps), until(other(answer), EMPTY, 0, steps))
    return not_(next_(EVERYTHING, one(step), too_late))


def directly_answered(step: Group, answer: Group) -> Formula:
    """The next step after each ``step`` is an ``answer`` (chain response)."""
    return not_(next_(EVERYTHING, one(step), or_(EMPTY, next_(other(answer), EVERYTHING))))


def directly_preceded(step: Group, before: Group) -> Formula:
    """The step before each ``step`` is a ``before`` (chain precedence)."""
    return not_(next_(or_(EMPTY, next_(EVERYTHING, other(before))), one(step), EVERYTHING))


def not_directly_after(step: Group, before: Group) -> Formula:
    """No ``step`` is the next one after a ``before`` (not chain succession)."""
    return _nowhere(one(before), one(step))


def in_a_row(step: Group, most: int) -> Formula:
    """No more than ``most`` steps of the group one directly after the other."""
    return _nowhere(*[one(step)] * (most + 1))


def between(step: Group, middle: Group, then: Group) -> Formula:
    """Between each ``step`` and each later ``then`` there is one of ``middle``."""
    return _nowhere(one(step), until(other(middle), one(then)))


def between_two(step: Group, middle: Group) -> Formula:
    """Between any two of ``step`` there is one of ``middle``."""
    return between(step, middle, step)


def apart(step: Group, then: Group, steps: int) -> Formula:
    """Between each ``step`` and each later ``then`` are at least ``steps`` steps."""
    return _nowhere(one(step), until(ANY, one(then), 0, steps - 1)) if steps else EVERYTHING


def alternating(one_: Group, other_: Group) -> Formula:
    """The two take turns; ``one_`` begins."""
    rest = other(one_, other_)
    turn = next_(until(rest, one(one_)), until(rest, one(other_)))
    return until(turn, or_(until(rest, EMPTY), next_(until(rest, one(one_)), until(rest, EMPTY))))


def only_between(step: Group, opening: Group, closing: Group) -> Formula:
    """``step`` only while the last of ``opening`` and ``closing`` was ``opening``."""
    neither = until(other(opening, closing), EMPTY)
    closed = or_(neither, next_(EVERYTHING, one(closing), neither))
    return not_(next_(closed, one(step), EVERYTHING))


def never_between(step: Group, opening: Group, closing: Group) -> Formula:
    """No ``step`` after an ``opening`` and before the next ``closing``."""
    return _nowhere(one(opening), until(other(closing), one(step)))


def only_after(step: Group, before: Group) -> Formula:
    """After a ``before`` nothing but ``step``."""
    return _nowhere(one(before), EVERYTHING, other(step))


def nothing_after(step: Group) -> Formula:
    """Nothing stands after it."""
    return _nowhere(one(step), ANY)


def nothing_before(step: Group) -> Formula:
    """Nothing stands before the first of it: a plan is empty, or begins with it."""
    return or_(EMPTY, begins(step))


def begins(step: Group) -> Formula:
    """The first step is of the group."""
    return next_(one(step), EVERYTHING)


def ends(step: Group) -> Formula:
    """The last step is of the group."""
    return next_(EVERYTHING, one(step))


def requires(step: Group, needed: Group) -> Formula:
    """Where ``step`` happens, ``needed`` happens too, before or after (responded existence)."""
    return implies(happens(step), happens(needed))


def unless(asked: Formula, excused: Group) -> Formula:
    """What is asked, but where one of a group happens, before it or after it."""
    return or_(happens(excused), asked)


def of_kinds(groups: Iterable[Group], least: int, most: int | None) -> Formula:
    """From ``least`` to ``most`` of the groups happen at all, each as often as you like."""
    kinds = [happens(group) for group in groups]
    at_least = [or_(*kinds)] if least else []
    at_most = [
        not_(and_(a, b)) for number, a in enumerate(kinds) for b in kinds[number + 1 :] if most is not None
    ]  # fmt: skip
    return and_(*at_least, *at_most)


def in_order(groups: Iterable[Group]) -> Formula:
    """None of an earlier group stands after one of a later group."""
    listed = list(groups)
    return and_(*(not_after(a, b) for number, a in enumerate(listed) for b in listed[number + 1 :]))


def length(least: int, most: int | None) -> Formula:
    """A plan has from ``least`` to ``most`` steps."""
    return until(ANY, EMPTY, least, most)


def any_order(parts: Iterable[Formula]) -> Formula:
    """All parts, each once, one after the other in any order."""
    return or_(*(next_(*row) for row in permutations(parts)))
