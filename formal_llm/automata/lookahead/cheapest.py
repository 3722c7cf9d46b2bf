"""The cheapest: of derivations, by Knuth's generalisation of Dijkstra's algorithm (1977); of ways, by A*.

And a way that costs no more than is allowed, by the same search with the nearest to an end first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

#: What a symbol is called.
N = TypeVar("N", str, int)
S = TypeVar("S", bound=Hashable)

INFINITE = float("inf")
#: What a search may find beside a cost: its budget was spent before anything was certain.
UNKNOWN = -1.0


def least_costs(rules: Iterable[tuple[N, float, Sequence[N]]]) -> dict[N, float]:
    """For each symbol that derives something, what its cheapest derivation costs.

    Args:
        rules: (head, cost, body): a derivation costs what its rules cost together. Of a body only the symbols are given
            that have to be derived.
    """
    heads: list[N] = []
    totals: list[float] = []
    missing: list[int] = []
    waiting: dict[N, list[int]] = {}
    queue: list[tuple[float, N]] = []
    for number, (head, cost, body) in enumerate(rules):
        heads.append(head)
        totals.append(cost)
        missing.append(len(body))
        for name in body:
            waiting.setdefault(name, []).append(number)
        if not body:
            queue.append((cost, head))
    heapq.heapify(queue)
    found: dict[N, float] = {}
    while queue:
        cost, head = heapq.heappop(queue)
        if head in found:
            continue
        found[head] = cost
        for number in waiting.get(head, ()):
            totals[number] += cost
            missing[number] -= 1
            if not missing[number] and heads[number] not in found:
                heapq.heappush(queue, (totals[number], heads[number]))
    return found


def least_cost(
    begin: tuple[float, S, float],
    after: Callable[[S], Iterable[tuple[float, S, float]]],
    ends: Callable[[S], bool],
    max_states: int,
    over: Callable[[], bool] = lambda: False,
) -> float:
    """What the cheapest way to an end costs; infinite for none, ``UNKNOWN`` when the budget is spent (A*).

    Args:
        begin: (the cost so far, a state, an estimate of the rest); no estimate overrates.
        after: the states after a state, each with the cost of getting there and an estimate of the rest.
        ends: whether a state is an end.
        max_states: how many states may be visited.
        over: whether to give up.
    """
    cost, state, estimate = begin
    best = {state: cost}
    queue = [(cost + estimate, estimate, 0, state)]  # of equally good ones the nearest to an end, of these the last
    done: set[S] = set()
    tie = 0
    while queue:
        *_, now = heapq.heappop(queue)
        if now in done:
            continue
        cost = best[now]
        if ends(now):
            return cost
        if len(done) >= max_states or over():
            return UNKNOWN
        done.add(now)
        for price, following, estimate in after(now):
            total = cost + price
            if total < best.get(following, INFINITE):
                best[following] = total
                tie -= 1
                heapq.heappush(queue, (total + estimate, estimate, tie, following))
    return INFINITE
