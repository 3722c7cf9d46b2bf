"""Writing pushdown automata as text."""

from __future__ import annotations

from collections.abc import Iterable

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.quantities import shown
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.notation.pda_lines import quoted_name, quoted_text


def write_pda(pda: PDA) -> str:
    """The automaton in its notation, every family written out. States that are no texts are named by their ``str``."""
    states = _state_names(pda.states)
    lines = [f"%name {quoted_text(pda.name)}"] if pda.name else []
    lines += [f"%order {pda.order}"] if pda.order is not None else []
    lines.append(f"%start {states[pda.start_state]}")
    lines.append(f"%accept {' '.join(name for state, name in states.items() if state in pda.accepting_states)}")
    lines += [f"%stack {' '.join(map(quoted_name, pda.start_stack))}"] if pda.start_stack else []
    lines += [*_limit_lines(pda.limits), ""]
    for t in pda.transitions:
        read, pop = (quoted_name(name) if name is not None else "ε" for name in (t.read, t.pop))
        push = " ".join(map(quoted_name, t.push)) or "ε"
        line = f"{states[t.state]}, {read}, {pop} -> {states[t.target]}, {push}"
        line += f" {quoted_text(t.text)}" if t.text else ""
        line += f" {'decide' if t.decision else 'ask'} {quoted_text(t.question)}" if t.question else ""
        lines.append(line)
    described = []
    for name, symbol in pda.symbols.items():
        if name in pda.terminals and symbol != Symbol():
            texts = f" {quoted_text(symbol.label)}" if symbol.label or symbol.description else ""
            texts += f" {quoted_text(symbol.description)}" if symbol.description else ""
            numbers = "".join(f" {quantity}={shown(value)}" for quantity, value in symbol.numbers.items())
            described.append(f"{quoted_name(name)}{texts}{numbers}")
    return "\n".join([*lines, *([""] if described else []), *described]) + "\n"


def _state_names(states: Iterable[State]) -> dict[State, str]:
    names: dict[State, str] = {}
    taken: set[str] = set()
    for state in states:
        name = str(state)
        while name in taken:
            name += "_"
        taken.add(name)
        names[state] = quoted_name(name)
    return names


def _limit_lines(limits: Limits) -> list[str]:
    lines = [f"%limit {limits.default}"] if limits.default is not None else []
    for name, count in limits.at_most.items():
        lines.append(f"%limit {'*' if count is None else count} {quoted_name(name)}")
    lines += [f"%require {count} {quoted_name(name)}" for name, count in limits.at_least.items()]
    return [*lines, *(line for bound in limits.sums for line in bound.lines()), *limits.times.lines(quoted_name)]
