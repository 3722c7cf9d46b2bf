"""All completions of a configuration, each word once: for automata in which a word can have several runs.

The sets of words of the flow symbols are the least solution of the equations that their ways are; they are computed by
iteration, words that break an upper bound being left out as they come up. That is exact and plain, and pays for it with
memory, so it is bounded.
"""

from __future__ import annotations

from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar, Way
from formal_llm.automata.models.automaton import Stack, State, Word
from formal_llm.errors import Undecided

#: Words, each with what it takes from the upper bounds, as the counters pack it.
Words = dict[Word, int]
EMPTY: Words = {(): 0}


class WordEnumeration:
    """The words of configurations of one automaton under bounds.

    Args:
        grammar: the flow grammar of the automaton.
        max_words: how many words may be held at a time. A hundred times as many may be made, since a word that has
            several derivations is made several times; and as many terminals may stand in them.
    """

    def __init__(self, grammar: FlowGrammar, max_words: int) -> None:
        self.grammar = grammar
        self.counters = grammar.counters
        self.max_words = max_words
        self._words: dict[int, Words] = {}
        self._tries = 0

    def enumerate_words(self, state: State, stack: Stack, remaining: int, needed: int) -> list[Word]:
        """The words that complete (state, stack) within the limits ``remaining`` and ``needed``, sorted.

        Raises:
            Undecided: there are too many to hold, perhaps infinitely many.
        """
        self._tries = 100 * self.max_words
        self._solve_equations(state, stack)
        fronts: dict[State, Words] = {state: EMPTY}
        done: Words = {}
        while fronts:
            after: dict[State, Words] = {}
            for at, words in fronts.items():
                for symbol, target in self.grammar.resolve_top(at, stack.top, stack.rest):
                    into = done if target is ACCEPTING else after.setdefault(target, {})
                    self._join_words(words, self._words.get(symbol.index, {}), into, remaining)
            fronts, stack = after, stack.rest
        return sorted(word for word in done if not self.counters.pay_all(word, needed))

    def _join_words(self, left: Words, right: Words, into: Words, remaining: int) -> Words:
        """``into``, with all joined words that ``remaining`` allows added."""
        self._tries -= len(left) * len(right)
        guard = self.counters.guard
        for one, first in left.items() if self._tries > 0 else ():
            for other, second in right.items():
                rest = remaining - first
                if rest & guard == guard and (rest - second) & guard == guard:
                    into[*one, *other] = first + second
            if len(into) > self.max_words:
                break
        else:
            if self._tries > 0:
                return into
        many = f"there are more than {self.max_words:,} words" if self._tries > 0 else "the words have many derivations"
        raise Undecided(
            f"{many}, perhaps infinitely many, and one word may have several derivations; "
            "give a bound on their length (max_length), or count derivations instead"
        )

    def _solve_equations(self, state: State, stack: Stack) -> None:
        """Fill the words of all symbols that a configuration leads to.

        Only new words are joined with what stands beside them (semi-naive evaluation), and words are kept only when
        all of them are found.
        """
        begin = [symbol.index for ways in self.grammar.walk_stack(state, stack) for symbol, _ in ways]
        symbols = [
            self.grammar.symbols[index] for index in self.grammar.reachable_symbols(begin) if index not in self._words
        ]
        words: dict[int, Words] = self._words | {symbol.index: {} for symbol in symbols}
        users: dict[int, list[tuple[int, Way, int]]] = {}
        fresh: dict[int, Words] = {}
        need, full = self.counters.need, self.counters.remaining

        def derive_words(index: int, way: Way, place: int, joined: Words) -> None:
            """Add the words of a way in which the child at ``place`` is one of ``joined``."""
            for child in reversed(way.children[:place]):
                joined = self._join_words(words[child], joined, {}, full)
            if way.read is not None:
                joined = self._join_words({(way.read,): need.get(way.read, 0)}, joined, {}, full)
            for child in way.children[place + 1 :]:
                joined = self._join_words(joined, words[child], {}, full)
            new = {word: cost for word, cost in joined.items() if word not in words[index]}
            if new:
                self._tries -= sum(map(len, new))
                self._join_words(new, EMPTY, words[index], full)
                fresh.setdefault(index, {}).update(new)

        for symbol in sorted(symbols, key=lambda symbol: symbol.least_steps):
            for way in self.grammar.live_ways(symbol):
                derive_words(symbol.index, way, 0, words[way.children[0]] if way.children else EMPTY)
                for place, child in enumerate(way.children):
                    users.setdefault(child, []).append((symbol.index, way, place))
        while fresh:
            index = next(iter(fresh))
            new = fresh.pop(index)
            for user, way, place in users.get(index, ()):
                derive_words(user, way, place, new)
        self._words = words
