"""Class vectors: what limits leave, with terminals that can replace each other counted together.

Which members of a class are used does not matter for how many ways there are to go on, only how many are left. (The
resources of the search for a completion join more: for whether there is a way, limits of more than one use can be added
up as well.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.interchangeable import Packing, divide
from formal_llm.automata.lookahead.ways import Ways


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
        total_field: the number behind those of the fields, for the sum of amounts.
        guard: the guard bits.
    """

    def __init__(self, counters: Counters, ways: Ways, leaves: Collection[int], exchange: bool) -> None:
        self._counters = counters
        self._fields = divide(counters, ways, leaves, exchange=exchange, counting=True)
        self.takes = self._fields.takes
        once = {bound.terminal for bound in counters.bounds if bound.most is not None and bound.most <= 1}
        self.class_of = {name: field for name, field in self._fields.uses.items() if name in once}
        self.total_field = len(self._fields.parts)
        # Room for the sum of all that is left.
        most = sum(mask for group in self._fields.parts for _, mask in group) + 1
        self._packing = Packing(self.total_field, most)
        self.pack = self._packing.pack
        self.left = self._packing.amount
        self.guard = self._packing.guard

    def vector(self, remaining: int) -> int:
        """What ``remaining``, as the counters pack it, leaves of each field; guard bits set."""
        left = {n: sum(remaining >> s & mask for s, mask in group) for n, group in enumerate(self._fields.parts)}
        return self.pack(left) | self.guard

    def with_total(self, reads: tuple[str, ...]) -> dict[int, int]:
        """What reading terminals takes, by field, and the sum of that in a field behind the others."""
        amounts = self._fields.taken(reads)
        return {**amounts, self.total_field: sum(amounts.values())}

    def taken(self, reads: Iterable[str]) -> int:
        """What reading terminals takes, packed."""
        return self.pack(self._fields.taken(reads))

    def total(self, vector: int) -> int:
        """The sum of what is left of all fields."""
        return sum(self._packing.amounts(vector))

    def some_remaining(self, vector: int) -> int:
        """A number as the counters pack it whose vector this is: of each class the first members are left."""
        remaining = self._counters.guard
        for amount, fields in zip(self._packing.amounts(vector), self._fields.parts, strict=True):
            for shift, mask in fields:
                used = min(amount, 1 if len(fields) > 1 else mask)
                remaining |= used << shift
                amount -= used
        return remaining
