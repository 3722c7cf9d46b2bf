"""The plans shown to an author: those that reveal most about whether the rules have the intended meaning.

For two drafts or two versions of rules: the shortest plan on which they differ. For one draft: its shortest plan,
random plans, and *near misses*, which differ from an allowed plan by one step more, less or elsewhere, and which the
rules refuse.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from formal_llm.authoring.examples import automaton
from formal_llm.automata import CFG, PDA, Lookahead, Word
from formal_llm.automata.languages.comparison import differences
from formal_llm.automata.models.symbols import Order, turn_word
from formal_llm.errors import AutomatonError, Undecided

#: How much longer than the shortest plan random plans may be.
_LONGER = 4
_TRIES = 12


@dataclass(frozen=True)
class Candidate:
    """A plan that is shown to the author.

    Attributes:
        plan: its terminals.
        allowed: whether the draft allows it.
        why: why it is shown: ``"the shortest plan"``, ``"the old rules refuse it"`` ...
        labels: its terminals, labelled for people, in the order of carrying out.
        order: which way ``plan`` is read.
    """

    plan: Word
    allowed: bool
    why: str
    labels: tuple[str, ...]
    order: Order = "forward"


def find_differences(draft: CFG | PDA, other: CFG | PDA, whose: str) -> Iterator[Candidate]:
    """Yield the shortest plans that one has and the other has not, in both directions; none where their orders differ.

    Args:
        draft: the rules to accept.
        other: the rules to compare them with.
        whose: the name of the other rules: ``"the old rules"``.
    """
    if draft.order != other.order:
        return
    difference = differences(draft, other)
    if difference.only_one is not None:
        yield _show_plan(draft, difference.only_one, True, f"{whose} refuse it")
    if difference.only_other is not None:
        yield _show_plan(draft, difference.only_other, False, f"{whose} allow it")


def sample_plans(draft: CFG | PDA, most: int, known: Collection[Word] = (), seed: int = 0) -> list[Candidate]:
    """Return plans of one draft, alternating between allowed ones and near misses.

    Args:
        draft: the rules.
        most: the maximum number of plans.
        known: plans that need not be shown.
        seed: the seed of the random plans; the same draft and seed give the same plans.
    """
    rng = random.Random(seed)
    allowed = _draw_allowed(draft, rng, most + len(known))
    misses = _near_misses(draft, [one.plan for one in allowed], rng)
    seen = set(known)
    plans: list[Candidate] = []
    for row in zip(_pad_row(allowed, most * 2), _pad_row(misses, most * 2), strict=True):
        for one in row:
            if one is not None and one.plan not in seen and len(plans) < most:
                seen.add(one.plan)
                plans.append(one)
    return plans


def _pad_row(row: Sequence[Candidate], size: int) -> list[Candidate | None]:
    return [*row[:size], *[None] * (size - len(row))]


def _show_plan(rules: CFG | PDA, plan: Word, allowed: bool, why: str) -> Candidate:
    return Candidate(plan, allowed, why, tuple(map(rules.label, turn_word(plan, rules.order))), rules.order)


def _draw_allowed(rules: CFG | PDA, rng: random.Random, most: int) -> list[Candidate]:
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


def _near_misses(rules: CFG | PDA, plans: Sequence[Word], rng: random.Random) -> list[Candidate]:
    """Return refused plans that are one slip away from an allowed one, alternating the kinds of slips."""
    accepts = automaton(rules).accepts
    by_kind: dict[str, list[Word]] = {}
    for plan in plans:
        for kind, changed in _list_slips(plan, tuple(rules.terminals)):
            if not accepts(changed):
                by_kind.setdefault(kind, []).append(changed)
    for changed_ones in by_kind.values():
        rng.shuffle(changed_ones)
        changed_ones.sort(key=len)
    misses: dict[Word, Candidate] = {}
    for number in range(max(map(len, by_kind.values()), default=0)):
        for kind, changed_ones in by_kind.items():
            if number < len(changed_ones):
                misses.setdefault(changed_ones[number], _show_plan(rules, changed_ones[number], False, kind))
    return list(misses.values())


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
