"""Quick proofs that rules cannot be kept: not if nothing were ever lost, and not with any one copy alone."""

from __future__ import annotations

from formal_llm.agents.guard.component import Component, ComponentNode
from formal_llm.agents.guard.copies import Vector, apply_moves
from formal_llm.agents.guard.machines import State

#: So many places of the rules without keys and one copy are looked at.
_PLACES = 1_000
#: A rule with more states, as a grammar has, is not ruled out so.
_MOST = 200


def can_keep_relaxed(component: Component, node: ComponentNode, *, doubtful: bool) -> bool:
    """Whether the rules could be kept if nothing that a rule has reached were ever lost again.

    Each rule keeps all states that it has had, of a sum the largest that is left, and an event can come where each rule
    lets it in one of them. What cannot be done so, cannot be done (delete relaxation, Bonet and Geffner 2001).
    """
    parts = component.parts
    plain: list[set[State]] = [{state} for state in node.plain]
    copies: list[list[set[State]]] = []
    for group, (base, live) in zip(component.groups, node.copies, strict=True):
        vectors = [*([] if base is None else [base]), *(vector for vector, _ in live)]
        copies.append([{vector[place] for vector in vectors} for place in range(len(group))])
    called = {(tool, letters) for (tool, letters), _ in node.pending}
    machines = [parts[number].machine for number in component.plain]
    owing = {place for place, machine in enumerate(machines) if not machine.is_accepting(node.plain[place])}
    waiting = [step for step in component.steps if doubtful or not step.symbol.doubtful]
    changed = True
    while changed and owing:
        changed = False
        for step in waiting:
            symbol = step.symbol
            tracked = symbol.tool in component.answering
            if symbol.kind == "result" and tracked and not any(
                tool == symbol.tool and (letters in symbol.after or not symbol.after) for tool, letters in called
            ):  # fmt: skip
                continue
            sets = [(machines[move.place], plain[move.place], move) for move in step.plain]
            for place, (group, moves) in enumerate(zip(component.groups, step.each, strict=True)):
                sets += [(parts[group[move.place]].machine, copies[place][move.place], move) for move in moves[1]]
            made = []
            for machine, states, move in sets:
                after = {machine.step(state, move.letters, move.weight) for state in states} - {None}
                if not after:
                    break
                made.append((machine, states, after))
            else:
                for place, (group, moves) in enumerate(zip(component.groups, step.each, strict=True)):
                    for move in moves[0]:
                        machine, states = parts[group[move.place]].machine, copies[place][move.place]
                        after = {machine.step(state, move.letters, move.weight) for state in states} - {None}
                        made += [(machine, states, after)] if after else []
                if symbol.kind == "call" and tracked and (symbol.tool, symbol.letters) not in called:
                    called.add((symbol.tool, symbol.letters))
                    changed = True
                for machine, states, after in made:
                    new = {one for one in after if one > max(states)} if machine.resource else after - states  # type: ignore[operator,type-var]
                    if new:
                        states |= new
                        changed = True
                        if len(states) > _MOST:
                            return True
        owing = {place for place in owing if not any(machines[place].is_accepting(state) for state in plain[place])}
    return not owing


def can_keep_each_copy(component: Component, node: ComponentNode) -> bool:
    """Whether the rules without keys could be kept together with each copy, if there were no other copies.

    What other copies owe or forbid is left out, and so is which calls are under way; what cannot be done so, cannot be
    done. Where that takes too many places, it is taken as possible.
    """
    return all(
        _can_keep_copy(component, node.plain, place, vector)
        for place, (_, live) in enumerate(node.copies)
        for vector, _ in live
    )


def _can_keep_copy(component: Component, plain: Vector, group: int, vector: Vector) -> bool:
    rules, machines = component.plain_machines, component.machines[group]
    seen = {(plain, vector)}
    todo = [(plain, vector)]
    while todo:
        now, copy = todo.pop()
        if all(machine.is_accepting(state) for machine, state in zip(rules, now, strict=True)) and all(
            machine.is_accepting(state) for machine, state in zip(machines, copy, strict=True)
        ):
            return True
        if len(seen) > _PLACES:
            return True
        for step in component.steps:
            every, one = step.each[group]
            after = apply_moves(rules, now, step.plain)
            other = None if after is None else apply_moves(machines, copy, every)
            if after is None or other is None:
                continue
            mine = apply_moves(machines, other, one)
            for following in ((after, other), *(((after, mine),) if mine is not None else ())):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
    return False
