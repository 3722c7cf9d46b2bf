"""Rules that depend on the same tools, advanced together; their product is built only as far as it is reached.

A rule ``for each`` order has a copy for each order seen so far (parametric trace slicing, Roşu and Chen 2012): an
event of an order moves its copy, an event without an order moves all copies. One more copy represents the orders not
seen yet. What can follow depends only on how many copies are in which state, not on the orders they belong to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import chain, combinations, product
from math import inf
from typing import NamedTuple, Protocol, cast

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.control.machines import ConfigurationMachine, Letters, Machine, State, Times, measure_effort
from formal_llm.control.plant import Plant, PlantSymbol

Vector = tuple[State, ...]
#: For rules with the same keys: the copy for values not seen yet (None: no new value may occur), and the number of
#: copies in each state.
Copies = tuple[Vector | None, frozenset[tuple[Vector, int]]]
#: Rules with more states together are measured separately.
_MOST = 300


class ControlledRule(Protocol):
    """A rule that looks ahead.

    Attributes:
        machine: the states of the rule, and how events change them.
        keys: the fields that distinguish the copies of the rule; empty where there is one for all events.
        keyed: those of its letters that give the keys.
    """

    @property
    def machine(self) -> Machine:  # noqa: D102 - the class lists its attributes
        ...

    @property
    def keys(self) -> tuple[str, ...]:  # noqa: D102
        ...

    @property
    def keyed(self) -> Letters:  # noqa: D102
        ...


class MachineMove(NamedTuple):
    """The effect of an event on a rule: the index of the rule, its letters in the event, and the amount for its sum."""

    place: int
    letters: Letters
    weight: Fraction | None


def apply_moves(machines: Sequence[Machine], vector: Vector, moves: Sequence[MachineMove]) -> Vector | None:
    """Return where an event leads; None if it breaks a rule."""
    if not moves:
        return vector
    states = list(vector)
    for place, letters, weight in moves:
        after = machines[place].step(vector[place], letters, weight)
        if after is None:
            return None
        states[place] = after
    return tuple(states)


def are_accepting(machines: Sequence[Machine], vector: Vector) -> bool:
    """Return whether all of some rules are kept if no event follows."""
    return all(machine.is_accepting(state) for machine, state in zip(machines, vector, strict=True))


#: What is needed of something; infinite where no way is left.
Need = Fraction | int | float
#: The maximum number of rules that bound something of which all combinations are tried.
_COMBINED = 4


class CopyNeeds:
    """What copies take at least until they are kept: of events, and of what rules without keys bound for the whole run.

    Each event belongs to one copy, so what copies need adds up: if it is more than is left, the rules cannot be kept
    together. What several rules bound is also added up, since a copy may need one or the other. So it is decided by
    counting copies, without any search, that three shipments are not enough for four orders.

    Args:
        machines: the rules of a copy.
        events: for each possible event its effect on all copies, its effect on the copy it belongs to, and what it
            takes from each of the bounding rules.
    """

    def __init__(
        self,
        machines: Sequence[Machine],
        events: Iterable[tuple[Sequence[MachineMove], Sequence[MachineMove], Mapping[int, Fraction | int]]],
    ) -> None:
        self._machines = machines
        self._events = [*events]
        bounding = sorted({place for _, one, taken in self._events if one for place in taken})
        sizes = range(1, len(bounding) + 1) if len(bounding) <= _COMBINED else (1, len(bounding))
        self._combinations = [*chain.from_iterable(combinations(bounding, size) for size in sizes)]
        self._known: dict[tuple[Vector, Sequence[int] | None, frozenset[int]], Need | None] = {}

    def measure_distance(self, vector: Vector) -> int | None:
        """Return the minimum number of events until all rules of a copy are kept; None if they cannot be.

        If they have too many states together, return the sum of the distances of the rules.
        """
        found = self._measure(vector, None)
        if found is not None:
            return None if found == inf else int(found)
        parts = [machine.distance_to_acceptance(state) for machine, state in zip(self._machines, vector, strict=True)]
        return None if None in parts else sum(part for part in parts if part is not None)

    def fit_into(self, plain: Vector, copies: Copies, due: Iterable[frozenset[int]]) -> bool:
        """Return whether copies in these states need no more than the rules without keys leave in theirs.

        Args:
            plain: the states of the rules without keys.
            copies: the copies.
            due: sets of events of each of which one has to come, by their numbers.
        """
        if not self._combinations:
            return True
        base, live = copies
        totals: list[Need] = [0] * len(self._combinations)
        for vector, number in live:
            totals = [total + number * need for total, need in zip(totals, self._measure_needs(vector), strict=True)]
        more: list[Need] = [0] * len(totals)
        for events in due:
            uses = [self._events[number][2] for number in events if not self._events[number][1]]
            ways: list[list[Need]] = [
                [sum(use.get(one, 0) for one in places) for places in self._combinations] for use in uses
            ]
            ways += [self._measure_needs(base, events)] if base is not None else []
            for vector, _ in live:  # what it needs anyway is in the totals
                pairs = zip(self._measure_needs(vector, events), self._measure_needs(vector), strict=True)
                ways.append([max(0, need - anyway) for need, anyway in pairs])
            more = [*map(max, more, map(min, zip(*ways, strict=True)))] if ways else more
        return all(
            total + extra <= sum(cast("Fraction", plain[place]) for place in places)
            for total, extra, places in zip(totals, more, self._combinations, strict=True)
        )

    def _measure_needs(self, vector: Vector, events: frozenset[int] = frozenset()) -> list[Need]:
        """Measure what a copy takes at least of each combination; with one of some events, if there are any."""
        return [self._measure(vector, places, events) or 0 for places in self._combinations]

    def _measure(
        self, vector: Vector, places: Sequence[int] | None, events: frozenset[int] = frozenset()
    ) -> Need | None:
        """Measure what a copy takes at least from some rules together, or of events; None if that takes too long."""
        key = vector, places, events
        if key not in self._known:
            self._known[key] = self._search_cheapest(*key)
        return self._known[key]

    def _search_cheapest(self, start: Vector, places: Sequence[int] | None, events: frozenset[int]) -> Need | None:
        """Search the cheapest way on which a copy is kept in the end (Dijkstra 1959)."""
        heap: list[tuple[Need, int, Vector, bool]] = [(0, 0, start, not events)]
        pushed = 0  # decides between equal needs, since vectors have no order
        done: set[tuple[Vector, bool]] = set()
        work = 0
        while heap and work <= _MOST:
            need, _, vector, had = heappop(heap)
            if had and are_accepting(self._machines, vector):
                return need
            if (vector, had) in done:
                continue
            done.add((vector, had))
            work += measure_effort(*vector)
            for number, (every, one, taken) in enumerate(self._events):
                other = apply_moves(self._machines, vector, every)
                mine = None if other is None or not one else apply_moves(self._machines, other, one)
                cost = int(places is None)
                use: Need = cost if places is None else sum(taken.get(place, 0) for place in places)
                for after, more, has in ((other, cost, had), (mine, use, had or number in events)):
                    if after is not None and (after, has) not in done:
                        pushed += 1
                        heappush(heap, (need + more, pushed, after, has))
        return None if heap else inf


#: A pending call: the tool, and the letters of the call. And how many of them there are.
Pending = tuple[str, Letters]
PendingCalls = frozenset[tuple[Pending, int]]
#: The maximum number of events that an estimate looks ahead.
_DEEPEST = 50


class ComponentNode(NamedTuple):
    """The states of rules that depend on the same tools."""

    plain: Vector
    copies: tuple[Copies, ...]
    pending: PendingCalls


class ComponentStep(NamedTuple):
    """A symbol, and the moves that it causes.

    Attributes:
        symbol: the symbol.
        plain: the moves of the rules without keys.
        each: for each group of rules with the same keys the moves of all copies, and those of a single copy.
    """

    symbol: PlantSymbol
    plain: tuple[MachineMove, ...]
    each: tuple[tuple[tuple[MachineMove, ...], tuple[MachineMove, ...]], ...]


class Component:
    """A group of rules that depend on the same tools.

    Args:
        parts: the rules, by number.
        plant: the possible events.
    """

    def __init__(self, parts: Mapping[int, ControlledRule], plant: Plant) -> None:
        self.parts = parts
        self.plain = tuple(number for number, part in parts.items() if not part.keys)
        self.plain_machines = tuple(parts[number].machine for number in self.plain)
        keys = dict.fromkeys(part.keys for part in parts.values() if part.keys)
        self.keys = tuple(keys)
        self.groups = tuple(tuple(number for number, part in parts.items() if part.keys == each) for each in self.keys)
        self.letters = frozenset(name for part in parts.values() for name in part.machine.letters)
        #: The tools whose pending calls matter here.
        self.answering = frozenset(
            symbol.tool for symbol in plant.symbols if symbol.kind == "result" and symbol.letters & self.letters
        )
        self._needed: dict[tuple[MachineMove, State], int] = {}
        self._due: dict[tuple[int, State], frozenset[int]] = {}
        self.steps = tuple(self._build_steps(plant.symbols))
        #: The machines of each group.
        self.machines = tuple(tuple(parts[number].machine for number in group) for group in self.groups)
        self._needs = tuple(
            CopyNeeds(machines, [(*step.each[place], self._measure_uses(step)) for step in self.steps])
            for place, machines in enumerate(self.machines)
        )
        #: The rules without keys together with one copy of each group; last, by themselves.
        self._alone = tuple(self._join_copy(place) for place in (*range(len(self.machines)), None))
        #: For each rule without keys the steps that move it, and how.
        self._moves = tuple(
            [(move, step) for step in self.steps for move in step.plain if move.place == place]
            for place in range(len(self.plain))
        )
        self.resources = tuple(place for place, number in enumerate(self.plain) if parts[number].machine.resource)
        #: Whether something can happen that the agent does not control.
        self.has_events_outside = any(not step.symbol.is_controllable for step in self.steps)

    # -- symbols ------------------------------------------------------------------------------------------------

    def _build_steps(self, symbols: Sequence[PlantSymbol]) -> Iterator[ComponentStep]:
        alike: dict[tuple[str, str, Letters, bool], list[PlantSymbol]] = {}
        for one in symbols:
            tracked = one.tool in self.answering and one.kind in ("call", "result")
            if tracked or one.letters & self.letters:
                alike.setdefault((one.kind, one.tool, one.letters & self.letters, one.doubtful), []).append(one)
        budgets = {getattr(part.machine, "quantity", None) for part in self.parts.values()}
        for (kind, tool, letters, doubtful), some in alike.items():
            if doubtful and (kind, tool, letters, False) in alike:
                continue
            least: dict[str, Fraction] = {}
            for one in some:
                least |= {name: min(amount, least.get(name, amount)) for name, amount in one.least.items()}
            # These rules see a pending call only through their own letters.
            after = frozenset(call & self.letters for one in some for call in one.after)
            unbounded = frozenset(name for one in some for name in one.unbounded if name in budgets)
            symbol = PlantSymbol(kind, tool, letters, least, doubtful, after, unbounded)
            yield self._build_step(symbol)
            if unbounded:  # it may take less, but that is not known
                yield self._build_step(replace(symbol, doubtful=True, unbounded=frozenset()))

    def _build_step(self, symbol: PlantSymbol) -> ComponentStep:
        def collect_moves(numbers: Sequence[int], keyed: bool | None) -> tuple[MachineMove, ...]:
            moves = []
            for place, number in enumerate(numbers):
                part = self.parts[number]
                letters = symbol.letters.intersection(part.machine.letters)
                if letters and (keyed is None or bool(letters & part.keyed) is keyed):
                    quantity = getattr(part.machine, "quantity", None)
                    weight = symbol.least.get(quantity, Fraction(0) if symbol.doubtful else None) if quantity else None
                    if quantity in symbol.unbounded:
                        weight = cast("Fraction", part.machine.start)  # all that there is may be needed for it
                    moves.append(MachineMove(place, letters, weight))
            return tuple(moves)

        each = tuple((collect_moves(group, False), collect_moves(group, True)) for group in self.groups)
        return ComponentStep(symbol, collect_moves(self.plain, None), each)

    def _measure_uses(self, step: ComponentStep) -> dict[int, Fraction | int]:
        """Return what a step takes from each rule without keys that bounds something for the whole run."""
        uses = {place: self.plain_machines[place].measure_use(letters, weight) for place, letters, weight in step.plain}
        return {place: use for place, use in uses.items() if use}

    def _join_copy(self, group: int | None) -> CopyNeeds:
        """Join the rules without keys and one copy of a group to a copy of rules."""
        events = []
        for step in self.steps:
            every, one = ((), ()) if group is None else step.each[group]
            shifted = [[move._replace(place=move.place + len(self.plain)) for move in moves] for moves in (every, one)]
            events.append(((*step.plain, *shifted[0]), shifted[1], dict[int, Fraction | int]()))
        return CopyNeeds((*self.plain_machines, *(() if group is None else self.machines[group])), events)

    # -- nodes --------------------------------------------------------------------------------------------------

    def count_pending(self, calls: Iterable[Pending]) -> PendingCalls:
        """Count the pending calls that matter to these rules, by their letters."""
        own = [(tool, letters & self.letters) for tool, letters in calls if tool in self.answering]
        return frozenset(Counter(own).items())

    def is_accepting(self, node: ComponentNode) -> bool:
        """Return whether all rules are kept if no event follows."""
        return are_accepting(self.plain_machines, node.plain) and all(
            are_accepting(machines, vector)
            for machines, (_, live) in zip(self.machines, node.copies, strict=True)
            for vector, _ in live
        )

    def estimate_distance(self, node: ComponentNode) -> int | None:
        """Estimate how many events have to come until all rules are kept; None if one cannot be kept any more.

        The sum of what each rule and each copy needs by itself, and of the events that have to come first.
        """
        total = 0
        for place, (machine, state) in enumerate(zip(self.plain_machines, node.plain, strict=True)):
            distance = machine.distance_to_acceptance(state)
            if distance is None:
                return None
            if distance:
                total += distance + self._count_events_before(place, node.plain, distance)
        for needs, (_, live) in zip(self._needs, node.copies, strict=True):
            for vector, number in live:
                distance = needs.measure_distance(vector)
                if distance is None:
                    return None
                total += distance * number
        return total

    def _count_events_before(self, place: int, plain: Vector, distance: int) -> int:
        """Count the events that other rules need before one may come that brings a rule nearer."""
        machine, state = self.plain_machines[place], plain[place]
        counts = []
        for move, step in self._moves[place]:
            after = machine.step(state, move.letters, move.weight)
            if after is not None and (machine.distance_to_acceptance(after) or 0) < distance:
                counts.append(sum(self._count_events_until(one, plain[one.place]) for one in step.plain))
        return min(counts, default=0)

    def _count_events_until(self, move: MachineMove, state: State) -> int:
        """Count the events that a rule alone needs until an event may happen."""
        key = (move, state)
        if key not in self._needed:
            machine = self.plain_machines[move.place]
            seen, level, depth = {state}, [state], 0
            while level and not any(machine.step(one, move.letters, move.weight) is not None for one in level):
                depth += 1
                moves = [other for other, _ in self._moves[move.place]] if depth < _DEEPEST else []
                further = {machine.step(one, other.letters, other.weight) for one in level for other in moves}
                level = [one for one in further - seen if one is not None]
                seen.update(level)
            self._needed[key] = depth
        return self._needed[key]

    def can_meet_needs(self, node: ComponentNode) -> bool:
        """Return whether what copies need is left; what is impossible then is impossible."""
        due = [*map(self._find_due_events, range(len(node.plain)), node.plain)] if self.groups else []
        return all(
            needs.fit_into(node.plain, copies, filter(None, due))
            for needs, copies in zip(self._needs, node.copies, strict=True)
        )

    def can_keep_each_copy(self, node: ComponentNode) -> bool:
        """Return whether the rules without keys could be kept, with each copy by itself; so if that is not decided."""
        vectors = [
            (alone, vector) for alone, (_, live) in zip(self._alone, node.copies, strict=False) for vector, _ in live
        ]
        return all(
            alone.measure_distance((*node.plain, *vector)) is not None
            for alone, vector in vectors or [(self._alone[-1], ())]
        )

    def _find_due_events(self, place: int, state: State) -> frozenset[int]:
        """Find the events of which one has to come until a rule without keys is kept; none if it is, or nests."""
        if (place, state) not in self._due:
            machine = self.plain_machines[place]
            nests = isinstance(machine, ConfigurationMachine)
            self._due[place, state] = frozenset(
                number for number, step in enumerate(self.steps) if not nests and not machine.is_accepting(state)
                for move in step.plain if move.place == place
                and machine.step(state, move.letters, move.weight) not in (None, state)
            )  # fmt: skip
        return self._due[place, state]

    def find_successors(
        self, node: ComponentNode, step: ComponentStep, *, again: bool = False
    ) -> Iterator[ComponentNode | None]:
        """Yield where a symbol leads: a node for each copy it may belong to, or None if it breaks a rule.

        Yield nothing if the plant rules the symbol out. ``again`` allows a tool to be called while a call is pending.
        """
        for pending in self._move_pending_calls(node.pending, step.symbol, again):
            plain = apply_moves(self.plain_machines, node.plain, step.plain)
            if plain is None:
                yield None
                continue
            for copies in product(*map(self._move_copies, self.machines, node.copies, step.each)):
                yield None if None in copies else ComponentNode(plain, cast("tuple[Copies, ...]", copies), pending)

    def _move_copies(
        self, group: Sequence[Machine], copies: Copies, moves: tuple[tuple[MachineMove, ...], tuple[MachineMove, ...]]
    ) -> Iterator[Copies | None]:
        for_all, for_one = moves
        base, live = copies
        base = None if base is None else apply_moves(group, base, for_all)
        count: Counter[Vector] = Counter()
        for vector, number in live:
            after = apply_moves(group, vector, for_all)
            if after is None:
                yield None
                return
            count[after] += number
        if not for_one:
            yield self.build_copies(group, base, count)
            return
        for owner in (*count, None):  # the copy that the event belongs to, or a new one
            vector_before = base if owner is None else owner
            after = None if vector_before is None else apply_moves(group, vector_before, for_one)
            if after is None:
                yield None
            else:
                changed = Counter({**count, owner: count[owner] - 1}) if owner is not None else count.copy()
                changed[after] += 1
                yield self.build_copies(group, base, changed)

    def build_copies(self, group: Sequence[Machine], base: Vector | None, count: Mapping[Vector, int]) -> Copies:
        """Build the copies of rules, with the number of those in each vector of states.

        Copies in the same state as the copy for unseen values are left out if no event is due in them.
        """
        idle = base is not None and are_accepting(group, base)
        return base, frozenset(
            (vector, number) for vector, number in count.items() if number and not (idle and vector == base)
        )

    def _move_pending_calls(self, pending: PendingCalls, symbol: PlantSymbol, again: bool) -> Iterator[PendingCalls]:
        if symbol.tool not in self.answering or symbol.kind not in ("call", "result"):
            yield pending
            return
        count = Counter(dict(pending))
        if symbol.kind == "call":
            if again or not any(tool == symbol.tool for tool, _ in count):
                count[symbol.tool, symbol.letters] += 1
                yield frozenset(count.items())
            return
        for tool, letters in [*count]:
            if tool == symbol.tool and symbol.may_answer(letters):
                yield frozenset((count - Counter([(tool, letters)])).items())


#: The values that distinguish the cases of a rule ``for each``.
Key = tuple[str, ...]


class Cases(NamedTuple):
    """The cases of the rules with the same keys.

    Attributes:
        numbers: the numbers of the machines of these rules.
        states: for each case seen so far the states of these machines; None for one that no new case may have.
        counts: how many cases have which states. What can follow depends on nothing else.
    """

    numbers: tuple[int, ...]
    states: Mapping[Key, tuple[State | None, ...]]
    counts: Mapping[tuple[State | None, ...], int]

    def with_states(self, moved: Mapping[Key, Sequence[State | None]]) -> Cases:
        """Return the cases after some have moved."""
        states, counts = dict(self.states), Counter(dict(self.counts))
        for case, vector in moved.items():
            if case in states:
                counts[states[case]] -= 1
            states[case] = tuple(vector)
            counts[states[case]] += 1
        return Cases(
            self.numbers, FrozenDict(states), FrozenDict({one: count for one, count in counts.items() if count})
        )


class Position(NamedTuple):
    """The states of all rules.

    Attributes:
        states: the state of each machine; for one ``for each`` that of unseen cases (None: no new case may occur).
        live: for the keys of machines ``for each`` the cases seen so far.
        times: for each timed machine and each case the times of its events.
        calls: the pending calls: id, tool, letters.
    """

    states: tuple[State | None, ...]
    live: Mapping[tuple[str, ...], Cases]
    times: tuple[Mapping[Key, Times], ...]
    calls: tuple[tuple[str, Pending], ...]


def project_node(position: Position, component: Component) -> ComponentNode:
    """What some rules see of a position."""
    plain: Vector = tuple(position.states[number] for number in component.plain)
    copies = []
    for keys, group, machines in zip(component.keys, component.groups, component.machines, strict=True):
        base = tuple(position.states[number] for number in group)
        cases = position.live[keys]
        places = [cases.numbers.index(number) for number in group]
        count: Counter[Vector] = Counter()
        for states, number in cases.counts.items():
            vector = tuple(states[place] for place in places)
            if None not in vector:  # a rule that allows no new case gives no state for one of other rules
                count[vector] += number
        copies.append(component.build_copies(machines, None if None in base else base, count))
    return ComponentNode(plain, tuple(copies), component.count_pending(call for _, call in position.calls))
