"""Distinct words: where one terminal of lookahead decides every choice, each word has one derivation.

That is the LL(1) condition (Lewis and Stearns 1968; Aho, Lam, Sethi and Ullman, section 4.4), over the symbols of the
flow grammar, read from either end. It is sufficient, not necessary. Elsewhere words are listed one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from formal_llm.automata.lookahead.chart import ROOT
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.derivations import list_bodies
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.limited import LimitedConfiguration
from formal_llm.automata.models.automaton import Stack, State, Word
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import find_derivable_heads
from formal_llm.errors import Undecided

#: A symbol by its number, or a terminal; one with what has been read of its bodies.
Name = Any
_Rule = tuple[Name, tuple[Name, ...]]


def is_unambiguous(grammar: FlowGrammar, state: State, stack: Stack) -> bool:
    """Whether every completion of (state, stack), read as a word, is known to have one run only.

    A product is unambiguous where its base is, and its constraints are deterministic: a run of it is a run of each
    factor, and a deterministic one has no choice.
    """
    bodies = list_bodies(grammar, state, stack)
    rules = [(head, items) for head, group in bodies.items() for items, _ in group]
    if _is_ll1(_factor_left(rules)) or _is_ll1(_factor_left([(head, body[::-1]) for head, body in rules])):
        return True
    base, *constraints = grammar.pda.factors or (grammar.pda,)
    if not constraints or not all(map(_is_deterministic, constraints)):
        return False
    for _ in constraints:  # the state of a product is a pair: that of its base, and the constraint's
        state = state[0]  # type: ignore[index]
    return is_unambiguous(FlowGrammar(base, Counters(())), state, stack)


def _is_deterministic(automaton: PDA) -> bool:
    """Whether a finite automaton has one way at most to read a word: no ε, and one transition for each terminal."""
    found = {(t.state, t.read) for t in automaton.transitions}
    reads = all(t.read is not None for t in automaton.transitions)
    return reads and len(found) == len(automaton.transitions) and not automaton.uses_stack


def _factor_left(rules: list[_Rule]) -> list[_Rule]:
    """Rules with as many derivations, in which no two of a head begin alike: A -> a b | a c becomes A -> a (b | c)."""
    begun: dict[tuple[Name, Name], Name] = {}
    ends: list[_Rule] = []
    for head, body in rules:
        for name in body:
            head = begun.setdefault((head, name), ("begun", len(begun)))
        ends.append((head, ()))
    return [*((head, (name, rest)) for (head, name), rest in begun.items()), *ends]


def _is_ll1(rules: Sequence[_Rule]) -> bool:
    """Whether the next terminal, or the end, decides among the rules of each head.

    Terminals are bits of a number; they are passed on along edges: from what may begin a body to the body and its head,
    and from what may come after a symbol (its *after*) to what that may end with.
    """
    nullable = find_derivable_heads(rules, ())
    terminals = dict.fromkeys(name for _, body in rules for name in body if isinstance(name, str))
    bits: dict[Name, int] = {name: 2 << number for number, name in enumerate(terminals)}
    bits["after", ROOT] = 1  # the end
    edges: dict[Name, list[Name]] = {}
    for number, (head, body) in enumerate(rules):
        begins: list[Name] = [("after", head)]
        for name in reversed(body):
            for one in begins:
                edges.setdefault(one, []).append(("after", name))
            begins = [name, *begins] if name in nullable else [name]
        for one in begins:
            edges.setdefault(one, []).append(("rule", number))
            if one != ("after", head):
                edges[one].append(head)
    todo = list(bits)
    while todo:
        own = bits[name := todo.pop()]
        for target in edges.get(name, ()):
            if own & ~bits.get(target, 0):
                bits[target] = bits.get(target, 0) | own
                todo.append(target)
    seen: dict[Name, int] = {}
    for number, (head, _) in enumerate(rules):
        starts = bits.get(("rule", number), 0)
        if seen.get(head, 0) & starts:
            return False
        seen[head] = seen.get(head, 0) | starts
    return True


#: The most words of one symbol that are listed, and the most terminals in what is made for each of them.
_MOST_WORDS, _MOST_MADE = 50_000, 100


def list_words(grammar: FlowGrammar, begin: LimitedConfiguration) -> list[Word]:
    """The words that complete a configuration within its limits, each once, sorted.

    All words of all symbols are made bottom up, each new one joined with what stands beside it.

    Raises:
        Undecided: there are too many to hold, perhaps infinitely many.
    """
    #: For each symbol where it occurs: (what it is part of, what stands beside it, whether it comes first).
    uses: dict[Name, list[tuple[Name, Name, bool]]] = {}
    words: dict[Name, dict[Word, int]] = {}
    todo: deque[tuple[Name, Word, int]] = deque()  # the first ones first, so that words grow slowly
    guard, made = grammar.counters.guard, 0

    def add_word(symbol: Name, word: Word, taken: int) -> None:
        nonlocal made
        known = words.setdefault(symbol, {})
        made += 1 + len(word)
        if word not in known and (begin.remaining - taken) & guard == guard:
            known[word] = taken
            todo.append((symbol, word, taken))
        if len(known) > _MOST_WORDS or made > _MOST_MADE * _MOST_WORDS:
            raise Undecided(
                "there are too many words to list, perhaps infinitely many, and one word may have several "
                "derivations; give a bound on their length (max_length), or count derivations instead"
            )

    rules = [(head, items) for head, group in list_bodies(grammar, *begin.inner).items() for items, _ in group]
    for number, (head, body) in enumerate(rules):
        at: Name = head
        for place, name in enumerate(body[:-1]):
            rest = ("rest", number, place)
            uses.setdefault(name, []).append((at, rest, True))
            uses.setdefault(rest, []).append((at, name, False))
            at = rest
        if body:
            uses.setdefault(body[-1], []).append((at, None, True))
        else:
            add_word(head, (), 0)
    for name in [name for name in uses if isinstance(name, str)]:
        add_word(name, (name,), grammar.counters.need.get(name, 0))
    while todo:
        symbol, word, taken = todo.popleft()
        for whole, beside, first in uses.get(symbol, ()):
            if beside is None:
                add_word(whole, word, taken)
                continue
            for other, more in [*words.get(beside, {}).items()]:
                add_word(whole, word + other if first else other + word, taken + more)
    return sorted(word for word in words.get(ROOT, ()) if not grammar.counters.pay_all(word, begin.needed))
