"""An automaton under limits.

The configuration of the automaton inside is joined by what is left of every bound. All bounds live in two whole
numbers, one field of bits for each: ``remaining`` (upper bounds, each field under a guard bit) and ``needed`` (lower
bounds still to be met). Subtracting a packed need and looking at the guard bits compares all fields at once, whatever
their number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from formal_llm.automata.models.automaton import Intersectable, fingerprint
from formal_llm.automata.models.limits import Bound, Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.errors import unknown


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
                self.needed |= bound.least << low_shift
                for name, weight in bound.weights.items():
                    self.dues[name] = (*self.dues.get(name, ()), (low_shift, mask, weight))
                low_shift += width
        self.remaining |= self.guard

    def affords(self, terminal: str, remaining: int) -> bool:
        """Whether the upper bounds allow one more use of ``terminal``."""
        return (remaining - self.need.get(terminal, 0)) & self.guard == self.guard

    def pay(self, terminal: str, needed: int) -> int:
        """``needed`` after one use of ``terminal``; a bound that is met stays met."""
        for shift, mask, weight in self.dues.get(terminal, ()):
            needed -= min(needed >> shift & mask, weight) << shift
        return needed

    def earn(self, terminal: str, paid: int) -> int:
        """``paid``, packed as ``needed`` is, after one use of ``terminal`` that is still to come."""
        for shift, mask, weight in self.dues.get(terminal, ()):
            due, so_far = self.needed >> shift & mask, paid >> shift & mask
            paid += (min(due, so_far + weight) - so_far) << shift
        return paid

    def less(self, needed: int, paid: int) -> int:
        """What is needed when ``paid`` is sure to come."""
        for (shift, mask), bound in zip(self.fields, self.bounds, strict=True):
            if bound.most is None:
                needed -= min(needed >> shift & mask, paid >> shift & mask) << shift
        return needed

    def reads(self, needed: int) -> int:
        """A lower bound of the terminals that have to be read before nothing is needed."""
        return max(
            -(-(needed >> shift & mask) // max(bound.weights.values(), default=1))
            for (shift, mask), bound in zip(self.fields, self.bounds, strict=True)
            if bound.most is None
        )

    def units(self, needed: int) -> int:
        """The sum of all that is needed."""
        return sum(
            needed >> shift & mask
            for (shift, mask), bound in zip(self.fields, self.bounds, strict=True)
            if bound.most is None
        )


class LimitedConfiguration(NamedTuple):
    """A configuration, what is left of the upper bounds and what the lower bounds still need (both packed)."""

    inner: Any
    remaining: int
    needed: int


class LimitedAutomaton(Intersectable):
    """An automaton whose words must also keep ``limits``.

    Args:
        automaton: a PDA, or anything with the Automaton protocol.
        limits: the bounds.
        terminals: the alphabet, for an automaton that does not tell its own.
    """

    def __init__(self, automaton: Any, limits: Limits, terminals: Sequence[str] | None = None) -> None:
        self.automaton = automaton
        self.limits = limits
        alphabet = tuple(automaton.terminals) if terminals is None else tuple(terminals)
        self.terminals: Mapping[str, None] = dict.fromkeys(alphabet)
        symbols = getattr(automaton, "symbols", {})
        numbers = {name: symbols[name].numbers for name in alphabet if name in symbols}
        self.counters = Counters(limits.bounds(alphabet, numbers))

    def __getattr__(self, name: str) -> Any:
        # Labels, symbols, classes ...: what the automaton inside tells about itself holds under limits too.
        if name.startswith("_") or "automaton" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.automaton, name)

    def __repr__(self) -> str:
        return f"<LimitedAutomaton: {self.automaton!r} with {len(self.counters.bounds)} bounds>"

    @cached_property
    def fingerprint(self) -> str:
        """A short name that equal automata share."""
        return fingerprint([self.automaton.fingerprint, *(bound.line for bound in self.counters.bounds)])

    def start(self) -> LimitedConfiguration:
        """The initial configuration with full counters."""
        return LimitedConfiguration(self.automaton.start(), self.counters.remaining, self.counters.needed)

    def moves(self, configuration: LimitedConfiguration) -> list[Any]:
        """The moves that the upper bounds allow."""
        inner, remaining, _ = configuration
        guard, need = self.counters.guard, self.counters.need
        return [
            move
            for move in self.automaton.moves(inner)
            if move.read is None or (remaining - need.get(move.read, 0)) & guard == guard
        ]

    def step(self, configuration: LimitedConfiguration, move: Any) -> LimitedConfiguration:
        """The configuration after a move, its terminal counted."""
        inner, remaining, needed = configuration
        read = move.read
        if read is not None:
            remaining -= self.counters.need.get(read, 0)
            if needed:
                needed = self.counters.pay(read, needed)
        return LimitedConfiguration(self.automaton.step(inner, move), remaining, needed)

    def selection(self, configuration: LimitedConfiguration) -> tuple[str, ...] | None:
        """As of the automaton inside."""
        selection = getattr(self.automaton, "selection", None)
        chosen: tuple[str, ...] | None = None if selection is None else selection(configuration.inner)
        return chosen

    def at_class(self, configuration: LimitedConfiguration) -> bool:
        """As of the automaton inside."""
        at_class = getattr(self.automaton, "at_class", None)
        return at_class is not None and bool(at_class(configuration.inner))

    def accepting(self, configuration: LimitedConfiguration) -> bool:
        """Whether the automaton inside accepts and no lower bound is open."""
        return not configuration.needed and bool(self.automaton.accepting(configuration.inner))

    def accepts(self, word: Sequence[str]) -> bool:
        """Whether the word is in the language and keeps the limits."""
        word = tuple(word)
        return not any(self.broken(word)) and bool(self.automaton.accepts(word))

    def broken(self, word: Sequence[str]) -> Iterator[Bound]:
        """The bounds that ``word`` breaks."""
        for bound in self.counters.bounds:
            total = sum(bound.weights.get(name, 0) for name in word)
            if total < bound.least or (bound.most is not None and total > bound.most):
                yield bound


def split(automaton: Any) -> tuple[Any, Limits]:
    """An automaton as the one without limits and the limits around it."""
    limits = Limits()
    while isinstance(automaton, LimitedAutomaton):
        limits = limits & automaton.limits
        automaton = automaton.automaton
    return automaton, limits


def limited(automaton: Any, limits: Limits | None = None) -> Any:
    """``automaton`` under ``limits`` besides its own: itself where there are none, never wrapped twice."""
    inner, own = split(automaton)
    # The alphabet that a wrapper was given is handed on; the automaton inside need not tell any.
    alphabet = tuple(automaton.terminals) if isinstance(automaton, LimitedAutomaton) else None
    if limits and isinstance(inner, PDA):
        _check_names(inner.terminals if alphabet is None else alphabet, limits)
    both = own & limits if limits else own
    if not both and (alphabet is None or alphabet == tuple(getattr(inner, "terminals", ()))):
        return inner
    return LimitedAutomaton(inner, both, alphabet)


def _check_names(terminals: Collection[str], limits: Limits) -> None:
    from formal_llm.errors import AutomatonError

    for name in (*limits.at_most, *limits.at_least):
        if name not in terminals:
            raise AutomatonError(unknown("terminal in a limit", name, terminals))
