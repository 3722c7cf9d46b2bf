"""Drawings of pushdown automata: as a :class:`Picture`, and as a networkx graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import find_reachable, selection_members
from formal_llm.automata.models.transition import Transition
from formal_llm.pictures.captions import ALTERNATIVES_WIDTH, cut_lines, number_text, shorten, wrap_text
from formal_llm.pictures.picture import Arrow, Box, BoxKind, Picture, Tone, printable

if TYPE_CHECKING:
    import networkx

#: The transitions of a plan, with the numbers of the steps that they perform or lead to.
Walked = Mapping[Transition, tuple[int, ...]]

#: A state with a longer name has a frame instead of a circle; names are wrapped at the second width.
_CIRCLE, _FRAME = 8, 20
#: With more states than this, states that are only passed through are folded into the arrow.
_FOLD = 16
#: With more states than this, only the states that a plan visits are drawn.
_MANY = 40


@dataclass(slots=True)
class _Edge:
    """All routes from a state to another: single transitions, or several where states between them are folded."""

    source: State
    target: State
    routes: list[tuple[Transition, ...]] = field(default_factory=list)


def pda_picture(pda: PDA, *, most: int = 12, walked: Walked | None = None) -> Picture:
    """Draw an automaton: states as circles, final ones doubled, an arrow from a point to the initial state.

    Transitions between the same states share an arrow, labelled ``read, pop → push``, one per line, or only with the
    read symbol if the stack is unchanged. If that takes more than ``most`` lines, as at the middle state of a
    grammar's automaton, transitions that differ only in what they push share a line, ``ε, S → a S b | ε``,
    and so do those that match the input with the stack; what still does not fit is counted.

    A large automaton is folded: a state with one way in and one way out becomes part of the arrow ("a", "then b").
    Of a product, states from which no final state is reachable are left out, and the title counts them.

    Args:
        pda: the automaton.
        most: the maximum number of lines of an arrow's label.
        walked: the transitions of a plan: marked, with the numbers of its steps; the rest is faded, or left out if the
            automaton is large.
    """
    states = _from_the_start(pda, _find_productive_states(pda) if pda.factors else pda.states)
    edges = _merge_edges(pda, states)
    left_out = len(pda.states) - len(states)
    notes = [f"{_count_states(left_out)} from which no plan can be finished left out"] if left_out else []
    if len(states) > _FOLD:
        edges = _folded_edges(edges, {pda.start_state, *pda.accepting_states})
        states = _select_connected_states(pda, states, edges)
    if walked is not None and len(states) > _MANY:
        edges = [edge for edge in edges if any(t in walked for route in edge.routes for t in route)]
        kept = _select_connected_states(pda, states, edges)
        notes = [f"{_count_states(len(pda.states) - len(kept))} that the plan does not come by left out"]
        states = kept
    passed = {pda.start_state} | {s for t in walked or () for s in (t.state, t.target)}
    ids = {state: str(number) for number, state in enumerate(states)}
    names = {state: _name_state(pda, state) for state in states}
    framed = any(len(label) > _CIRCLE or details for label, details in names.values())
    boxes = [Box("start", "", "point", tone=_get_tone(walked, True))]
    for state, (label, details) in names.items():
        final = state in pda.accepting_states
        kind: BoxKind = (
            ("long_accepting" if framed else "accepting") if final else ("long_state" if framed else "state")
        )
        tone = _get_tone(walked, state in passed)
        boxes.append(Box(ids[state], label, kind, details, tone))
    arrows = [Arrow("start", ids[pda.start_state], tone=_get_tone(walked, True))]
    for edge in edges:
        taken = [route for route in edge.routes if all(t in (walked or ()) for t in route)]
        lines = (
            _write_route_lines(pda, edge.routes, most)
            if not taken
            else _walked_lines(pda, edge, taken, most, walked or {})
        )
        weight = min(10 * len(edge.routes) - 9, 100)
        edge_tone = _get_tone(walked, bool(taken))
        arrows.append(Arrow(ids[edge.source], ids[edge.target], "\n".join(lines), tone=edge_tone, weight=weight))
    return Picture(tuple(boxes), tuple(arrows), "LR", "; ".join(notes) or None)


def _get_tone(walked: Walked | None, on: bool) -> Tone:
    if walked is None:
        return "plain"
    return "marked" if on else "faded"


# -- states -----------------------------------------------------------------------------------------------------


def _find_productive_states(pda: PDA) -> dict[State, None]:
    """Return the start and the states from which a final one is reachable, whatever the stack contains."""
    before: dict[State, list[State]] = {}
    for transition in pda.transitions:
        before.setdefault(transition.target, []).append(transition.state)
    found = find_reachable(pda.accepting_states, lambda state: before.get(state, ()))
    return dict.fromkeys(state for state in pda.states if state in found or state == pda.start_state)


def _from_the_start(pda: PDA, states: Collection[State]) -> list[State]:
    """Return the states in the order in which they are reached, mostly that from left to right."""
    after: dict[State, list[State]] = {}
    for transition in pda.transitions:
        after.setdefault(transition.state, []).append(transition.target)
    found = find_reachable([pda.start_state], lambda state: after.get(state, ()))
    return [state for state in dict.fromkeys([*found, *states]) if state in states]


def _select_connected_states(pda: PDA, states: Iterable[State], edges: Iterable[_Edge]) -> list[State]:
    """Return the start and the states that an edge still touches."""
    touched = {pda.start_state} | {state for edge in edges for state in (edge.source, edge.target)}
    return [state for state in states if state in touched]


def _count_states(count: int) -> str:
    return "1 state" if count == 1 else f"{count} states"


def _name_state(pda: PDA, state: State) -> tuple[str, tuple[str, ...]]:
    """Return label and details of a state's box: of a product, the base's state and the constraints' states."""
    parts = [*_flatten_pair(state)] if pda.factors else [str(state)]
    label = wrap_text(shorten(parts[0], 3 * _FRAME), _FRAME)
    # A constraint that is still in its initial state has recorded nothing yet.
    starts = [*_flatten_pair(pda.start_state)] if pda.factors else parts
    return label, tuple(shorten(part, 44) for part, start in zip(parts[1:], starts[1:], strict=False) if part != start)


def _flatten_pair(state: State) -> Iterable[str]:
    """Yield the components of a product's state, with nested pairs flattened."""
    if isinstance(state, tuple):
        for part in state:
            yield from _flatten_pair(part)
    else:
        yield str(state)


# -- arrows -----------------------------------------------------------------------------------------------------


def _merge_edges(pda: PDA, states: Collection[State]) -> list[_Edge]:
    known = set(states)
    found: dict[tuple[State, State], _Edge] = {}
    for t in pda.transitions:
        if t.state in known and t.target in known:
            found.setdefault((t.state, t.target), _Edge(t.state, t.target)).routes.append((t,))
    return [*found.values()]


def _folded_edges(edges: list[_Edge], keep: Collection[State]) -> list[_Edge]:
    """Fold states that are only passed through: one way in, one way out, and nothing else."""
    found = {(edge.source, edge.target): edge for edge in edges}
    coming: dict[State, set[State]] = {}
    going: dict[State, set[State]] = {}
    for source, target in found:
        coming.setdefault(target, set()).add(source)
        going.setdefault(source, set()).add(target)
    for state in [state for state in coming if state not in keep]:
        if len(coming[state]) != 1 or len(going.get(state, ())) != 1:
            continue
        (source,), (target,) = coming[state], going[state]
        into, out = found[source, state], found[state, target]
        direct = found.get((source, target))
        # A detour stays visible: it is not folded into the arrow of a single transition.
        around = direct is not None and any(len(route) == 1 for route in direct.routes)
        if source == state or around or len(into.routes) != 1 or len(out.routes) != 1:
            continue
        del found[source, state], found[state, target]
        found.setdefault((source, target), _Edge(source, target)).routes.append(into.routes[0] + out.routes[0])
        going[source] = going[source] - {state} | {target}
        coming[target] = coming[target] - {state} | {source}
    return [*found.values()]


def _write_route_lines(pda: PDA, routes: Sequence[tuple[Transition, ...]], most: int) -> Sequence[str]:
    single = [route[0] for route in routes if len(route) == 1]
    if len(single) < len(routes):
        # Several consecutive transitions take several lines, so "or" marks the beginning of the next route.
        ways = [[*_write_route(pda, route)] for route in routes]
        return cut_lines([*ways[0], *(row for first, *rest in ways[1:] for row in (f"or {first}", *rest))], most)
    selects = any(t.pop is not None and selection_members(t.pop) for t in single)
    if pda.uses_stack and (len(single) > most or selects):
        return cut_lines([*_fold_transitions(single)], most)
    return cut_lines([row for route in routes for row in _write_route(pda, route)], most)


def _walked_lines(
    pda: PDA, edge: _Edge, on: Sequence[tuple[Transition, ...]], most: int, walked: Walked
) -> Sequence[str]:
    """Return the lines of the plan's routes, followed by a count of the others."""
    lines = [row for route in on for row in _write_route(pda, route, walked)]
    others = len(edge.routes) - len(on)
    return (*cut_lines(lines, 2 * most), *([f"… or {others} other{'s' if others > 1 else ''}"] if others else []))


def _write_route(pda: PDA, route: Sequence[Transition], walked: Walked | None = None) -> Iterable[str]:
    for place, transition in enumerate(route):
        # Even in an automaton with a stack, most transitions of a product or chart leave it unchanged.
        alone = transition.read is not None and transition.pop is None and not transition.push
        text = shorten(
            _write_transition(transition) if pda.uses_stack and not alone else printable(transition.read or "ε")
        )
        yield ("then " if place else "") + number_text(walked[transition] if walked else (), text)


def _write_stack_word(names: Iterable[str]) -> str:
    return " ".join("some(…)" if selection_members(name) else printable(name) for name in names) or "ε"


def _write_left_side(transition: Transition) -> str:
    return f"{printable(transition.read or 'ε')}, {_write_stack_word([transition.pop] if transition.pop else ())}"


def _write_transition(transition: Transition) -> str:
    return f"{_write_left_side(transition)} → {_write_stack_word(transition.push)}"


def _fold_transitions(transitions: Iterable[Transition]) -> Iterable[str]:
    pushed: dict[str, dict[str, None]] = {}
    matched: list[Transition] = []
    selecting: list[Transition] = []
    for transition in transitions:
        if transition.read is not None and transition.read == transition.pop and not transition.push:
            matched.append(transition)
        elif transition.read is None and transition.pop is not None and selection_members(transition.pop):
            selecting.append(transition)
        else:
            pushed.setdefault(_write_left_side(transition), {})[_write_stack_word(transition.push)] = None
    # Matching comes first: it is one line, and must not be truncated with a long list.
    if len(matched) > 1:
        yield f"a, a → ε   for each of {len(matched)} terminals a"
    else:
        yield from map(_write_transition, matched)
    if selecting:
        count = max(len(selection_members(t.pop or "") or ()) for t in selecting)
        yield f"ε, some(…) → its terminals, one or more of {count}"
    for left, words in pushed.items():
        yield _write_alternatives(f"{left} → ", [*words])


def _write_alternatives(line: str, words: Sequence[str]) -> str:
    """Append as many words to ``line`` as fit, and the number of those that do not."""
    line += words[0]
    for number, word in enumerate(words[1:], 1):
        if len(line) + len(word) > ALTERNATIVES_WIDTH:
            return f"{shorten(line, ALTERNATIVES_WIDTH)} | … {len(words) - number} more"
        line += f" | {word}"
    return shorten(line, ALTERNATIVES_WIDTH)


# -- the graph --------------------------------------------------------------------------------------------------


def pda_graph(pda: PDA) -> networkx.MultiDiGraph:
    """Return an automaton as a graph with a node for each state and an edge for each transition.

    Nodes have ``start`` and ``accepting``; edges have ``read``, ``pop`` (None for ε), ``push`` (a tuple, its first
    symbol on top), ``text``, and ``label`` in the notation of the picture.
    """
    import networkx

    graph = networkx.MultiDiGraph()
    for state in pda.states:
        graph.add_node(state, start=state == pda.start_state, accepting=state in pda.accepting_states)
    for transition in pda.transitions:
        graph.add_edge(
            transition.state,
            transition.target,
            read=transition.read,
            pop=transition.pop,
            push=transition.push,
            text=transition.text,
            label=_write_transition(transition),
        )
    return graph
