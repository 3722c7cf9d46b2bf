"""Limits: bounds over one whole plan.

A limit bounds how often a terminal is used, or the sum of a number that terminals carry (minutes, money). Counting
uses is the special case of weight 1, so both become a :class:`Bound`: least and most for a weighted sum over the word.
When steps may be is bounded by a :class:`~formal_llm.automata.models.timetable.Timetable`, and in which order by rules
(:class:`~formal_llm.automata.models.declare.Sentence`).

Limits only ever narrow a language: ``limits & more`` keeps the tighter of both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm

from formal_llm.automata.models.declare import Sentence
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.quantities import (
    Number,
    NumberLike,
    amount,
    amounts_by_quantity,
    format_amount,
    is_finite,
    unit_problem,
)
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.models.timetable import Timetable
from formal_llm.errors import unknown


@dataclass(frozen=True, slots=True)
class SumLimit:
    """A bound on the sum of a quantity over a plan, as in ``%limit cost <= 500`` or ``%limit 8h <= work <= 10h``.

    Args:
        at_most, at_least: a number, a ``timedelta``, or a text such as ``"1h30"`` or ``"12.50"``; the same for both is
            an exact sum. A lower bound of 0 bounds nothing, and is kept as None.

    Raises:
        ValueError: a text that is no amount.
    """

    quantity: str
    at_most: NumberLike | None = None
    at_least: NumberLike | None = None

    def __post_init__(self) -> None:
        for name in ("at_most", "at_least"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, amount(value))
        object.__setattr__(self, "at_least", self.at_least or None)

    @property
    def edges(self) -> tuple[Number | None, Number | None]:
        """The most and the least, as exact numbers."""
        return self.at_most, self.at_least  # type: ignore[return-value]  # made so above

    def parts(self) -> list[SumLimit]:
        """The upper and the lower bound, each by itself."""
        parts = [SumLimit(self.quantity, self.at_most), SumLimit(self.quantity, at_least=self.at_least)]
        return [part for part in parts if part != SumLimit(self.quantity)]

    def lines(self) -> list[str]:
        """The limit as it is written in a grammar file."""
        most, least = (None if edge is None else format_amount(edge) for edge in self.edges)
        if most is not None and least is not None:
            one = f"{self.quantity} = {most}" if most == least else f"{least} <= {self.quantity} <= {most}"
            return [f"%limit {one}"]
        return [f"%limit {self.quantity} {sign} {edge}" for sign, edge in (("<=", most), (">=", least)) if edge]


@dataclass(frozen=True, slots=True)
class Bound:
    """At least ``least`` and at most ``most`` (None: no limit) for the sum of ``weights`` over the terminals of a word.

    Weights and bounds are non-negative whole numbers; ``line`` is the limit as its author would write it; ``terminal``
    is the one whose uses are counted, None for the sum of a quantity.
    """

    weights: Mapping[str, int]
    least: int
    most: int | None
    line: str
    terminal: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", FrozenDict(self.weights))

    def holds(self, word: Iterable[str]) -> bool:
        """Whether a whole word keeps the bound."""
        total = sum([self.weights.get(name, 0) for name in word])
        return self.least <= total and (self.most is None or total <= self.most)


@dataclass(frozen=True)
class Limits:
    """Bounds over one plan.

    Args:
        at_most: for each terminal the most uses; None lifts ``default`` from it.
        at_least: for each terminal the least uses.
        default: the most uses of every terminal that ``at_most`` does not name; None for no limit.
        sums: bounds on the sums of numbers that terminals carry.
        times: when steps may be.
        rules: in which order steps may be; a rule that is a plain count belongs to ``at_most`` and ``at_least``
            (:meth:`from_sentence`).
        wordings: what messages call a limit on uses that was written as a sentence, by its line.

    Raises:
        ValueError: a negative or fractional count, a sum bounded by what is no finite number from 0, or in two units;
            with ``&``, two clocks that do not start together.

    Limits that contradict each other are legal: they describe the empty language, and planning reports that.
    """

    at_most: Mapping[str, int | None] = field(default_factory=dict)
    at_least: Mapping[str, int] = field(default_factory=dict)
    default: int | None = None
    sums: tuple[SumLimit, ...] = ()
    times: Timetable = field(default_factory=Timetable)
    rules: tuple[Sentence, ...] = ()
    wordings: Mapping[str, str] = field(default=FrozenDict(), compare=False, repr=False)

    @classmethod
    def from_sentence(cls, rule: Sentence) -> Limits:
        """The limits that a sentence sets: bounds on uses where it is a plain count, else the rule itself."""
        if not rule.counts:
            return cls(rules=(rule,))
        made = cls(
            {name: most for name, (_, most) in rule.counts.items() if most is not None},
            {name: least for name, (least, _) in rule.counts.items()},
        )
        return replace(made, wordings={line: rule.text for name in rule.counts for line in made._count_lines(name)})

    def __post_init__(self) -> None:
        # What bounds nothing is left out, so that equal limits are equal values.
        most = {name: count for name, count in self.at_most.items() if count != self.default}
        least = {name: count for name, count in self.at_least.items() if count != 0}
        for name, count in (*most.items(), *least.items(), ("every terminal", self.default)):
            if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
                raise ValueError(f"the limit on {name} must be a whole number from 0, not {count!r}")
        edges: dict[str, tuple[list[Number], list[Number]]] = {}
        for bound in self.sums:
            for value, known in zip(bound.edges, edges.setdefault(bound.quantity, ([], [])), strict=True):
                if value is not None and not is_finite(value):
                    raise ValueError(f"the limit on {bound.quantity} must be a finite number from 0, not {value!r}")
                known += [] if value is None else [value]
        for quantity, (highest, lowest) in edges.items():  # of two units neither bound is the tighter one
            problem = unit_problem(quantity, [("a limit", value) for value in (*highest, *lowest)])
            if problem is not None:
                raise ValueError(problem)
        sums = (SumLimit(name, min(high, default=None), max(low, default=None)) for name, (high, low) in edges.items())
        object.__setattr__(self, "at_most", FrozenDict(sorted(most.items())))
        object.__setattr__(self, "at_least", FrozenDict(sorted(least.items())))
        kept = sorted((bound for bound in sums if bound.parts()), key=lambda bound: bound.quantity)
        object.__setattr__(self, "sums", tuple(kept))
        object.__setattr__(self, "rules", tuple(dict.fromkeys(self.rules)))
        object.__setattr__(self, "wordings", FrozenDict(self.wordings))

    def __hash__(self) -> int:
        return hash((*self.at_most.items(), *self.at_least.items(), self.default, self.sums, self.times, self.rules))

    def __bool__(self) -> bool:
        counted = self.at_most or self.at_least or self.default is not None
        return bool(counted or self.sums or self.times or self.rules)

    def most(self, terminal: str) -> int | None:
        """The most uses of a terminal, None where there is no limit."""
        return self.at_most.get(terminal, self.default)

    def __and__(self, other: Limits) -> Limits:
        """Both at once: of each pair of bounds the tighter one."""
        names = dict.fromkeys((*self.at_most, *other.at_most))
        return replace(
            self,
            at_most={name: _least(self.most(name), other.most(name)) for name in names},
            at_least={
                name: max(self.at_least.get(name, 0), other.at_least.get(name, 0))
                for name in dict.fromkeys((*self.at_least, *other.at_least))
            },
            default=_least(self.default, other.default),
            sums=self.sums + other.sums,
            times=self.times & other.times,
            rules=self.rules + other.rules,
            wordings={**other.wordings, **self.wordings},
        )

    def lines(self, write_name: Callable[[str], str] = str) -> list[str]:
        """The limits as lines of the notations; ``write_name`` writes the name of a terminal in one of them."""
        lines = [] if self.default is None else [f"%limit {self.default}"]
        by_count: dict[tuple[str, str], list[str]] = {}
        for name, count in self.at_most.items():
            by_count.setdefault(("limit", "*" if count is None else str(count)), []).append(write_name(name))
        for name, count in self.at_least.items():
            by_count.setdefault(("require", str(count)), []).append(write_name(name))
        lines += [f"%{word} {count} {' '.join(names)}" for (word, count), names in by_count.items()]
        lines += [line for bound in self.sums for line in bound.lines()]
        return [*lines, *self.times.lines(write_name), *(f"%rule {rule}" for rule in self.rules)]

    def _count_lines(self, name: str) -> list[str]:
        """The limits on the uses of one terminal, as lines: the most, then the least."""
        most, least = self.most(name), self.at_least.get(name, 0)
        return [f"%limit {most} {name}"] * (most is not None) + [f"%require {least} {name}"] * bool(least)

    def without(self, line: str) -> Limits:
        """These limits less the one of that :attr:`Bound.line` (one terminal's limit, one sum's, or the default's)."""
        parts = [part for bound in self.sums for part in bound.parts()]
        sums = tuple(part for part in parts if part.lines() != [line])
        if len(sums) < len(parts):
            return replace(self, sums=sums)
        directive, _, name = line.split(" ", 2)
        if directive == "%require":
            return replace(self, at_least={n: c for n, c in self.at_least.items() if n != name})
        return replace(self, at_most={**self.at_most, name: None})

    @property
    def without_times(self) -> Limits:
        """These limits less the timetable."""
        return replace(self, times=Timetable()) if self.times else self

    @property
    def without_rules(self) -> Limits:
        """These limits less the rules about order."""
        return replace(self, rules=()) if self.rules else self

    def renamed(self, names: Mapping[str, str]) -> Limits:
        """The same limits on terminals of other names."""
        most = {names[name]: count for name, count in self.at_most.items()}
        least = {names[name]: count for name, count in self.at_least.items()}
        rules = tuple(rule.renamed(names) for rule in self.rules)
        return replace(self, at_most=most, at_least=least, times=self.times.renamed(names), rules=rules)

    def problem(self, terminals: Collection[str], symbols: Mapping[str, Symbol]) -> str | None:
        """What is wrong with these limits for rules with these terminals; None where nothing is.

        Unknown names are reported with the nearest known one: terminals, quantities that no terminal carries; so is a
        sum in another unit than what it sums.
        """
        for name in (*self.at_most, *self.at_least):
            if name not in terminals:
                return unknown("terminal in a limit", name, terminals)
        for rule in self.rules:
            for name in rule.names:
                if name not in terminals:
                    return f"{unknown('step', name, terminals)} in the rule {rule.text}"
        carried = amounts_by_quantity({name: symbol.numbers for name, symbol in symbols.items()})
        for limit in self.sums:
            if limit.quantity not in carried:
                there = f"; quantities are {', '.join(carried)}" if carried else ""
                return f"{unknown('quantity in a limit', limit.quantity, carried)}; no terminal carries it{there}"
            edges = [("the limit", edge) for edge in limit.edges if edge is not None]
            problem = unit_problem(limit.quantity, [*carried[limit.quantity], *edges])
            if problem is not None:
                return problem
        return self.times.problem(terminals, symbols)

    def bounds(self, terminals: Iterable[str], numbers: Mapping[str, Mapping[str, Number]]) -> list[Bound]:
        """The limits over a known alphabet, one :class:`Bound` each.

        Args:
            terminals: the alphabet, in a fixed order.
            numbers: for a terminal the numbers it carries, by quantity.
        """
        bounds = []
        alphabet = tuple(terminals)
        for name in alphabet:
            most, least = self.most(name), self.at_least.get(name, 0)
            if most is not None:
                bounds.append(Bound({name: 1}, 0, most, f"%limit {most} {name}", name))
            if least:
                bounds.append(Bound({name: 1}, least, None, f"%require {least} {name}", name))
        for limit in self.sums:
            weights = {t: numbers[t][limit.quantity] for t in alphabet if limit.quantity in numbers.get(t, {})}
            bounds += [_whole_number_bound(part, weights, line) for part in limit.parts() for line in part.lines()]
        return bounds


def _whole_number_bound(limit: SumLimit, weights: Mapping[str, Number], line: str) -> Bound:
    """The sum limit, which has one edge, scaled so that all its numbers are whole."""
    amounts = {name: Fraction(amount(weight)) for name, weight in weights.items()}
    most, least = (None if edge is None else Fraction(edge) for edge in limit.edges)
    scale = lcm(*(value.denominator for value in (*amounts.values(), most or Fraction(), least or Fraction())))
    whole = {name: int(value * scale) for name, value in amounts.items() if value}
    return Bound(whole, int((least or 0) * scale), None if most is None else int(most * scale), line)


def _least(*counts: int | None) -> int | None:
    """The least of some counts, of which each may be missing."""
    return min((count for count in counts if count is not None), default=None)
