"""The largest set is one that nothing leads out of."""

from __future__ import annotations

import random

from formal_llm.control.plant import PlantSymbol
from formal_llm.control.search import Edge, find_controllable_set
from formal_llm.guard import Call, Guard, GuardRules


def test_control() -> None:
    text = "a: a\nbad: a.result[not ok]\nrule r: never bad\nrule s: at least 1 a\n"
    assert Guard(GuardRules.from_string(text), guarantee="whatever").start().check(Call("a")).action == "block"
    assert Guard(GuardRules.from_string(text)).start().check(Call("a")).action == "allow"


class Ends:
    """What :func:`find_controllable_set` asks of rules: where a run may end."""

    def __init__(self, nodes: set[int]) -> None:
        self.nodes = nodes

    def is_accepting(self, node: int) -> bool:
        return node in self.nodes


def by_definition(
    ends: set[int], edges: dict[int, list[tuple[PlantSymbol, int | None]]], bad: set[int], *, hopeful: bool
) -> set[int]:
    """The largest set, found by leaving out what breaks its definition till nothing does."""

    def is_good(target: int | None, inside: set[int]) -> bool:
        return target is not None and (target in inside if target in edges else hopeful and target not in bad)

    counted = {
        node: [(symbol, target) for symbol, target in found if not symbol.doubtful or symbol.is_controllable == hopeful]
        for node, found in edges.items()
    }
    inside = set(edges)
    while True:
        kept = {
            node for node in inside
            if all(is_good(target, inside) for symbol, target in counted[node] if not symbol.is_controllable)
        }  # fmt: skip
        reaching: set[int] = set()
        for _ in edges:
            reaching |= {
                node for node in kept
                if node in ends
                or any(is_good(target, kept) and (target in reaching or target not in edges)
                       for _, target in counted[node])
            }  # fmt: skip
        if reaching == inside:
            return inside
        inside = reaching


def test_the_largest_set_by_its_definition() -> None:
    sizes = set()
    for seed in range(600):
        rng = random.Random(seed)
        nodes, known = range(8), rng.randint(3, 8)  # from the known number on, nodes were not looked at
        symbols = [
            PlantSymbol(kind, "", frozenset(), {}, doubtful)
            for kind in ("call", "assistant", "result", "user") for doubtful in (False, False, True)
        ]  # fmt: skip
        edges = {
            node: [
                Edge(rng.choice(symbols), rng.choice([*nodes, *nodes, None]))
                for _ in range(rng.choice([0, 1, 1, 2, 3]))
            ]
            for node in range(known)
        }
        ends = {node for node in nodes if rng.random() < 0.4}
        some = {node: rng.choice([True, False, None]) for node in nodes if rng.random() < 0.5}
        bad = {node for node, value in some.items() if value is False}
        for hopeful in (False, True):
            found = find_controllable_set(Ends(ends), edges, some, hopeful=hopeful)  # type: ignore[arg-type]
            assert found == by_definition(ends, edges, bad, hopeful=hopeful), seed  # type: ignore[arg-type]
            sizes.add(len(found))
    assert sizes >= {0, 1, 2, 3, 4, 5}
