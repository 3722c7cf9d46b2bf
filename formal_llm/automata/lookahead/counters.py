"""Counters: what is left of every bound, all bounds in two whole numbers.

Each bound has a field of bits: upper bounds in ``remaining``, each field under a guard bit, and lower bounds still to
be met in ``needed``. Subtracting a packed need and looking at the guard bits compares all fields at once, whatever
their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from formal_llm.automata.models.limits import Bound


class Counters:
    """Bounds, packed.

    Args:
        bounds: the bounds to keep.

    Attributes:
        guard: the guard bits of ``remaining``.
        remaining, needed: the packed values before anything is read (guard bits set).
        need: for each terminal in an upper bound, what it takes from ``remaining``.
        dues: for each terminal in a lower bound, the (shift, mask, weight) of the fields of ``needed`` that it lowers.
    """

    def __init__(self, bounds: Sequence[Bound]) -> None:
        self.bounds = tuple(bounds)
        self.guard = self.remaining = self.needed = 0
        self.need: dict[str, int] = {}
        self.dues: dict[str, tuple[tuple[int, int, int], ...]] = {}
        #: For each bound its field, as (shift, mask), in ``remaining`` for upper and in ``needed`` for lower bounds.
        self.fields: list[tuple[int, int]] = []
        #: For each lower bound its field, as (bound, shift, mask): there are few of them, and they are asked for often.
        self.lower: list[tuple[Bound, int, int]] = []
        shift = low_shift = 0
        for bound in self.bounds:
            if bound.most is not None:
                width = (bound.most + 1).bit_length()
                self.fields.append((shift, (1 << width) - 1))
                self.remaining |= bound.most << shift
                for name, weight in bound.weights.items():
                    # A weight above the bound can never be paid; cutting it keeps it within the field.
                    self.need[name] = self.need.get(name, 0) + (min(weight, bound.most + 1) << shift)
                shift += width
                self.guard |= 1 << shift
                shift += 1
            else:
                width = bound.least.bit_length()
                mask = (1 << width) - 1
                self.fields.append((low_shift, mask))
                self.lower.append((bound, low_shift, mask))
                self.needed |= bound.least << low_shift
                for name, weight in bound.weights.items():
                    self.dues[name] = (*self.dues.get(name, ()), (low_shift, mask, weight))
                low_shift += width
        self.remaining |= self.guard

    def can_afford(self, terminal: str, remaining: int) -> bool:
        """Whether the upper bounds allow one more use of ``terminal``."""
        return (remaining - self.need.get(terminal, 0)) & self.guard == self.guard

    def pay_for(self, terminal: str, needed: int) -> int:
        """``needed`` after one use of ``terminal``; a bound that is met stays met."""
        for shift, mask, weight in self.dues.get(terminal, ()):
            needed -= min(needed >> shift & mask, weight) << shift
        return needed

    def pay_all(self, terminals: Iterable[str], needed: int) -> int:
        """``needed`` after one use of each of ``terminals``."""
        for name in terminals if needed else ():
            needed = self.pay_for(name, needed)
        return needed

    def list_payments(self, terminals: Iterable[str]) -> tuple[tuple[int, int], ...]:
        """(the place of a lower bound's field, the weight) of each payment by one use of each of ``terminals``."""
        return tuple([(shift, weight) for name in terminals for shift, _, weight in self.dues.get(name, ())])

    def add_payment(self, terminal: str, paid: int) -> int:
        """``paid``, packed as ``needed`` is, after one use of ``terminal`` that is still to come."""
        for shift, mask, weight in self.dues.get(terminal, ()):
            due, so_far = self.needed >> shift & mask, paid >> shift & mask
            paid += (min(due, so_far + weight) - so_far) << shift
        return paid

    def subtract_paid(self, needed: int, paid: int) -> int:
        """What is needed when ``paid`` is sure to come."""
        for _, shift, mask in self.lower:
            needed -= min(needed >> shift & mask, paid >> shift & mask) << shift
        return needed

    def open_bounds(self, needed: int) -> Iterator[tuple[Bound, int, int]]:
        """The lower bounds that need something: (the bound, the place of its field in ``needed``, what it needs)."""
        for bound, shift, mask in self.lower:
            if amount := needed >> shift & mask:
                yield bound, shift, amount

    def least_reads(self, needed: int) -> int:
        """A lower bound of the terminals that have to be read before nothing is needed."""
        each = (-(-amount // max(bound.weights.values(), default=1)) for bound, _, amount in self.open_bounds(needed))
        return max(each, default=0)

    def sum_of_needs(self, needed: int) -> int:
        """The sum of all that is needed."""
        return sum([needed >> shift & mask for _, shift, mask in self.lower])
