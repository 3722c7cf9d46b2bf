"""FIRST and FOLLOW: the terminals that can begin what a symbol derives, and those that can come after it.

Sets of terminals are numbers, a bit for each. Both are least fixed points (Aho, Lam, Sethi and Ullman, section 4.4).
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

S = TypeVar("S", bound=Hashable)


def first_sets(
    rules: Iterable[tuple[S, Sequence[S]]], terminals: Mapping[S, int], nullable: Container[S]
) -> dict[S, int]:
    """For each symbol the terminals that can begin what it derives.

    Args:
        rules: (head, body).
        terminals: for each terminal its bit.
        nullable: the symbols that derive ε.
    """
    bits = dict(terminals)
    begins: dict[S, list[S]] = {}
    for head, body in rules:
        for name in body:
            if name in terminals:
                bits[head] = bits.get(head, 0) | bits[name]
            else:
                begins.setdefault(name, []).append(head)
            if name not in nullable:
                break
    return _propagate_bits(bits, begins)


def follow_sets(
    rules: Iterable[tuple[S, Sequence[S]]], terminals: Container[S], nullable: Container[S], first: Mapping[S, int]
) -> dict[S, int]:
    """For each nonterminal the terminals that can come after it; arguments as of :func:`first_sets`."""
    bits: dict[S, int] = {}
    ends: dict[S, list[S]] = {}
    for head, body in rules:
        after, open_end = 0, True
        for name in reversed(body):
            if name not in terminals:
                bits[name] = bits.get(name, 0) | after
                if open_end:
                    ends.setdefault(head, []).append(name)
            if name in nullable:
                after |= first.get(name, 0)
            else:
                after, open_end = first.get(name, 0), False
    return _propagate_bits(bits, ends)


def first_of(body: Sequence[S], nullable: Container[S], first: Mapping[S, int]) -> tuple[int, bool]:
    """(the terminals that can begin what a body derives, whether it derives ε)."""
    bits = 0
    for name in body:
        bits |= first.get(name, 0)
        if name not in nullable:
            return bits, False
    return bits, True


def _propagate_bits(bits: dict[S, int], edges: Mapping[S, Iterable[S]]) -> dict[S, int]:
    """The least sets that hold ``bits`` and grow along the edges."""
    todo = [name for name in edges if bits.get(name, 0)]
    while todo:
        name = todo.pop()
        own = bits[name]
        for target in edges.get(name, ()):
            old = bits.get(target, 0)
            if own & ~old:
                bits[target] = old | own
                todo.append(target)
    return bits
