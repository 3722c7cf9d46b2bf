"""Whether one terminal of lookahead decides every choice: then each word has one derivation.

On the symbols that stand for what a pushdown automaton does between pushing a stack symbol and popping it. The LL(1)
condition (Lewis and Stearns 1968; Aho, Lam, Sethi and Ullman, section 4.4) is looked at first, since it takes little;
where that fails, the LALR(1) condition (:mod:`formal_llm.automata.lookahead.lalr`), which distinguishes what begins
alike. Both are sufficient, not necessary: an unambiguous grammar may fail them.
"""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar
from formal_llm.automata.lookahead.lalr import Name, Rule, is_lalr
from formal_llm.automata.models.automaton import Stack, State
from formal_llm.automata.models.first_follow import first_of, first_sets, follow_sets
from formal_llm.automata.models.symbols import find_derivable_heads

#: The head of the rules for what lies on the stack; those for what lies deeper have the numbers below.
_START = -1


def is_unambiguous(grammar: FlowGrammar, state: State, stack: Stack) -> bool:
    """Whether every completion of (state, stack), read as a word, is known to have one run only."""
    stacked = _stack_rules(grammar, state, stack)
    reached = grammar.reachable_symbols(
        {name for _, body in stacked for name in body if isinstance(name, int) and name >= 0}
    )
    rules = [*stacked, *((head, body) for head in reached for body in _bodies_of_symbol(grammar, head))]
    return _is_ll1(rules) or is_lalr(rules, _START)


def _stack_rules(grammar: FlowGrammar, state: State, stack: Stack) -> list[Rule]:
    """Rules for the ways to work off a stack: the first symbol of it in some way, then the rest from the state after.

    Where a symbol can be done with in one way only, it stands in the same rule as what is above it.
    """
    rules: list[Rule] = []
    numbers: dict[tuple[State, Stack], int] = {(state, stack): _START}
    todo = [(state, stack)]
    for begin in todo:
        for symbol, target in grammar.resolve_top(begin[0], begin[1].top, begin[1].rest):
            body: list[Name] = [symbol.index]
            at, rest = target, begin[1].rest
            while at is not ACCEPTING and len(ways := grammar.resolve_top(at, rest.top, rest.rest)) == 1:
                body.append(ways[0][0].index)
                at, rest = ways[0][1], rest.rest
            if at is not ACCEPTING:
                if (at, rest) not in numbers:
                    numbers[at, rest] = _START - len(numbers)
                    todo.append((at, rest))
                body.append(numbers[at, rest])
            rules.append((numbers[begin], tuple(body)))
    return [rule for rule in rules if _can_end(grammar, rule)]


def _can_end(grammar: FlowGrammar, rule: Rule) -> bool:
    return all(grammar.symbols[name].least_steps < INFINITE for name in rule[1] if isinstance(name, int) and name >= 0)


def _is_ll1(rules: Sequence[Rule]) -> bool:
    read = dict.fromkeys(name for _, body in rules for name in body if isinstance(name, str))
    terminals: dict[Name, int] = {name: 1 << number for number, name in enumerate(read)}
    nullable = find_derivable_heads(rules, ())
    first = first_sets(rules, terminals, nullable)
    follow = follow_sets(rules, terminals, nullable, first)
    bodies: dict[Name, list[tuple[Name, ...]]] = {}
    for head, body in rules:
        bodies.setdefault(head, []).append(body)
    for head, group in bodies.items():
        seen, empty = 0, False
        for body in group:
            starts, vanishes = first_of(body, nullable, first)
            if vanishes:
                if empty:
                    return False
                empty = True
                starts |= follow.get(head, 0)
            if seen & starts:
                return False
            seen |= starts
    return True


def _bodies_of_symbol(grammar: FlowGrammar, index: int) -> list[tuple[Name, ...]]:
    """The ways of a symbol as bodies of rules."""
    ways = grammar.live_ways(grammar.symbols[index])
    return [way.children if way.read is None else (way.read, *way.children) for way in ways]
