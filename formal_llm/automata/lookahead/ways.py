"""The ways of symbols as limits see them: what is read, what is left to do, and what that takes at least.

A symbol that can only read one terminal is a *leaf*: it is merged into the ways of the symbols that lead to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import FlowGrammar, FlowSymbol

#: (terminals read, symbols left, moves) of a way.
Parts = tuple[tuple[str, ...], tuple[int, ...], int]
#: The ways of each symbol, by its index.
Ways = Mapping[int, Sequence[Parts]]


def find_leaves(grammar: FlowGrammar) -> dict[int, str]:
    """The symbols that can only read one terminal, and that terminal."""
    only = ((symbol.index, symbol.ways[0]) for symbol in grammar.symbols if len(symbol.ways) == 1)
    return {index: way.read for index, way in only if not way.children and way.read is not None}


def find_ways(grammar: FlowGrammar, leaves: Mapping[int, str]) -> dict[int, list[Parts]]:
    """The ways of all symbols that some completion takes, with leaves merged in."""
    return {symbol.index: list(_read_through(grammar, symbol, leaves)) for symbol in grammar.symbols}


def _read_through(grammar: FlowGrammar, symbol: FlowSymbol, leaves: Mapping[int, str]) -> Iterator[Parts]:
    for way in grammar.alive(symbol):
        reads = [way.read] if way.read is not None else []
        children = []
        steps = way.moves
        for child in way.children:
            leaf = leaves.get(child)
            if leaf is None:
                children.append(child)
            else:
                reads.append(leaf)
                steps += 1
        yield tuple(reads), tuple(sorted(children)), steps


def least_taken(
    symbols: Sequence[FlowSymbol], ways: Ways, takes: Callable[[tuple[str, ...]], Mapping[int, int]]
) -> dict[int, dict[int, int]]:
    """The least that any completion of each symbol takes, by field: a decreasing fixpoint.

    It is started from the cheapest derivations, so that it is finite everywhere at once, and lowered until nothing
    changes. Each value is then at most what any way takes with its children, so by induction over derivations it is a
    lower bound.

    Args:
        symbols: the symbols of a flow grammar.
        ways: their ways.
        takes: what reading terminals takes, by field.
    """
    users: dict[int, dict[int, None]] = {}
    costs: dict[int, list[tuple[Mapping[int, int], tuple[int, ...]]]] = {}
    known: dict[tuple[str, ...], Mapping[int, int]] = {}
    for index, group in ways.items():
        if symbols[index].free:
            continue
        costs[index] = priced = []
        for reads, children, _ in group:
            taken = known.get(reads)
            if taken is None:
                taken = known[reads] = takes(reads)
            # What free symbols take is nothing.
            paid = tuple([child for child in children if not symbols[child].free])
            priced.append((taken, paid))
            for child in paid:
                users.setdefault(child, {})[index] = None
    least: dict[int, dict[int, int]] = {}
    first: list[int] = []
    for symbol in sorted(symbols, key=lambda symbol: symbol.least_steps):
        if symbol.free:
            least[symbol.index] = {}  # no work: most symbols are free where few terminals are limited
        elif symbol.least_steps < INFINITE:
            first.append(symbol.index)
    todo = deque(first)
    waiting = set(first)
    while todo:
        index = todo.popleft()
        waiting.discard(index)
        lowest = _lowest(costs[index], least)
        if lowest is not None and lowest != least.get(index):
            least[index] = lowest
            # What takes nothing cannot take less.
            again = [user for user in users.get(index, ()) if user not in waiting and least.get(user, True)]
            todo += again
            waiting.update(again)
    return least


def _lowest(
    costs: Iterable[tuple[Mapping[int, int], tuple[int, ...]]], least: Mapping[int, Mapping[int, int]]
) -> dict[int, int] | None:
    """The least that any way takes with its children, by field; None where none is known. What is 0 is left out."""
    lowest: dict[int, int] | None = None
    for taken, children in costs:
        found = [least.get(child) for child in children]
        if None in found:
            continue
        amounts = [taken, *[one for one in found if one]]
        if lowest is None:
            lowest = {}
            for one in amounts:
                for number, amount in one.items():
                    lowest[number] = lowest.get(number, 0) + amount
        elif not lowest:
            break
        else:
            # Only what every way takes counts, so only that is added up.
            sums = {number: sum([one.get(number, 0) for one in amounts]) for number in lowest}
            lowest = {number: min(lowest[number], amount) for number, amount in sums.items() if amount}
    return lowest
