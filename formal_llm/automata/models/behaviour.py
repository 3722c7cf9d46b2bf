"""Behaviours: in which order an agent may act.

A behaviour has states, each with the text that announces it ("[Thought]"), and a formula over them that determines
which sequences of states are allowed (Crouse et al. 2023, arXiv 2310.08535). A state whose text is followed by what the
environment produces, the observation of a tool call for instance, has the flag ``env-input``.

A behaviour is a finite automaton: :attr:`Behaviour.pda` is the smallest one. So it can be planned with, drawn, and put
on top of a grammar, ``grammar & behaviour``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

from formal_llm import authored
from formal_llm.automata.models.dfa import DFA, finite_pda, minimal_dfa
from formal_llm.automata.models.formula import Always, Formula, Next, Repeated, and_, satisfied_by_one
from formal_llm.automata.models.frozen import FrozenDict, PickledByFields, Written
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.quantities import Number
from formal_llm.automata.models.symbols import Diagnostic, Symbol
from formal_llm.errors import AutomatonError, unknown
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Picture

if TYPE_CHECKING:
    import networkx

#: The flag of a state whose text comes from the environment.
ENV_INPUT = "env-input"


@dataclass(frozen=True, slots=True)
class BehaviourState:
    """A state of a behaviour.

    Attributes:
        name: what formulas call it.
        text: the text that announces it; empty where there is none.
        flags: what else is known of it, without the colon: ``env-input``.
        numbers: amounts that it carries (minutes, money), as those of a :class:`Symbol`.
    """

    name: str
    text: str = ""
    flags: frozenset[str] = frozenset()
    numbers: Mapping[str, Number] = FrozenDict()

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", Symbol(numbers=self.numbers).numbers)

    @property
    def from_environment(self) -> bool:
        """Whether the environment, and not the agent, writes what follows the text."""
        return ENV_INPUT in self.flags


@dataclass(frozen=True, eq=False)
class Behaviour(PickledByFields, Written, Drawable):
    """States, and a formula for the allowed sequences of them.

    Args:
        states: the states, in the order in which options are shown; a name alone is a state without text.
        formula: which sequences of states are allowed.
        limits: bounds that every sequence must keep besides.

    Raises:
        AutomatonError: two states of one name, an unknown state in the formula, a formula that no sequence satisfies,
            a limit that names no state or quantity.
        Undecided: the formula needs too large an automaton.

    Warnings that do not make it unusable are in :attr:`warnings`.
    """

    name: str
    states: Mapping[str, BehaviourState]
    formula: Formula
    limits: Limits = field(default_factory=Limits)

    def __init__(
        self, name: str, states: Iterable[BehaviourState | str], formula: Formula, limits: Limits | None = None
    ) -> None:
        made = [BehaviourState(state) if isinstance(state, str) else state for state in states]
        by_name = {state.name: state for state in made}
        if len(by_name) < len(made):
            raise AutomatonError(f"two states of {name} have the same name")
        vars(self).update(name=name, states=FrozenDict(by_name), formula=formula, limits=limits or Limits())
        for named in formula.names:
            if named not in by_name:
                raise AutomatonError(unknown("state", named, by_name))
        for part in formula.walk():
            if isinstance(part, Always) and not satisfied_by_one(part.parts[0], by_name):
                raise AutomatonError(f"no single state satisfies what is inside {part}")
        problem = self.limits.problem(by_name, self.symbols)
        if problem is not None:
            raise AutomatonError(problem)
        if not self._formula_dfa.accepting:
            raise AutomatonError("no sequence of states satisfies the formula")

    @staticmethod
    def _notation() -> tuple[Callable[..., Any], Callable[[Any], str]]:
        from formal_llm.automata.notation.behaviour import read_behaviour, write_behaviour

        return read_behaviour, write_behaviour

    @classmethod
    def load(cls, name: str) -> Behaviour:
        """The behaviour that is meant: an ``.agent`` file by its path, or a shipped one by its name (``"react"``).

        Raises:
            ResourceNotFound: there is neither.
        """
        return cls.from_file(authored.find("agents", name, (".agent",)))

    def __repr__(self) -> str:
        return f"<Behaviour {self.name}: {len(self.states)} states, {self.formula}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Behaviour):
            return NotImplemented
        mine = (self.name, list(self.states.values()), self.formula, self.limits)
        return mine == (other.name, list(other.states.values()), other.formula, other.limits)

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.states), self.formula))

    @property
    def endless(self) -> bool:
        """Whether it never ends by itself: its formula, or the last part of it, is ``(always (next ...))``."""
        last = self.formula.parts[-1] if isinstance(self.formula, Next) else self.formula
        return isinstance(last, Repeated)

    # -- as an automaton ----------------------------------------------------------------------------------------

    @cached_property
    def dfa(self) -> DFA:
        """The smallest automaton for the sequences that the formula and the rules about order allow, as plain data."""
        if not self.limits.rules:
            return self._formula_dfa
        return minimal_dfa(and_(self.formula, *(rule.formula() for rule in self.limits.rules)), self.states)

    @cached_property
    def _formula_dfa(self) -> DFA:
        return minimal_dfa(self.formula, self.states)

    @cached_property
    def symbols(self) -> Mapping[str, Symbol]:
        """What is known of the states: their texts as labels, and their numbers."""
        made = {name: Symbol(state.text, numbers=state.numbers) for name, state in self.states.items()}
        return FrozenDict({name: symbol for name, symbol in made.items() if symbol != Symbol()})

    @property
    def terminals(self) -> Mapping[str, BehaviourState]:
        """The states, which are the terminals of the automaton."""
        return self.states

    @cached_property
    def pda(self) -> PDA:
        """The smallest automaton for the formula, under the limits; its terminals are the states, its stack is empty.

        Its rules about order stay rules, which messages can name; :attr:`dfa` has them worked in.
        """
        made = finite_pda(self._formula_dfa, name=self.name, symbols=self.symbols, alphabet=self.states)
        return made.with_limits(self.limits)

    @property
    def whole(self) -> PDA:
        """The automaton with its rules about order worked in, as pictures show it."""
        if not self.limits.rules:
            return self.pda
        made = finite_pda(self.dfa, name=self.name, symbols=self.symbols, alphabet=self.states)
        return made.with_limits(self.limits.without_rules)

    @property
    def picture(self) -> Picture:
        """The picture of its automaton."""
        return self.whole.picture

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Return the graph of its automaton, see :meth:`PDA.to_networkx`."""
        return self.whole.to_networkx()

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether a sequence of states is allowed and complete, and keeps the limits."""
        return self.pda.accepts(word)

    def next_states(self, prefix: Iterable[str] = ()) -> tuple[str, ...]:
        """The states that can follow, so that the sequence can still be completed within the limits.

        They come in the order of declaration. One of which that is not decided is among them.

        None for a prefix that no allowed sequence begins with, and for one that is complete and cannot continue;
        :meth:`accepts` distinguishes these.
        """
        from formal_llm.automata.languages.prefixes import list_terminals_after  # it is built on these values

        return tuple(list_terminals_after(self.pda, prefix))

    def __and__(self, other: object) -> PDA:
        from formal_llm.automata.models.product import intersection

        return intersection(self, other)

    def __rand__(self, other: object) -> PDA:
        from formal_llm.automata.models.product import intersection

        return intersection(other, self)

    # -- checks -------------------------------------------------------------------------------------------------

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is legal and still looks like a mistake.

        Kinds: ``"unused"`` (a state that no allowed sequence holds) and ``"impossible"`` (such a state that the formula
        names), ``"same text"`` (two states that can come at the same point and have the same text: only then can a
        reader of the texts unable to determine the state), ``"empty"`` (the empty sequence is allowed).
        """
        return tuple(self._find_warnings())

    def _find_warnings(self) -> Iterable[Diagnostic]:
        possible = {name for row in self.dfa.table for name in row}
        for name in self.states:
            if name not in possible:
                named = name in self.formula.names
                kind, what = ("impossible", "can never come") if named else ("unused", "is not used")
                yield Diagnostic(kind, name, f"the state {name} {what}: no allowed sequence holds it")
        for one, other in combinations(self.states.values(), 2):
            together = any(one.name in row and other.name in row for row in self.dfa.table)
            if one.text and one.text == other.text and together:
                yield Diagnostic(
                    "same text",
                    other.name,
                    f"{one.name} and {other.name} can come at the same point and have the same text {one.text!r}",
                    "give one of them another text",
                )
        if 0 in self.dfa.accepting and not self.endless:
            yield Diagnostic("empty", "", "the empty sequence is allowed, so the agent may stop before it begins")
