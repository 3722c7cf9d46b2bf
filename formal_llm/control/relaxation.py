"""Whether rules could be kept if no rule ever lost a state that it has reached.

What is impossible then is impossible (delete relaxation, Bonet and Geffner 2001).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from formal_llm.control.component import Component, ComponentNode, ComponentStep, MachineMove
from formal_llm.control.machines import Machine, State, measure_effort
from formal_llm.control.plant import PlantSymbol

#: The relaxation gives up on a rule with more states, as grammars have.
_MOST = 200


class Relaxation:
    """All states that each rule has had so far, of a sum the largest remainder, and the calls made so far.

    An event can happen if each rule allows it in one of its states.

    Args:
        component: the rules.
        node: where they start.
    """

    def __init__(self, component: Component, node: ComponentNode) -> None:
        self._component = component
        self._plain: list[set[State]] = [{state} for state in node.plain]
        self._owed = [*zip(component.plain_machines, self._plain, strict=True)]
        self._copies: list[list[set[State]]] = []
        #: For each group and each of its rules that is not kept in a copy, the states of this copy alone.
        self._single: list[list[list[set[State]]]] = []
        for machines, (base, live) in zip(component.machines, node.copies, strict=True):
            alone = [{vector[place] for vector, _ in live} for place in range(len(machines))]
            self._single.append([])
            for machine, states in zip(machines, alone, strict=True):
                self._single[-1].append([{state} for state in states if not machine.is_accepting(state)])
                self._owed += [(machine, one) for one in self._single[-1][-1]]
            self._copies.append([states | ({base[n]} if base is not None else set()) for n, states in enumerate(alone)])
        self._called = {(tool, letters) for (tool, letters), _ in node.pending}

    def can_keep(self, *, doubtful: bool) -> bool:
        """Return whether each rule reaches an accepting state; true as well where one has too many states."""
        changed = True
        while changed and self._is_owing():
            changed = False
            for step in self._component.steps:
                if (doubtful or not step.symbol.doubtful) and self._may_come(step.symbol) and self._add_step(step):
                    changed = True
                    if any(sum(map(measure_effort, states)) > _MOST for states in chain(self._plain, *self._copies)):
                        return True
        return not self._is_owing()

    def _is_owing(self) -> bool:
        return any(not any(map(machine.is_accepting, states)) for machine, states in self._owed)

    def _may_come(self, symbol: PlantSymbol) -> bool:
        """Return whether a symbol may come; a result comes after a call that it answers."""
        if symbol.kind != "result" or symbol.tool not in self._component.answering:
            return True
        return any(tool == symbol.tool and symbol.may_answer(letters) for tool, letters in self._called)

    def _add_step(self, step: ComponentStep) -> bool:
        """Add the states after a step, if each rule that has to follow it can; return whether anything is new."""
        component, symbol = self._component, step.symbol
        needed = [(component.plain_machines[move.place], self._plain[move.place], move) for move in step.plain]
        optional = []
        for machines, copies, single, (every, one) in zip(
            component.machines, self._copies, self._single, step.each, strict=True
        ):
            needed += [(machines[move.place], copies[move.place], move) for move in one]
            optional += [(machines[move.place], copies[move.place], move) for move in every]
            optional += [(machines[move.place], own, move) for move in (*every, *one) for own in single[move.place]]
        found = [(machine, states, _find_states_after(machine, states, move)) for machine, states, move in needed]
        if not all(after for _, _, after in found):
            return False
        found += [(machine, states, _find_states_after(machine, states, move)) for machine, states, move in optional]
        called = (symbol.tool, symbol.letters)
        changed = symbol.kind == "call" and symbol.tool in component.answering and called not in self._called
        if changed:
            self._called.add(called)
        for machine, states, after in found:
            new = {one for one in after if one > max(states)} if machine.resource else after - states  # type: ignore[operator,type-var]
            states |= new
            changed |= bool(new)
        return changed


def _find_states_after(machine: Machine, states: Iterable[State], move: MachineMove) -> set[State]:
    """Find the states of a machine after a move from any of some states; those in which it cannot move are left out."""
    return {after for state in states if (after := machine.step(state, move.letters, move.weight)) is not None}
