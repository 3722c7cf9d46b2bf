"""Pictures of pushdown automata, and their graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from formal_llm.automata.drawing.cfg import describe_order
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
#: With more states than this, only the states that a plan visits are drawn.
_MANY = 40


def pda_picture(pda: PDA, *, most: int = 12, walked: Walked | None = None) -> Picture:
    """Draw an automaton: states as circles, final ones doubled, an arrow from a point to the initial state.

    Transitions between the same states share an arrow, labelled ``read, pop → push``, one per line, or only with the
    read symbol if the stack is unchanged. If that takes more than ``most`` lines, as at the middle state of a
    grammar's automaton, transitions that differ only in what they push share a line, ``ε, S → a S b | ε``,
    and so do those that match the input with the stack; what still does not fit is counted.

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
    notes += filter(None, [describe_order(pda.order)])
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
        lines = (
            _write_walked_lines(pda, some, taken, most, walked) if walked and taken else _write_lines(pda, some, most)
        )
        weight, tone = min(10 * len(some) - 9, 100), _get_tone(walked, bool(taken))
        arrows.append(Arrow(ids[source], ids[target], "\n".join(lines), tone=tone, weight=weight))
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


def _merge_transitions(pda: PDA, states: Collection[State]) -> dict[tuple[State, State], list[Transition]]:
    """Group the transitions between the same states."""
    known = set(states)
    found: dict[tuple[State, State], list[Transition]] = {}
    for one in pda.transitions:
        if one.state in known and one.target in known:
            found.setdefault((one.state, one.target), []).append(one)
    return found


def _write_lines(pda: PDA, transitions: Sequence[Transition], most: int) -> Sequence[str]:
    selects = any(t.pop is not None and selection_members(t.pop) for t in transitions)
    if pda.uses_stack and (len(transitions) > most or selects):
        return cut_lines([*_fold_transitions(transitions)], most)
    return cut_lines([_write_line(pda, one) for one in transitions], most)


def _write_walked_lines(
    pda: PDA, transitions: Sequence[Transition], taken: Sequence[Transition], most: int, walked: Walked
) -> Sequence[str]:
    """Return the lines of the plan's transitions, followed by a count of the others."""
    lines = [number_text(walked[one], _write_line(pda, one)) for one in taken]
    others = len(transitions) - len(taken)
    return (*cut_lines(lines, 2 * most), *([f"… or {others} other{'s' if others > 1 else ''}"] if others else []))


def _write_line(pda: PDA, transition: Transition) -> str:
    # Even in an automaton with a stack, most transitions of a product or chart leave it unchanged.
    alone = transition.read is not None and transition.pop is None and not transition.push
    return shorten(_write_transition(transition) if pda.uses_stack and not alone else printable(transition.read or "ε"))


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
