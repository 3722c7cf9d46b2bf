"""The sets of members that can be chosen of a selection ``some(a, b, c)``, found one after the other.

A set is taken member by member: the automaton's moves take one or leave it. A way that the lookahead gives up is left
at once, and what has led to no set is not looked at again. So the first sets come soon, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple, TypeAlias

from formal_llm.automata.lookahead.lookahead import Lookahead

#: Terminals together.
Names: TypeAlias = frozenset[str]

#: After so many ways without one more set, whoever asks may stop.
_TRIES = 1_000
#: What looking at one way costs, in the tries of :class:`Work`.
_WORTH = 5


class Subset(NamedTuple):
    """A set of members of a selection that can be chosen: the moves that take it, what they lead to, the set."""

    moves: tuple[Any, ...]
    after: Any
    names: Names


def iter_subsets(
    lookahead: Lookahead,
    finishes: Callable[[Hashable, float], bool],
    configuration: Hashable,
    must: Names,
    may: Names,
    steps: float,
) -> Iterator[Subset | None]:
    """The sets of members that may be chosen of the selection on top of a stack, each once, few members first.

    Args:
        lookahead: knows the automaton.
        finishes: whether a plan may be finished from a configuration within so many moves.
        configuration: where the selection is on top.
        must: the members that each set has.
        may: the members that a set may have.
        steps: how many moves may be made.

    Yields:
        The sets; in between None where none was found in many tries, or the time for the question is spent, so that
        whoever asks can stop.
    """
    automaton = lookahead.automaton
    members = lookahead.selection(configuration) or ()
    count = tries = 0
    seen: set[Hashable] = set()  # a set may come about in several ways
    barren: set[Hashable] = set()  # from here no set can be chosen
    # A way, or what is noted once all that it can lead to has been looked at: the place, and the count before.
    todo: list[tuple[tuple[Any, ...], Any, tuple[str, ...], int] | tuple[Hashable, int]] = [((), configuration, (), 0)]
    while todo:
        way = todo.pop()
        if len(way) == 2:
            if way[1] == count:
                barren.add(way[0])
            continue
        moves, now, taken, place = way
        tries += 1
        lookahead.work.left -= _WORTH
        if lookahead.work.left <= 0:
            yield None
        if tries == _TRIES + 8 * len(members):
            tries = 0
            yield None
        if (moves or place == len(members)) and not finishes(now, steps - len(moves)):
            continue
        signature, deeper = lookahead.signature(now)
        here = (place, signature, steps - len(moves) - deeper)
        mark = (taken, *here) if place < len(members) else taken
        if here in barren or mark in seen:
            continue
        seen.add(mark)
        if place == len(members):
            count += 1
            tries = 0
            yield Subset(moves, now, frozenset(taken))
            continue
        todo.append((here, count))
        name = members[place]
        for move in automaton.moves(now):
            after = automaton.step(now, move)
            if move.push[:1] == (name,):
                if name in may:
                    todo += (
                        ((*moves, move, match), automaton.step(after, match), (*taken, name), place + 1)
                        for match in automaton.moves(after)
                    )
            elif name not in must:
                todo.append(((*moves, move), after, taken, place + 1))
