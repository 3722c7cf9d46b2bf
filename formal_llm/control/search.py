"""The search that decides whether the rules can still be kept, under either guarantee.

*Some*: there is a continuation after which all rules are kept (nonblocking). The search visits the apparently nearest
nodes first; a node that differs from a visited one only in smaller remaining counts and sums is pruned, since it allows
nothing more.

*Whatever*: the agent can act so that, whatever tools return and users write, there always is a continuation
(controllable and nonblocking). The nodes where it can are the largest set that no uncontrollable event leaves, and in
which an end is reachable from everywhere: the supremal controllable sublanguage (Wonham and Ramadge 1987). If there are
too many nodes, only the nearest are examined, once as if all others were good and once as if they were bad; a result is
certain if both agree.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import chain, count
from typing import TYPE_CHECKING, NamedTuple, cast

from formal_llm import automata
from formal_llm.automata.lookahead.verdicts import Guarantee
from formal_llm.automata.models.automaton import Configuration
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.automata.models.tabulation import Tabulation
from formal_llm.automata.models.transition import Transition
from formal_llm.control.component import (
    Component,
    ComponentNode,
    ComponentStep,
    MachineMove,
    Vector,
    apply_moves,
)
from formal_llm.control.machines import ConfigurationMachine, Machine, State, measure_effort
from formal_llm.control.plant import Plant, PlantSymbol
from formal_llm.errors import Undecided

if TYPE_CHECKING:  # rules in words need none of it, and a hook of a guard starts often
    from formal_llm.automata.languages.prefixes import ConfigurationSet

#: The maximum effort for the rules without keys and one copy, in nodes of rules with few states.
_PLACES = 1_000
#: The relaxation gives up on a rule with more states, as grammars have.
_MOST = 200


def can_keep_relaxed(component: Component, node: ComponentNode, *, doubtful: bool) -> bool:
    """Return whether the rules could be kept if a rule never lost a state it has reached.

    Each rule keeps all states that it has had, of a sum the largest remainder, and an event can happen if each rule
    allows it in one of them. What is impossible then is impossible (delete relaxation, Bonet and Geffner 2001).
    """
    return _Relaxation(component, node).can_keep(doubtful=doubtful)


class _Relaxation:
    """All states that each rule has had so far, and the calls made so far, of which nothing is ever lost.

    Args:
        component: the rules.
        node: where they start.
    """

    def __init__(self, component: Component, node: ComponentNode) -> None:
        self._component = component
        self._machines = [component.parts[number].machine for number in component.plain]
        self._plain: list[set[State]] = [{state} for state in node.plain]
        self._copies: list[list[set[State]]] = []
        for group, (base, live) in zip(component.groups, node.copies, strict=True):
            vectors = [*([] if base is None else [base]), *(vector for vector, _ in live)]
            self._copies.append([{vector[place] for vector in vectors} for place in range(len(group))])
        self._owed = [*zip(self._machines, self._plain, strict=True)]
        #: For each group and each of its rules that is not kept in a copy, the states of this copy alone.
        self._single: dict[tuple[int, int], list[set[State]]] = {}
        for number, (machines, (_, live)) in enumerate(zip(component.machines, node.copies, strict=True)):
            for place, machine in enumerate(machines):
                states = {vector[place] for vector, _ in live}
                self._single[number, place] = [{state} for state in states if not machine.is_accepting(state)]
                self._owed += [(machine, one) for one in self._single[number, place]]
        self._called = {(tool, letters) for (tool, letters), _ in node.pending}

    def can_keep(self, *, doubtful: bool) -> bool:
        """Whether each rule that matters reaches an accepting state; true as well where one has too many states."""
        steps = [step for step in self._component.steps if doubtful or not step.symbol.doubtful]
        changed = True
        while changed and self._is_owing():
            changed = False
            for step in steps:
                if self._may_come(step.symbol) and self._add_step(step):
                    changed = True
                    if any(sum(map(measure_effort, states)) > _MOST for states in chain(self._plain, *self._copies)):
                        return True
        return not self._is_owing()

    def _is_owing(self) -> bool:
        return any(not any(map(machine.is_accepting, states)) for machine, states in self._owed)

    def _may_come(self, symbol: PlantSymbol) -> bool:
        """Whether a symbol may come; a result comes after a call that it answers."""
        if symbol.kind != "result" or symbol.tool not in self._component.answering:
            return True
        return any(
            tool == symbol.tool and (letters in symbol.after or not symbol.after) for tool, letters in self._called
        )

    def _add_step(self, step: ComponentStep) -> bool:
        """Add the states after a step, if each rule that has to follow it can; whether anything is new."""
        component = self._component
        needed = [(self._machines[move.place], self._plain[move.place], move) for move in step.plain]
        optional = []
        for group, (every, one) in enumerate(step.each):
            machines, copies = component.machines[group], self._copies[group]
            needed += [(machines[move.place], copies[move.place], move) for move in one]
            optional += [(machines[move.place], copies[move.place], move) for move in every]
            for move in (*every, *one):
                optional += [(machines[move.place], single, move) for single in self._single[group, move.place]]
        found = [(machine, states, _states_after(machine, states, move)) for machine, states, move in needed]
        if not all(after for _, _, after in found):
            return False
        found += [(machine, states, _states_after(machine, states, move)) for machine, states, move in optional]
        changed = False
        symbol = step.symbol
        called = symbol.tool, symbol.letters
        if symbol.kind == "call" and symbol.tool in component.answering and called not in self._called:
            self._called.add(called)
            changed = True
        for machine, states, after in found:
            new = {one for one in after if one > max(states)} if machine.resource else after - states  # type: ignore[operator,type-var]
            states |= new
            changed |= bool(new)
        return changed


def _states_after(machine: Machine, states: Iterable[State], move: MachineMove) -> set[State]:
    """The states of a machine after a move from any of some states; those in which it cannot move are left out."""
    return {after for state in states if (after := machine.step(state, move.letters, move.weight)) is not None}


def can_keep_each_copy(component: Component, node: ComponentNode) -> bool:
    """Return whether the rules without keys could be kept, together with each copy, if there were no other copies.

    The obligations and prohibitions of other copies and the pending calls are ignored; what is impossible then is
    impossible. If there are too many nodes, it counts as possible.
    """
    copies: list[tuple[int | None, Vector]] = [
        (place, vector) for place, (_, live) in enumerate(node.copies) for vector, _ in live
    ]
    return all(_can_keep_copy(component, node.plain, place, vector) for place, vector in copies or [(None, ())])


def _can_keep_copy(component: Component, plain: Vector, group: int | None, vector: Vector) -> bool:
    rules = component.plain_machines
    machines = () if group is None else component.machines[group]
    seen = {(plain, vector)}
    todo = [(plain, vector)]
    work = 0
    while todo:
        now, copy = todo.pop()
        work += measure_effort(*now, *copy)
        if all(machine.is_accepting(state) for machine, state in zip(rules, now, strict=True)) and all(
            machine.is_accepting(state) for machine, state in zip(machines, copy, strict=True)
        ):
            return True
        if work > _PLACES:
            return True
        for step in component.steps:
            every, one = ((), ()) if group is None else step.each[group]
            after = apply_moves(rules, now, step.plain)
            copy_after = None if after is None else apply_moves(machines, copy, every)
            if after is None or copy_after is None:
                continue
            copy_alone = apply_moves(machines, copy_after, one)
            for following in ((after, copy_after), *(((after, copy_alone),) if copy_alone is not None else ())):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
    return False


#: The maximum number of steps to tabulate for one query.
_TABULATED = 4_000
#: The terminal and the state that end a word.
_END = "end of the word"


class WordTable:
    """Whether a word can be completed while rules of finitely many states are kept; exact, and shared by all queries.

    The automaton of the words is tabulated with the states of the other rules as positions, so the depth of its stack
    does not matter (:class:`formal_llm.automata.models.tabulation.Tabulation`).

    Args:
        component: the rules. Those with keys are ignored, and any result may come: what is impossible is so without.
        place: the index of the rule about words.
        doubtful: whether events count of which it is unknown if they exist.
    """

    def __init__(self, component: Component, place: int, *, doubtful: bool) -> None:
        self._machines, self._place = component.plain_machines, place
        machine = self._machines[place]
        assert isinstance(machine, ConfigurationMachine) and machine.lookahead is not None
        pda = machine.lookahead.pda
        assert pda is not None
        self._moves: dict[str, list[MachineMove]] = {}
        reading: dict[str | None, list[str]] = {}
        for number, step in enumerate(component.steps):
            if doubtful or not step.symbol.doubtful:
                read = next((machine.select_letter(move.letters) for move in step.plain if move.place == place), None)
                reading.setdefault(read, []).append(f"{number}")
                self._moves[f"{number}"] = [move for move in step.plain if move.place != place]
        self._unread = frozenset(reading.get(None, ()))
        read_by = [(one, reading.get(one.read, ()) if one.read else [None]) for one in pda.transitions]
        transitions = [replace(one, read=name) for one, names in read_by for name in names]
        transitions += [Transition(state, name, None, state) for state in pda.states for name in self._unread]
        transitions += [Transition(state, _END, None, _END) for state in pda.accepting_states]
        self._pda = automata.PDA(transitions, start=pda.start_state, accepting=[_END], check=False)
        self._clear()

    def _clear(self) -> None:
        self._table = Tabulation(self._pda, self._advance)
        self._vectors: list[Vector] = []
        self._numbers: dict[Vector, int] = {}

    def can_complete(self, plain: Vector) -> bool | None:
        """Return whether the rules can be kept from their states; None if that takes too many steps."""
        configurations = cast("ConfigurationSet", plain[self._place]).configurations
        if configurations is None:
            return None
        if len(self._vectors) > _KEPT:
            self._clear()
        self._left = _TABULATED
        at = self._number_vector((*plain[: self._place], None, *plain[self._place + 1 :]))
        try:
            return any(self._can_end(cast("Configuration", one), at) for one in configurations)
        except Undecided:
            self._clear()  # what is half filled cannot be used
            return None

    def _can_end(self, start: Configuration, at: int) -> bool:
        reached = {(start.state, at): None}
        for symbol in (*start.stack, None):
            if any(self._table.may_accept(state, symbol, place) for state, place in reached):
                return True
            reached = {one: None for state, place in reached for one in self._table.find_exits(state, symbol, place)}
        return False

    def _number_vector(self, vector: Vector) -> int:
        number = self._numbers.setdefault(vector, len(self._vectors))
        if number == len(self._vectors):
            self._vectors.append(vector)
        return number

    def _advance(self, name: str, position: int) -> int | None:
        vector = self._vectors[position]
        self._left -= measure_effort(*vector)
        if self._left < 0:
            raise Undecided("too many steps")
        if name == _END:
            pairs = zip(self._machines, vector, strict=True)
            return position if all(state is None or machine.is_accepting(state) for machine, state in pairs) else None
        after = apply_moves(self._machines, vector, self._moves[name])
        return None if after is None or (after == vector and name in self._unread) else self._number_vector(after)


class Edge(NamedTuple):
    """A symbol, and where it leads; None if it breaks a rule."""

    symbol: PlantSymbol
    target: ComponentNode | None


def find_controllable_set(
    component: Component,
    edges: dict[ComponentNode, list[Edge]],
    some: Mapping[ComponentNode, bool | None],
    *,
    hopeful: bool,
) -> set[ComponentNode]:
    """Find the largest set of nodes that no uncontrollable event leaves and in which an end is always reachable.

    Args:
        component: the rules.
        edges: where the symbols lead, for each examined node.
        some: for each node, if known, whether some continuation keeps the rules.
        hopeful: whether unknown nodes count as good, and doubtful events of the agent as possible. Otherwise they count
            as bad, and doubtful events from outside as possible.
    """

    def is_considered(symbol: PlantSymbol) -> bool:
        return not symbol.doubtful or symbol.is_controllable is hopeful

    before: dict[ComponentNode, list[tuple[ComponentNode, bool]]] = {}
    inside = set(edges)
    out: list[ComponentNode] = []
    boundary: set[ComponentNode] = set()  # nodes with an edge to an unexamined node
    for node, outgoing in edges.items():
        for edge in outgoing:
            if not is_considered(edge.symbol):
                continue
            target = edge.target
            unexamined = target is not None and target not in edges
            good = target is not None and (not unexamined or (hopeful and some.get(target) is not False))
            if not good and not edge.symbol.is_controllable:
                out.append(node)
            elif good and unexamined:
                boundary.add(node)
            elif good:
                assert target is not None
                before.setdefault(target, []).append((node, edge.symbol.is_controllable))
    accepting = {node for node in edges if component.is_accepting(node)} | boundary
    while True:
        _remove_uncontrolled(inside, out, before)
        reached = set(find_reachable(accepting & inside, lambda node: (
            source for source, _ in before.get(node, ()) if source in inside
        )))  # fmt: skip
        out = [node for node in inside if node not in reached]
        if not out:
            return inside


def _remove_uncontrolled(
    inside: set[ComponentNode],
    out: list[ComponentNode],
    before: Mapping[ComponentNode, Sequence[tuple[ComponentNode, bool]]],
) -> None:
    """Take nodes out of a set, and with them all from which an event from outside leads to them."""
    while out:
        node = out.pop()
        if node in inside:
            inside.discard(node)
            out += [source for source, controlled in before.get(node, ()) if not controlled]


#: The number of nodes to search before estimating what has to happen first, and the number of edges per node.
_FIRST, _EDGES = 300, 10
#: What one query may spend, for each node that it may visit, in edges of nodes without copies.
_EFFORT = 4
#: The maximum number of cached answers.
_KEPT = 100_000


class ViabilitySearch:
    """A search that looks ahead for rules that depend on the same tools.

    Args:
        component: the rules.
        plant: the possible events.
        guarantee: the guarantee to decide.
        max_states: the maximum number of nodes that one query may visit.
    """

    def __init__(self, component: Component, plant: Plant, guarantee: Guarantee, max_states: int) -> None:
        self.component = component
        self.plant = plant
        self.guarantee: Guarantee = guarantee if component.steps_outside else "some"
        self.max_states = max_states
        #: The number of nodes examined by all queries so far.
        self.visited = 0
        self._some: dict[ComponentNode, bool | None] = {}
        self._whatever: dict[ComponentNode, bool | None] = {}
        self._hints: dict[ComponentNode, tuple[PlantSymbol, ComponentNode]] = {}
        self._way: tuple[ComponentStep, ...] = ()
        self._ways: dict[ComponentNode, tuple[PlantSymbol, ...] | None] = {}
        self._closed: dict[tuple[ComponentNode, bool], frozenset[str]] = {}
        self._left = 0
        self._doubtful = any(step.symbol.doubtful for step in component.steps)
        words = [place for place, one in enumerate(component.plain_machines) if getattr(one, "lookahead", None)]
        kinds = (False, True) if self._doubtful else (False,)
        self._tables = [WordTable(component, place, doubtful=kind) for place in words[:1] for kind in kinds]
        #: The tools with calls that change nothing here.
        self._free = frozenset(
            one.tool for one in plant.symbols
            if one.kind == "call" and component.letters.isdisjoint(one.letters) and one.tool not in component.answering
        )  # fmt: skip

    def is_viable(self, node: ComponentNode) -> bool | None:
        """Return whether the rules can still be kept from a node; None if the bound was hit before."""
        if self.guarantee == "some":
            return self.has_continuation(node)
        if node not in self._whatever:
            self._trim_cache(self._whatever)
            self._whatever[node] = self._can_control(node) if self.has_continuation(node) is not False else False
        return self._whatever[node]

    def has_continuation(self, node: ComponentNode) -> bool | None:
        """Return whether some continuation keeps the rules; None if the bound was hit before."""
        self._left = _EFFORT * self.max_states
        return self._find_continuation(node)

    def _find_continuation(self, node: ComponentNode) -> bool | None:
        if node in self._some:
            return self._some[node]
        if self.component.is_accepting(node):
            return True
        self._trim_cache(self._some)
        verdict = self._decide_continuation(node)
        if verdict is not None or self._left >= 0:  # otherwise another query may have more left for it
            self._some[node] = verdict
        return verdict

    def _trim_cache(self, kept: dict[ComponentNode, bool | None]) -> None:
        if len(kept) > _KEPT:
            kept.clear()
            self._hints.clear()

    def _decide_continuation(self, node: ComponentNode) -> bool | None:
        if self._replay_last_way(node):
            return True
        found = [table.can_complete(node.plain) for table in self._tables]
        if found and found[-1] is False:
            return False
        if found and None not in found and not self.component.groups and not self.component.answering:
            if found[0] and self.guarantee == "whatever":
                self._search_continuation(node, doubtful=False, most=_FIRST)  # for the hints
            return found[0] if found[0] is found[-1] else None  # only events that may not exist could lead on
        if not self.component.can_meet_needs(node) or not can_keep_relaxed(self.component, node, doubtful=True):
            return False
        if not can_keep_each_copy(self.component, node):
            return False
        if self._doubtful and not can_keep_relaxed(self.component, node, doubtful=False):
            return None  # only events that may not exist could lead on
        verdict = self._search_continuation(node, doubtful=False, most=min(_FIRST, self.max_states))
        if verdict is None:
            verdict = self._search_continuation(node, doubtful=False, most=self.max_states // 4, guided=True)
        if verdict is None:
            verdict = self._search_continuation(node, doubtful=False, most=self.max_states)
        if verdict is not False or not self._doubtful:
            return verdict
        return False if self._search_continuation(node, doubtful=True, most=self.max_states) is False else None

    def _replay_last_way(self, start: ComponentNode) -> bool:
        """Return whether the last way that was found also leads to an end from here, as it does after most events."""
        predecessors: dict[ComponentNode, tuple[ComponentNode, PlantSymbol] | None] = {start: None}
        node = start
        for step in self._way:
            after = next((one for one in self.component.find_successors(node, step) if one is not None), None)
            if after is None or after in predecessors:
                continue
            predecessors[after] = (node, step.symbol)
            node = after
            if self._some.get(node) or self.component.is_accepting(node):
                self._remember_hints(node, predecessors)
                return True
        return False

    # -- some ---------------------------------------------------------------------------------------------------

    def _search_continuation(
        self, start: ComponentNode, *, doubtful: bool, most: int, guided: bool = False
    ) -> bool | None:
        """Return whether an end can be reached; remember the way there as hints.

        At most ``most`` nodes are visited, fewer if many symbols are possible. A guided search includes the events that
        have to precede the required ones in its estimates.
        """
        component = self.component
        left = component.distance_to_acceptance(start)
        if left is None:
            return False
        tie = count()
        steps = [step for step in component.steps if doubtful or not step.symbol.doubtful]
        heap = [(left, next(tie), left, start)]
        predecessors: dict[ComponentNode, tuple[ComponentNode, PlantSymbol] | None] = {start: None}
        seen: dict[tuple[object, ...], list[tuple[State, ...]]] = {}
        work = 0
        while heap:
            _, _, left, node = heappop(heap)
            if (left == 0 and component.is_accepting(node)) or (not doubtful and self._some.get(node)):
                if not doubtful:
                    self._remember_hints(node, predecessors)
                    self._way = self._collect_steps_to(node, predecessors)
                return True
            if self._some.get(node) is False or self._is_dominated(node, seen):
                continue
            cost = self._measure_work(node)
            work += cost
            self._left -= cost
            self.visited += 1
            if work > most * _EDGES or self._left < 0:
                return None
            for step in steps:
                for after in component.find_successors(node, step):
                    if after is None or after in predecessors:
                        continue
                    further = component.distance_after(node, after, step, left)
                    if further is not None and component.can_meet_needs(after):
                        predecessors[after] = (node, step.symbol)
                        estimate = further + component.estimate_missing_events(after) if guided else further
                        heappush(heap, (estimate, next(tie), further, after))
        if not self._doubtful or doubtful:
            self._some.update(dict.fromkeys(predecessors, False))
        return False

    def _measure_work(self, node: ComponentNode) -> int:
        """Measure what the successors of a node cost, in edges of a node without copies."""
        copies = [vector for _, live in node.copies for vector, _ in live]  # each copy is moved
        return len(self.component.steps) * (1 + len(copies)) * measure_effort(*node.plain, *chain(*copies))

    def _is_dominated(self, node: ComponentNode, seen: dict[tuple[object, ...], list[tuple[State, ...]]]) -> bool:
        """Return whether a visited node differs only in larger remainders; otherwise record the node."""
        places = self.component.resources
        if not places:
            return False
        rest = tuple(None if place in places else state for place, state in enumerate(node.plain))
        amounts = tuple(node.plain[place] for place in places)
        others = seen.setdefault((rest, node.copies, node.pending), [])
        if any(all(a <= b for a, b in zip(amounts, other, strict=True)) for other in others):  # type: ignore[operator]
            return True
        others.append(amounts)
        return False

    def _remember_hints(
        self, node: ComponentNode, came: dict[ComponentNode, tuple[ComponentNode, PlantSymbol] | None]
    ) -> None:
        while (before := came[node]) is not None:
            self._hints[before[0]] = (before[1], node)
            self._some[before[0]] = True
            node = before[0]

    def find_way(self, node: ComponentNode) -> tuple[PlantSymbol, ...] | None:
        """Return the symbols of a way to an end, by viable nodes: a shortest one if few nodes have to be examined."""
        if node not in self._ways:
            if len(self._ways) > _KEPT:
                self._ways.clear()
            self._ways[node] = self._search_way(node)
        return self._ways[node]

    def find_closed_tools(self, node: ComponentNode, *, unsure: bool = False) -> frozenset[str]:
        """Find the tools of which no call is allowed at a node; with ``unsure`` also if that is not known."""
        closed = self._closed.get((node, unsure))
        if closed is None:
            if len(self._closed) > _KEPT:
                self._closed.clear()
            open_ = set(self._free)
            tools = set()
            for step in self.component.steps:
                if step.symbol.kind == "call" and step.symbol.tool not in open_:
                    tools.add(step.symbol.tool)
                    nodes = self.component.find_successors(node, step, again=True)
                    verdicts = (self.is_viable(after) for after in nodes if after is not None)
                    if any(verdict or (verdict is None and not unsure) for verdict in verdicts):
                        open_.add(step.symbol.tool)
            closed = self._closed[node, unsure] = frozenset(tools - open_)
        return closed

    def _search_way(self, node: ComponentNode) -> tuple[PlantSymbol, ...] | None:
        if self.component.is_accepting(node):
            return ()
        if self.is_viable(node) is not True:
            return None
        todo: deque[tuple[ComponentNode, tuple[PlantSymbol, ...]]] = deque([(node, ())])
        seen, work = {node}, 0
        while todo and work < self.max_states * _EDGES // 8:
            now, way = todo.popleft()
            if self.component.is_accepting(now):
                return way
            work += self._measure_work(now)
            for edge in self._list_edges(now, doubtful=False):
                after = edge.target
                if after is None or after in seen or self.component.distance_to_acceptance(after) is None:
                    continue
                seen.add(after)
                if self._may_pass(after):
                    todo.append((after, (*way, edge.symbol)))
        if self._tables and node not in self._hints:
            self._search_continuation(node, doubtful=False, most=_FIRST)
        symbols: list[PlantSymbol] = []
        while not self.component.is_accepting(node):
            if node not in self._hints:
                return None
            symbol, node = self._hints[node]
            if not self._may_pass(node):
                return None
            symbols.append(symbol)
        return tuple(symbols)

    def _may_pass(self, node: ComponentNode) -> bool:
        """Return whether the guarantee allows a way to lead through a node; true as well if that is unknown."""
        return self.guarantee == "some" or self.is_viable(node) is not False

    def _collect_steps_to(
        self, node: ComponentNode, came: dict[ComponentNode, tuple[ComponentNode, PlantSymbol] | None]
    ) -> tuple[ComponentStep, ...]:
        symbols = []
        while (before := came[node]) is not None:
            node, symbol = before
            symbols.append(symbol)
        by_symbol = {id(step.symbol): step for step in self.component.steps}
        return tuple(by_symbol[id(symbol)] for symbol in reversed(symbols))

    # -- whatever -----------------------------------------------------------------------------------------------

    def _list_edges(self, node: ComponentNode, *, doubtful: bool = True) -> list[Edge]:
        self.visited += 1
        self._left -= self._measure_work(node)
        return [
            Edge(step.symbol, after)
            for step in self.component.steps
            if doubtful or not step.symbol.doubtful
            for after in self.component.find_successors(node, step)
        ]

    def _can_control(self, start: ComponentNode) -> bool | None:
        """Return whether the agent can keep the rules whatever happens; None if the bound was hit before."""
        verdict = self._try_strategy(start)
        if verdict is not None:
            return verdict
        edges: dict[ComponentNode, list[Edge]] = {}
        todo = deque([start])
        while todo and (not edges or (len(edges) < self.max_states and self._left >= 0)):
            node = todo.popleft()
            if node in edges:
                continue
            outgoing = self._list_edges(node)
            edges[node] = outgoing
            todo += [edge.target for edge in outgoing if edge.target is not None and edge.target not in edges]
        sure = find_controllable_set(self.component, edges, self._some, hopeful=False)
        if start in sure:
            self._whatever.update(dict.fromkeys(sure, True))
            return True
        possible = find_controllable_set(self.component, edges, self._some, hopeful=True)
        for node in edges:
            if node not in possible:
                self._whatever[node] = False
        return None if start in possible else False

    def _try_strategy(self, start: ComponentNode) -> bool | None:
        """Examine a few nodes: those reached by events from outside, and those of one way on from each.

        If these are good by themselves, the agent can stay within them. If events from outside alone lead to a dead
        end, it is powerless. Otherwise the result is unknown.
        """
        forced, inside = [start], {start}
        good = True
        while forced:
            node = forced.pop()
            if self._find_continuation(node) is False:
                return False
            for edge in self._list_outside_edges(node):
                if edge.target is None or self._whatever.get(edge.target) is False:
                    if not edge.symbol.doubtful:
                        return False
                    good = False
                elif edge.target not in inside:
                    if edge.symbol.doubtful and self._find_continuation(edge.target) is False:
                        good = False
                    elif len(inside) >= _FIRST:
                        return None
                    elif not edge.symbol.doubtful:
                        inside.add(edge.target)
                        forced.append(edge.target)
        return self._can_keep_within(inside) if good else None

    def _can_keep_within(self, begun: set[ComponentNode]) -> bool | None:
        inside, todo = set(begun), list(begun)
        while todo:
            node = todo.pop()
            if self._whatever.get(node):
                continue
            if self._find_continuation(node) is not True:
                return None
            following = [edge.target for edge in self._list_outside_edges(node)]
            if not self.component.is_accepting(node):
                if node not in self._hints:
                    return None
                following.append(self._hints[node][1])
            for after in following:
                if after is None:
                    return None
                if after not in inside:
                    if len(inside) >= 4 * _FIRST or self._left < 0:
                        return None
                    inside.add(after)
                    todo.append(after)
        self._whatever.update(dict.fromkeys(inside, True))
        return True

    def _list_outside_edges(self, node: ComponentNode) -> list[Edge]:
        """List the edges of events that the agent does not control."""
        self.visited += 1
        self._left -= self._measure_work(node)
        return [
            Edge(step.symbol, after)
            for step in self.component.steps_outside
            for after in self.component.find_successors(node, step)
        ]
