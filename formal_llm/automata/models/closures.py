"""Sets of symbols that productions close: those that derive something made of good symbols, those that are derived.

Both are least fixed points, found in time linear in the size of the grammar (Hopcroft, Motwani and Ullman, section
7.4.3).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from formal_llm.automata.models.cfg import Production


def closure(productions: Sequence[Production], good: Container[str]) -> frozenset[str]:
    """The heads of productions all of whose body is good, then of those whose body is good by that, and so on."""
    waiting: dict[str, list[int]] = {}
    missing: list[int] = []
    ready: list[str] = []
    for index, production in enumerate(productions):
        bad = [name for name in production.body if name not in good]
        missing.append(len(bad))
        for name in bad:
            waiting.setdefault(name, []).append(index)
        if not bad:
            ready.append(production.head)
    found: set[str] = set()
    while ready:
        head = ready.pop()
        if head in found:
            continue
        found.add(head)
        for index in waiting.get(head, ()):
            missing[index] -= 1
            if missing[index] == 0:
                ready.append(productions[index].head)
    return frozenset(found)


def reach(by_head: Mapping[str, Sequence[Production]], start: str) -> frozenset[str]:
    """The symbols that occur in some string derived from ``start``."""
    found = {start}
    todo = [start]
    while todo:
        for production in by_head.get(todo.pop(), ()):
            for name in production.body:
                if name not in found:
                    found.add(name)
                    todo.append(name)
    return frozenset(found)
