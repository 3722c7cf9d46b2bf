"""State machines with states inside of states, as SCXML and XState write them: what they mean as a finite automaton.

Its words are the events, in order. The automaton is in one innermost state at a time; an event is taken by the
innermost state that has a transition for it, or by one around it. What has a guard may be taken or not: guards are
names, and whoever plans decides. Transitions without an event are taken before any event. A word ends in a final state
of the outermost level. (W3C SCXML 1.0, sections 3 and 3.13; parallel states and history are refused.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Symbol, reach
from formal_llm.automata.models.transition import Transition
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import unknown


@dataclass
class Arc:
    """A transition: its event (None: without one), its guard, its target (None: it stays), and where it is written."""

    event: str | None
    target: str | None
    guard: str = ""
    place: Place | None = None


@dataclass
class State:
    """A state, with those directly in it by name; ``done`` is followed when a final one of these is reached."""

    name: str
    parent: str | None
    place: Place | None = None
    final: bool = False
    initial: str | None = None
    children: list[str] = field(default_factory=list)
    arcs: list[Arc] = field(default_factory=list)
    done: list[Arc] = field(default_factory=list)


def automaton(states: dict[str, State], root: str, title: str, source: SourceText) -> PDA:
    """The automaton of a state machine.

    Raises:
        NotationError: a target or first state that there is not, or no final state that is ever reached.
    """
    return _Machine(states, root, source).made(title)


class _Machine:
    def __init__(self, states: dict[str, State], root: str, source: SourceText) -> None:
        self.states = states
        self.root = root
        self.source = source
        self.events = tuple(
            dict.fromkeys(arc.event for s in states.values() for arc in s.arcs if arc.event not in (None, "*"))
        )
        for state in states.values():
            for arc in (*state.arcs, *state.done):
                if arc.target is not None and arc.target not in states:
                    source.fail(unknown("target of a transition", arc.target, states), arc.place or state.place)
            if state.initial is not None and state.initial not in states:
                source.fail(unknown("first state", state.initial, states), state.place)
            if state.children and state.initial is None:
                state.initial = state.children[0]

    def made(self, title: str) -> PDA:
        start = self._enter(self.root)
        found: list[Transition] = []

        def after(name: str) -> list[str]:
            made = list(dict.fromkeys(self._moves(name)))
            found.extend(made)
            return [str(move.target) for move in made]

        reached = reach([start], after)
        final = [name for name in reached if self.states[name].final and self.states[name].parent == self.root]
        if not final:
            self.source.fail(
                "no final state is reached: a plan would never be finished",
                self.states[self.root].place,
                suggestion="give the machine a final state on its outermost level, and a way to it",
            )
        symbols = {str(event): Symbol(str(event)) for event in self.events}
        used = {move.read for move in found}
        return PDA(found, start=start, accepting=final, name=title, order="forward",
                   symbols={name: symbol for name, symbol in symbols.items() if name in used})  # fmt: skip

    def _enter(self, name: str) -> str:
        """The innermost state that is entered with one."""
        seen = {name}
        while self.states[name].children:
            name = str(self.states[name].initial)
            if name in seen:
                self.source.fail(f"{name} begins inside of itself", self.states[name].place)
            seen.add(name)
        return name

    def _around(self, name: str | None) -> Iterator[State]:
        while name is not None:
            yield self.states[name]
            name = self.states[name].parent

    def _moves(self, name: str) -> Iterator[Transition]:
        around = list(self._around(name))
        if around[0].parent == self.root and around[0].final:
            return
        done = around[1].done if around[0].final and len(around) > 1 else []
        silent = [*done, *(arc for state in around for arc in state.arcs if arc.event is None)]
        for arc in silent:
            if arc.target is not None and self._enter(arc.target) != name:
                yield Transition(name, None, None, self._enter(arc.target), (), arc.guard or f"go on to {arc.target}")
            if not arc.guard:
                return
        told = [arc.event for state in around for arc in state.arcs if arc.event is not None]
        for event in dict.fromkeys(self.events if "*" in told else told):
            for arc in (arc for state in around for arc in state.arcs if arc.event in (event, "*")):
                target = name if arc.target is None else self._enter(arc.target)
                text = f"{event} ({arc.guard})" if arc.guard else str(event)
                yield Transition(name, event, None, target, (), text)
                if not arc.guard:
                    break
