"""Where a run stands in its rules, and the way of a finished plan through them, as pictures that can be read."""

from __future__ import annotations

from collections.abc import Container, Sequence

from formal_llm.automata import CFG, PDA, Behaviour, Configuration, Flowchart, Source
from formal_llm.automata.drawing.pda import pda_picture
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.symbols import members
from formal_llm.pictures.drawable import picture_of
from formal_llm.pictures.parts import around, toned
from formal_llm.pictures.picture import Picture
from formal_llm.planning.plans.overlay import Overlay
from formal_llm.planning.plans.steps import Order

#: How many boxes are drawn; of larger rules, those around the middle.
MOST = 60
#: A plan of more terminals is not drawn: to number its steps takes long, and nobody could read them.
_LONG = 300


def position_picture(rules: Source, here: Configuration) -> Picture:
    """The rules with where a walk stands: the state, or what is on top of the stack, marked; the stack as it is.

    Args:
        rules: as they are written.
        here: the configuration, of the rules' automaton or of a product of it with constraints.
    """
    if isinstance(rules, CFG):
        stack = [_find_box(rules, name) for name in here.stack]
        picture = around(picture_of(rules), stack[:1] + list(dict.fromkeys(stack[1 : MOST // 2])), MOST)
        return toned(picture, stack[:1], stack)
    if isinstance(rules, Flowchart):
        picture = picture_of(rules)
        state = _find_base_state(here.state, {box.id for box in picture.nodes})
        return toned(around(picture, [str(state)], MOST), [str(state)], [box.id for box in picture.nodes])
    pda = rules.pda if isinstance(rules, Behaviour) else rules
    if not isinstance(pda, PDA):
        return picture_of(rules)
    picture = pda_picture(pda, standing=_find_base_state(here.state, pda.states))
    return around(picture, [box.id for box in picture.nodes if box.tone == "marked"], MOST)


def way_picture(rules: Source, word: Sequence[str], order: Order) -> Picture:
    """A valid plan over its rules; of a very long one only the rules.

    Args:
        rules: as they are written.
        word: the plan.
        order: whether the word runs from the last step to the first or from the first to the last.
    """
    if len(word) > _LONG:
        picture = picture_of(rules)
        return around(picture, [rules.start] if isinstance(rules, (CFG, Flowchart)) else [], MOST)
    picture = Overlay(word, rules, order=order).picture
    return around(picture, [box.id for box in picture.nodes if box.tone == "marked"], MOST)


def _find_base_state(state: State, known: Container[State]) -> State:
    """Of the state of a product, that of the rules, wherever it stands in the pairs."""
    todo = [state]
    while todo:
        one = todo.pop()
        if one in known:
            return one
        if isinstance(one, tuple):
            todo += reversed(one)
    return state


def _find_box(rules: CFG, name: str) -> str:
    """The box in which a symbol of the stack is drawn: its own, or that of a class or selection that holds it."""
    if name in rules.nonterminals or members(name):
        return name
    drawn_alone = {symbol for p in rules.productions if p.head not in rules.classes for symbol in p.body}
    if name in drawn_alone:
        return name
    return next((p.head for p in rules.productions if p.head in rules.classes and p.body == (name,)), name)
