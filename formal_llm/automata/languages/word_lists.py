"""Listing a language: its words one by one, shorter ones first.

A prefix is kept as a chart after Earley (1970), and for the active items it is known how many terminals can still
follow. So no prefix is tried that leads to no word.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from formal_llm.automata.lookahead.cheapest import least_costs
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import State, Word
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Production, find_derivable_heads, first_sets
from formal_llm.automata.models.tabulation import Tabulation
from formal_llm.errors import InfiniteLanguage, Undecided


def words(source: CFG | PDA, max_length: int, *, order: Iterable[str] | None = None) -> Iterator[Word]:
    """Yield the words of at most ``max_length`` terminals, each once, by length and then by their terminals.

    They are generated on demand, and no prefix is tried that leads to no word of the current length.

    Args:
        source: a grammar (whose limits are ignored), or a pushdown automaton (whose limits apply).
        max_length: the maximum number of terminals.
        order: the order of the terminals; by default the order of appearance.

    Raises:
        TypeError: ``source`` is another automaton.
    """
    grammar = _plain_grammar(source)
    ranks = {name: rank for rank, name in enumerate(source.terminals if order is None else order)}
    listed = _WordLister(grammar, max_length, ranks).list_words()
    return filter(source.keeps_limits, listed) if isinstance(source, PDA) and source.limits else listed


class _PlainGrammar:
    """The rules of a grammar that derive words, by their heads; with its start symbol and its terminals."""

    def __init__(self, productions: Iterable[Production], start: str, terminals: Iterable[str]) -> None:
        self.start, self.terminals = start, dict.fromkeys(terminals)
        rules = [(production.head, production.body) for production in productions]
        self.nullable = find_derivable_heads(rules, ())
        productive = find_derivable_heads(rules, self.terminals)
        self.by_head: dict[str, list[Word]] = {}
        for head, body in rules:
            if all(name in productive or name in self.terminals for name in body):
                self.by_head.setdefault(head, []).append(body)

    @property
    def empty(self) -> bool:
        """Whether it derives no word."""
        return self.start not in self.by_head


def _plain_grammar(source: CFG | PDA) -> _PlainGrammar:
    """Return a grammar without selections for the words of a grammar or a pushdown automaton."""
    if isinstance(source, CFG):
        return _PlainGrammar(source.expanded, source.start, source.terminals)
    if not isinstance(source, PDA):
        raise TypeError(f"words are listed for a grammar or a pushdown automaton, not for {source!r}")
    if source.is_of_cfg and source.cfg:
        return _plain_grammar(source.cfg)
    return _PlainGrammar(*_triple_construction(source), source.terminals)


class _Item(NamedTuple):
    """What is left of a body, the symbol that is derived at its end, and the column in which that began."""

    rest: Word
    head: str
    origin: int


class _Column(NamedTuple):
    """A chart at one position: for each nonterminal the items behind it, for each terminal the items after it."""

    waiting: dict[str, dict[_Item, None]]
    next: dict[str, dict[_Item, None]]


class _WordLister:
    """Lists the words of a grammar by length, using the items that are active after each prefix.

    A set of lengths is a number: bit n is set if n is one of them.
    """

    def __init__(self, grammar: _PlainGrammar, max_length: int, ranks: Mapping[str, int]) -> None:
        self._grammar = grammar
        self._max_length = max_length
        self._ranks = ranks
        self._lengths = self._all_lengths()
        self._of_rests: dict[Word, int] = {(): 1}

    def _sum_lengths(self, one: int, other: int) -> int:
        """Return the lengths of words concatenated from two parts."""
        total = 0
        for length in _bits_of(one):
            total |= other << length
        return total & ((2 << self._max_length) - 1)

    def _all_lengths(self) -> dict[str, int]:
        """Return for each symbol the lengths of the words that it derives."""
        rules = self._grammar.by_head
        found = dict.fromkeys(self._grammar.terminals, 2)
        users: dict[str, list[tuple[str, Word]]] = {}
        for head, bodies in rules.items():
            for body in bodies:
                for name in dict.fromkeys(body):
                    users.setdefault(name, []).append((head, body))
        todo = [(head, body) for head, bodies in rules.items() for body in bodies]
        while todo:
            head, body = todo.pop()
            lengths = 1
            for name in body:
                lengths = self._sum_lengths(lengths, found.get(name, 0))
            old = found.get(head, 0)
            if lengths & ~old:
                found[head] = old | lengths
                todo += users.get(head, ())
        return found

    def _lengths_of_rest(self, rest: Word) -> int:
        """Return the lengths of what the rest of a body derives."""
        at = next(at for at in range(len(rest) + 1) if rest[at:] in self._of_rests)
        for begin in reversed(range(at)):
            self._of_rests[rest[begin:]] = self._sum_lengths(
                self._lengths.get(rest[begin], 0), self._of_rests[rest[begin + 1 :]]
            )
        return self._of_rests[rest]

    def _remaining_lengths(self, items: Iterable[_Item], left: list[dict[str, int]]) -> int:
        """Return how many terminals can follow up to the end of the word when these items are active.

        ``left`` contains the same for the symbols that began at each position, from their end on.
        """
        lengths = 0
        for rest, head, origin in items:
            after = left[origin].get(head, 0) if origin >= 0 else 1
            lengths |= self._sum_lengths(self._lengths_of_rest(rest), after)
        return lengths

    def _append_column(self, columns: list[_Column], items: Iterable[_Item], left: list[dict[str, int]]) -> _Column:
        """Append the column of these items, and to ``left`` what can follow the symbols that begin in it."""
        here, grammar = len(columns), self._grammar
        column = _Column({}, {})
        columns.append(column)
        todo = list(items)
        seen = set(todo)
        for item in todo:  # the list grows
            if not item.rest:
                # What begins and ends here derives ε, and whatever waits for it has stepped over it.
                waiting = columns[item.origin].waiting if 0 <= item.origin < here else {}
                found = list(waiting.get(item.head, ()))
            else:
                name, after = item.rest[0], item._replace(rest=item.rest[1:])
                if name in grammar.terminals:
                    column.next.setdefault(name, {})[after] = None
                    continue
                column.waiting.setdefault(name, {})[after] = None
                found = [_Item(body, name, here) for body in grammar.by_head.get(name, ())]
                found += [after] if name in grammar.nullable else []
            for one in found:
                if one not in seen:
                    seen.add(one)
                    todo.append(one)
        own: dict[str, int] = {}
        left.append(own)
        changed = True
        while changed:
            changed = False
            for symbol, waiters in column.waiting.items():
                lengths = self._remaining_lengths(waiters, left)
                if lengths != own.get(symbol, 0):
                    own[symbol], changed = lengths, True
        return column

    def list_words(self) -> Iterator[Word]:
        if not self._grammar.empty:
            for length in _bits_of(self._lengths.get(self._grammar.start, 0)):
                yield from self._words_of_length(length)

    def _words_of_length(self, length: int) -> Iterator[Word]:
        word: list[str] = []
        columns: list[_Column] = []
        left: list[dict[str, int]] = []
        branches: list[Iterator[tuple[str, dict[_Item, None]]]] = []
        items = {_Item((self._grammar.start,), "", -1): None}
        while True:
            if len(word) == length:
                yield tuple(word)
            else:
                column = self._append_column(columns, items, left)
                branches.append(iter(sorted(column.next.items(), key=lambda entry: self._ranks[entry[0]])))
            while True:
                if not branches:
                    return
                del word[len(branches) - 1 :], columns[len(branches) :], left[len(branches) :]
                terminal, items = next(branches[-1], ("", {}))
                if not items:
                    branches.pop()
                elif self._remaining_lengths(items, left) >> (length - len(word) - 1) & 1:
                    word.append(terminal)
                    break


def _bits_of(number: int) -> list[int]:
    """Return the places of the ones in a number."""
    return [at for at, digit in enumerate(bin(number)[:1:-1]) if digit == "1"]


def _triple_construction(pda: PDA) -> tuple[list[Production], str]:
    """Return a grammar for the language of an automaton: its productions and its start symbol.

    The triple construction (Hopcroft, Motwani and Ullman, section 6.3.2): a nonterminal for what is read from one state
    to another while some symbols are popped, and one for what is read until a final state is entered before that.
    """
    table = Tabulation(pda, lambda _, at: at)
    names: dict[tuple[Any, ...], str] = {}
    productions: list[Production] = []
    todo: list[tuple[State, tuple[str | None, ...], State | None]] = []

    def name_nonterminal(state: State, stack: tuple[str | None, ...], target: State | None) -> str:
        """Return the nonterminal for popping ``stack`` from ``state`` to ``target``; None: for accepting before."""
        key = (state, stack, target)
        if key not in names:
            names[key] = f"\0{len(names)}"
            todo.append(key)
        return names[key]

    start = name_nonterminal(pda.start_state, (*pda.start_stack, None), None)
    while todo:
        state, stack, target = todo.pop()
        head = names[state, stack, target]
        if not stack:
            if state == target:
                productions.append(Production(head, ()))
        elif len(stack) > 1:
            top, rest = stack[:1], stack[1:]
            if target is None:
                productions.append(Production(head, (name_nonterminal(state, top, None),)))
            for between, _ in table.find_exits(state, stack[0]):
                productions.append(
                    Production(head, (name_nonterminal(state, top, between), name_nonterminal(between, rest, target)))
                )
        else:
            if target is None and state in pda.accepting_states:
                productions.append(Production(head, ()))
            for t in pda.transitions_at(state, stack[0]):
                rest = t.push if t.pop is not None else (*t.push, *stack)
                read = () if t.read is None else (t.read,)
                productions.append(Production(head, (*read, name_nonterminal(t.target, rest, target))))
    return productions, start


def shortest_length(cfg: CFG) -> int | None:
    """Return the number of terminals of a shortest word, None for the empty language (Knuth 1977)."""
    costs = least_costs(
        (p.head, sum(name in cfg.terminals for name in p.body), [name for name in p.body if name not in cfg.terminals])
        for p in cfg.expanded
    )
    return int(costs[cfg.start]) if cfg.start in costs else None


def is_finite(cfg: CFG) -> bool:
    """Return whether the language has finitely many words (none at all counts as finite)."""
    return _plain_grammar(cfg).empty or _longest_word_length(cfg) is not None


def longest_length(cfg: CFG) -> int | None:
    """Return the number of terminals of a longest word; None for an infinite or an empty language."""
    return None if _plain_grammar(cfg).empty else _longest_word_length(cfg)


def _longest_word_length(cfg: CFG) -> int | None:
    """Return the length of the longest word of a language that is not empty, None for an infinite one.

    It is infinite if some useful symbol derives itself with more beside it. Otherwise the lengths are computed from
    the symbols that lead to no others upwards; symbols that derive each other have equal lengths.
    """
    import networkx

    grammar = _plain_grammar(cfg)
    rules = {head: bodies for head, bodies in grammar.by_head.items() if head in cfg.reachable}
    plain = [(head, body) for head, bodies in grammar.by_head.items() for body in bodies]
    begins = first_sets(plain, dict.fromkeys(grammar.terminals, 1), grammar.nullable)
    graph = networkx.DiGraph((head, name) for head in rules for body in rules[head] for name in body)
    graph.add_node(cfg.start)
    longest = dict.fromkeys(grammar.terminals, 1)
    for group in networkx.strongly_connected_components(graph):  # targets come first
        if any(
            name in group and any(begins.get(n) for n in (*body[:place], *body[place + 1 :]))
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


#: How much longer than the shortest plan the counted plans of an infinite language may be.
FURTHER = 4


@dataclass(frozen=True)
class PlanCount:
    """The number of plans, as far as it can be determined even for an infinite language.

    Attributes:
        of: the objects that were counted.
        bound: the maximum number of terminals of the counted ones, if there are infinitely many.
    """

    number: int
    of: Literal["words", "derivations"]
    bound: int | None = None

    def describe_count(self, bounded: str) -> str:
        """Format the count for display; ``bounded`` describes the bound, as in ``of at most {} terminals``."""
        figure = f"{self.number:,}{'' if self.of == 'words' else ' derivations (a plan may have several)'}"
        return figure if self.bound is None else f"infinitely many; {figure} {bounded.format(self.bound)}"


def count_plans(lookahead: Lookahead, configuration: Hashable = None) -> PlanCount:
    """Count the completions of a configuration; in an infinite language, up to a length above the shortest.

    Raises:
        Undecided: the budget was too small to count them.
    """
    try:
        return _count_plans_of(lookahead, configuration, "words")
    except Undecided as undecided:
        # Words with several derivations must be told apart; derivations can be counted without that.
        try:
            return _count_plans_of(lookahead, configuration, "derivations")
        except InfiniteLanguage:  # a cycle adds nothing
            raise undecided from None


def _count_plans_of(lookahead: Lookahead, configuration: Hashable, of: Literal["words", "derivations"]) -> PlanCount:
    try:
        return PlanCount(lookahead.count(configuration, of=of), of)
    except InfiniteLanguage:
        bound = (lookahead.shortest(configuration) or 0) + FURTHER
        return PlanCount(lookahead.count(configuration, of=of, max_length=bound), of, bound)
