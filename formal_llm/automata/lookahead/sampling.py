"""How many plans there are, and a plan at random: by distinct words and by derivations.

They are the same number where every word has one derivation; where that cannot be shown by one terminal of lookahead,
the words are listed one by one, within a budget.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.counting import DerivationCounter
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar, Way
from formal_llm.automata.lookahead.limited import LimitedConfiguration
from formal_llm.automata.lookahead.ll1 import is_unambiguous
from formal_llm.automata.models.automaton import Stack, State, Word
from formal_llm.automata.models.limits import Bound
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import Undecided

#: Words, each with what it takes from the upper bounds, as the counters pack it.
Words = dict[Word, int]
EMPTY: Words = {(): 0}


class WordEnumeration:
    """The words of configurations of one automaton under bounds.

    Args:
        grammar: the flow grammar of the automaton.
        max_words: how many words may be held at a time. A hundred times as many may be made, since a word that has
            several derivations is made several times; and as many terminals may be in them.
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

        Only new words are joined with their neighbours in a body (semi-naive evaluation), and words are kept only when
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


#: What is counted, or equally likely: distinct words, or derivations (accepting runs).
Of = Literal["words", "derivations"]


def counts_words(of: Of) -> bool:
    """Whether words are counted; ``ValueError`` where it is neither."""
    if of not in ("words", "derivations"):
        raise ValueError(f"what is counted is 'words' or 'derivations', not {of!r}")
    return of == "words"


class Sampler:
    """Counts, and samples uniformly, the completions of configurations, by derivations and by distinct words.

    Args:
        pda: the automaton.
        bounds: its bounds, in the order of the counters whose packed numbers are given.
        max_length: the most terminals of a completion, where there is such a bound.
        max_states: the budget of states of one count.
        max_words: the budget of words where they have to be held one by one.
    """

    def __init__(
        self, pda: PDA, bounds: Sequence[Bound], max_length: int | None, max_states: int, max_words: int = 50_000
    ) -> None:
        self._width = Counters(bounds).guard.bit_length()
        if max_length is not None:
            bounds = (*bounds, Bound(dict.fromkeys(pda.terminals, 1), 0, max_length, f"length <= {max_length}"))
        self._pda = pda
        self._finite = max_length is not None
        self._counting = DerivationCounter(pda, bounds, max_states)
        self._enumeration = WordEnumeration(self._counting.grammar, max_words)
        self._told: dict[tuple[State, Stack], bool] = {}
        self._base: FlowGrammar | None = None
        self._listed: dict[LimitedConfiguration, list[Word]] = {}

    def count(self, configuration: LimitedConfiguration, *, words: bool) -> int:
        """The number of completions of a configuration: distinct words, or derivations; raises as :meth:`sample`."""
        configuration = self._add_length_bound(configuration)
        if not words or self._is_unambiguous(configuration):
            return self._count_derivations(configuration)
        return len(self._list_words(configuration))

    def sample(self, configuration: LimitedConfiguration, rng: random.Random, *, words: bool) -> Word | None:
        """A completion, all words (or all derivations) equally likely; None where there is none.

        Raises:
            InfiniteLanguage: there are infinitely many.
            Undecided: a budget is spent.
        """
        configuration = self._add_length_bound(configuration)
        if words and not self._is_unambiguous(configuration):
            listed = self._list_words(configuration)
            return rng.choice(listed) if listed else None
        if not self._count_derivations(configuration):
            return None
        word: list[str] = []
        while True:
            # Stopping here is one derivation; a move is as many as complete what it leads to.
            stops = int(not configuration.needed and self._pda.accepting(configuration.inner))
            moves = self._pda.moves(configuration.inner)
            steps = [(move, after) for move in moves if (after := self._step_configuration(configuration, move))]
            weights = [stops, *(self._count_derivations(after) for _, after in steps)]
            chosen = _draw_index(weights, rng)
            if not chosen:
                return tuple(word)
            move, configuration = steps[chosen - 1]
            if move.read is not None:
                word.append(move.read)

    def _add_length_bound(self, configuration: LimitedConfiguration) -> LimitedConfiguration:
        """A configuration of the limited automaton with the bound on the length added."""
        length = self._counting.counters.remaining >> self._width << self._width
        return configuration._replace(remaining=configuration.remaining | length)

    def _count_derivations(self, configuration: LimitedConfiguration) -> int:
        (state, stack), remaining, needed = configuration
        return self._counting.count_derivations(state, stack, remaining, needed)

    def _is_unambiguous(self, configuration: LimitedConfiguration) -> bool:
        """Whether every word is known to have one derivation."""
        state, stack = configuration.inner
        known = self._told.get((state, stack))
        if known is None:
            known = self._told[state, stack] = is_unambiguous(
                self._counting.grammar, state, stack
            ) or self._is_unambiguous_by_factors(state, stack)
        return known

    def _is_unambiguous_by_factors(self, state: State, stack: Stack) -> bool:
        """Whether a product is unambiguous since its base is, and its constraints are deterministic.

        A run of the product is a run of each factor, and a deterministic one has no choice; so a word has as many runs
        as the base has.
        """
        if not self._pda.factors:
            return False
        base, *constraints = self._pda.factors
        if not all(map(_is_deterministic, constraints)):
            return False
        for _ in constraints:  # the state of a product is a pair: that of its base, and the constraint's
            state = state[0]  # type: ignore[index]
        if self._base is None:
            self._base = FlowGrammar(base, Counters(()))
        return is_unambiguous(self._base, state, stack)

    def _list_words(self, configuration: LimitedConfiguration) -> list[Word]:
        listed = self._listed.get(configuration)
        if listed is None:
            (state, stack), remaining, needed = configuration
            if not self._finite:
                self._counting.check_words(state, stack, remaining, needed)
            listed = self._listed[configuration] = self._enumeration.enumerate_words(state, stack, remaining, needed)
        return listed

    def _step_configuration(self, configuration: LimitedConfiguration, move: Transition) -> LimitedConfiguration | None:
        inner, remaining, needed = configuration
        counters = self._counting.counters
        if move.read is not None:
            remaining -= counters.need.get(move.read, 0)
            if remaining & counters.guard != counters.guard:
                return None
            needed = counters.pay_for(move.read, needed)
        return LimitedConfiguration(self._pda.step(inner, move), remaining, needed)


def _is_deterministic(automaton: PDA) -> bool:
    """Whether a finite automaton has one way at most to read a word: no ε, and one transition for each terminal."""
    found = {(t.state, t.read) for t in automaton.transitions}
    reads = all(t.read is not None for t in automaton.transitions)
    return reads and len(found) == len(automaton.transitions) and not automaton.uses_stack


def _draw_index(weights: Sequence[int], rng: random.Random) -> int:
    """The index of one of ``weights``, drawn in proportion to them; exact for whole numbers of any size."""
    sums = list(accumulate(weights))
    return bisect_right(sums, rng.randrange(sums[-1]))
