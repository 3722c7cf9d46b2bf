"""Whether one terminal of lookahead decides every choice: then each word has one derivation.

Its symbols are the ways of a pushdown automaton between pushing a stack symbol and popping it. The LL(1) condition
(Lewis and Stearns 1968; Aho, Lam, Sethi and Ullman, section 4.4) is checked first, since it takes little; where that
fails, the LALR(1) condition (:mod:`formal_llm.automata.lookahead.ll1`), which distinguishes what begins
alike. Both are sufficient, not necessary: an unambiguous grammar may fail them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar
from formal_llm.automata.models.automaton import Stack, State
from formal_llm.automata.models.symbols import find_derivable_heads, first_of, first_sets, follow_sets

#: A nonterminal is a number, a terminal a name.
Name = int | str
Rule = tuple[Name, tuple[Name, ...]]
#: (the number of a rule, how much of its body has been read).
_Item = tuple[int, int]


def is_lalr(rules: Sequence[Rule], start: int, *, max_items: int = 300_000) -> bool:
    """Whether a grammar meets the LALR(1) condition; False also where more items would have to be looked at.

    Args:
        rules: (head, body), each once.
        start: the start symbol.
        max_items: how many items of rules are looked at; about a million a second.
    """
    return _ParserStates(rules, start).has_no_choice(max_items)


class _ParserStates:
    """The states of the parser: sets of items, each with the terminals that may follow its rule, as bits."""

    def __init__(self, rules: Sequence[Rule], start: int) -> None:
        self._end = len(rules)
        #: The last rule is that of the whole: it is never an alternative of another one.
        self._rules: list[Rule] = [*rules, (-(1 << 62), (start,))]
        read = dict.fromkeys(name for _, body in rules for name in body if isinstance(name, str))
        self._bits: dict[Name, int] = {name: 2 << number for number, name in enumerate(read)}  # 1 is the end
        self._nullable: Container[Name] = find_derivable_heads(self._rules, ())
        self._first: Mapping[Name, int] = first_sets(self._rules, self._bits, self._nullable)
        self._of: dict[Name, list[int]] = {}
        for number, (head, _) in enumerate(rules):
            self._of.setdefault(head, []).append(number)
        self._after: dict[_Item, tuple[int, bool]] = {}

    def has_no_choice(self, max_items: int) -> bool:
        """Whether no state can both shift and reduce, or reduce in two ways, before the same terminal."""
        begin = frozenset([(self._end, 0)])
        states: dict[frozenset[_Item], dict[_Item, int]] = {begin: {(self._end, 0): 1}}
        todo = [begin]
        waiting = {begin}
        while todo:
            core = todo.pop()
            waiting.discard(core)
            items = self._close_state(states[core])
            max_items -= len(items)
            if max_items < 0 or self._has_choice(items):
                return False
            for kernel in self._shift_states(items).values():
                target = frozenset(kernel)
                known = states.setdefault(target, {})
                grown = False
                for item, bits in kernel.items():
                    if item not in known or bits & ~known[item]:
                        known[item] = known.get(item, 0) | bits
                        grown = True
                if grown and target not in waiting:
                    waiting.add(target)
                    todo.append(target)
        return True

    def _close_state(self, kernel: Mapping[_Item, int]) -> dict[_Item, int]:
        """A state with the rules that may begin in it."""
        items = dict(kernel)
        follow: dict[Name, int] = {}
        todo: list[_Item] = [*kernel]
        while todo:
            item = todo.pop()
            number, place = item
            body = self._rules[number][1]
            if place == len(body) or isinstance(body[place], str):
                continue
            head = body[place]
            bits, open_end = self._first_behind(item)
            if open_end:
                bits |= items[item]
            if head not in follow or bits & ~follow[head]:
                follow[head] = follow.get(head, 0) | bits
                for other in self._of.get(head, ()):
                    items[other, 0] = items.get((other, 0), 0) | bits
                    todo.append((other, 0))
        return items

    def _first_behind(self, item: _Item) -> tuple[int, bool]:
        """(what may begin behind the next symbol of an item, whether all that may be empty)."""
        found = self._after.get(item)
        if found is None:
            number, place = item
            found = self._after[item] = first_of(self._rules[number][1][place + 1 :], self._nullable, self._first)
        return found

    def _has_choice(self, items: Mapping[_Item, int]) -> bool:
        seen = 0
        for (number, place), bits in items.items():
            body = self._rules[number][1]
            if place == len(body):
                if seen & bits:
                    return True
                seen |= bits
        return any(
            self._bits[body[place]] & seen
            for number, place in (items if seen else ())
            if place < len(body := self._rules[number][1]) and isinstance(body[place], str)
        )

    def _shift_states(self, items: Mapping[_Item, int]) -> dict[Name, dict[_Item, int]]:
        """The states after each symbol."""
        after: dict[Name, dict[_Item, int]] = {}
        for (number, place), bits in items.items():
            body = self._rules[number][1]
            if place < len(body):
                after.setdefault(body[place], {})[number, place + 1] = bits
        return after


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

    A symbol that can be worked off in one way only is put into the same rule as what is above it.
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
