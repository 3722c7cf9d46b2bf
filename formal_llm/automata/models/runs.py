"""Whether some run of a pushdown automaton accepts, whatever it reads.

The question of :mod:`formal_llm.automata.models.tabulation` without a word, answered in less time: what leaves the top
of the stack alone does the same on any top, so it is followed once for each state in which a symbol comes to the top,
and not once for each such state and each symbol.
"""

from __future__ import annotations

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.tabulation import TabulatedAutomaton
from formal_llm.automata.models.transition import Transition

#: A symbol on top, and the state in which it came there.
_Call = tuple[State, str]
#: For whom symbols are popped: for a call, or for what left the top of the stack alone since it came there.
_Owner = tuple[State, str | None]


def some_run_accepts(pda: TabulatedAutomaton, transitions: tuple[Transition, ...]) -> bool:
    """Whether some run of ``pda``, with these transitions, gets to a final state."""
    search = _RunSearch(transitions)
    search.find_reached_states(pda.start_stack, pda.start_state)
    return any(state in search.reached for state in pda.accepting_states)


class _RunSearch:
    def __init__(self, transitions: tuple[Transition, ...]) -> None:
        self.reached: set[State] = set()
        self._pushing: dict[State, list[Transition]] = {}
        self._popping: dict[State, dict[str, list[Transition]]] = {}
        for transition in transitions:
            if transition.pop is None:
                self._pushing.setdefault(transition.state, []).append(transition)
            else:
                self._popping.setdefault(transition.state, {}).setdefault(transition.pop, []).append(transition)
        #: From the state in which a symbol came to the top, the states that are got to before it is popped.
        self._above: dict[State, dict[State, None]] = {}
        self._exits: dict[_Call, dict[State, None]] = {}
        self._waiting: dict[_Call, list[tuple[tuple[str, ...], _Owner]]] = {}
        #: Symbols that are to be popped, on whose behalf, and the state with the first of them on top.
        self._todo: list[tuple[tuple[str, ...], _Owner, State]] = []
        self._seen: set[tuple[tuple[str, ...], _Owner, State]] = set()

    def find_reached_states(self, stack: tuple[str, ...], state: State) -> None:
        """Find all states that are got to."""
        # Under the stack lies nothing that could be popped: a level that begins in no state of the automaton.
        self._add_item(stack, (_StackBottom, None), state)
        while self._todo:
            rest, owner, state = self._todo.pop()
            if rest:
                self._wait_for_symbol(rest, owner, state)
            elif owner[1] is None:
                self._get_to(owner[0], state)
            else:
                self._leave_call((owner[0], owner[1]), state)

    def _add_item(self, rest: tuple[str, ...], owner: _Owner, state: State) -> None:
        item = (rest, owner, state)
        if item not in self._seen:
            self._seen.add(item)
            self._todo.append(item)

    def _wait_for_symbol(self, rest: tuple[str, ...], owner: _Owner, state: State) -> None:
        """Work off the first of some symbols, then the others."""
        call = (state, rest[0])
        if state not in self._above:
            self._get_to(state, state)
        waiting = self._waiting.setdefault(call, [])
        waiting.append((rest[1:], owner))
        if len(waiting) == 1:
            for at in tuple(self._above[state]):
                self._pop_symbol(call, at)
        for left in tuple(self._exits.get(call, ())):
            self._add_item(rest[1:], owner, left)

    def _get_to(self, begin: State, state: State) -> None:
        above = self._above.setdefault(begin, {})
        if state in above:
            return
        above[state] = None
        self.reached.add(state)
        for transition in self._pushing.get(state, ()):
            self._add_item(transition.push, (begin, None), transition.target)
        for top in self._popping.get(state, ()):
            if (begin, top) in self._waiting:
                self._pop_symbol((begin, top), state)

    def _pop_symbol(self, call: _Call, state: State) -> None:
        for transition in self._popping.get(state, {}).get(call[1], ()):
            self._add_item(transition.push, call, transition.target)

    def _leave_call(self, call: _Call, state: State) -> None:
        exits = self._exits.setdefault(call, {})
        if state not in exits:
            exits[state] = None
            for rest, owner in self._waiting[call]:
                self._add_item(rest, owner, state)


class _StackBottom:
    """In whose stead the empty stack is the top."""
