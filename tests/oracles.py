"""Slow and simple answers to the questions that the library answers fast.

Everything here is made from plain data (the productions of a grammar, the transitions of an automaton, the fields of
limits) and uses none of the library's algorithms.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

Word = tuple[str, ...]
INF = float("inf")


# -- grammars -----------------------------------------------------------------------------------------------------


def spelled_out(symbol: str) -> list[Word] | None:
    """Every non-empty subset that ``some(a, b, c)`` stands for; None for an ordinary symbol."""
    if not (symbol.startswith("some(") and symbol.endswith(")")):
        return None
    names = symbol[len("some(") : -1].split(", ")
    return [chosen for size in range(1, len(names) + 1) for chosen in itertools.combinations(names, size)]


def rules(cfg: Any) -> dict[str, list[Word]]:
    """The bodies of each nonterminal; each selection is a nonterminal with one body for each subset."""
    table: dict[str, list[Word]] = {}
    for production in cfg.productions:
        table.setdefault(production.head, []).append(production.body)
        for name in production.body:
            subsets = spelled_out(name)
            if subsets is not None:
                table[name] = subsets
    return table


def to_pyformlang(cfg: Any) -> Any:
    """The grammar as a grammar of pyformlang."""
    from pyformlang.cfg import CFG, Epsilon, Production, Terminal, Variable

    table = rules(cfg)
    made = set()
    for head, bodies in table.items():
        for body in bodies:
            right = [Variable(name) if name in table else Terminal(name) for name in body]
            made.add(Production(Variable(head), right or [Epsilon()]))
    return CFG(start_symbol=Variable(cfg.start), productions=made)


def alphabet(cfg: Any) -> list[str]:
    table = rules(cfg)
    return list(
        dict.fromkeys(name for bodies in table.values() for body in bodies for name in body if name not in table)
    )


def language(cfg: Any, up_to: int) -> set[Word]:
    """All words of at most ``up_to`` terminals: the least fixpoint of the equations that the productions are."""
    table = rules(cfg)
    known: dict[str, list[set[Word]]] = {head: [set() for _ in range(up_to + 1)] for head in table}  # by length
    changed = True
    while changed:
        changed = False
        for head, bodies in table.items():
            for body in bodies:
                parts: list[set[Word]] = [{()}, *(set() for _ in range(up_to))]
                for name in body:
                    right = known[name] if name in table else [set(), {(name,)}]
                    parts = [
                        {u + v for k in range(n + 1) if n - k < len(right) for u in parts[k] for v in right[n - k]}
                        for n in range(up_to + 1)
                    ]
                for words, found in zip(known[head], parts, strict=True):
                    changed = changed or not found <= words
                    words |= found
    return set().union(*known[cfg.start])


def all_words(letters: Iterable[str], up_to: int) -> Iterator[Word]:
    letters = list(letters)
    return itertools.chain.from_iterable(itertools.product(letters, repeat=length) for length in range(up_to + 1))


# -- pushdown automata -------------------------------------------------------------------------------------------


def runs(pda: Any, word: Sequence[str], *, max_depth: int = 8, max_seen: int = 4_000) -> bool | None:
    """Whether ``pda`` accepts, by breadth-first search; None where the search was cut before it found out."""
    begin = (pda.start_state, tuple(pda.start_stack), 0)
    todo, seen, cut = deque([begin]), {begin}, False
    while todo:
        state, stack, at = todo.popleft()
        if at == len(word) and state in pda.accepting_states:
            return True
        for t in pda.transitions:
            if t.state != state or (t.pop is not None and stack[:1] != (t.pop,)):
                continue
            if t.read is not None and (at == len(word) or word[at] != t.read):
                continue
            below = stack[1:] if t.pop is not None else stack
            following = (t.target, (*t.push, *below), at + (t.read is not None))
            if len(following[1]) > max_depth + len(word) or len(seen) >= max_seen:
                cut = True
            elif following not in seen:
                seen.add(following)
                todo.append(following)
    return None if cut else False


def accepted(pda: Any, up_to: int, *, max_depth: int = 8, max_seen: int = 20_000) -> set[Word] | None:
    """The words of at most ``up_to`` terminals that ``pda`` accepts; None where the search was cut."""
    begin = (pda.start_state, tuple(pda.start_stack), ())
    todo, seen, found = deque([begin]), {begin}, set[Word]()
    while todo:
        state, stack, word = todo.popleft()
        if state in pda.accepting_states:
            found.add(word)
        for t in pda.transitions:
            if t.state != state or (t.pop is not None and stack[:1] != (t.pop,)):
                continue
            below = stack[1:] if t.pop is not None else stack
            following = (t.target, (*t.push, *below), word if t.read is None else (*word, t.read))
            if len(following[2]) > up_to or following in seen:
                continue
            if len(following[1]) > max_depth + up_to or len(seen) >= max_seen:
                return None
            seen.add(following)
            todo.append(following)
    return found


# -- limits -------------------------------------------------------------------------------------------------------


def amount(value: float | Decimal) -> Fraction:
    return Fraction(value) if isinstance(value, Decimal) else Fraction(str(value))


def bounds_of(
    limits: Any, letters: Iterable[str], symbols: Mapping[str, Any]
) -> list[tuple[dict[str, Fraction], Any, Any]]:
    """Limits as (weights, least or None, most or None), from their public fields."""
    found: list[tuple[dict[str, Fraction], Any, Any]] = []
    for name in letters:
        most = limits.at_most.get(name, limits.default)
        if most is not None:
            found.append(({name: Fraction(1)}, None, Fraction(most)))
        if name in limits.at_least:
            found.append(({name: Fraction(1)}, Fraction(limits.at_least[name]), None))
    for bound in limits.sums:
        weights = {
            name: amount(symbol.numbers[bound.quantity])
            for name, symbol in symbols.items()
            if bound.quantity in symbol.numbers
        }
        if bound.at_most is not None:
            found.append((weights, None, amount(bound.at_most)))
        if bound.at_least is not None:
            found.append((weights, amount(bound.at_least), None))
    return found


def keeps(word: Iterable[str], limits: Any, letters: Iterable[str], symbols: Mapping[str, Any]) -> bool:
    """Whether a word keeps all limits."""
    word = list(word)
    for weights, least, most in bounds_of(limits, letters, symbols):
        total = sum((weights.get(name, Fraction(0)) for name in word), Fraction(0))
        if (most is not None and total > most) or (least is not None and total < least):
            return False
    return True


# -- the cheapest completion of any configuration, exactly -------------------------------------------------------

Vector = tuple[Fraction, ...]
Costs = dict[Any, int]


class Completions:
    """The cheapest completion of every configuration of a PDA under bounds.

    What a run has used is a vector with an entry for each bound. Entries above an upper bound end the run; entries that
    have met a lower bound are cut to it. So there are finitely many vectors, and for each state and stack symbol the
    least costs of popping it, by state afterwards and vector, are a least fixpoint (Bellman and Ford's, over runs).

    ``move`` and ``read`` are the prices of a move and of a terminal.
    """

    def __init__(
        self, pda: Any, bounds: Sequence[tuple[dict[str, Fraction], Any, Any]], *, move: int, read: int
    ) -> None:
        self.pda, self.bounds, self.move, self.read = pda, list(bounds), move, read
        self.nothing: Vector = (Fraction(0),) * len(self.bounds)
        self._pop: dict[tuple[Any, str], Costs] = {}
        self._accept: dict[tuple[Any, str | None], Costs] = {}
        self._solve()

    def _plus(self, one: Vector, other: Vector) -> Vector | None:
        total = []
        for x, y, (_, least, most) in zip(one, other, self.bounds, strict=True):
            if most is not None and x + y > most:
                return None
            total.append(x + y if least is None else min(x + y, least))
        return tuple(total)

    def used(self, word: Iterable[str]) -> Vector | None:
        """The vector of a word; None where it breaks an upper bound."""
        vector: Vector | None = self.nothing
        for name in word:
            step = tuple(
                min(weights.get(name, Fraction(0)), least) if least is not None else weights.get(name, Fraction(0))
                for weights, least, _ in self.bounds
            )
            vector = self._plus(vector, step)
            if vector is None:
                return None
        return vector

    def _work_off(self, fronts: Costs, stack: Sequence[str | None]) -> tuple[Costs, Costs]:
        """(costs by (state, vector) with the whole stack gone, costs by vector of accepting before that)."""
        accepted: Costs = {}
        for top in stack:
            after: Costs = {}
            for (state, vector), cost in fronts.items():
                for more, price in self._accept.get((state, top), {}).items():
                    self._put(accepted, self._plus(vector, more), cost + price)
                if top is not None:
                    for (target, more), price in self._pop.get((state, top), {}).items():
                        total = self._plus(vector, more)
                        if total is not None:
                            self._put(after, (target, total), cost + price)
            fronts = after
        return fronts, accepted

    @staticmethod
    def _put(costs: Costs, key: Any, cost: int) -> bool:
        if key is None or costs.get(key, INF) <= cost:
            return False
        costs[key] = cost
        return True

    def _solve(self) -> None:
        tops = {*self.pda.start_stack, *(name for t in self.pda.transitions for name in t.push)}
        tops |= {t.pop for t in self.pda.transitions} - {None}
        states = {self.pda.start_state, *(s for t in self.pda.transitions for s in (t.state, t.target))}
        for state in states:
            for top in (None, *tops):
                self._accept[state, top] = {self.nothing: 0} if state in self.pda.accepting_states else {}
                if top is not None:
                    self._pop[state, top] = {}
        changed = True
        while changed:
            changed = False
            for t in self.pda.transitions:
                vector = self.used([] if t.read is None else [t.read])
                if vector is None:
                    continue
                begin = {(t.target, vector): self.move + (self.read if t.read is not None else 0)}
                for top in (t.pop,) if t.pop is not None else (None, *tops):
                    stack = t.push if t.pop is not None else (*t.push, top)
                    gone, accepted = self._work_off(begin, stack)
                    for key, cost in accepted.items():
                        changed |= self._put(self._accept[t.state, top], key, cost)
                    if top is not None:
                        for key, cost in gone.items():
                            changed |= self._put(self._pop[t.state, top], key, cost)

    def cheapest(self, state: Any, stack: Sequence[str], so_far: Iterable[str] = ()) -> float:
        """The least cost from (state, stack) to acceptance when ``so_far`` is already read; infinite for none."""
        vector = self.used(so_far)
        if vector is None:
            return INF
        _, accepted = self._work_off({(state, vector): 0}, (*stack, None))
        return min((cost for end, cost in accepted.items() if self._met(end)), default=INF)

    def _met(self, vector: Vector) -> bool:
        return all(
            value >= least for value, (_, least, _) in zip(vector, self.bounds, strict=True) if least is not None
        )


#: The price of a terminal where terminals count first and moves second.
TERMINAL = 10**6


class Reference:
    """The exact answers about a PDA under limits, each computed the slow way."""

    def __init__(self, pda: Any, limits: Any, letters: Iterable[str] | None = None) -> None:
        self.pda = pda
        #: What the limits are about: also terminals that no transition reads, where they are given.
        self.letters = list(letters or dict.fromkeys(t.read for t in pda.transitions if t.read is not None))
        self.bounds = bounds_of(limits, self.letters, pda.symbols)
        self._moves: Completions | None = None
        self._length: Completions | None = None

    def moves(self, state: Any, stack: Sequence[str], so_far: Iterable[str] = ()) -> float:
        """The least moves of a completion."""
        self._moves = self._moves or Completions(self.pda, self.bounds, move=1, read=0)
        return self._moves.cheapest(state, stack, so_far)

    def length(self, state: Any, stack: Sequence[str], so_far: Iterable[str] = ()) -> float:
        """The least number of terminals of a completion."""
        self._length = self._length or Completions(self.pda, self.bounds, move=0, read=1)
        return self._length.cheapest(state, stack, so_far)

    def length_using(self, name: str, state: Any, stack: Sequence[str], so_far: Sequence[str] = ()) -> float:
        """The least number of terminals of a completion that reads ``name`` (again)."""
        again = ({name: Fraction(1)}, Fraction(1 + min(list(so_far).count(name), 99)), None)
        return Completions(self.pda, [*self.bounds, again], move=0, read=1).cheapest(state, stack, so_far)

    @property
    def empty(self) -> bool:
        return self.moves(self.pda.start_state, self.pda.start_stack) == INF
