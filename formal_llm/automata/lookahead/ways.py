"""The ways of symbols as limits see them: what is read, what is left to do, and what that takes at least.

A symbol that can only read one terminal is a *leaf*: it is merged into the ways of the symbols that lead to it. So is a
*link*, a symbol with one way only that leaves at most one symbol, and a symbol that only one way leads to, as long as a
way reads no more than one terminal. Of the product of a grammar and a clock most symbols are of these kinds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import FlowGrammar, FlowSymbol, Way

#: (terminals read, symbols left, moves) of a way.
Parts = tuple[tuple[str, ...], tuple[int, ...], int]
#: The same with any value in the place of the moves that distinguishes places in which a terminal is read.
PlacedParts = tuple[tuple[str, ...], tuple[int, ...], Hashable]
#: The ways of each symbol, by its index.
Ways = Mapping[int, Sequence[Parts]]


def find_leaves(grammar: FlowGrammar) -> dict[int, str]:
    """The symbols that can only read one terminal, and that terminal."""
    only = ((symbol.index, symbol.ways[0]) for symbol in grammar.symbols if len(symbol.ways) == 1)
    return {index: way.read for index, way in only if not way.children and way.read is not None}


def find_ways(grammar: FlowGrammar, leaves: Mapping[int, str]) -> dict[int, list[Parts]]:
    """The ways of all symbols that some completion takes, with leaves and links merged in."""
    links = _find_links(grammar, leaves)
    ways = {
        symbol.index: [_merge_links(_merge_leaves(way, leaves), links) for way in grammar.live_ways(symbol)]
        for symbol in grammar.symbols
    }
    uses = Counter(child for group in ways.values() for _, children, _ in group for child in children)
    once = {
        index: ways[index]
        for index, count in uses.items()
        if count == 1 and all(len(reads) <= 1 and len(children) <= 1 for reads, children, _ in ways[index])
    }
    return {
        index: [made for parts in group for made in _merge_single_use(parts, once)] for index, group in ways.items()
    }


def _merge_single_use(parts: Parts, once: Mapping[int, Sequence[Parts]]) -> Sequence[Parts]:
    """A way that reads nothing, with the ways of a symbol that only it leads to in the place of that symbol."""
    reads, children, steps = parts
    place = -1 if reads else next((place for place, child in enumerate(children) if child in once), -1)
    if place < 0:
        return (parts,)
    others = [*children[:place], *children[place + 1 :]]
    return [(read, tuple(sorted((*others, *left))), steps + more) for read, left, more in once[children[place]]]


def _merge_leaves(way: Way, leaves: Mapping[int, str]) -> Parts:
    """A way with leaves merged in."""
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
    return tuple(reads), tuple(sorted(children)), steps


def _find_links(grammar: FlowGrammar, leaves: Mapping[int, str]) -> dict[int, Parts]:
    """The links, each with its way, in which those that it leads to are merged.

    No link leads back to itself: its only way would never end.
    """
    links: dict[int, Parts | None] = {}
    for symbol in grammar.symbols:
        path: list[int] = []
        index = symbol.index
        while index not in links:
            ways = grammar.live_ways(grammar.symbols[index])
            only = _merge_leaves(ways[0], leaves) if len(ways) == 1 and index not in leaves else None
            links[index] = only = only if only and len(only[0]) <= 1 and len(only[1]) <= 1 else None
            if only and only[1]:
                path.append(index)
                index = only[1][0]
        for index in reversed(path):
            links[index] = _merge_links(links[index] or ((), (), 0), links)
    return {index: parts for index, parts in links.items() if parts}


def _merge_links(parts: Parts, links: Mapping[int, Parts | None]) -> Parts:
    """A way with links merged in, where it then reads no more than one terminal, or no more than before."""
    reads, children, steps = parts
    if not any(links.get(child) for child in children):
        return parts
    left: list[int] = []
    for child in children:
        link = links.get(child)
        if link and (not link[0] or not reads):
            reads, steps = reads + link[0], steps + link[2]
            left += link[1]
        else:
            left.append(child)
    return reads, tuple(sorted(left)), steps


def least_taken(
    symbols: Sequence[FlowSymbol],
    ways: Mapping[int, Sequence[PlacedParts]],
    takes: Callable[[tuple[str, ...]], Mapping[int, int]],
) -> dict[int, dict[int, int]]:
    """The least that any completion of each symbol takes, by field: a decreasing fixpoint.

    It is started from the cheapest derivations, so that it is finite everywhere at once, and lowered until nothing
    changes. Each value is then at most what any way takes with its children, so by induction over derivations it is a
    lower bound.

    Args:
        symbols: the symbols of a flow grammar.
        ways: their ways; symbols without ways are passed over.
        takes: what reading terminals takes, by field.
    """
    users: dict[int, dict[int, None]] = {}
    costs: dict[int, list[tuple[Mapping[int, int], tuple[int, ...]]]] = {}
    known: dict[tuple[str, ...], Mapping[int, int]] = {}
    for index, group in ways.items():
        if symbols[index].is_free:
            continue
        costs[index] = priced = []
        for reads, children, _ in group:
            taken = known.get(reads)
            if taken is None:
                taken = known[reads] = takes(reads)
            # What free symbols take is nothing.
            paid = tuple([child for child in children if not symbols[child].is_free])
            priced.append((taken, paid))
            for child in paid:
                users.setdefault(child, {})[index] = None
    least: dict[int, dict[int, int]] = {}
    first: list[int] = []
    for symbol in sorted(symbols, key=lambda symbol: symbol.least_steps):
        if symbol.is_free:
            least[symbol.index] = {}  # no work: most symbols are free where few terminals are limited
        elif symbol.index in costs and symbol.least_steps < INFINITE:
            first.append(symbol.index)
    todo = deque(first)
    waiting = set(first)
    while todo:
        index = todo.popleft()
        waiting.discard(index)
        lowest = _least_of_ways(costs[index], least)
        if lowest is not None and lowest != least.get(index):
            least[index] = lowest
            # What takes nothing cannot take less.
            again = [user for user in users.get(index, ()) if user not in waiting and least.get(user, True)]
            todo += again
            waiting.update(again)
    return least


def _least_of_ways(
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
