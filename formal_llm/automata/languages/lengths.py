"""Questions about a whole language: how long its words are, which they are, in how many ways they come about.

Whether a language is finite and how long its words are can be decided. Whether a grammar is ambiguous and whether two
grammars say the same cannot (Hopcroft, Motwani and Ullman, section 9.5), so these are answered up to a length, with a
shortest word as the witness. A grammar's own limits are not looked at, just as in :meth:`CFG.accepts`; an automaton
under limits keeps them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from formal_llm.automata.languages.derivations import Derivation, Derivations, Deriving, derivations
from formal_llm.automata.languages.words import Word, words
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limited import LimitedAutomaton
from formal_llm.automata.models.pda import PDA

__all__ = [
    "Ambiguity", "Derivations", "ambiguity_witness", "derivations", "difference", "is_finite", "longest_length",
    "shortest_length", "side_by_side", "words",
]  # fmt: skip


# -- how long the words are -------------------------------------------------------------------------------------------


def shortest_length(cfg: CFG) -> int | None:
    """The number of terminals of a shortest word, None for the empty language (Knuth 1977)."""
    waiting: dict[str, list[int]] = {}
    missing, length = [], []
    heap: list[tuple[int, str]] = []
    for index, production in enumerate(cfg.expanded):
        open_symbols = [name for name in production.body if name not in cfg.terminals]
        missing.append(len(open_symbols))
        length.append(len(production.body) - len(open_symbols))
        for name in open_symbols:
            waiting.setdefault(name, []).append(index)
        if not open_symbols:
            heap.append((length[index], production.head))
    heapq.heapify(heap)
    known: set[str] = set()
    while heap:
        least, head = heapq.heappop(heap)
        if head == cfg.start:
            return least
        if head not in known:
            known.add(head)
            for index in waiting.get(head, ()):
                missing[index] -= 1
                length[index] += least
                if not missing[index]:
                    heapq.heappush(heap, (length[index], cfg.expanded[index].head))
    return None


def is_finite(cfg: CFG) -> bool:
    """Whether the language has finitely many words (none at all counts as finite)."""
    return cfg.recognizer.empty or _longest(cfg) is not None


def longest_length(cfg: CFG) -> int | None:
    """The number of terminals of a longest word; None where there is none, or no word at all."""
    return None if cfg.recognizer.empty else _longest(cfg)


def _longest(cfg: CFG) -> int | None:
    """The longest word of a language that is not empty, None for an infinite one.

    It is infinite when some useful symbol derives itself with more beside it. Otherwise the lengths are worked out from
    the symbols that lead to no others upwards; symbols that derive each other have the same.
    """
    import networkx

    recognizer = cfg.recognizer
    rules = {head: bodies for head, bodies in recognizer.by_head.items() if head in cfg.reachable}
    graph = networkx.DiGraph((head, name) for head in rules for body in rules[head] for name in body)
    graph.add_node(cfg.start)
    longest = dict.fromkeys(recognizer.bits, 1)
    for group in networkx.strongly_connected_components(graph):  # those that are led to come first
        if any(
            name in group and any(recognizer.first.get(n) for n in (*body[:place], *body[place + 1 :]))
            for head in group
            for body in rules.get(head, ())
            for place, name in enumerate(body)
        ):
            return None
        lengths = (
            sum(longest[name] for name in body if name not in group) for head in group for body in rules.get(head, ())
        )
        most = max(lengths, default=1)
        longest.update(dict.fromkeys(group, most))
    return longest[cfg.start]


# -- witnesses, up to a length -----------------------------------------------------------------------------------------


def difference(one: CFG | PDA | LimitedAutomaton, other: CFG | PDA | LimitedAutomaton, max_length: int) -> Word | None:
    """A shortest word that exactly one of two languages has; None if they have the same words up to ``max_length``.

    The words are listed side by side until two differ, so a large language in common takes long.
    """
    return next((word for word, ours, theirs in side_by_side(one, other, max_length) if ours != theirs), None)


def side_by_side(
    one: CFG | PDA | LimitedAutomaton, other: CFG | PDA | LimitedAutomaton, max_length: int
) -> Iterator[tuple[Word, bool, bool]]:
    """The words of two languages, each once: the shorter before the longer; with whether either has it."""
    order = tuple(dict.fromkeys((*one.terminals, *other.terminals)))
    ranks = {name: rank for rank, name in enumerate(order)}

    def place(word: Word | None) -> tuple[float, list[int]]:
        return (math.inf, []) if word is None else (len(word), [ranks[name] for name in word])

    ours, theirs = words(one, max_length, order=order), words(other, max_length, order=order)
    mine, yours = next(ours, None), next(theirs, None)
    while (first := min(mine, yours, key=place)) is not None:
        yield first, mine == first, yours == first
        mine, yours = (
            next(ours, None) if mine == first else mine,
            next(theirs, None) if yours == first else yours,
        )


# -- how words come about ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """A word and two of its leftmost derivations. Productions that differ in their text only are two productions."""

    word: Word
    derivations: tuple[Derivation, Derivation]


def ambiguity_witness(cfg: CFG, max_length: int) -> Ambiguity | None:
    """A shortest word with two leftmost derivations; None if no word of at most ``max_length`` terminals has two."""
    deriving = Deriving(cfg)
    for word in words(cfg, max_length):
        first, *more = islice(deriving.derivations(word), 2)
        if more:
            return Ambiguity(word, (first, more[0]))
    return None
