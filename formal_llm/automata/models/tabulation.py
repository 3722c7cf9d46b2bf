"""What a pushdown automaton can do between pushing a symbol and popping it.

The question "from state q with X on top and the input at position i, in which states and at which positions can X be
gone?" has the same answer whatever lies below X, so the answers can be tabulated: each is computed once and shared by
all that ask, which makes every automaton end, ε-cycles and left recursion included, in polynomial time. This is the
summary-edge construction of interprocedural analysis (Reps, Horwitz, Sagiv 1995), and a top-down parser in disguise.

A finite automaton needs no table: :class:`SubsetConstruction`.

The table is used twice: along a word, for exact membership; and with every terminal at hand at a position that never
moves, to know which stack symbols can be completed at all (:mod:`formal_llm.automata.lookahead.flow`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from functools import reduce
from typing import NamedTuple

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import Undecided

#: Where the work on one stack symbol begins: (state, symbol on top or None for the empty stack, position).
StackCall = tuple[State, str | None, int]
Exit = tuple[State, int]


class _Frame(NamedTuple):
    """What is left to pop, top first, on behalf of a call."""

    rest: tuple[str | None, ...]
    caller: StackCall


class Tabulation:
    """The table of calls and their exits, filled on demand.

    Args:
        transitions_at: what can be done in a state with a symbol on top of the stack, None for the empty stack.
        accepting: the final states.
        advance: the position after reading a terminal at a position, None where it cannot be read there.

    Attributes:
        room: how much more may be found (:meth:`take_room`); infinite where left as it is.
    """

    def __init__(
        self,
        transitions_at: Callable[[State, str | None], Collection[Transition]],
        accepting: Collection[State],
        advance: Callable[[str, int], int | None],
    ) -> None:
        self._transitions_at, self._accepting_states, self._advance = transitions_at, accepting, advance
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
        if state in self._accepting_states:
            self._mark_accepting(call)
        transitions = self._transitions_at(state, top)
        only = next(iter(transitions)) if len(transitions) == 1 else None
        if only is not None and not only.push and only.pop is not None:
            # A terminal is popped as it is read: its one exit is known, and no caller waits for it yet.
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


#: How many steps between sets are kept: a few automata have as many sets as 2 to the number of their states.
_KEPT = 10_000


class SubsetConstruction:
    """The deterministic automaton of a finite one, made as far as it is asked for (Rabin and Scott 1959).

    Args:
        transitions: none of which touches a stack.
        start: the initial states.
        accepting: the final states.
    """

    def __init__(self, transitions: Iterable[Transition], start: Iterable[State], accepting: Iterable[State]) -> None:
        self._accepting = frozenset(accepting)
        self._after: dict[tuple[State, str | None], list[State]] = {}
        for transition in transitions:
            self._after.setdefault((transition.state, transition.read), []).append(transition.target)
        self._known: dict[tuple[frozenset[State], str], frozenset[State]] = {}
        self.start = self._close_states(start)

    def _close_states(self, states: Iterable[State]) -> frozenset[State]:
        """These states, and those that moves without input lead to."""
        return frozenset(find_reachable(states, lambda state: self._after.get((state, None), ())))

    def follow(self, states: frozenset[State], letter: str) -> frozenset[State]:
        """Where a letter leads from a set of states; the empty set: nowhere."""
        found = self._known.get((states, letter))
        if found is None:
            if len(self._known) > _KEPT:
                self._known.clear()
            found = self._close_states(target for state in states for target in self._after.get((state, letter), ()))
            self._known[states, letter] = found
        return found

    def is_accepting(self, states: frozenset[State]) -> bool:
        """Whether one of the states is final."""
        return not self._accepting.isdisjoint(states)

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether some run reads ``word`` and ends in a final state."""
        return self.is_accepting(reduce(self.follow, word, self.start))
