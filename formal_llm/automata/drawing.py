"""Pictures of grammars, automata and flowcharts; what a plan takes of them is marked, and the rest is faded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.flowgraph import FlowEdge, NodeKind
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Order, Production, find_reachable, selection_members
from formal_llm.automata.models.transition import Transition
from formal_llm.pictures.picture import (
    WIDTH,
    Arrow,
    Box,
    BoxKind,
    Picture,
    Tone,
    cut_lines,
    number_text,
    printable,
    shorten,
    wrap_text,
)

if TYPE_CHECKING:
    import networkx

Numbers = tuple[int, ...]
#: The productions (head, body) and selections (name, chosen members) of a derivation, with the numbers of its steps.
Used = Mapping[tuple[str, tuple[str, ...]], Numbers]
#: The nodes and arrows that a plan visits in a chart, with the numbers of its steps.
Nodes = Mapping[str, Numbers]
Arrows = Mapping[FlowEdge, Numbers]
#: The transitions of a plan, with the numbers of the steps that they perform or lead to.
Walked = Mapping[Transition, Numbers]


def _get_tone(taken: Collection[object] | None, is_taken: bool) -> Tone:
    """Return the tone of a part; all are plain where no plan is shown."""
    if taken is None:
        return "plain"
    return "marked" if is_taken else "faded"


def _describe_order(order: Order) -> list[str]:
    """Describe the order of words for a title; nothing if steps are carried out as they are read."""
    return [] if order == "forward" else ["Words are read from the last step to the first"]


def _count_others(count: int) -> list[str]:
    return [f"… or {count} other{'s' if count > 1 else ''}"] if count else []


# -- grammars ---------------------------------------------------------------------------------------------------------


def cfg_picture(cfg: CFG, *, most: int = 12, used: Used | None = None) -> Picture:
    """Draw a grammar: each nonterminal a rounded box that lists its productions, arrows to the symbols they use.

    A nonterminal that is a choice of one terminal (see :attr:`CFG.classes`), and a selection, is one green box
    that lists the labels of its terminals. Other terminals are plain boxes. An arrow without a source marks the start.
    The title says if words are read from the last step to the first.

    Args:
        cfg: the grammar.
        most: how many productions or terminals a box lists before it counts the rest.
        used: the parts that a plan uses: marked, with the numbers of its steps; the rest is faded. Used rows are always
            listed, and come first in a box that cannot list all rows.
    """
    taken = used or {}

    def draw_box(name: str, label: str, kind: BoxKind, rows: list[tuple[str, Numbers | None]]) -> Box:
        if len(rows) > most + 1:
            rows = sorted(rows, key=lambda row: row[1] is None)
        strong = tuple(place for place, (_, numbers) in enumerate(rows) if numbers is not None)
        details = cut_lines([number_text(numbers or (), text) for text, numbers in rows], max(most, len(strong)))
        return Box(name, label, kind, details, _get_tone(used, bool(strong)), strong)

    boxes = [Box("", "", "point", tone=_get_tone(used, True))]
    arrows = [Arrow("", cfg.start, tone=_get_tone(used, True))]
    leaves: dict[str, None] = {}
    for head in cfg.nonterminals:
        group = cfg.by_head[head]
        if head in cfg.classes:
            rows = [(shorten(cfg.label(p.body[0])), taken.get((head, p.body))) for p in group]
            one_of = ": one of" if len(group) > 1 else ""
            boxes.append(draw_box(head, _write_heading(cfg, head) + one_of, "class", rows))
            continue
        rows = [(_write_body(p), taken.get((head, p.body))) for p in group]
        boxes.append(draw_box(head, _write_heading(cfg, head), "start" if head == cfg.start else "nonterminal", rows))
        followed = {name for p in group if (head, p.body) in taken for name in p.body}
        for name in dict.fromkeys(name for p in group for name in p.body):
            arrows.append(Arrow(head, name, tone=_get_tone(used, name in followed)))
            leaves |= {} if name in cfg.nonterminals else {name: None}
    terminals = {name for _, body in taken for name in body}
    for name in leaves:
        chosen = selection_members(name)
        if chosen is None:
            boxes.append(Box(name, shorten(cfg.label(name)), "terminal", tone=_get_tone(used, name in terminals)))
            continue
        rows = []
        for member in chosen:
            steps = [numbers for (head, body), numbers in taken.items() if head == name and member in body]
            rows.append((shorten(cfg.label(member)), tuple(sorted({*sum(steps, ())})) if steps else None))
        boxes.append(draw_box(name, "some of", "class", rows))
    return Picture(tuple(boxes), tuple(arrows), "LR", "".join(_describe_order(cfg.order)) or None)


def _write_heading(cfg: CFG, name: str) -> str:
    label = shorten(cfg.label(name))
    return name if label in (name, name.replace("_", " ")) else f"{label}  ({name})"


def _write_body(production: Production) -> str:
    body = "→ " + (" ".join("some(…)" if selection_members(name) else name for name in production.body) or "ε")
    if not production.text:
        return shorten(body)
    both = printable(f"{body}   “{production.text}”")
    rows = wrap_text(f"“{shorten(production.text, 4 * WIDTH)}”", WIDTH).splitlines()
    indented = "\n".join("\u00a0" * 5 + row for row in rows)
    return both if len(both) <= WIDTH else f"{shorten(body)}\n{indented}"


# -- flowcharts -------------------------------------------------------------------------------------------------------

_LOOKS: dict[NodeKind, BoxKind] = {
    "start": "input", "end": "result", "decision": "decision", "step": "tool", "junction": "point",
}  # fmt: skip
#: The maximum widths of texts, in characters. A diamond has room for about half the text of a box of its size.
_BOX, _DIAMOND, _ANSWER = 34, 26, 24


def flowchart_picture(
    chart: Flowchart, *, most: int = 12, nodes: Nodes | None = None, arrows: Arrows | None = None
) -> Picture:
    """Draw a flowchart: decisions as diamonds, steps as boxes, one arrow with all answers between two nodes.

    Args:
        chart: the flowchart.
        most: how many lines an arrow's label may have.
        nodes: the nodes that a plan visits: marked, with the numbers of its steps; the rest is faded.
        arrows: the arrows that it follows, likewise.
    """
    boxes = []
    for node in chart.nodes:
        kind = chart.kind(node.id)
        text = number_text((nodes or {}).get(node.id, ()), node.text)
        label = wrap_text(text, _DIAMOND if kind == "decision" else _BOX)
        boxes.append(Box(node.id, label, _LOOKS[kind], tone=_get_tone(nodes, node.id in (nodes or ()))))
    between: dict[tuple[str, str], list[FlowEdge]] = {}
    beyond: list[Arrow] = []
    for number, edge in enumerate(dict.fromkeys(chart.edges)):
        target = edge.target
        if len(edge.targets) > 1:  # to a point, and from there to all of them
            tone, target = _get_tone(arrows, edge in (arrows or ())), f"{edge.source} & {number}"
            boxes.append(Box(target, "", "point", tone=tone))
            beyond += [Arrow(target, one, "", tone=tone) for one in edge.targets]
        for source in (name for name in edge.sources if edge in chart.leaving[name]):
            between.setdefault((source, target), []).append(edge)
    lines = [
        _draw_arrow(*ends, group, most, arrows if nodes is None or ends[0] in nodes else {})
        for ends, group in between.items()
    ]
    sideways = chart.direction in ("LR", "RL")
    return Picture(tuple(boxes), (*lines, *beyond), "LR" if sideways else "TB", chart.title or None)


def _draw_arrow(source: str, target: str, edges: list[FlowEdge], most: int, taken: Arrows | None) -> Arrow:
    followed = [edge for edge in edges if taken is not None and edge in taken]
    texts = [wrap_text(number_text((taken or {}).get(edge, ()), edge.text), _ANSWER) for edge in followed or edges]
    if len(texts) > 1:
        texts = [f"• {text}" for text in texts]
    texts += _count_others(len(edges) - len(followed)) if followed else []
    label = "\n".join(cut_lines([text for text in texts if text], most))
    return Arrow(source, target, label, tone=_get_tone(taken, bool(followed)))


# -- automata ---------------------------------------------------------------------------------------------------------

#: A state with a longer name has a frame instead of a circle; names are wrapped at the second width.
_CIRCLE, _FRAME = 8, 20
#: With more states than this, only the states that a plan visits are drawn.
_MANY = 40


def pda_picture(pda: PDA, *, most: int = 12, walked: Walked | None = None) -> Picture:
    """Draw an automaton: states as circles, final ones doubled, an arrow from a point to the initial state.

    Transitions between the same states share an arrow, labelled ``read, pop → push``, one per line, or only with the
    read symbol if the stack is unchanged. What takes more than ``most`` lines is counted.

    Of a product, states from which no final state is reachable are left out, and the title counts them. It also says
    if words are read from the last step to the first.

    Args:
        pda: the automaton.
        most: the maximum number of lines of an arrow's label.
        walked: the transitions of a plan: marked, with the numbers of its steps; the rest is faded, or left out if the
            automaton is large.
    """
    states = _from_the_start(pda, _find_productive_states(pda) if pda.factors else pda.states)
    edges = _merge_transitions(pda, states)
    left_out, why = len(pda.states) - len(states), "from which no plan can be finished"
    if walked is not None and len(states) > _MANY:
        edges = {ends: some for ends, some in edges.items() if not walked.keys().isdisjoint(some)}
        states = [state for state in states if any(state in ends for ends in [(pda.start_state,), *edges])]
        left_out, why = len(pda.states) - len(states), "that the plan does not come by"
    notes = [f"{left_out} state{'s' if left_out > 1 else ''} {why} left out"] if left_out else []
    notes += _describe_order(pda.order)
    passed = {pda.start_state} | {s for t in walked or () for s in (t.state, t.target)}
    ids = {state: str(number) for number, state in enumerate(states)}
    names = {state: _name_state(pda, state) for state in states}
    framed = any(len(label) > _CIRCLE or details for label, details in names.values())
    boxes = [Box("start", "", "point", tone=_get_tone(walked, True))]
    for state, (label, details) in names.items():
        kinds: tuple[BoxKind, BoxKind] = ("long_state", "long_accepting") if framed else ("state", "accepting")
        kind = kinds[state in pda.accepting_states]
        boxes.append(Box(ids[state], label, kind, details, _get_tone(walked, state in passed)))
    arrows = [Arrow("start", ids[pda.start_state], tone=_get_tone(walked, True))]
    for (source, target), some in edges.items():
        taken = [one for one in some if one in (walked or ())]
        lines = cut_lines([_write_line(pda, one) for one in some], most)
        if walked and taken:
            numbered = [number_text(walked[one], _write_line(pda, one)) for one in taken]
            lines = (*cut_lines(numbered, 2 * most), *_count_others(len(some) - len(taken)))
        weight, tone = min(10 * len(some) - 9, 100), _get_tone(walked, bool(taken))
        arrows.append(Arrow(ids[source], ids[target], "\n".join(lines), tone=tone, weight=weight))
    return Picture(tuple(boxes), tuple(arrows), "LR", "; ".join(notes) or None)


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


def _merge_transitions(pda: PDA, states: Collection[State]) -> dict[tuple[State, State], list[Transition]]:
    """Group the transitions between the same states."""
    known = set(states)
    found: dict[tuple[State, State], list[Transition]] = {}
    for one in pda.transitions:
        if one.state in known and one.target in known:
            found.setdefault((one.state, one.target), []).append(one)
    return found


def _write_line(pda: PDA, transition: Transition) -> str:
    # Even in an automaton with a stack, most transitions of a product or chart leave it unchanged.
    alone = transition.read is not None and transition.pop is None and not transition.push
    return shorten(_write_transition(transition) if pda.uses_stack and not alone else printable(transition.read or "ε"))


def _write_stack_word(names: Iterable[str]) -> str:
    return " ".join("some(…)" if selection_members(name) else printable(name) for name in names) or "ε"


def _write_transition(transition: Transition) -> str:
    pop = _write_stack_word([transition.pop] if transition.pop else ())
    return f"{printable(transition.read or 'ε')}, {pop} → {_write_stack_word(transition.push)}"


def pda_graph(pda: PDA) -> networkx.MultiDiGraph:
    """Build the graph of an automaton, see :meth:`~formal_llm.automata.models.pda.PDA.to_networkx`."""
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
