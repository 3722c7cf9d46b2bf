"""Class vectors: what limits leave, with terminals that can replace each other counted together.

Terminals that may be used once, are read alone and in the same places, and weigh the same in every other limit form a
*class*. Which members of a class are used does not matter for how many ways there are to go on, only how many are left.
(The resources of the search for a completion join more: for whether there is a way, limits of more than one use can be
added up as well.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from formal_llm.automata.lookahead.tolls import Parts
from formal_llm.automata.models.limited import Counters

Ways = Mapping[int, Sequence[Parts]]


class ClassVectors:
    """The fields of class vectors, and how they are packed into one number.

    Args:
        counters: the bounds.
        ways: the ways of all flow symbols, symbols that only read a terminal merged into them.
        leaves: the symbols that only read a terminal.
        exchange: whether terminals may be joined into classes at all.

    Attributes:
        takes: what each terminal takes, by field.
        class_of: the field of each terminal that may be used once; what is left there is the number of ways to read it.
        places: where each field begins; each holds up to ``most`` under a guard bit.
        guard: the guard bits.
    """

    def __init__(self, counters: Counters, ways: Ways, leaves: Collection[int], exchange: bool) -> None:
        self._counters = counters
        self._divide(ways, leaves, exchange)

    def _divide(self, ways: Ways, leaves: Collection[int], exchange: bool) -> None:
        """Classes: terminals that may be used once, are read alone, in the same places, with the same weights."""
        places: dict[str, Counter[object]] = {}  # with how often: b T and T b are two ways
        for index, group in ways.items():
            if index not in leaves:
                for reads, children, steps in group:
                    for name in reads:
                        alone = len(reads) == 1
                        places.setdefault(name, Counter())[(index, children, steps) if alone else name] += 1
        weights: dict[str, list[tuple[int, int]]] = {}
        uses: dict[str, tuple[int, int]] = {}
        self.fields: list[list[tuple[int, int]]] = []
        for number, bound in enumerate(self._counters.bounds):
            if bound.most is None:
                continue
            if bound.terminal is not None:
                uses[bound.terminal] = (number, bound.most)
                continue
            for name, weight in bound.weights.items():
                weights.setdefault(name, []).append((len(self.fields), weight))
            self.fields.append([self._counters.fields[number]])
        classes: dict[object, int] = {}
        self.takes: dict[str, dict[int, int]] = {}
        self.class_of: dict[str, int] = {}
        for name, (number, most) in uses.items():
            shape: object = name
            if most <= 1 and exchange:
                dues = self._counters.dues.get(name, ())
                shape = (frozenset(places.get(name, Counter({name: 1})).items()), tuple(weights.get(name, ())), dues)
            if shape not in classes:
                classes[shape] = len(self.fields)
                self.fields.append([])
            self.fields[classes[shape]].append(self._counters.fields[number])
            self.takes[name] = {classes[shape]: 1}
            if most <= 1:
                self.class_of[name] = classes[shape]
        for name, sums in weights.items():
            taken = self.takes.setdefault(name, {})
            for number, weight in sums:
                taken[number] = taken.get(number, 0) + weight
        # One width for all fields, with room for the sum of all that is left.
        width = (sum(mask for group in self.fields for _, mask in group) + 1).bit_length()
        self.most = (1 << width) - 1
        self.places = [number * (width + 1) for number in range(len(self.fields))]
        self.guard = sum(1 << place + width for place in self.places)

    def pack(self, amounts: Mapping[int, int]) -> int:
        """Amounts by field as one number."""
        return sum(min(amount, self.most) << self.places[number] for number, amount in amounts.items())

    def vector(self, remaining: int) -> int:
        """What ``remaining``, as the counters pack it, leaves of each field; guard bits set."""
        left = {n: sum(remaining >> s & mask for s, mask in group) for n, group in enumerate(self.fields)}
        return self.pack(left) | self.guard

    def amounts(self, reads: Iterable[str]) -> dict[int, int]:
        """What reading terminals takes, by field."""
        total: dict[int, int] = {}
        for name in reads:
            for number, amount in self.takes.get(name, {}).items():
                total[number] = total.get(number, 0) + amount
        return total

    def with_total(self, reads: tuple[str, ...]) -> dict[int, int]:
        """The amounts, and their sum in a field behind the others."""
        amounts = self.amounts(reads)
        return {**amounts, len(self.fields): sum(amounts.values())}

    def taken(self, reads: Iterable[str]) -> int:
        """What reading terminals takes, packed."""
        return self.pack(self.amounts(reads))

    def left(self, vector: int, field: int) -> int:
        """What is left of one field."""
        return vector >> self.places[field] & self.most

    def total(self, vector: int) -> int:
        """The sum of what is left of all fields."""
        return sum([vector >> place & self.most for place in self.places])

    def some_remaining(self, vector: int) -> int:
        """A number as the counters pack it whose vector this is: of each class the first members are left."""
        remaining = self._counters.guard
        for place, fields in zip(self.places, self.fields, strict=True):
            amount = vector >> place & self.most
            for shift, mask in fields:
                used = min(amount, 1 if len(fields) > 1 else mask)
                remaining |= used << shift
                amount -= used
        return remaining
