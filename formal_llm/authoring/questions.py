"""Which plans are shown to an author: those that tell most about whether the rules say what was meant.

Where two drafts, or two versions of rules, differ: the shortest plan on which they do. Of one draft: its shortest
plan, plans at random, and *near misses*, which one step more, less or elsewhere makes of an allowed plan, and which
the rules refuse.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from formal_llm.authoring.examples import automaton
from formal_llm.automata import CFG, PDA, Lookahead, Word
from formal_llm.automata.languages import differences
from formal_llm.errors import AutomatonError, Undecided

#: How much longer than the shortest plan those may be that are drawn.
_LONGER = 4
_TRIES = 12


@dataclass(frozen=True)
class Shown:
    """A plan that is shown to the author.

    Attributes:
        plan: its terminals.
        allowed: whether the draft allows it.
        why: why it is shown: ``"the shortest plan"``, ``"the old rules refuse it"`` ...
        labels: its terminals as people read them.
    """

    plan: Word
    allowed: bool
    why: str
    labels: tuple[str, ...]


def find_differences(draft: CFG | PDA, other: CFG | PDA, whose: str) -> Iterator[Shown]:
    """The shortest plans that one has and the other has not, both ways.

    Args:
        draft: the rules that are to be accepted.
        other: what they are compared with.
        whose: what the others are called: ``"the old rules"``.
    """
    found = differences(draft, other)
    if found.only_one is not None:
        yield _show_plan(draft, found.only_one, True, f"{whose} refuse it")
    if found.only_other is not None:
        yield _show_plan(draft, found.only_other, False, f"{whose} allow it")


def sample_plans(draft: CFG | PDA, most: int, known: Collection[Word] = (), seed: int = 0) -> list[Shown]:
    """Plans of one draft, allowed ones and near misses in turn.

    Args:
        draft: the rules.
        most: how many at most.
        known: plans that need not be shown.
        seed: of what is drawn at random; the same draft and seed give the same plans.
    """
    rng = random.Random(seed)
    allowed = _draw_allowed(draft, rng, most + len(known))
    misses = _near_misses(draft, [one.plan for one in allowed], rng)
    seen = set(known)
    found: list[Shown] = []
    for row in zip(_pad_row(allowed, most * 2), _pad_row(misses, most * 2), strict=True):
        for one in row:
            if one is not None and one.plan not in seen and len(found) < most:
                seen.add(one.plan)
                found.append(one)
    return found


def _pad_row(row: Sequence[Shown], size: int) -> list[Shown | None]:
    return [*row[:size], *[None] * (size - len(row))]


def _show_plan(rules: CFG | PDA, plan: Word, allowed: bool, why: str) -> Shown:
    return Shown(plan, allowed, why, tuple(rules.label(name) for name in plan))


def _draw_allowed(rules: CFG | PDA, rng: random.Random, most: int) -> list[Shown]:
    lookahead = Lookahead(rules)
    try:
        shortest = lookahead.shortest_word()
        if shortest is None:
            return []
        plans = {shortest: "the shortest plan"}
        for number in range(_TRIES):
            longer = lookahead.sample(rng, of="derivations", max_length=len(shortest) + 1 + number % _LONGER)
            if longer is not None:
                plans.setdefault(longer, "a plan at random")
    except (Undecided, AutomatonError):
        return []
    return [_show_plan(rules, plan, True, why) for plan, why in list(plans.items())[: most + 1]]


def _near_misses(rules: CFG | PDA, plans: Sequence[Word], rng: random.Random) -> list[Shown]:
    """Plans that are refused, each one slip away from an allowed one: the kinds of slips in turn."""
    accepts = automaton(rules).accepts
    by_kind: dict[str, list[Word]] = {}
    for plan in plans:
        for kind, changed in _list_slips(plan, tuple(rules.terminals)):
            if not accepts(changed):
                by_kind.setdefault(kind, []).append(changed)
    for changed_ones in by_kind.values():
        rng.shuffle(changed_ones)
        changed_ones.sort(key=len)
    found: dict[Word, Shown] = {}
    for number in range(max(map(len, by_kind.values()), default=0)):
        for kind, changed_ones in by_kind.items():
            if number < len(changed_ones):
                found.setdefault(changed_ones[number], _show_plan(rules, changed_ones[number], False, kind))
    return list(found.values())


def _list_slips(plan: Word, terminals: Sequence[str]) -> Iterator[tuple[str, Word]]:
    for at in range(len(plan) - 1):
        if plan[at] != plan[at + 1]:
            yield "two steps changed places", (*plan[:at], plan[at + 1], plan[at], *plan[at + 2 :])
    for at in range(len(plan)):
        yield "a step is left out", (*plan[:at], *plan[at + 1 :])
    for at, name in enumerate(plan):
        yield "a step is done again", (*plan[: at + 1], name, *plan[at + 1 :])
    for name in terminals[:20]:
        for at in range(len(plan) + 1):
            yield "a step is put in", (*plan[:at], name, *plan[at:])
