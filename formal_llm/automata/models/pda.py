"""Nondeterministic pushdown automata.

M = (Q, Σ, Γ, δ, q0, Z0, F), accepting by final state (Hopcroft, Motwani and Ullman, section 6.1). A transition
(state, input or ε, popped -> state, pushed) may pop nothing, as in Sipser's definition: then it applies whatever the
stack holds, also to the empty stack.

:meth:`PDA.from_cfg` gives the textbook automaton of a grammar: three states; the middle one expands a nonterminal on ε
and matches a terminal with the input. A PDA written by hand is used in just the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from formal_llm.automata.models.automaton import EMPTY, Configuration, Intersectable, Stack, State, fingerprint
from formal_llm.automata.models.cfg import CFG, Production, Symbol, members
from formal_llm.automata.models.limits import Bound, Limits
from formal_llm.errors import AutomatonError, NotationError
from formal_llm.pictures.picture import Drawable, Picture

if TYPE_CHECKING:
    import networkx

#: The states of the automaton of a grammar.
START, LOOP, ACCEPT = "start", "loop", "accept"


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """(state, read, pop -> target, push).

    Attributes:
        state: where it starts.
        read: the terminal it consumes, None for ε.
        pop: the symbol it takes from the stack, None to take nothing.
        target: where it leads.
        push: what it puts on the stack, the first symbol on top.
        text: what an option that shows this transition says; where empty, it is made from the labels.
        production: the grammar's production that it expands, if it comes from one.
        question: what is asked where this can be chosen; where empty, the wording's own words for the next part.
        decision: whether it only answers its question: the progress of a plan shows it, but it is no step of the plan.
    """

    state: State
    read: str | None
    pop: str | None
    target: State
    push: tuple[str, ...] = ()
    text: str = ""
    production: Production | None = None
    question: str = ""
    decision: bool = False

    def parts(self) -> tuple[object, ...]:
        """What makes it the transition it is, as a comparable tuple."""
        return (self.state, self.read, self.pop, self.target, self.push)

    def __eq__(self, other: object) -> bool:
        return self.parts() == other.parts() if isinstance(other, Transition) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.parts())

    def __str__(self) -> str:
        return f"({self.state}, {self.read or 'ε'}, {self.pop or 'ε'} -> {self.target}, {' '.join(self.push) or 'ε'})"


@dataclass(frozen=True, eq=False)
class PDA(Drawable, Intersectable):
    """A pushdown automaton.

    Args:
        transitions: a :class:`Transition` each, or tuples (state, read, pop, target, push). Their order is the order in
            which options are shown.
        start: the initial state.
        accepting: the final states.
        stack: the initial stack, its top first; empty for an automaton that uses no stack.
        symbols: labels and descriptions of terminals.
        classes: the stack symbols that stand for a choice of one terminal (see :attr:`CFG.classes`).
        cfg: the grammar it was made from, if it was.
        name: what messages call it, for instance where a constraint is to blame.
        factors: for a product, the automata it was made of: the base first, then the constraints.
        limits: the bounds that belong to it, as those of a grammar do: planning and lookahead keep them.
        alphabet: terminals that it knows, besides those that its transitions read.
        check: whether to raise for what contradicts itself; automata that are made by a construction are not checked.

    Raises:
        AutomatonError: the start or a final state is in no transition, a symbol is popped and never pushed, a state
            cannot be reached from the start. Where a name looks like a slip, the nearest one is suggested.
    """

    transitions: tuple[Transition, ...]
    start_state: State
    accepting_states: frozenset[State]
    start_stack: tuple[str, ...] = ()
    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    classes: frozenset[str] = frozenset()
    cfg: CFG | None = None
    name: str = ""
    factors: tuple[PDA, ...] = ()
    limits: Limits = field(default_factory=Limits)
    alphabet: tuple[str, ...] = ()

    def __init__(
        self,
        transitions: Iterable[Transition | Sequence[Any]],
        *,
        start: State,
        accepting: Iterable[State],
        stack: Sequence[str] = (),
        symbols: Mapping[str, Symbol] | None = None,
        classes: Iterable[str] = (),
        cfg: CFG | None = None,
        name: str = "",
        factors: Iterable[PDA] = (),
        limits: Limits | None = None,
        alphabet: Iterable[str] = (),
        check: bool = True,
    ) -> None:
        made = tuple(dict.fromkeys(t if isinstance(t, Transition) else _transition(t) for t in transitions))
        object.__setattr__(self, "transitions", made)
        object.__setattr__(self, "start_state", start)
        object.__setattr__(self, "accepting_states", frozenset(accepting))
        object.__setattr__(self, "start_stack", tuple(stack))
        object.__setattr__(self, "symbols", MappingProxyType(dict(symbols or {})))
        object.__setattr__(self, "classes", frozenset(classes))
        object.__setattr__(self, "cfg", cfg)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "factors", tuple(factors))
        object.__setattr__(self, "limits", limits or Limits())
        object.__setattr__(self, "alphabet", tuple(alphabet))
        if check:
            from formal_llm.automata.models.pda_checks import find_problem

            problem = find_problem(self)
            if problem is not None:
                raise AutomatonError(problem.message)

    @classmethod
    def from_string(cls, text: str, *, file: str | None = None) -> PDA:
        """Read the notation of hand-written automata.

        Raises:
            NotationError: it cannot be read, contradicts itself, or accepts nothing; with line, column and a caret.
        """
        from formal_llm.automata.notation.pda import read_pda

        return read_pda(text, file=file)

    @classmethod
    def from_file(cls, path: str | Path) -> PDA:
        """Read a ``.pda`` file (UTF-8, with or without a byte order mark)."""
        from formal_llm.automata.notation.pda import read_pda
        from formal_llm.automata.notation.source import read_file

        return read_pda(read_file(path, NotationError), file=str(path))

    def __str__(self) -> str:
        from formal_llm.automata.notation.pda_writing import write_pda

        return write_pda(self)

    @classmethod
    def from_cfg(cls, cfg: CFG) -> PDA:
        """The textbook automaton of a grammar: three states, expand on ε, match on a terminal, accept by final state.

        Hopcroft, Motwani and Ullman, section 6.3.1; with a bottom symbol, so that it accepts by final state.
        """
        cached: PDA | None = cfg.__dict__.get("_pda")
        if cached is not None:
            return cached
        bottom = "$"
        while bottom in cfg.nonterminals or bottom in cfg.terminals:
            bottom += "$"
        transitions = [
            Transition(START, None, bottom, LOOP, (cfg.start, bottom)),
            *(Transition(LOOP, None, p.head, LOOP, p.body, p.text or "", p) for p in cfg.expanded),
            *(Transition(LOOP, name, name, LOOP) for name in cfg.terminals),
            Transition(LOOP, None, bottom, ACCEPT),
        ]
        pda = cls(
            transitions,
            start=START,
            accepting=(ACCEPT,),
            stack=(bottom,),
            symbols=cfg.symbols,
            classes=cfg.classes,
            cfg=cfg,
            check=False,
        )
        # A grammar is immutable and its automaton is asked for often: made once, kept with the grammar.
        cfg.__dict__["_pda"] = pda
        return pda

    # -- parts --------------------------------------------------------------------------------------------------

    @cached_property
    def states(self) -> Mapping[State, None]:
        """Q, in order of appearance (an ordered set)."""
        named = [self.start_state, *(state for t in self.transitions for state in (t.state, t.target))]
        return MappingProxyType(dict.fromkeys(named))

    @cached_property
    def terminals(self) -> Mapping[str, None]:
        """Σ, in order of appearance (an ordered set); of a product those of all its factors, the base first.

        So a terminal that a constraint forbids, or that only a constraint knows, is a terminal too: limits may name it.
        """
        read = (t.read for t in self.transitions if t.read is not None)
        return MappingProxyType(dict.fromkeys((*self.alphabet, *read)))

    @cached_property
    def stack_symbols(self) -> Mapping[str, None]:
        """Γ, in order of appearance (an ordered set)."""
        pushed = [*self.start_stack, *(name for t in self.transitions for name in t.push)]
        return MappingProxyType(dict.fromkeys(pushed))

    @property
    def uses_stack(self) -> bool:
        """Whether any transition touches the stack; without one the automaton is finite."""
        return any(t.pop is not None or t.push for t in self.transitions)

    @property
    def is_of_cfg(self) -> bool:
        """Whether this is the automaton of its grammar that :meth:`from_cfg` made, and so has the grammar's words."""
        return self.cfg is not None and self.cfg.__dict__.get("_pda") is self.without_limits

    @cached_property
    def without_limits(self) -> PDA:
        """The same automaton less its limits: :meth:`accepts` then asks none."""
        return self._with(limits=Limits()) if self.limits else self

    def with_limits(self, limits: Limits, alphabet: Iterable[str] = ()) -> PDA:
        """The same automaton under these limits and no others.

        Args:
            limits: the limits.
            alphabet: more terminals that it then knows.
        """
        more = [name for name in alphabet if name not in self.terminals]
        if limits == self.limits and not more:
            return self
        bare = self._with(limits=Limits(), alphabet=(*self.terminals, *more)) if more else self.without_limits
        if not limits:
            return bare
        made = bare._with(limits=limits)
        made.__dict__["without_limits"] = bare
        return made

    def _with(self, **fields: object) -> PDA:
        """A copy with other limits or another alphabet; what was worked out of the transitions is shared."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        for name in ("terminals", "bounds", "without_limits"):
            made.__dict__.pop(name, None)
        made.__dict__.update(fields)
        return made

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The limits over the alphabet, one bound each."""
        numbers = {name: self.symbols[name].numbers for name in self.terminals if name in self.symbols}
        return tuple(self.limits.bounds(self.terminals, numbers))

    @cached_property
    def fingerprint(self) -> str:
        """A short name that equal automata share; labels do not count."""
        return fingerprint(
            [self.start_state, self.start_stack, *sorted(map(repr, self.accepting_states))]
            + [t.parts() for t in self.transitions]
        )

    @cached_property
    def _table(self) -> dict[tuple[State, str | None], tuple[Transition, ...]]:
        """δ, by state and stack top; None is the top of the empty stack."""
        table: dict[tuple[State, str | None], list[Transition]] = {}
        anything = (None, *self.stack_symbols)
        for transition in self.transitions:
            for top in (transition.pop,) if transition.pop is not None else anything:
                table.setdefault((transition.state, top), []).append(transition)
        return {key: tuple(group) for key, group in table.items()}

    def label(self, name: str) -> str:
        """The text a person reads for a terminal or stack symbol."""
        if self.cfg is not None:
            return self.cfg.label(name)
        symbol = self.symbols.get(name)
        return symbol.label if symbol is not None and symbol.label else name.replace("_", " ")

    def __repr__(self) -> str:
        return (
            f"<PDA: {len(self.states)} states, {len(self.terminals)} terminals, {len(self.stack_symbols)} stack "
            f"symbols, {len(self.transitions)} transitions>"
        )

    # -- other forms --------------------------------------------------------------------------------------------

    def to_networkx(self) -> networkx.MultiDiGraph:
        """States and transitions as a graph; see :func:`formal_llm.automata.drawing.pda.pda_graph`."""
        from formal_llm.automata.drawing.pda import pda_graph

        return pda_graph(self)

    def _picture(self) -> Picture:
        from formal_llm.automata.drawing.pda import pda_picture

        return pda_picture(self)

    # -- the Automaton protocol ---------------------------------------------------------------------------------

    def start(self) -> Configuration:
        """(q0, Z0)."""
        return Configuration(self.start_state, EMPTY.push(self.start_stack))

    def transitions_at(self, state: State, top: str | None) -> tuple[Transition, ...]:
        """δ(state, ·, top): what can be done in a state with ``top`` on the stack, None for the empty stack."""
        return self._table.get((state, top), ())

    def moves(self, configuration: Configuration) -> tuple[Transition, ...]:
        """The transitions that apply."""
        return self._table.get((configuration.state, configuration.stack.top), ())

    def step(self, configuration: Configuration, move: Transition) -> Configuration:
        """The configuration after one transition."""
        stack = configuration.stack
        if move.pop is not None:
            stack = stack.rest
        for name in reversed(move.push):
            stack = Stack(name, stack)
        return Configuration(move.target, stack)

    def accepting(self, configuration: Configuration) -> bool:
        """Whether the state is final."""
        return configuration.state in self.accepting_states

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether some run reads ``word`` and the word keeps the limits. Exact, and ends also with ε-cycles.

        That is what a plan must be. A grammar's own questions (:meth:`CFG.accepts`) are about what it derives, its
        limits aside; :attr:`without_limits` is the automaton whose questions are so.
        """
        word = tuple(word)
        if not all(bound.holds(word) for bound in self.bounds):
            return False
        if self.is_of_cfg and self.cfg is not None:
            return self.cfg.accepts(word)
        from formal_llm.automata.models.tabulation import accepts

        return accepts(self, word)

    # -- what options are made of -------------------------------------------------------------------------------

    def selection(self, configuration: Configuration) -> tuple[str, ...] | None:
        """The terminals of which a non-empty subset is chosen next; None where the next choice is another one."""
        top = configuration.stack.top
        return members(top) if top is not None and top.startswith("some(") else None

    def at_class(self, configuration: Configuration) -> bool:
        """Whether the next choice is one terminal of a class (see :attr:`CFG.classes`)."""
        return configuration.stack.top in self.classes


def _transition(parts: Sequence[Any]) -> Transition:
    if not 4 <= len(parts) <= 6:
        raise AutomatonError(f"a transition is (state, read, pop, target, push[, text]), not {tuple(parts)!r}")
    state, read, pop, target, *more = parts
    push = more[0] if more else ()
    return Transition(state, read or None, pop or None, target, tuple(push), *more[1:])
