"""Limits: bounds over one whole plan.

A limit bounds how often a terminal is used, or the sum of a number that terminals carry (minutes, money). Counting
uses is the special case of weight 1, so both become a :class:`Bound`: least and most for a weighted sum over the word.

Limits only ever narrow a language: ``limits & more`` keeps the tighter of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf, lcm

from formal_llm.automata.models.frozen import FrozenDict


@dataclass(frozen=True, slots=True)
class SumLimit:
    """A bound on the sum of a quantity over a plan, as in ``%limit cost <= 500``."""

    quantity: str
    at_most: int | float | None = None
    at_least: int | float | None = None

    def parts(self) -> list[SumLimit]:
        """The upper and the lower bound, each by itself."""
        parts = [SumLimit(self.quantity, self.at_most), SumLimit(self.quantity, at_least=self.at_least)]
        return [part for part in parts if part != SumLimit(self.quantity)]

    def lines(self) -> list[str]:
        """The limit as it is written in a grammar file."""
        shown = [("<=", self.at_most), (">=", self.at_least)]
        return [f"%limit {self.quantity} {sign} {value}" for sign, value in shown if value is not None]


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


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value


@dataclass(frozen=True)
class Limits:
    """Bounds over one plan.

    Args:
        at_most: for each terminal the most uses; None lifts ``default`` from it.
        at_least: for each terminal the least uses.
        default: the most uses of every terminal that ``at_most`` does not name; None for no limit.
        sums: bounds on the sums of numbers that terminals carry.

    Raises:
        ValueError: a negative or fractional count, a sum bounded by what is no finite number from 0.

    Limits that contradict each other are legal: they describe the empty language, and planning says so.
    """

    at_most: Mapping[str, int | None] = field(default_factory=dict)
    at_least: Mapping[str, int] = field(default_factory=dict)
    default: int | None = None
    sums: tuple[SumLimit, ...] = ()

    def __post_init__(self) -> None:
        # What says nothing is left out, so that equal limits are equal values.
        most = {name: count for name, count in self.at_most.items() if count != self.default}
        least = {name: count for name, count in self.at_least.items() if count != 0}
        for name, count in (*most.items(), *least.items(), ("every terminal", self.default)):
            if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
                raise ValueError(f"the limit on {name} must be a whole number from 0, not {count!r}")
        merged: dict[str, SumLimit] = {}
        for bound in self.sums:
            for value in (bound.at_most, bound.at_least):
                if value is not None and not 0 <= value < inf:  # also false for nan, which compares with nothing
                    raise ValueError(f"the limit on {bound.quantity} must be a finite number from 0, not {value!r}")
            old = merged.get(bound.quantity, SumLimit(bound.quantity))
            merged[bound.quantity] = SumLimit(
                bound.quantity,
                at_most=_tighter(old.at_most, bound.at_most),
                at_least=_wider(old.at_least, bound.at_least),
            )
        object.__setattr__(self, "at_most", FrozenDict(sorted(most.items())))
        object.__setattr__(self, "at_least", FrozenDict(sorted(least.items())))
        object.__setattr__(self, "sums", tuple(merged[name] for name in sorted(merged) if merged[name].parts()))

    def __hash__(self) -> int:
        return hash((*self.at_most.items(), *self.at_least.items(), self.default, self.sums))

    def __bool__(self) -> bool:
        return bool(self.at_most or self.at_least or self.default is not None or self.sums)

    def most(self, terminal: str) -> int | None:
        """The most uses of a terminal, None where there is no limit."""
        return self.at_most.get(terminal, self.default)

    def __and__(self, other: Limits) -> Limits:
        """Both at once: of each pair of bounds the tighter one."""
        names = dict.fromkeys((*self.at_most, *other.at_most))
        return Limits(
            at_most={name: _least_of(self.most(name), other.most(name)) for name in names},
            at_least={
                name: max(self.at_least.get(name, 0), other.at_least.get(name, 0))
                for name in dict.fromkeys((*self.at_least, *other.at_least))
            },
            default=_least_of(self.default, other.default),
            sums=self.sums + other.sums,
        )

    def lines(self) -> list[str]:
        """The limits as lines of the grammar notation."""
        lines = [] if self.default is None else [f"%limit {self.default}"]
        by_count: dict[tuple[str, str], list[str]] = {}
        for name, count in self.at_most.items():
            by_count.setdefault(("limit", "*" if count is None else str(count)), []).append(name)
        for name, count in self.at_least.items():
            by_count.setdefault(("require", str(count)), []).append(name)
        lines += [f"%{word} {count} {' '.join(names)}" for (word, count), names in by_count.items()]
        return lines + [line for bound in self.sums for line in bound.lines()]

    def without(self, line: str) -> Limits:
        """These limits less the one of that :attr:`Bound.line` (one terminal's limit, one sum's, or the default's)."""
        parts = [part for bound in self.sums for part in bound.parts()]
        sums = tuple(part for part in parts if part.lines() != [line])
        if len(sums) < len(parts):
            return Limits(self.at_most, self.at_least, self.default, sums)
        directive, _, name = line.split(" ", 2)
        if directive == "%require":
            return Limits(self.at_most, {n: c for n, c in self.at_least.items() if n != name}, self.default, sums)
        return Limits({**self.at_most, name: None}, self.at_least, self.default, sums)

    def renamed(self, names: Mapping[str, str]) -> Limits:
        """The same limits on terminals of other names."""
        most = {names[name]: count for name, count in self.at_most.items()}
        return Limits(most, {names[name]: count for name, count in self.at_least.items()}, self.default, self.sums)

    def bounds(self, terminals: Iterable[str], numbers: Mapping[str, Mapping[str, int | float]]) -> list[Bound]:
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
            bounds += [_whole(part, weights, line) for part in limit.parts() for line in part.lines()]
        return bounds


def _whole(limit: SumLimit, weights: Mapping[str, int | float], line: str) -> Bound:
    """The sum limit scaled so that all its numbers are whole."""
    amounts = {name: Decimal(str(weight)) for name, weight in weights.items()}
    edge = Decimal(str(limit.at_most if limit.at_most is not None else limit.at_least))
    scale = lcm(*(value.as_integer_ratio()[1] for value in (*amounts.values(), edge)))
    whole = {name: int(value * scale) for name, value in amounts.items() if value}
    return Bound(
        whole,
        least=int(edge * scale) if limit.at_most is None else 0,
        most=None if limit.at_most is None else int(edge * scale),
        line=line,
    )


def _tighter(a: float | None, b: float | None) -> int | float | None:
    return b if a is None else a if b is None else _number(min(a, b))


def _wider(a: float | None, b: float | None) -> int | float | None:
    return b if a is None else a if b is None else _number(max(a, b))


def _least_of(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)
