"""An automaton under limits, with counters around it: what a walk runs on.

Rules carry their limits as a value (``CFG.limits``, ``PDA.limits``). Only here do they become something that counts:
the configuration of the automaton inside is joined by what is left of every bound.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, cast

from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.models.automaton import Automaton, M, Word, make_fingerprint, make_tuple
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.clockwork import apply_timetable, count_moments
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.limits import Bound, Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import apply_rules
from formal_llm.automata.models.rules import Source, automaton_of
from formal_llm.automata.models.symbols import Symbol
from formal_llm.errors import AutomatonError

#: A source as an automaton: rules are a PDA.
SourceAutomaton = PDA | Automaton[Any, Any]


class DescribedAutomaton(Automaton[Any, Any], Protocol):
    """An automaton that also has texts for people, as a PDA does."""

    @property
    def terminals(self) -> Mapping[str, None]:
        """The alphabet, in order."""

    @property
    def symbols(self) -> Mapping[str, Symbol]:
        """What is known of terminals: labels, descriptions, numbers."""

    @property
    def fingerprint(self) -> str:
        """A short name that equal automata share."""

    def label(self, name: str, /) -> str:
        """The text a person reads for a terminal."""

    def accepts(self, word: Iterable[str], /) -> bool:
        """Whether the word is one of its words, within its limits."""


class LimitedConfiguration(NamedTuple):
    """A configuration, what is left of the upper bounds and what the lower bounds still need (both packed)."""

    inner: Any
    remaining: int
    needed: int


class LimitedAutomaton(Generic[M]):
    """An automaton whose words must also keep limits: it counts as it runs.

    Args:
        source: an automaton that declares its ``terminals``; the limits of a PDA are among ``limits``.
        limits: the limits.

    Raises:
        AutomatonError: the automaton does not declare its terminals, or refuses limits (``refuses_limits``, a text).
    """

    def __init__(self, source: PDA | Automaton[Hashable, M], limits: Limits) -> None:
        if reason := getattr(source, "refuses_limits", None):
            raise AutomatonError(reason)
        declared = getattr(source, "terminals", None)
        if declared is None:
            raise AutomatonError("limits are about terminals, and this automaton does not tell its own: .terminals")
        self.source = cast("DescribedAutomaton", source)
        self.limits = limits
        #: What runs inside.
        self.automaton = cast("DescribedAutomaton", source.without_limits if isinstance(source, PDA) else source)
        self._selection: Callable[[Hashable], Word | None] | None = getattr(self.automaton, "selection", None)
        self._at_class: Callable[[Hashable], bool] | None = getattr(self.automaton, "at_class", None)
        self.terminals: Mapping[str, None] = dict.fromkeys(declared)
        self.counters = Counters(source.bounds if isinstance(source, PDA) else self._make_bounds())

    def _make_bounds(self) -> list[Bound]:
        numbers = {name: self.symbols[name].numbers for name in self.terminals if name in self.symbols}
        return self.limits.bounds(self.terminals, numbers)

    def __repr__(self) -> str:
        return f"<LimitedAutomaton: {self.automaton!r} with {len(self.counters.bounds)} bounds>"

    # -- what the automaton inside reports ----------------------------------------------------------------------

    @property
    def symbols(self) -> Mapping[str, Symbol]:
        """What is known of terminals; nothing where the automaton inside does not report it."""
        symbols: Mapping[str, Symbol] = getattr(self.source, "symbols", {})
        return symbols

    def label(self, name: str) -> str:
        """As of the automaton inside."""
        return self.source.label(name)

    @cached_property
    def fingerprint(self) -> str:
        """A short name that equal automata share."""
        return make_fingerprint([self.automaton.fingerprint, *(bound.line for bound in self.counters.bounds)])

    def selection(self, configuration: LimitedConfiguration) -> Word | None:
        """As of the automaton inside; None where it does not report it."""
        return None if self._selection is None else self._selection(configuration.inner)

    def at_class(self, configuration: LimitedConfiguration) -> bool:
        """As of the automaton inside; False where it does not report it."""
        return self._at_class is not None and self._at_class(configuration.inner)

    def start(self) -> LimitedConfiguration:
        """The initial configuration with full counters."""
        return LimitedConfiguration(self.automaton.start(), self.counters.remaining, self.counters.needed)

    def moves(self, configuration: LimitedConfiguration) -> list[M]:
        """The moves that the upper bounds allow."""
        inner, remaining, _ = configuration
        guard, need = self.counters.guard, self.counters.need
        return [
            move
            for move in self.automaton.moves(inner)
            if move.read is None or (remaining - need.get(move.read, 0)) & guard == guard
        ]

    def step(self, configuration: LimitedConfiguration, move: M) -> LimitedConfiguration:
        """The configuration after a move, its terminal counted."""
        inner, remaining, needed = configuration
        read = move.read
        if read is not None:
            remaining -= self.counters.need.get(read, 0)
            if needed:
                needed = self.counters.pay_for(read, needed)
        after: LimitedConfiguration = make_tuple(
            LimitedConfiguration, (self.automaton.step(inner, move), remaining, needed)
        )
        return after

    def accepting(self, configuration: LimitedConfiguration) -> bool:
        """Whether the automaton inside accepts and no lower bound is open."""
        return not configuration.needed and self.automaton.accepting(configuration.inner)

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether the word is in the language and keeps the limits."""
        word = tuple(word)
        return all(bound.holds(word) for bound in self.counters.bounds) and self.automaton.accepts(word)


def as_automaton(source: Source, limits: Limits | None = None) -> SourceAutomaton:
    """A source as an automaton: rules as their :class:`PDA`, which carries their limits; one of one's own as it is.

    Args:
        source: rules, or an automaton.
        limits: more limits. An automaton of one's own comes back with counters around it then.

    Raises:
        AutomatonError: a limit names a terminal or a quantity that there is not, a flowchart has places to be filled
            in, or a timetable has no clock.
        TypeError: it is no source.
    """
    automaton, own = _automaton_and_limits(source)
    if isinstance(automaton, PDA):
        # Each by itself: of both together what bounds nothing is left out.
        for one in (own, limits or Limits()):
            problem = one.problem(automaton.terminals, automaton.symbols)
            if problem is not None:
                raise AutomatonError(problem)
    both = own & limits if limits else own
    if isinstance(automaton, PDA):
        if both.times:
            automaton, both = apply_timetable(automaton.without_limits, both.times), both.without_times
        if both.rules:
            automaton = apply_rules(automaton.without_limits, both.rules)
            both = both.without_rules
        return automaton.with_limits(both)
    if both.times or both.rules:
        what = "a timetable needs" if both.times else "rules about order need"
        raise AutomatonError(f"{what} a grammar, a flowchart, a behaviour or a PDA")
    return LimitedAutomaton(automaton, both) if both else automaton


def count_clock_states(source: Source) -> int:
    """About how many states a clock has in a lookahead; 0 without one."""
    automaton, limits = _automaton_and_limits(source)
    return count_moments(automaton, limits.times) if limits.times and isinstance(automaton, PDA) else 0


def _automaton_and_limits(source: object) -> tuple[SourceAutomaton, Limits]:
    """A source as an automaton, and its limits."""
    if isinstance(source, Flowchart | Behaviour):
        source = automaton_of(source)
    if isinstance(source, CFG):
        return PDA.from_cfg(source), source.limits
    if isinstance(source, PDA):
        return source, source.limits
    if isinstance(source, LimitedAutomaton):
        return source.source, source.limits
    if isinstance(source, Automaton):
        return source, Limits()
    written = "; CFG.from_string reads the text of one" if isinstance(source, str) else ""
    raise TypeError(f"rules are a grammar, an automaton, a flowchart or a behaviour, not {source!r}{written}")


def add_counters(automaton: SourceAutomaton) -> DescribedAutomaton:
    """What a walk runs on: the automaton with counters around it where it has limits, else itself."""
    if isinstance(automaton, PDA) and automaton.limits:
        return LimitedAutomaton(automaton, automaton.limits)
    return cast("DescribedAutomaton", automaton)
