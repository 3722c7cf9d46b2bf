"""Writing pushdown automata as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.quantities import format_amount
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.notation.comments import (
    add_comments,
    add_outer_comments,
    attach_comments,
    collect_comments,
    nearest,
)
from formal_llm.automata.notation.pda_lines import (
    PdaLine,
    PdaToken,
    PlainTransition,
    quoted_name,
    quoted_text,
    statements,
    unquoted,
)
from formal_llm.automata.notation.source import SourceText

#: Lines that there is one of: their comments go with the directive, whatever it says.
_ONCE = ("%name", "%order", "%start", "%accept", "%stack")
#: A line up to its comment.
_CODE = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^"'#])*""")


def write_pda(pda: PDA) -> str:
    """The automaton in its notation, every family written out, with the comments that it was read with.

    States that are no texts are named by their ``str``.
    """
    states = _state_names(pda.states)
    lines = [f"%name {quoted_text(pda.name)}"] if pda.name else []
    lines += [f"%order {pda.order}"] if pda.order is not None else []
    lines.append(f"%start {states[pda.start_state]}")
    lines.append(f"%accept {' '.join(name for state, name in states.items() if state in pda.accepting_states)}")
    lines += [f"%stack {' '.join(map(quoted_name, pda.start_stack))}"] if pda.start_stack else []
    lines += [*pda.limits.lines(quoted_name), "", *_write_transitions(pda, states)]
    described = list(_describe_terminals(pda).values())
    lines += ["", *described] if described else []
    if pda.comments:
        first = (line.split(" ", 1)[0] for line in lines)
        keys = [word if word in _ONCE else line for word, line in zip(first, lines, strict=True)]
        lines = [
            add_comments(line, pda.comments.get(key)) if key else line for line, key in zip(lines, keys, strict=True)
        ]
    return "\n".join(add_outer_comments(lines, pda.comments)) + "\n"


def _write_transitions(pda: PDA, states: Mapping[State, str]) -> Iterator[str]:
    for t in pda.transitions:
        read, pop = (quoted_name(name) if name is not None else "ε" for name in (t.read, t.pop))
        push = " ".join(map(quoted_name, t.push)) or "ε"
        line = f"{states[t.state]}, {read}, {pop} -> {states[t.target]}, {push}"
        line += f" {quoted_text(t.text)}" if t.text else ""
        yield line + (f" {'decide' if t.decision else 'ask'} {quoted_text(t.question)}" if t.question else "")


def _describe_terminals(pda: PDA) -> dict[str, str]:
    """The lines of terminals with labels or numbers, by what is printed for the terminal."""
    found = {}
    for name, symbol in pda.symbols.items():
        if name in pda.terminals and symbol != Symbol():
            texts = f" {quoted_text(symbol.label)}" if symbol.label or symbol.description else ""
            texts += f" {quoted_text(symbol.description)}" if symbol.description else ""
            numbers = "".join(f" {quantity}={format_amount(value)}" for quantity, value in symbol.numbers.items())
            found[quoted_name(name)] = f"{quoted_name(name)}{texts}{numbers}"
    return found


# -- comments ---------------------------------------------------------------------------------------------------------


def with_comments(pda: PDA, source: SourceText) -> PDA:
    """An automaton that was just read, with the comments of its text, each with what is printed for its statement."""
    if "#" not in source.own_text:
        return pda
    limits, described = pda.limits.lines(quoted_name), _describe_terminals(pda)
    by_left: dict[str, list[str]] = {}
    for line in _write_transitions(pda, _state_names(pda.states)):
        by_left.setdefault(line.split(",", 1)[0], []).append(line)
    anchors: list[tuple[int, str]] = []
    for statement in statements(source):
        tokens = (statement.state,) if isinstance(statement, PlainTransition) else statement.tokens
        first = tokens[0]
        if not source.is_own(first.place.line):
            continue
        if isinstance(statement, PlainTransition) or any(token.kind == "arrow" for token in tokens):
            like = re.compile(_write_pattern(statement))
            keys = [line for line in by_left.get(quoted_name(first.text), ()) if like.fullmatch(line)]
        elif first.text in _ONCE:
            keys = [first.text]
        else:
            words = [quoted_name(token.text) if token.kind == "name" else token.text for token in tokens]
            keys = [nearest(words, limits, described)]
        anchors += [(first.place.line, key) for key in keys if key]
    return attach_comments(pda, collect_comments(source.own_text, lambda line: _CODE.findall(line)[0], anchors))


def _write_pattern(statement: PdaLine | PlainTransition) -> str:
    """What matches the printed lines of a transition as it is written; * is any symbol, the question may differ."""
    if isinstance(statement, PlainTransition):
        names = (statement.read, None if statement.pop.is_empty else statement.pop.text)
        read, pop = ("ε" if name is None else quoted_name(name) for name in names)
        push = " ".join(map(quoted_name, statement.push)) or "ε"
        said = re.escape(
            f"{quoted_name(statement.state.text)}, {read}, {pop} -> {quoted_name(statement.target)}, {push}"
        )
    else:
        said = " ".join(_token_pattern(token) for token in statement.tokens).replace(" ,", ",")
    return said + r"(?: (?:ask|decide) .*)?"


def _token_pattern(token: PdaToken) -> str:
    if token.kind == "any":
        return ".+?"
    if token.kind == "string":
        return re.escape(quoted_text(unquoted(token)))
    if token.kind == "arrow":
        return "->"
    bare = token.kind != "name" or token.is_empty or token.is_word("ask", "decide")
    return re.escape("ε" if token.is_empty else token.text if bare else quoted_name(token.text))


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
