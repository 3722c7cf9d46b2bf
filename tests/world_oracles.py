"""Random rules in which the world moves, and two oracles for what can be finished whatever it answers.

Both are made from plain data (productions, transitions, the fields of limits) and share no code with the library:

- :func:`wins_by_plays` follows all plays, choice by choice, without remembering any (an AND-OR recursion);
- :func:`controllable` builds the whole graph, unrolls it so that every play ends, and removes what is bad until nothing
  is (the supremal controllable and nonblocking part, Ramadge and Wonham 1987).
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

from formal_llm import CFG, PDA, Flowchart, Limits
from formal_llm.automata import Clock, Gap, Span, SumLimit, Symbol, Timetable, Window
from formal_llm.automata.models.flowgraph import FlowEdge, FlowNode

HOUR = 3600


@dataclass(frozen=True)
class Plain:
    """Rules as plain data: rows (state, read, pop, target, push), and the limits over words.

    A node is (state, stack, word so far).
    """

    rows: tuple[tuple[Any, str | None, str | None, Any, tuple[str, ...]], ...]
    start: tuple[Any, tuple[str, ...]]
    accepting: frozenset[Any]
    world_states: frozenset[Any]
    world_tops: frozenset[str]
    limits: Limits
    numbers: dict[str, dict[str, Any]]

    def is_world(self, node: Any) -> bool:
        state, stack, _ = node
        return state in self.world_states or (bool(stack) and stack[0] in self.world_tops)

    def may_go_on(self, word: tuple[str, ...]) -> bool:
        """Whether no upper bound is broken; what is broken stays so."""
        uses = Counter(word)
        if any(self.limits.most(name) is not None and uses[name] > self.limits.most(name) for name in uses):
            return False
        for bound in self.limits.sums:
            if bound.at_most is not None and self.total(bound, word) > bound.at_most:
                return False
        return self.keeps_times(word)

    def total(self, bound: SumLimit, word: tuple[str, ...]) -> Any:
        return sum(self.numbers.get(name, {}).get(bound.quantity, 0) for name in word)

    def keeps_times(self, word: tuple[str, ...]) -> bool:
        times = self.limits.times
        if times.clock is None:
            return True
        now, last = times.clock.span.edges
        ended: list[tuple[str, int]] = []
        for name in word:
            end = now + int(self.numbers.get(name, {}).get(times.clock.quantity, 0))
            if end > last:
                return False
            for window in times.windows:
                if window.terminal == name and not any(s.edges[0] <= now and end <= s.edges[1] for s in window.spans):
                    return False
            for gap in times.gaps:
                before = [at for one, at in ended if one in gap.before]
                if name in gap.after and before and now - before[-1] < gap.seconds:
                    return False
            ended.append((name, end))
            now = end
        return True

    def may_end(self, node: Any) -> bool:
        """Whether the plan is whole here, within all limits."""
        _, _, word = node
        uses = Counter(word)
        least = all(uses[name] >= count for name, count in self.limits.at_least.items())
        sums = all(b.at_least is None or self.total(b, word) >= b.at_least for b in self.limits.sums)
        return self.can_stop(node) and least and sums and self.may_go_on(word)

    def can_stop(self, node: Any) -> bool:
        return node[0] in self.accepting

    def after(self, node: Any) -> list[Any]:
        state, stack, word = node
        found = []
        for source, read, pop, target, push in self.rows:
            if source == state and (pop is None or stack[:1] == (pop,)):
                rest = push + (stack if pop is None else stack[1:])
                # Without limits nothing depends on what was read, and circles are circles.
                found.append((target, rest, (*word, read) if read is not None and self.limits else word))
        return found


def wins_by_plays(plain: Plain, node: Any, before: frozenset[Any] = frozenset()) -> bool:
    """Whether the agent can finish whatever the world answers: all plays, none remembered.

    A play that comes back to where it was makes no progress, and is lost.
    """
    if not plain.may_go_on(node[2]):
        return False
    if node in before:
        return False
    inside = before | {node}
    if plain.is_world(node):
        after = plain.after(node)
        stops = [plain.may_end(node)] if plain.can_stop(node) else []
        return bool(after or stops) and all(stops) and all(wins_by_plays(plain, one, inside) for one in after)
    return plain.may_end(node) or any(wins_by_plays(plain, one, inside) for one in plain.after(node))


def controllable(plain: Plain, start: Any) -> bool:
    """Whether a node is in the largest controllable and nonblocking part of the graph of all plays, unrolled."""
    graph: dict[Any, list[Any]] = {}
    todo = [start]
    for node in todo:
        if node not in graph:
            graph[node] = plain.after(node) if plain.may_go_on(node[2]) else []
            todo += graph[node]
    # Unrolled: a node with the moves that are left. A strategy that needs more than there are nodes goes in circles.
    bad_from_the_start = {node for node in graph if not plain.may_go_on(node[2])}
    most = len(graph)
    # Only depths that can differ are kept: in a graph without circles one layer does.
    layers = most if _has_circle(graph) else 1
    good: set[Any] = set()
    for _ in range(layers + 1):
        good = _supremal(plain, graph, bad_from_the_start, good if layers > 1 else None)
    return start in good


def _supremal(plain: Plain, graph: dict[Any, list[Any]], bad: set[Any], below: set[Any] | None) -> set[Any]:
    """The good nodes of a layer, when ``below`` is that of the layer under it; None: of a graph without circles."""
    inside = set(graph) - bad
    while True:
        reach = inside if below is None else below
        out = set()
        for node in inside:
            after, stop, ends = graph[node], plain.can_stop(node), plain.may_end(node)
            if plain.is_world(node):
                uncontrolled = any(one not in reach for one in after) or (stop and not ends)
                blocked = not after and not ends
            else:
                uncontrolled = False
                blocked = not ends and not any(one in reach for one in after)
            if uncontrolled or blocked:
                out.add(node)
        if below is None:  # nonblocking: an end can be reached inside
            ending = {node for node in inside - out if plain.may_end(node)}
            grown = True
            while grown:
                more = {n for n in inside - out - ending if any(one in ending for one in graph[n])}
                grown = bool(more)
                ending |= more
            out |= inside - out - ending
        if not out:
            return inside
        inside -= out


def _has_circle(graph: dict[Any, list[Any]]) -> bool:
    state: dict[Any, int] = {}
    for root in graph:
        stack = [(root, iter(graph[root]))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            node, rest = stack[-1]
            for one in rest:
                if state.get(one) == 1:
                    return True
                if one not in state:
                    state[one] = 1
                    stack.append((one, iter(graph[one])))
                    break
            else:
                state[node] = 2
                stack.pop()
    return False


# -- random rules -------------------------------------------------------------------------------------------------


def plain_of(rules: CFG | PDA | Flowchart) -> Plain:
    """The rules as plain data."""
    if isinstance(rules, CFG):
        rows: list[Any] = [("m", None, p.head, "m", tuple(p.body)) for p in rules.productions]
        rows += [("m", name, name, "m", ()) for name in rules.terminals]
        rows.append(("m", None, "$", "end", ()))
        numbers = {name: dict(symbol.numbers) for name, symbol in rules.symbols.items()}
        return Plain(
            tuple(rows), ("m", (rules.start, "$")), frozenset({"end"}), frozenset(), rules.world, rules.limits, numbers
        )
    pda = rules.pda() if isinstance(rules, Flowchart) else rules
    rows = [(t.state, t.read, t.pop, t.target, tuple(t.push)) for t in pda.transitions]
    numbers = {name: dict(symbol.numbers) for name, symbol in pda.symbols.items()}
    return Plain(
        tuple(rows), (pda.start_state, tuple(pda.start_stack)), pda.accepting_states, pda.world, frozenset(),
        pda.limits, numbers,
    )  # fmt: skip


def random_limits(rng: random.Random, names: list[str], *, bounded: bool, clock: bool) -> Limits:
    most = {name: rng.choice((0, 1, 1, 2, 2)) for name in names if rng.random() < 0.15}
    least = {name: 1 for name in names if rng.random() < 0.1 and most.get(name, 1)}
    sums = [SumLimit("cost", at_most=rng.randint(2, 9))] if rng.random() < 0.3 else []
    sums += [SumLimit("cost", at_least=rng.randint(1, 3))] if rng.random() < 0.1 else []
    times = Timetable()
    if clock:
        windows = [Window(rng.choice(names), (Span("8:00", f"{rng.randint(9, 11)}:00"),))] if rng.random() < 0.5 else []
        gaps = [Gap("1h", (rng.choice(names),), (rng.choice(names),))] if rng.random() < 0.4 else []
        times = Timetable(Clock("time", Span("8:00", f"{rng.randint(10, 13)}:00")), tuple(windows), tuple(gaps))
    return Limits(most, least, rng.randint(1, 2) if bounded else None, tuple(sums), times)


def _symbols(rng: random.Random, names: list[str]) -> dict[str, Symbol]:
    cost = {name: {"cost": rng.randint(0, 4)} for name in names if rng.random() < 0.6 or name == names[0]}
    time = {name: {"time": Amounts[rng.randint(0, 3)]} for name in names if rng.random() < 0.7 or name == names[0]}
    return {name: Symbol(numbers={**cost.get(name, {}), **time.get(name, {})}) for name in names}


def _hours(count: int) -> Any:
    from formal_llm.automata import amount

    return amount(f"{count}h")


Amounts = [_hours(count) for count in range(4)]


def random_grammar(rng: random.Random, *, clock: bool) -> CFG:
    """A grammar in which every recursion reads a terminal first, and each terminal is limited."""
    heads = [f"N{number}" for number in range(rng.randint(2, 5))]
    names = ["a", "b", "c", "d"][: rng.randint(2, 4)]
    productions = []
    for number, head in enumerate(heads):
        later = heads[number + 1 :]
        for _ in range(rng.randint(1, 3)):
            body: list[str] = []
            for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
                if any(one in names for one in body) and rng.random() < 0.12:
                    body.append(rng.choice(heads))
                elif later and rng.random() < 0.6:
                    body.append(rng.choice(later))
                else:
                    body.append(rng.choice(names))
            productions.append((head, tuple(body)))
    used = [name for name in names if any(name in body for _, body in productions)]
    if not used:
        return random_grammar(rng, clock=clock)
    world = [head for head in heads if rng.random() < 0.45]
    limits = random_limits(rng, used, bounded=True, clock=clock)
    return CFG(productions, heads[0], _symbols(rng, used), limits, "forward", world=world)


def random_automaton(rng: random.Random, *, clock: bool) -> PDA:
    """A pushdown automaton whose pushes and circles read terminals; without a stack its circles may read none."""
    states = list(range(rng.randint(2, 5)))
    names = ["a", "b", "c"]
    finite = rng.random() < 0.5
    bounded = clock or not finite or rng.random() < 0.5
    rows = []
    for state in states:
        for _ in range(rng.randint(0 if state else 1, 3)):
            target = rng.choice(states)
            read = None if (target > state or (finite and not bounded)) and rng.random() < 0.3 else rng.choice(names)
            pop = None if finite or rng.random() < 0.6 else rng.choice("XY")
            push = tuple(rng.choice("XY") for _ in range(rng.randint(0, 2))) if not finite and read else ()
            rows.append((state, read, pop, target, push))
    used = [name for name in names if any(row[1] == name for row in rows)]
    if not used:
        return random_automaton(rng, clock=clock)
    limits = random_limits(rng, used, bounded=True, clock=clock) if bounded else Limits()
    seen = dict.fromkeys([0, *(one for row in rows for one in (row[0], row[3]))])
    world = [state for state in seen if rng.random() < 0.4]
    accepting = [state for state in seen if rng.random() < 0.35] or [list(seen)[-1]]
    return PDA(rows, start=0, accepting=accepting, stack=("X",), symbols=_symbols(rng, used), limits=limits,
               world=world, check=False)  # fmt: skip


def random_chart(rng: random.Random, *, clock: bool) -> Flowchart:
    """A flowchart of steps and decisions; arrows back lead over steps, which are limited."""
    count = rng.randint(3, 7)
    kinds = ["step", *(rng.choice(("step", "decision")) for _ in range(count - 2)), "step"]
    shapes = {"step": "rect", "decision": "diam"}
    nodes = [FlowNode(f"S{number}", f"Node {number}", shapes[kind]) for number, kind in enumerate(kinds)]
    edges: list[FlowEdge] = []
    for number in range(count - 1):
        forward = [f"S{number + 1}"]
        if kinds[number] == "decision":
            back = [f"S{n}" for n in range(1, number) if rng.random() < 0.3]
            others = [f"S{n}" for n in range(number + 2, count)] + back
            forward += rng.sample(others, min(len(others), rng.randint(1, 2)))
            edges += [FlowEdge(f"S{number}", one, f"to {one}") for one in dict.fromkeys(forward)]
        else:
            edges.append(FlowEdge(f"S{number}", forward[0]))
    chart = Flowchart(tuple(nodes), tuple(edges))
    deciding = [node.id for node in nodes if chart.answer_edges(node.id)]
    steps = [name for name in chart.terminals if "=" not in name]
    limits = random_limits(rng, steps, bounded=True, clock=clock)
    numbers = {name: symbol.numbers for name, symbol in _symbols(rng, list(chart.terminals)).items()}
    return Flowchart(tuple(nodes), tuple(edges), limits=limits, numbers=numbers,
                     world=frozenset(name for name in deciding if rng.random() < 0.6))  # fmt: skip


def random_rules(seed: int) -> CFG | PDA | Flowchart:
    """Rules with the world's moves and limits; every fourth has a clock."""
    rng = random.Random(seed)
    make = (random_grammar, random_automaton, random_chart)[seed % 3]
    clock = rng.random() < 0.25
    for _ in range(200):  # few rules are kept that have no plan, or in which the world has nothing to decide
        rules = make(rng, clock=clock)
        plain = plain_of(rules)
        nodes = plain_nodes(plain, (*plain.start, ()))
        worlds = sum(plain.is_world(node) and len(plain.after(node)) > 1 for node in nodes)
        if (any(map(plain.may_end, nodes)) and worlds > 1) or rng.random() < 0.03:
            break
    return rules


def plain_nodes(plain: Plain, start: Any) -> list[Any]:
    """The nodes that plays within the upper bounds come to, as far as they are few."""
    seen = {start: None}
    for node in (todo := [start]):
        if len(seen) > 3_000:
            break
        for one in plain.after(node):
            if one not in seen and plain.may_go_on(one[2]):
                seen[one] = None
                todo.append(one)
    return list(seen)


# -- comparing ----------------------------------------------------------------------------------------------------


def places_of(lookahead: Any, plain: Plain, most: int = 60) -> list[tuple[Any, Any]]:
    """Configurations that can be reached, the start first, each with its node of the plain rules."""
    automaton = lookahead.automaton
    depth = max(0, len(lookahead.pda.factors) - 1)
    grammar = "$" in plain.start[1]

    def node_of(configuration: Any, word: tuple[str, ...]) -> Any:
        state, stack = lookahead.uncounted(configuration)
        for _ in range(depth):
            state = state[0]
        symbols = tuple(stack)
        if grammar:
            return ("end" if state == "accept" else "m", symbols or (), word)
        return (state, symbols, word if plain.limits else ())

    start = automaton.start()
    found = [(start, (*plain.start, ()))]
    todo: list[tuple[Any, tuple[str, ...]]] = [(start, ())]
    seen = {start}
    for now, word in todo:
        for move in automaton.moves(now):
            after = automaton.step(now, move)
            longer = word if move.read is None else (*word, move.read)
            if after not in seen and len(seen) < most:
                seen.add(after)
                todo.append((after, longer))
                if not grammar or tuple(lookahead.uncounted(after).stack)[:1] != ("$",):
                    found.append((after, node_of(after, longer)))
    return found
