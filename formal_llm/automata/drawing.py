"""What grammars and pushdown automata look like: as a :class:`Picture`, and as a networkx graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from formal_llm.automata.automaton import State
from formal_llm.automata.cfg import CFG, Production, members
from formal_llm.automata.drawable import Arrow, Box, Drawable, Kind, Picture, printable
from formal_llm.automata.pda import PDA, Transition

if TYPE_CHECKING:
    import networkx

__all__ = ["Arrow", "Box", "Drawable", "Picture", "cfg_graph", "cfg_picture", "pda_graph", "pda_picture", "shorten"]

#: How wide a line of a picture may be, in characters; a line of alternatives may be wider.
WIDTH, ALTERNATIVES_WIDTH = 52, 80


def shorten(text: str, width: int = WIDTH) -> str:
    """``text`` as one line, cut to ``width`` characters."""
    text = printable(text)
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def _cut(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """At most ``most`` lines, and one that says how many are left out (a single one is not worth that)."""
    if len(lines) <= most + 1:
        return tuple(lines)
    return (*lines[:most], f"… and {len(lines) - most} more")


# -- grammars ---------------------------------------------------------------------------------------------------


def cfg_picture(cfg: CFG, *, most: int = 12) -> Picture:
    """A grammar: each nonterminal a rounded box that lists its productions, arrows to the symbols that they use.

    A nonterminal that stands for a choice of one terminal (see :attr:`CFG.classes`), and a selection, is one green box
    that lists the labels of its terminals. Other terminals are plain boxes. An arrow from nowhere marks the start.

    Args:
        cfg: the grammar.
        most: how many productions or terminals a box lists before it says how many more there are.
    """
    boxes = [Box("", "", "point")]
    arrows = [Arrow("", cfg.start)]
    productions: dict[str, list[Production]] = {}
    for production in cfg.productions:
        productions.setdefault(production.head, []).append(production)
    leaves: dict[str, None] = {}
    for head, group in productions.items():
        if head in cfg.classes:
            labels = [shorten(cfg.label(production.body[0])) for production in group]
            one_of = ": one of" if len(labels) > 1 else ""
            boxes.append(Box(head, _heading(cfg, head) + one_of, "class", _cut(labels, most)))
            continue
        kind: Kind = "start" if head == cfg.start else "nonterminal"
        rows = _cut([_body(production) for production in group], most)
        boxes.append(Box(head, _heading(cfg, head), kind, rows))
        for name in dict.fromkeys(name for production in group for name in production.body):
            arrows.append(Arrow(head, name))
            if name not in cfg.nonterminals:
                leaves[name] = None
    for name in leaves:
        chosen = members(name)
        if chosen is None:
            boxes.append(Box(name, shorten(cfg.label(name)), "terminal"))
        else:
            labels = [shorten(cfg.label(member)) for member in chosen]
            boxes.append(Box(name, "some of", "class", _cut(labels, most)))
    return Picture(tuple(boxes), tuple(arrows), "LR")


def _heading(cfg: CFG, name: str) -> str:
    label = shorten(cfg.label(name))
    return name if label in (name, name.replace("_", " ")) else f"{label}  ({name})"


def _body(production: Production) -> str:
    body = " ".join("some(…)" if members(name) else name for name in production.body) or "ε"
    return shorten(f"→ {body}" + (f"   “{production.text}”" if production.text else ""))


def cfg_graph(cfg: CFG) -> networkx.MultiDiGraph:
    """A grammar as a graph of symbols and productions.

    Nodes are the symbols (by name; ``kind`` is ``nonterminal``, ``terminal`` or ``selection``) and the
    :class:`Production` values (``kind`` is ``production``), each with a ``label``; ``start`` marks the start symbol.
    Edges lead from a head to its productions, from a production to the symbols of its body, and from a selection to its
    terminals; ``position`` counts them from 0.
    """
    import networkx

    graph = networkx.MultiDiGraph()
    for names, kind in (
        (cfg.nonterminals, "nonterminal"),
        (cfg.terminals, "terminal"),
        (cfg.selections, "selection"),
    ):
        for name in names:
            graph.add_node(name, kind=kind, label=cfg.label(name), start=name == cfg.start)
    for production in cfg.productions:
        graph.add_node(production, kind="production", label=str(production), start=False)
        graph.add_edge(production.head, production, position=graph.out_degree(production.head))
        for position, name in enumerate(production.body):
            graph.add_edge(production, name, position=position)
    for name in cfg.selections:
        for position, member in enumerate(members(name) or ()):
            graph.add_edge(name, member, position=position)
    return graph


# -- pushdown automata ------------------------------------------------------------------------------------------


def pda_picture(pda: PDA, *, most: int = 12) -> Picture:
    """An automaton: states as circles, final ones doubled, an arrow from a point to the initial state.

    The transitions from one state to another share an arrow, labelled ``read, pop → push`` one to a line, or only with
    what is read where the automaton uses no stack. Where that would be more than ``most`` lines, as at the middle state
    of the automaton of a grammar, transitions that differ only in what they push share a line, ``ε, S → a S b | ε``,
    and so do those that match the input with the stack; if there still are too many, the rest is counted.

    Args:
        pda: the automaton.
        most: how many lines an arrow's label may have.
    """
    ids = {state: str(number) for number, state in enumerate(pda.states)}
    boxes = [Box("start", "", "point")]
    for state, name in ids.items():
        kind: Kind = "accepting" if state in pda.accepting_states else "state"
        boxes.append(Box(name, shorten(_called(state) if pda.factors else str(state), 24), kind))
    arrows = [Arrow("start", ids[pda.start_state])]
    between: dict[tuple[str, str], list[Transition]] = {}
    for transition in pda.transitions:
        between.setdefault((ids[transition.state], ids[transition.target]), []).append(transition)
    for (source, target), group in between.items():
        lines = [shorten(_notation(t) if pda.uses_stack else printable(t.read or "ε")) for t in group]
        if len(lines) > most and pda.uses_stack:
            lines = [*_folded(group)]
        arrows.append(Arrow(source, target, "\n".join(_cut(lines, most))))
    return Picture(tuple(boxes), tuple(arrows), "LR")


def _called(state: State) -> str:
    """A state's name; a product's state is a pair, and pairs of pairs are one list."""
    return ", ".join(map(_called, state)) if isinstance(state, tuple) else str(state)


def _word(names: Iterable[str]) -> str:
    return " ".join(map(printable, names)) or "ε"


def _left(transition: Transition) -> str:
    return f"{printable(transition.read or 'ε')}, {printable(transition.pop or 'ε')}"


def _notation(transition: Transition) -> str:
    return f"{_left(transition)} → {_word(transition.push)}"


def _folded(transitions: Iterable[Transition]) -> Iterable[str]:
    pushed: dict[str, list[str]] = {}
    matched: list[Transition] = []
    for transition in transitions:
        if transition.read is not None and transition.read == transition.pop and not transition.push:
            matched.append(transition)
        else:
            pushed.setdefault(_left(transition), []).append(_word(transition.push))
    # Matching comes first: it is one line, and must not be lost when a long list is cut.
    if len(matched) > 1:
        yield f"a, a → ε   for each of {len(matched)} terminals a"
    else:
        yield from map(_notation, matched)
    for left, words in pushed.items():
        yield _alternatives(f"{left} → ", words)


def _alternatives(line: str, words: Sequence[str]) -> str:
    """``line`` with as many of the words as fit, and how many do not."""
    line += words[0]
    for number, word in enumerate(words[1:], 1):
        if len(line) + len(word) > ALTERNATIVES_WIDTH:
            return f"{shorten(line, ALTERNATIVES_WIDTH)} | … {len(words) - number} more"
        line += f" | {word}"
    return shorten(line, ALTERNATIVES_WIDTH)


def pda_graph(pda: PDA) -> networkx.MultiDiGraph:
    """An automaton as a graph: its states, and an edge for each transition.

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
            label=_notation(transition),
        )
    return graph
