"""The ways of symbols as limits see them: what is read, what is left to do, and what that takes at least.

A symbol that can only read one terminal is a *leaf*: it is merged into the ways of the symbols that lead to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

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
    users: dict[int, set[int]] = {}
    for index, group in ways.items():
        for _, children, _ in group:
            for child in children:
                users.setdefault(child, set()).add(index)
    least: dict[int, dict[int, int]] = {}
    todo = []
    for symbol in sorted(symbols, key=lambda symbol: -symbol.least_steps):
        if symbol.free:
            least[symbol.index] = {}  # no work: most symbols are free where few terminals are limited
        elif symbol.least_steps < INFINITE:
            todo.append(symbol.index)
    while todo:
        index = todo.pop()
        lowest: dict[int, int] | None = None
        for reads, children, _ in ways[index]:
            if not all(child in least for child in children):
                continue
            total = dict(takes(reads))
            for child in children:
                for number, amount in least[child].items():
                    total[number] = total.get(number, 0) + amount
            before = lowest if lowest is not None else total
            lowest = {n: min(amount, total[n]) for n, amount in before.items() if n in total}
        if lowest is not None and lowest != least.get(index):
            least[index] = lowest
            todo += (user for user in users.get(index, ()) if not symbols[user].free)
    return least
