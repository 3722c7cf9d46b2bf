"""What an arena decides, against the definition."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from formal_llm.control.arena import Arena, Edge


def by_definition(
    ends: set[int], edges: Mapping[int, Sequence[Edge[int]]], known: Mapping[int, bool], *, hopeful: bool
) -> set[int]:
    """The largest set, found by leaving out what breaks its definition until nothing does."""

    def is_good(target: int | None, inside: set[int]) -> bool:
        return target is not None and (target in inside if target in edges else known.get(target, hopeful))

    counted = {node: [one for one in found if not one.doubtful or one.controllable == hopeful]
               for node, found in edges.items()}  # fmt: skip
    inside = set(edges)
    while True:
        kept = {
            node for node in inside if all(is_good(one.target, inside) for one in counted[node] if not one.controllable)
        }
        reaching: set[int] = set()
        for _ in edges:
            reaching |= {
                node for node in kept
                if node in ends
                or any(is_good(one.target, kept) and (one.target in reaching or one.target not in edges)
                       for one in counted[node])
            }  # fmt: skip
        if reaching == inside:
            return inside
        inside = reaching


@pytest.mark.parametrize("seed", range(6))
def test_the_largest_set_by_its_definition(seed: int) -> None:
    rng, sizes, verdicts = random.Random(seed), set(), set()
    for _ in range(200):
        nodes, explored = range(8), rng.randint(3, 8)  # from the explored number on, nodes were not looked at
        edges = {
            node: [Edge(rng.choice([*nodes, *nodes, None]), rng.random() < 0.5, rng.random() < 0.3)
                   for _ in range(rng.choice([0, 1, 1, 2, 3]))]
            for node in range(explored)
        }  # fmt: skip
        ends = {node for node in nodes if rng.random() < 0.4}
        known = {node: rng.random() < 0.5 for node in nodes[explored:] if rng.random() < 0.5}
        arena = Arena(edges.__getitem__, ends.__contains__, known.get)
        for node in edges:
            arena.explore(node)
        wanted = {hopeful: by_definition(ends, edges, known, hopeful=hopeful) for hopeful in (False, True)}
        for hopeful, good in wanted.items():
            assert arena.find_controllable_set(hopeful=hopeful) == good
            sizes.add(len(good))
        verdict, good, bad = arena.decide(0)
        assert (good, bad) == (wanted[False], edges.keys() - wanted[True])
        assert verdict is (True if 0 in wanted[False] else None if 0 in wanted[True] else False)
        verdicts.add(verdict)
    assert sizes >= {0, 1, 2, 3, 4, 5} and verdicts == {True, False, None}
