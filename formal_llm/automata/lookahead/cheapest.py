"""The cheapest derivations: Knuth's generalisation of Dijkstra's algorithm (1977)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import TypeVar

#: What a symbol is called.
N = TypeVar("N", str, int)


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
