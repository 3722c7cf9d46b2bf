"""What every completion of a symbol takes at least of each limit: its toll."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from formal_llm.automata.lookahead.flow import INFINITE, FlowSymbol

#: (terminals read, symbols left, moves) of a way.
Parts = tuple[tuple[str, ...], tuple[int, ...], int]


def least_tolls(
    symbols: Sequence[FlowSymbol],
    ways: Mapping[int, Sequence[Parts]],
    takes: Callable[[tuple[str, ...]], Mapping[int, int]],
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
    tolls: dict[int, dict[int, int]] = {}
    todo = []
    for symbol in sorted(symbols, key=lambda symbol: -symbol.least_steps):
        if symbol.free:
            tolls[symbol.index] = {}  # no work: most symbols are free where few terminals are limited
        elif symbol.least_steps < INFINITE:
            todo.append(symbol.index)
    while todo:
        index = todo.pop()
        toll: dict[int, int] | None = None
        for reads, children, _ in ways[index]:
            if not all(child in tolls for child in children):
                continue
            total = dict(takes(reads))
            for child in children:
                for number, amount in tolls[child].items():
                    total[number] = total.get(number, 0) + amount
            least = toll if toll is not None else total
            toll = {n: min(amount, total[n]) for n, amount in least.items() if n in total}
        if toll is not None and toll != tolls.get(index):
            tolls[index] = toll
            todo += (user for user in users.get(index, ()) if not symbols[user].free)
    return tolls
