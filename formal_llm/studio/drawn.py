"""Pictures for the page: of the rules, of where a walk stands in them, of a plan over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formal_llm.automata import CFG, PDA, Configuration, Flowchart
from formal_llm.automata.drawing.pda import pda_picture
from formal_llm.automata.models.symbols import members
from formal_llm.errors import FormalLLMError
from formal_llm.pictures.drawable import picture_of
from formal_llm.pictures.parts import around, toned
from formal_llm.pictures.picture import Picture
from formal_llm.planning.plans.overlay import Overlay
from formal_llm.studio.parts import Part
from formal_llm.studio.rules import Written

#: How many boxes are drawn; of larger rules, those around the middle. And the seconds that Graphviz may take.
MOST, _SECONDS = 60, 10
#: A plan of more terminals is not drawn: to number its steps takes long, and nobody could read them.
_LONG = 300


def rules_picture(written: Written, near: str = "") -> Picture:
    """The picture of rules; of large ones, what lies around the symbol that is named, or the start."""
    rules = written.rules
    picture = picture_of(rules)
    return around(picture, _near(picture, near) or [_start(written)], MOST)


def standing_picture(written: Written, here: Configuration) -> Picture:
    """The rules with where a walk stands: the state, or what is on top of the stack, marked; the stack as it is."""
    rules = written.rules
    if isinstance(rules, CFG):
        stack = [_box_of(rules, name) for name in here.stack]
        picture = around(picture_of(rules), stack[:1] + list(dict.fromkeys(stack[1 : MOST // 2])), MOST)
        return toned(picture, stack[:1], stack)
    if isinstance(rules, Flowchart):
        state = str(here.state)
        picture = around(picture_of(rules), [state], MOST)
        return toned(picture, [state], [box.id for box in picture.nodes])
    picture = pda_picture(rules if isinstance(rules, PDA) else rules.pda, standing=here.state)
    return around(picture, [box.id for box in picture.nodes if box.tone == "marked"], MOST)


def plan_picture(written: Written, word: Sequence[str]) -> Picture:
    """A valid plan over its rules; of a very long one only the rules."""
    if len(word) > _LONG:
        return rules_picture(written)
    picture = Overlay(word, written.rules, order=written.wording.reads).picture
    return around(picture, [box.id for box in picture.nodes if box.tone == "marked"], MOST)


def drawn(picture: Picture) -> Part:
    """A picture as the page shows it: as SVG where Graphviz is there, as Mermaid, and in words."""
    found: Part = {"part": "picture", "mermaid": picture.to_mermaid(), "said": _said(picture), "svg": None}
    try:
        found["svg"] = picture.to_svg(timeout=_SECONDS)
    except FormalLLMError as error:
        found["problem"] = str(error)
    return found


def _said(picture: Picture) -> str:
    """What a picture shows, in a sentence: all of a small one, else how much, and what is marked."""
    names = {box.id: " ".join(box.label.split()) or "start" for box in picture.nodes}
    marked = [names[box.id] for box in picture.nodes if box.tone == "marked"]
    size = f"{len(picture.nodes)} boxes, {len(picture.edges)} arrows"
    return f"{size}. {f'Marked: {_listed(marked)}.' if marked else f'Boxes: {_listed(names.values())}.'}"


def _listed(names: Iterable[str], most: int = 12) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _start(written: Written) -> str:
    return written.rules.start if isinstance(written.rules, (CFG, Flowchart)) else "start"


def _near(picture: Picture, name: str) -> list[str]:
    return [box.id for box in picture.nodes if name and name in (box.id, box.label)][:1]


def _box_of(rules: CFG, name: str) -> str:
    """The box in which a symbol of the stack is drawn: its own, or that of a class or selection that holds it."""
    if name in rules.nonterminals or members(name):
        return name
    drawn_alone = {symbol for p in rules.productions if p.head not in rules.classes for symbol in p.body}
    if name in drawn_alone:
        return name
    return next((p.head for p in rules.productions if p.head in rules.classes and p.body == (name,)), name)
