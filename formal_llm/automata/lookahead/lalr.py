"""Whether a shift-reduce parser with one terminal of lookahead never has a choice: then each word has one derivation.

The LALR(1) condition (DeRemer 1969; Aho, Lam, Sethi and Ullman, section 4.7). Such a parser decides at the end of what
it has read, and not at its beginning, so ``A -> f x | f y`` and left recursion are no trouble to it. The condition is
sufficient, not necessary: an unambiguous grammar may fail it, an ambiguous one cannot meet it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from formal_llm.automata.models.first_follow import first_of, first_sets
from formal_llm.automata.models.symbols import find_derivable_heads

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
