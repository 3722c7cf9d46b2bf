"""All completions of a configuration, each word once: for automata in which a word can have several runs.

The sets of words of the flow symbols are the least solution of the equations that their ways are; they are computed by
iteration, words that break an upper bound being left out as they come up. That is exact and plain, and pays for it with
memory, so it is bounded.
"""

from __future__ import annotations

from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar
from formal_llm.automata.models.automaton import Stack, State, Word
from formal_llm.errors import Undecided

#: Words, each with what it takes from the upper bounds, as the counters pack it.
Words = dict[Word, int]


class Enumeration:
    """The words of configurations of one automaton under bounds.

    Args:
        grammar: the flow grammar of the automaton.
        max_words: how many words may be held at a time.
    """

    def __init__(self, grammar: FlowGrammar, max_words: int) -> None:
        self.grammar = grammar
        self.counters = grammar.counters
        self.max_words = max_words
        self._words: dict[int, Words] = {}

    def words(self, state: State, stack: Stack, remaining: int, needed: int) -> list[Word]:
        """The words that complete (state, stack) within what ``remaining`` and ``needed`` say, sorted.

        Raises:
            Undecided: there are too many to hold, perhaps infinitely many.
        """
        self._solve(state, stack)
        fronts: dict[State, Words] = {state: {(): 0}}
        done: Words = {}
        while fronts:
            after: dict[State, Words] = {}
            for at, words in fronts.items():
                for symbol, target in self.grammar.resolve(at, stack.top):
                    into = done if target is ACCEPTING else after.setdefault(target, {})
                    self._join(words, self._words.get(symbol.index, {}), into, remaining)
            fronts, stack = after, stack.rest
        return sorted(word for word in done if not self.counters.pay_all(word, needed))

    def _join(self, left: Words, right: Words, into: Words, remaining: int) -> bool:
        """Add all joined words that ``remaining`` allows to ``into``; whether there were new ones."""
        guard, before = self.counters.guard, len(into)
        for one, first in left.items():
            for other, second in right.items():
                rest = remaining - first
                if rest & guard == guard and (rest - second) & guard == guard and (*one, *other) not in into:
                    into[*one, *other] = first + second
                    if len(into) > self.max_words:
                        raise Undecided(
                            f"there are more than {self.max_words:,} words, perhaps infinitely many, and one word may "
                            "have several derivations; give a bound on their length (max_length), "
                            "or count derivations instead"
                        )
        return len(into) > before

    def _solve(self, state: State, stack: Stack) -> None:
        """Fill the words of all symbols that a configuration leads to."""
        begin = [symbol.index for ways in self.grammar.levels(state, stack) for symbol, _ in ways]
        reached = {index: self.grammar.symbols[index] for index in self.grammar.reached(begin)}
        if all(index in self._words for index in reached):
            return
        for index in reached:
            self._words.setdefault(index, {})
        need, full = self.counters.need, self.counters.remaining
        users: dict[int, set[int]] = {}
        for index, symbol in reached.items():
            for way in self.grammar.alive(symbol):
                for child in way.children:
                    users.setdefault(child, set()).add(index)
        work = dict.fromkeys(sorted(reached, key=lambda index: reached[index].least_steps))
        while work:
            index = next(iter(work))
            del work[index]
            grew = False
            for way in self.grammar.alive(reached[index]):
                words: Words = {(): 0} if way.read is None else {(way.read,): need.get(way.read, 0)}
                for child in way.children:
                    joined: Words = {}
                    self._join(words, self._words[child], joined, full)
                    words = joined
                grew = self._join(words, {(): 0}, self._words[index], full) or grew
            if grew:
                work.update(dict.fromkeys(users.get(index, ())))
