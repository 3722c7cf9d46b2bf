"""Whether one terminal of lookahead tells every choice apart: then each word has one derivation.

This is the LL(1) condition (Lewis and Stearns 1968; Aho, Lam, Sethi and Ullman, section 4.4) on the symbols that stand
for what a pushdown automaton does between pushing a stack symbol and popping it. It is sufficient, not necessary: an
unambiguous grammar may fail it.
"""

from __future__ import annotations

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar
from formal_llm.automata.models.automaton import Stack, State
from formal_llm.automata.models.first_follow import first_of, first_sets, follow_sets
from formal_llm.automata.models.symbols import closure

#: A flow symbol by its index, or a terminal by its name.
_Name = int | str
#: The head of the rule whose body is what lies on the stack.
_START = -1


def tells_apart(grammar: FlowGrammar, state: State, stack: Stack) -> bool:
    """Whether every completion of (state, stack), read as a word, has one run only.

    False also where the automaton leaves it open in which state a stack symbol is popped.
    """
    sequence: list[int] = []
    while True:
        ways = grammar.resolve(state, stack.top, stack.rest)
        if len(ways) != 1:
            return not ways
        symbol, target = ways[0]
        sequence.append(symbol.index)
        if target is ACCEPTING:
            break
        state, stack = target, stack.rest
    if any(grammar.symbols[index].least_steps == INFINITE for index in sequence):
        return True
    reached = grammar.reached(sequence)
    bodies = {index: _bodies(grammar, index) for index in reached}
    rules: list[tuple[_Name, tuple[_Name, ...]]] = [(head, body) for head in reached for body in bodies[head]]
    rules.append((_START, tuple(sequence)))
    read = dict.fromkeys(name for _, body in rules for name in body if isinstance(name, str))
    terminals: dict[_Name, int] = {name: 1 << number for number, name in enumerate(read)}
    nullable = closure(rules, ())
    first = first_sets(rules, terminals, nullable)
    follow = follow_sets(rules, terminals, nullable, first)
    for index in reached:
        seen, empty = 0, False
        for body in bodies[index]:
            starts, vanishes = first_of(body, nullable, first)
            if vanishes:
                if empty:
                    return False
                empty = True
                starts |= follow.get(index, 0)
            if seen & starts:
                return False
            seen |= starts
    return True


def _bodies(grammar: FlowGrammar, index: int) -> list[tuple[_Name, ...]]:
    """The ways of a symbol as bodies of rules."""
    ways = grammar.alive(grammar.symbols[index])
    return [way.children if way.read is None else (way.read, *way.children) for way in ways]
