"""Whether one terminal of lookahead tells every choice apart: then each word has one derivation.

This is the LL(1) condition (Lewis and Stearns 1968; Aho, Lam, Sethi and Ullman, section 4.4) on the symbols that stand
for what a pushdown automaton does between pushing a stack symbol and popping it. It is sufficient, not necessary: an
unambiguous grammar may fail it.
"""

from __future__ import annotations

from collections.abc import Iterable

from formal_llm.automata.lookahead.flow import ACCEPTING, INFINITE, FlowGrammar
from formal_llm.automata.models.automaton import Stack, State


def tells_apart(grammar: FlowGrammar, state: State, stack: Stack) -> bool:
    """Whether every completion of (state, stack), read as a word, has one run only.

    False also where the automaton leaves it open in which state a stack symbol is popped.
    """
    sequence: list[int] = []
    while True:
        targets: list[State] = [ACCEPTING] if grammar.may_accept(state, stack.top) else []
        targets += grammar.exits(state, stack.top) if stack.top is not None else []
        if len(targets) != 1:
            return not targets
        sequence.append(grammar.symbol(state, stack.top, targets[0]).index)
        if targets[0] is ACCEPTING:
            break
        state, stack = targets[0], stack.rest
    if any(grammar.symbols[index].least_steps == INFINITE for index in sequence):
        return True
    reached = _reached(grammar, sequence)
    nullable = _nullable(grammar, reached)
    first = _first(grammar, reached, nullable)
    follow = _follow(grammar, reached, sequence, nullable, first)
    for index in reached:
        seen: set[str] = set()
        empty = False
        for way in grammar.alive(grammar.symbols[index]):
            starts, vanishes = _starts(way.read, way.children, nullable, first)
            if vanishes:
                if empty:
                    return False
                empty = True
                starts = starts | follow[index]
            if seen & starts:
                return False
            seen |= starts
    return True


def _reached(grammar: FlowGrammar, sequence: Iterable[int]) -> list[int]:
    found = dict.fromkeys(sequence)
    todo = list(found)
    while todo:
        for way in grammar.alive(grammar.symbols[todo.pop()]):
            for child in way.children:
                if child not in found:
                    found[child] = None
                    todo.append(child)
    return list(found)


def _nullable(grammar: FlowGrammar, reached: list[int]) -> set[int]:
    nullable: set[int] = set()
    changed = True
    while changed:
        changed = False
        for index in reached:
            if index not in nullable and any(
                way.read is None and all(child in nullable for child in way.children)
                for way in grammar.alive(grammar.symbols[index])
            ):
                nullable.add(index)
                changed = True
    return nullable


def _first(grammar: FlowGrammar, reached: list[int], nullable: set[int]) -> dict[int, set[str]]:
    first: dict[int, set[str]] = {index: set() for index in reached}
    changed = True
    while changed:
        changed = False
        for index in reached:
            size = len(first[index])
            for way in grammar.alive(grammar.symbols[index]):
                first[index] |= _starts(way.read, way.children, nullable, first)[0]
            changed = changed or len(first[index]) > size
    return first


def _follow(
    grammar: FlowGrammar, reached: list[int], sequence: list[int], nullable: set[int], first: dict[int, set[str]]
) -> dict[int, set[str]]:
    follow: dict[int, set[str]] = {index: set() for index in reached}
    for place, index in enumerate(sequence):
        follow[index] |= _starts(None, tuple(sequence[place + 1 :]), nullable, first)[0]
    changed = True
    while changed:
        changed = False
        for index in reached:
            for way in grammar.alive(grammar.symbols[index]):
                after = set(follow[index])
                for child in reversed(way.children):
                    if not after <= follow[child]:
                        follow[child] |= after
                        changed = True
                    after = after | first[child] if child in nullable else set(first[child])
    return follow


def _starts(
    read: str | None, children: tuple[int, ...], nullable: set[int], first: dict[int, set[str]]
) -> tuple[set[str], bool]:
    """(the terminals that a way can begin with, whether it can be empty)."""
    if read is not None:
        return {read}, False
    starts: set[str] = set()
    for child in children:
        starts |= first[child]
        if child not in nullable:
            return starts, False
    return starts, True
