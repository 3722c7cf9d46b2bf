"""Nondeterministic pushdown automata.

M = (Q, Σ, Γ, δ, q0, Z0, F), accepting by final state (Hopcroft, Motwani and Ullman, section 6.1). A transition
(state, input or ε, popped -> state, pushed) may pop nothing, as in Sipser's definition: then it applies whatever the
stack holds, also to the empty stack.

:meth:`PDA.from_cfg` gives the textbook automaton of a grammar: three states; the middle one expands a nonterminal on ε
and matches a terminal with the input. A PDA written by hand is used in just the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formal_llm.automata.models.automaton import EMPTY, Configuration, Stack, State, make_fingerprint, make_tuple
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.frozen import FrozenDict, PickledByFields, Written
from formal_llm.automata.models.limits import Bound, Limits
from formal_llm.automata.models.symbols import ORDERS, Order, Symbol, selection_members, turn_word
from formal_llm.automata.models.tabulation import SubsetConstruction, Tabulation
from formal_llm.automata.models.timetable import Timetable
from formal_llm.automata.models.transition import Transition, find_problem, states_of, transition_of
from formal_llm.errors import AutomatonError
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Picture

if TYPE_CHECKING:
    import networkx

#: The states of the automaton of a grammar.
START, LOOP, ACCEPT = "start", "loop", "accept"
#: What is worked out of the transitions alone, and so is the same under other limits.
_OF_TRANSITIONS = ("_subsets", "_table", "fingerprint", "is_of_cfg", "stack_symbols", "states", "uses_stack")


@dataclass(frozen=True, eq=False)
class PDA(PickledByFields, Written, Drawable):
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
        factors: for a product, its factors: the base first, then the constraints.
        limits: the bounds that belong to it, as those of a grammar do: planning and lookahead keep them.
        order: ``"forward"`` if a word is the order in which its steps are carried out, ``"prefix"`` if it is read from
            last to first; that of a grammar is the grammar's (:attr:`CFG.order`).
        alphabet: terminals that it knows, besides those that its transitions read.
        times: the timetable that it keeps, for whoever carries its words out; its limits may have another.
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
    order: Order = "forward"
    times: Timetable = field(default_factory=Timetable)

    def __init__(
        self,
        transitions: Iterable[Transition | Sequence[object]],
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
        order: Order = "forward",
        times: Timetable | None = None,
        check: bool = True,
    ) -> None:
        made = tuple(dict.fromkeys(t if isinstance(t, Transition) else transition_of(t) for t in transitions))
        vars(self).update(
            transitions=made, start_state=start, accepting_states=frozenset(accepting), start_stack=tuple(stack),
            symbols=FrozenDict(symbols or {}), classes=frozenset(classes), cfg=cfg, name=name, factors=tuple(factors),
            limits=limits or Limits(), alphabet=tuple(alphabet), order=order,
            times=times or Timetable(),
        )  # fmt: skip
        if order not in ORDERS:
            raise AutomatonError(f"the order is 'forward' or 'prefix', not {order!r}")
        if check:
            problem = find_problem(self.transitions, start, self.accepting_states, self.stack_symbols)
            if problem is not None:
                raise AutomatonError(problem.message)

    @staticmethod
    def _notation() -> tuple[Callable[..., Any], Callable[[Any], str]]:
        from formal_llm.automata.notation.pda import read_pda, write_pda

        return read_pda, write_pda

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
            transitions, start=START, accepting=(ACCEPT,), stack=(bottom,), symbols=cfg.symbols, classes=cfg.classes,
            cfg=cfg, order=cfg.order, check=False,
        )  # fmt: skip
        # A grammar is immutable and its automaton is asked for often: made once, kept with the grammar.
        cfg.__dict__["_pda"] = pda
        return pda

    # -- parts --------------------------------------------------------------------------------------------------

    @cached_property
    def states(self) -> Mapping[State, None]:
        """Q, in order of appearance (an ordered set)."""
        return FrozenDict(states_of(self.transitions, self.start_state))

    @cached_property
    def terminals(self) -> Mapping[str, None]:
        """Σ, in order of appearance (an ordered set); of a product those of all its factors, the base first.

        So a terminal that a constraint forbids, or that only a constraint knows, is a terminal too: limits may name it.
        """
        read = (t.read for t in self.transitions if t.read is not None)
        return FrozenDict(dict.fromkeys((*self.alphabet, *read)))

    @cached_property
    def answers(self) -> frozenset[str]:
        """The terminals that are answers to decisions, and no steps of a plan."""
        return frozenset(t.read for t in self.transitions if t.decision and t.read is not None)

    @cached_property
    def stack_symbols(self) -> Mapping[str, None]:
        """Γ, in order of appearance (an ordered set)."""
        pushed = [*self.start_stack, *(name for t in self.transitions for name in t.push)]
        return FrozenDict(dict.fromkeys(pushed))

    @cached_property
    def uses_stack(self) -> bool:
        """Whether any transition touches the stack; without one the automaton is finite."""
        return any(t.pop is not None or t.push for t in self.transitions)

    @cached_property
    def _subsets(self) -> SubsetConstruction:
        """What decides membership where no transition touches the stack."""
        return SubsetConstruction(self.transitions, [self.start_state], self.accepting_states)

    @cached_property
    def is_of_cfg(self) -> bool:
        """Whether this is what :meth:`from_cfg` makes of its grammar, and so has the grammar's words."""
        if self.cfg is None or self.factors:
            return False
        made = PDA.from_cfg(self.cfg)
        return self is made or (self.start_state == START and self.transitions == made.transitions)

    @cached_property
    def without_limits(self) -> PDA:
        """The same automaton less its limits."""
        return self.with_limits(Limits()) if self.limits else self

    def with_limits(self, limits: Limits, alphabet: Iterable[str] = ()) -> PDA:
        """The same automaton under these limits and no others; what was worked out of the transitions is shared.

        Args:
            limits: the limits.
            alphabet: more terminals that it then knows.
        """
        more = [name for name in alphabet if name not in self.terminals]
        if limits == self.limits and not more:
            return self
        made = object.__new__(type(self))
        vars(made).update({name: vars(self)[name] for name in _OF_TRANSITIONS if name in vars(self)})
        alphabet = (*self.terminals, *more) if more else self.alphabet
        vars(made).update({**self.__getstate__(), "limits": limits, "alphabet": alphabet})
        if limits and not more:
            vars(made)["without_limits"] = self.without_limits
        return made

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The limits over the alphabet, one bound each."""
        numbers = {name: self.symbols[name].numbers for name in self.terminals if name in self.symbols}
        return tuple(self.limits.bounds(self.terminals, numbers))

    @cached_property
    def fingerprint(self) -> str:
        """A short name that equal automata share; labels do not count."""
        return make_fingerprint(
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PDA):
            return NotImplemented
        return self is other or self._comparison_key() == other._comparison_key()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.start_state, self.start_stack, self.accepting_states, self.transitions, self.limits))

    def _comparison_key(self) -> tuple[object, ...]:
        """What makes it equal to another one: all that planning reads of it."""
        texts = [(t.text, t.production, t.question, t.decision) for t in self.transitions]
        return (
            (self.start_state, self.start_stack, self.accepting_states, self.transitions, texts),
            (self.symbols, self.classes, self.cfg, self.name, self.factors, self.limits, self.alphabet, self.order),
        )

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

    def __and__(self, other: object) -> PDA:
        from formal_llm.automata.models.product import intersection

        return intersection(self, other)

    def __rand__(self, other: object) -> PDA:
        from formal_llm.automata.models.product import intersection

        return intersection(other, self)

    @property
    def picture(self) -> Picture:
        """The automaton as a picture: its states, and what is read and pushed between them."""
        from formal_llm.automata.drawing import pda_picture

        return pda_picture(self)

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Return a graph with a node for each state and an edge for each transition.

        Nodes have ``start`` and ``accepting``; edges have ``read``, ``pop`` (None for ε), ``push`` (a tuple, its first
        symbol on top), ``text``, and ``label`` in the notation of the picture.
        """
        from formal_llm.automata.drawing import pda_graph

        return pda_graph(self)

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
        after: Configuration = make_tuple(Configuration, (move.target, stack))
        return after

    def accepting(self, configuration: Configuration) -> bool:
        """Whether the state is final."""
        return configuration.state in self.accepting_states

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether some run reads ``word`` and the word keeps the limits. Exact, and ends also with ε-cycles.

        That is what a plan must be. A grammar's own questions (:meth:`CFG.accepts`) are about what it derives, its
        limits aside; :attr:`without_limits` is the automaton whose questions are so.
        """
        word = tuple(word)
        if not self.keeps_limits(word):
            return False
        if not self.uses_stack:
            return self._subsets.accepts(word)
        end = len(word)
        return self._can_reach_end(end, lambda name, at: at + 1 if at < end and word[at] == name else None)

    @property
    def has_accepting_run(self) -> bool:
        """Whether some run gets to a final state, whatever it reads; limits are not asked."""
        return self._can_reach_end(0, lambda _, at: at)

    def _can_reach_end(self, end: int, advance: Callable[[str, int], int | None]) -> bool:
        """Whether some run ends in a final state at position ``end``; ``advance`` as of :class:`Tabulation`."""
        table = Tabulation(self.transitions_at, self.accepting_states, advance)
        # The stack is worked off symbol by symbol, the empty stack (None) last, from every state the one above leaves.
        fronts: set[tuple[State, int]] = {(self.start_state, 0)}
        for symbol in (*self.start_stack, None):
            fronts = {exit_ for state, at in fronts for exit_ in table.find_exits(state, symbol, at)}
        return any((state, end) in table.reached for state in self.accepting_states)

    def keeps_limits(self, word: tuple[str, ...]) -> bool:
        """Whether a word keeps all the limits, the timetable included; its language is not looked at."""
        if not all(bound.holds(word) for bound in self.bounds):
            return False
        if not self.limits.times and not self.limits.rules:
            return True
        numbers = {name: symbol.numbers for name, symbol in self.symbols.items()}
        word = tuple(turn_word(word, self.order))
        if self.limits.times and not self.limits.times.holds(word, numbers):
            return False
        ignored = [self.answers - {*rule.names} for rule in self.limits.rules]
        return all(
            rule.accepts(name for name in word if name not in others)
            for rule, others in zip(self.limits.rules, ignored, strict=True)
        )

    # -- what options are made of -------------------------------------------------------------------------------

    def selection(self, configuration: Configuration) -> tuple[str, ...] | None:
        """The terminals of which a non-empty subset is chosen next; None where the next choice is another one."""
        top = configuration.stack.top
        return selection_members(top) if top is not None and top.startswith("some(") else None

    def at_class(self, configuration: Configuration) -> bool:
        """Whether the next choice is one terminal of a class (see :attr:`CFG.classes`)."""
        return configuration.stack.top in self.classes
