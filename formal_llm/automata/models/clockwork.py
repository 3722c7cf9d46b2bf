"""Timetables as automata: each rule of a timetable is a finite automaton that reads the clock.

Its states are the times that come up, in whatever steps the durations make, each with what a gap must remember. A plan
has a bounded amount of time, so they are finitely many. On top of a grammar or a pushdown automaton they are
constraints like any others (:func:`~formal_llm.automata.models.product.product`): lookahead stays exact, and a clash or
a wrong plan is reported with the rule's own line.

Where the word of a plan runs from its last step to its first, the automaton of the reversed words is taken: the subset
construction over the reversed transitions (Rabin and Scott 1959).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from math import gcd

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.dfa import determinize, explore
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import constrained, product
from formal_llm.automata.models.quantities import clock_text
from formal_llm.automata.models.timetable import Clock, Gap, Moment, Timetable, Window
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError, Undecided

#: How many states the automaton of one rule may have.
MAX_STATES = 20_000


@lru_cache(maxsize=32)
def apply_timetable(pda: PDA, table: Timetable) -> PDA:
    """The words of an automaton that keep a timetable: a product with one constraint for each of its rules.

    Where words run forward, the transitions that read a terminal show its times in their texts.

    Raises:
        AutomatonError: there is no clock.
        Undecided: the clock can show too many different times.
    """
    if table.clock is None:
        raise AutomatonError(f"{table.lines()[0]} needs a clock; write, for instance: %clock time 8:00-20:00")
    prefix = pda.order == "prefix"
    numbers = {name: symbol.numbers for name, symbol in pda.symbols.items()}
    taking = {name: table.seconds(numbers, name) for name in pda.terminals}
    clock, *rules = (_automaton_of_rule(table, rule, taking, prefix=prefix) for rule in table.rules)
    clocked = product(pda, clock)
    if not prefix:
        clocked = _add_times_to_texts(clocked, taking)
    return constrained(clocked, rules)


def count_moments(pda: PDA, table: Timetable) -> int:
    """How many moments one rule of a timetable distinguishes at most: times, with what a gap remembers at each."""
    numbers = {name: symbol.numbers for name, symbol in pda.symbols.items()}
    grain = gcd(*(table.seconds(numbers, name) for name in pda.terminals))
    if table.clock is None or not grain:
        return 1
    begin, last = table.clock.span.edges
    return ((last - begin) // grain + 1) * max((gap.seconds // grain + 2 for gap in table.gaps), default=1)


@lru_cache(maxsize=32)
def base_with_clock(pda: PDA) -> PDA:
    """What a product was made of first, without its limits; under a clock with the clock, so that texts show times."""
    base, *rules = pda.factors or (pda,)
    base = base.without_limits
    clock = next((rule for rule in rules if rule.name.startswith("%clock ")), None)
    if clock is None or base.cfg is not None or base.order == "prefix":
        return base
    made = product(base, clock)
    return _add_times_to_texts(made, {t.read: t.target[0] - t.state[0] for t in clock.transitions if t.read})  # type: ignore[index]


def _add_times_to_texts(clocked: PDA, taking: Mapping[str, int]) -> PDA:
    """The product with a clock, with the times of each step in front of its text."""
    timed = []
    for transition in clocked.transitions:
        name = transition.read
        if name is not None and not transition.decision:
            now: int = transition.state[1][0]  # type: ignore[index]  # its states are pairs, the second a moment
            text = f"{step_times(now, now + taking[name])}: {transition.text or clocked.label(name)}"
            transition = replace(transition, text=text)
        timed.append(transition)
    made = object.__new__(PDA)
    made.__dict__.update({**clocked.__getstate__(), "transitions": tuple(timed)})
    return made


def step_times(begin: int, end: int) -> str:
    """When a step is, as plans show it: ``9:00 to 10:15``, or ``9:00`` where it takes no time."""
    return f"{clock_text(begin)} to {clock_text(end)}" if end > begin else clock_text(begin)


def _automaton_of_rule(table: Timetable, rule: Clock | Window | Gap, taking: Mapping[str, int], *, prefix: bool) -> PDA:
    """One rule of a timetable as a finite automaton."""

    def follow(moment: Moment, name: str) -> Moment | None:
        return table.advance(rule, moment, name, taking[name])

    def check_size(count: int) -> None:
        if count > MAX_STATES:
            raise Undecided(
                f"{rule}: the clock can show more than {MAX_STATES:,} different times; "
                "use coarser durations (quarters of an hour), or a shorter day"
            )

    first = table.begin(rule)
    rows = explore(first, taking, follow, check_size)
    moments = [*rows]
    start: State = first
    accepting: Collection[State] = moments
    moves = [
        Transition(moment, name, None, moments[after]) for moment, row in rows.items() for name, after in row.items()
    ]
    if prefix:
        turned = [Transition(move.target, move.read, None, move.state) for move in moves]
        dfa = determinize(turned, moments, [first], taking, check_size)
        moves = [Transition(at, name, None, to) for at, row in enumerate(dfa.table) for name, to in row.items()]
        start, accepting = 0, dfa.accepting
    windows, gaps = (rule,) if isinstance(rule, Window) else (), (rule,) if isinstance(rule, Gap) else ()
    return PDA(
        moves, start=start, accepting=accepting, name=str(rule), alphabet=taking, check=False,
        times=Timetable(table.clock, windows, gaps),
    )  # fmt: skip
