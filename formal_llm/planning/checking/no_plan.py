"""Proofs that no plan follows the rules, for those who do not want to trust this library.

A proof gives each terminal a price, so that whatever keeps the limits costs at most a bound, and shows that whatever
the automaton accepts costs more (Farkas' lemma, over the runs of the automaton), or that it accepts nothing at all.
The prices are multipliers of the limits. They are looked for by cutting planes (Kelley 1960): under some multipliers
the cheapest word is found, and where it costs no more than the limits allow, the next multipliers must price it higher.

Not everything has such a proof: that no sum of 2s is 5 is no linear argument. What a search finds has another one: sums
so far become a part of the states, and that what is left accepts nothing is written down, state by state. Where the
states are too many for that, the certificate states it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from formal_llm.automata import Limits, Lookahead, Source
from formal_llm.errors import AutomatonError, Undecided
from formal_llm.planning.checking.certificate_checker import as_automaton, list_moves, may_end
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.certificates import compiled_rules, pda_of, write_claim_head, write_exact

#: Bounds on the search for a proof: rows of the automaton, rows that are looked at, turns of relaxing before a price is
#: taken to have no end, multipliers that are tried, steps of the simplex method.
_ROWS, _WORK, _TURNS, _TRIES, _PIVOTS = 20_000, 500_000, 60, 60, 300
_UNBOUNDED = -math.inf

#: What a word uses of each limit, in whole numbers.
Uses: TypeAlias = "tuple[int, ...]"
#: The cheapest ways from a state and symbol, by the state afterwards: the price, and what a word of that price uses.
Prices: TypeAlias = "dict[tuple[int, str | None], dict[int, tuple[float, Uses]]]"


def no_plan_certificate(rules: Source, limits: Limits | None = None, *, max_states: int = 20_000) -> dict[str, JSON]:
    """The certificate that nothing follows the rules, as JSON data; see :mod:`formal_llm.planning.plans.certificates`.

    Its ``how`` is ``"reachability"`` where the automaton accepts nothing, ``"linear"`` where the limits have to be
    added up, ``"counting"`` where sums have to be followed through all runs, and ``"search"`` where that is too much:
    then there is nothing to check in it.

    Args:
        rules: a grammar, flowchart, behaviour, automaton, or a product.
        limits: more limits.
        max_states: the budget of the lookahead, which decides whether there is a plan.

    Raises:
        AutomatonError: there is a plan, or it is an automaton of one's own.
        Undecided: the lookahead does not know.
    """
    pda = pda_of(rules, limits)
    head = write_claim_head(pda, "no plan")
    compiled: Any = compiled_rules(pda)
    proof = _PriceTable(compiled).find_proof()
    if proof is not None:
        return {**head, **proof}
    verdict = Lookahead(pda, max_states=max_states).completable()
    if verdict.value == "yes":
        raise AutomatonError("there is a plan that follows these rules")
    for counted in _choose_counted(compiled["limits"]):
        proof = _PriceTable(compiled, counted).find_proof()
        if proof is not None:
            return {**head, **proof, "how": "counting"}
    if verdict.value == "unknown":
        raise Undecided(f"whether there is a plan was not decided: {verdict.how}")
    return {**head, "how": "search"}


def _choose_counted(limits: Sequence[Any]) -> Iterator[list[int]]:
    """The limits to follow through all runs, by number: those of each sum with both bounds by itself, then all."""
    for at, one in enumerate(limits):
        both = [n for n, other in enumerate(limits[:at]) if other["weights"] == one["weights"]]
        if both:
            yield [*both, at]
    if limits:
        yield list(range(len(limits)))


class _PopRow(NamedTuple):
    """A way to take a symbol off: from a state, with what is used, to a state, with symbols put in its place."""

    state: int
    symbol: str | None
    uses: Uses
    target: int
    pushed: tuple[str | None, ...]


class _PriceTable:
    """The rows of compiled rules, and the cheapest words over them."""

    def __init__(self, rules: Any, counted: Sequence[int] = ()) -> None:
        self._rules, self._counted = rules, list(counted)
        self._base = rules["automaton"] if "automaton" in rules else as_automaton(rules["grammar"])
        self._limits = rules["limits"]
        # Of each limit all numbers are scaled to whole ones; a lower limit counts negatively.
        self._scales = [
            math.lcm(*(Fraction(amount).denominator for amount in (*one["weights"].values(), _read_bound(one))))
            for one in self._limits
        ]
        self._signs = [1 if "at_most" in one else -1 for one in self._limits]
        self._bounds = self._sign_amounts([_read_bound(one) for one in self._limits])
        self._nothing: Uses = (0,) * len(self._limits)
        self._uses = {step: self._count_uses(step) for step in {t[1] for t in self._base["transitions"]}}
        self.states: list[tuple[Any, ...]] = []
        self._rows: list[_PopRow] | None = self._build_rows()
        self._work = 0

    def _sign_amounts(self, amounts: Sequence[Any]) -> Uses:
        parts = zip(self._signs, self._scales, amounts, strict=True)
        return tuple(sign * int(Fraction(amount) * scale) for sign, scale, amount in parts)

    def _count_uses(self, step: str | None) -> Uses | None:
        """What a step uses of each limit; None where it breaks one by itself."""
        amounts = [Fraction(one["weights"].get(step, 0)) for one in self._limits]
        if any(
            "at_most" in one and amount > _read_bound(one) for amount, one in zip(amounts, self._limits, strict=True)
        ):
            return None
        return self._sign_amounts(amounts)

    def _build_rows(self) -> list[_PopRow] | None:
        """All rows; None where they are too many."""
        parts = [self._base, *self._rules["constraints"]]
        counted = [self._limits[number] for number in self._counted]
        place = {(*(one["start"] for one in parts), *[0] * len(counted)): 0}
        named = {*self._base["stack"], *(name for t in self._base["transitions"] for name in (t[2], *t[4]))} - {None}
        every: list[str | None] = [*sorted(named), None]
        rows: list[_PopRow] = []
        todo = list(place)
        for state in todo:
            here = place[state]
            if may_end(state, parts, counted):
                ends = [None] if "grammar" in self._rules else every
                rows += [_PopRow(here, symbol, self._nothing, -1, ()) for symbol in ends]
            for step, popped, target, pushed in list_moves(state, parts, counted):
                uses = self._uses[step] if step is not None else self._nothing
                if uses is None:
                    continue
                if target not in place:
                    place[target] = len(place)
                    todo.append(target)
                for symbol in [popped] if popped is not None else every:
                    after = pushed if popped is not None else [*pushed, symbol]
                    rows.append(_PopRow(here, symbol, uses, place[target], tuple(after)))
            if len(rows) > _ROWS:
                return None
        self.states = todo
        return rows[::-1]  # what is written last is often used by what is written first

    def find_proof(self) -> dict[str, JSON] | None:
        """The part of a certificate that proves that there is no plan; None where none is found."""
        if self._rows is None:
            return None
        words: list[Uses] = []
        rays: list[Uses] = []
        for multipliers in self._propose_multipliers(words, rays):
            prices = self._relax_prices(multipliers, rays)
            if self._work > _WORK:
                return None
            least = self._price_start(prices)
            bound = sum(m * edge for m, edge in zip(multipliers, self._bounds, strict=True))
            if least is None or least[0] > bound:
                return self._write_proof("linear" if any(multipliers) else "reachability", multipliers, prices)
            # By how much the cheapest word breaks each limit.
            words.append(tuple(used - edge for used, edge in zip(least[1], self._bounds, strict=True)))
            if max(words[-1], default=0) <= 0:
                return None  # this word keeps all limits
        return None

    def _propose_multipliers(self, words: list[Uses], rays: list[Uses]) -> Iterator[Uses]:
        """Multipliers worth trying: none, each limit by itself, several; not those that words found so far refute."""
        count = len(self._nothing)
        yield self._nothing
        for number in range(count):
            if all(word[number] > 0 for word in words):
                yield tuple(int(place == number) for place in range(count))
        for _ in range(_TRIES):
            found = _find_separating_weights(words, rays, count)
            if found is None:
                return
            scale = math.lcm(*(one.denominator for one in found))
            yield tuple(int(one * scale) for one in found)

    def _relax_prices(self, multipliers: Uses, rays: list[Uses]) -> Prices:
        """The least price of every way to take a symbol off, and what it uses; relaxed until nothing changes.

        What makes a way cheaper and cheaper is added to ``rays``: multipliers must not make it cheap.
        """
        prices: Prices = {}
        assert self._rows is not None
        changed, turn = True, 0
        while changed:
            changed, turn = False, turn + 1
            self._work += len(self._rows)
            for row in self._rows:
                if self._work > _WORK:
                    return prices
                price = sum(m * used for m, used in zip(multipliers, row.uses, strict=True))
                for end, (value, uses) in _price_stack({row.target: (price, row.uses)}, row.pushed, prices).items():
                    self._work += 1
                    known = prices.setdefault((row.state, row.symbol), {})
                    if end in known and value >= known[end][0]:
                        continue
                    changed = True
                    if turn >= _TURNS and end in known:
                        ray = tuple(new - old for new, old in zip(uses, known[end][1], strict=True))
                        rays += [ray] if ray not in rays else []
                    known[end] = (value if turn < _TURNS else _UNBOUNDED), uses
        return prices

    def _price_start(self, prices: Prices) -> tuple[float, Uses] | None:
        return _price_stack({0: (0, self._nothing)}, (*self._base["stack"], None), prices).get(-1)

    def _write_proof(self, how: str, multipliers: Uses, prices: Prices) -> dict[str, JSON]:
        rows = [
            [state, symbol, end, None if value == _UNBOUNDED else int(value)]
            for (state, symbol), ends in prices.items()
            for end, (value, _) in ends.items()
        ]
        scaled = [multiplier * scale for multiplier, scale in zip(multipliers, self._scales, strict=True)]
        base = len(self._rules["constraints"]) + 1
        states = [[*one[:base], *(write_exact(total) for total in one[base:])] for one in self.states]
        counted = {"counted": self._counted} if self._counted else {}
        return {"how": how, **counted, "multipliers": scaled, "states": states, "prices": rows}


def _read_bound(limit: Any) -> Fraction:
    return Fraction(limit.get("at_most", limit.get("at_least")))


def _price_stack(
    reached: dict[int, tuple[float, Uses]], stack: Sequence[str | None], prices: Prices
) -> dict[int, tuple[float, Uses]]:
    """The cheapest ways to take a stack off, by state; those that have accepted are at -1."""
    for symbol in stack:
        after = {-1: reached[-1]} if -1 in reached else {}
        for state, (price, uses) in reached.items():
            for end, (more, used) in prices.get((state, symbol), {}).items():
                if end not in after or price + more < after[end][0]:
                    after[end] = price + more, tuple(map(sum, zip(uses, used, strict=True)))
        reached = after
    return reached


def _find_separating_weights(words: Sequence[Uses], rays: Sequence[Uses], count: int) -> list[Fraction] | None:
    """Weights from 0 on, 1 in all, that price the words as high as can be and no ray below 0; None if at most 0.

    The simplex method with Bland's rule, exactly: maximise t where t - w·word <= 0, -w·ray <= 0, w·1 <= 1. No weights
    at all keep this, so it can start.
    """
    table = [[*(Fraction(-used) for used in word), Fraction(1), Fraction(0)] for word in words]
    table += [[*(Fraction(-used) for used in ray), Fraction(0), Fraction(0)] for ray in rays]
    table += [[*[Fraction(1)] * count, Fraction(0), Fraction(1)]]
    gain = [*[Fraction(0)] * count, Fraction(1), Fraction(0)]
    outside = list(range(count + 1))  # the variables that are 0: weights, then t; further numbers are the rows' slacks
    inside = [count + 1 + number for number in range(len(table))]
    for _ in range(_PIVOTS):
        column = min((n for n in range(count + 1) if gain[n] > 0), key=lambda n: outside[n], default=None)
        if column is None:
            weights = {variable: row[-1] for variable, row in zip(inside, table, strict=True)}
            return [weights.get(n, Fraction(0)) for n in range(count)] if weights.get(count, 0) > 0 else None
        ratios = [(row[-1] / row[column], inside[n], n) for n, row in enumerate(table) if row[column] > 0]
        pivot = min(ratios)[2]
        outside[column], inside[pivot] = inside[pivot], outside[column]
        unit = table[pivot][column]
        table[pivot] = [value / unit for value in table[pivot]]
        table[pivot][column] = 1 / unit
        for row in [*(row for n, row in enumerate(table) if n != pivot), gain]:
            share = row[column]
            if share:
                row[:] = [value - share * other for value, other in zip(row, table[pivot], strict=True)]
                row[column] = -share / unit
    return None
