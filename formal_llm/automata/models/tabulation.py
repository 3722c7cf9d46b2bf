"""What a pushdown automaton can do between pushing a symbol and popping it.

The question "from state q with X on top and the input at position i, in which states and at which positions can X be
gone?" has the same answer whatever lies below X, so the answers can be tabulated: each is computed once and shared by
all that ask, which makes every automaton end, ε-cycles and left recursion included, in polynomial time. This is the
summary-edge construction of interprocedural analysis (Reps, Horwitz, Sagiv 1995), and a top-down parser in disguise.

It is used twice: along a word, for exact membership; and with every terminal at hand at a position that never moves,
to know which stack symbols can be completed at all (:mod:`formal_llm.automata.lookahead.flow`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from typing import NamedTuple, Protocol

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import Undecided

#: Where the work on one stack symbol begins: (state, symbol on top or None for the empty stack, position).
StackCall = tuple[State, str | None, int]
Exit = tuple[State, int]


class TabulatedAutomaton(Protocol):
    """What is tabulated of an automaton: a :class:`~formal_llm.automata.models.pda.PDA` has it."""

    @property
    def start_state(self) -> State:
        """q0."""

    @property
    def start_stack(self) -> tuple[str, ...]:
        """Z0, its top first."""

    @property
    def accepting_states(self) -> frozenset[State]:
        """F."""

    @property
    def terminals(self) -> Container[str]:
        """Σ."""

    def transitions_at(self, state: State, top: str | None) -> tuple[Transition, ...]:
        """What can be done in a state with ``top`` on the stack, None for the empty stack."""


class _Frame(NamedTuple):
    """What is left to pop, top first, on behalf of a call."""

    rest: tuple[str | None, ...]
    caller: StackCall


class Tabulation:
    """The table of calls and their exits, filled on demand.

    Args:
        advance: the position after reading a terminal at a position, None where it cannot be read there.

    Attributes:
        room: how much more may be found (:meth:`take_room`); infinite where left as it is.
    """

    def __init__(self, pda: TabulatedAutomaton, advance: Callable[[str, int], int | None]) -> None:
        self._pda = pda
        self._advance = advance
        self.room = math.inf
        self._exits: dict[StackCall, dict[Exit, None]] = {}
        self._waiting: dict[StackCall, list[_Frame]] = {}
        #: The callers that have nothing left to pop after a call: its exits are theirs.
        self._ending: dict[StackCall, list[StackCall]] = {}
        self._callers: dict[StackCall, list[StackCall]] = {}
        self._accepting: set[StackCall] = set()
        #: The work of a call that is being filled.
        self._todo: list[tuple[_Frame, State, int]] = []
        self._seen: set[tuple[_Frame, State, int]] = set()
        #: Every (state, position) that some run gets to, whatever the stack.
        self.reached: set[Exit] = set()

    def take_room(self) -> None:
        """Take note that one more exit, or something else of that size, was found; Undecided where there is no room."""
        self.room -= 1
        if self.room < 0:
            raise Undecided("there are too many pairs of states")

    def find_exits(self, state: State, symbol: str | None, position: int = 0) -> dict[Exit, None]:
        """All (state, position) in which ``symbol`` can be gone from the stack, in the order they were found."""
        call = (state, symbol, position)
        if call not in self._exits:
            self._fill_call(call)
        return self._exits[call]

    def may_accept(self, state: State, symbol: str | None, position: int = 0) -> bool:
        """Whether a final state can be entered while ``symbol``, or what replaces it, is still on the stack."""
        self.find_exits(state, symbol, position)
        return (state, symbol, position) in self._accepting

    @property
    def has_open_calls(self) -> bool:
        """Whether some call has several ways out: more than one exit, or an exit and a final state inside."""
        return any(len(found) + (call in self._accepting) > 1 for call, found in self._exits.items())

    def _mark_accepting(self, call: StackCall) -> None:
        todo = [call]
        while todo:
            call = todo.pop()
            if call not in self._accepting:
                self._accepting.add(call)
                todo += self._callers[call]

    def _fill_call(self, call: StackCall) -> None:
        """Work until nothing new is found. Everything that a call leads to is completed with it."""
        self._todo, self._seen = [], set()
        self._begin_call(call)
        while self._todo:
            frame, state, position = self._todo.pop()
            self.reached.add((state, position))
            rest, caller = frame
            if not rest:
                self._leave_call(caller, (state, position))
                continue
            inner: StackCall = (state, rest[0], position)
            if inner not in self._exits:
                self._begin_call(inner)
            self._callers[inner].append(caller)
            if inner in self._accepting:
                self._mark_accepting(caller)
            if len(rest) == 1:
                self._ending[inner].append(caller)
                for exit_ in tuple(self._exits[inner]):
                    self._leave_call(caller, exit_)
            else:
                after_inner = _Frame(rest[1:], caller)
                self._waiting[inner].append(after_inner)
                for exit_ in tuple(self._exits[inner]):
                    self._add_frame(after_inner, *exit_)

    def _add_frame(self, frame: _Frame, state: State, position: int) -> None:
        item = (frame, state, position)
        if item not in self._seen:
            self._seen.add(item)
            self._todo.append(item)

    def _begin_call(self, call: StackCall) -> None:
        self._exits[call] = {}
        self._waiting[call] = []
        self._ending[call] = []
        self._callers[call] = []
        state, top, position = call
        self.reached.add((state, position))
        if state in self._pda.accepting_states:
            self._mark_accepting(call)
        transitions = self._pda.transitions_at(state, top)
        if len(transitions) == 1 and not transitions[0].push and transitions[0].pop is not None:
            # A terminal is popped as it is read: its one exit is known, and no caller waits for it yet.
            only = transitions[0]
            after = position if only.read is None else self._advance(only.read, position)
            if after is not None:
                self.reached.add((only.target, after))
                self._exits[call][only.target, after] = None
            return
        for transition in transitions:
            after = position if transition.read is None else self._advance(transition.read, position)
            if after is not None:
                rest: tuple[str | None, ...] = transition.push
                if transition.pop is None:
                    rest += (top,)
                self._add_frame(_Frame(rest, call), transition.target, after)

    def _leave_call(self, call: StackCall, exit_: Exit) -> None:
        calls = [call]
        while calls:
            call = calls.pop()
            found = self._exits[call]
            if exit_ not in found:
                found[exit_] = None
                self.take_room()
                for waiting in self._waiting[call]:
                    self._add_frame(waiting, *exit_)
                calls += self._ending[call]


def accepts_by_tabulation(pda: TabulatedAutomaton, word: tuple[str, ...]) -> bool:
    """Whether some run of ``pda`` reads all of ``word`` and ends in a final state."""
    if not all(name in pda.terminals for name in word):
        return False
    end = len(word)
    return can_reach_end(pda, end, lambda name, at: at + 1 if at < end and word[at] == name else None)


def can_reach_end(pda: TabulatedAutomaton, end: int, advance: Callable[[str, int], int | None]) -> bool:
    """Whether some run of ``pda`` ends in a final state at position ``end``; ``advance`` as of :class:`Tabulation`."""
    table = Tabulation(pda, advance)
    # The stack is worked off symbol by symbol, the empty stack (None) last, from every state the one above it leaves.
    fronts: set[Exit] = {(pda.start_state, 0)}
    for symbol in (*pda.start_stack, None):
        fronts = {exit_ for state, at in fronts for exit_ in table.find_exits(state, symbol, at)}
    return any((state, end) in table.reached for state in pda.accepting_states)


def some_run_accepts(pda: TabulatedAutomaton) -> bool:
    """Whether some run of ``pda`` gets to a final state, whatever it reads."""
    return can_reach_end(pda, 0, lambda _, at: at)
