"""How the boxes and arrows of pictures look: shapes, colours, and what is done to them to mark or fade a part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

BoxKind = Literal[
    "start", "nonterminal", "class", "terminal", "state", "accepting", "long_state", "long_accepting", "point", "tool",
    "input", "result", "open", "decision",
]  # fmt: skip
Direction = Literal["LR", "TB"]
#: Of a picture with something drawn over it: what is meant is marked, the rest is faded.
Tone = Literal["plain", "marked", "faded"]


@dataclass(frozen=True, slots=True)
class BoxLook:
    """How a kind of box is drawn: Graphviz' shape and style, Mermaid's brackets, colours, border."""

    shape: str
    style: str
    opening: str
    closing: str
    fill: str
    border: str
    font: str
    pen: float = 1
    borders: int = 1


# Each box brings its own fill and font colour, and lines are a middle grey: so a picture can be read on a light page
# and on a dark one. Blue is what is built up or done, green a choice of one, sand what is given, grey what is open.
_BLUE = ("#DDE9F6", "#3B6EA5", "#12283F")
_GREEN = ("#E2F0E3", "#4F7F52", "#17331A")
_SAND = ("#F7F2E4", "#94824F", "#352E17")
_GREY = ("#ECEFF2", "#7A8794", "#27303A")
_FADED = ("#F5F6F7", "#B9C1C9", "#7D8791")
_LINE, _FADED_LINE, _MARK = "#7A8794", "#C3CAD1", "#C2560C"
_LOOKS: dict[BoxKind, BoxLook] = {
    "start": BoxLook("box", "rounded,filled", '("', '")', *_BLUE, 2.4),
    "nonterminal": BoxLook("box", "rounded,filled", '("', '")', *_BLUE),
    "class": BoxLook("box", "rounded,filled", '("', '")', *_GREEN),
    "terminal": BoxLook("box", "filled", '["', '"]', *_SAND),
    "state": BoxLook("circle", "filled", '(("', '"))', *_BLUE, 1.2),
    "accepting": BoxLook("doublecircle", "filled", '((("', '")))', *_BLUE, 1.2),
    # A circle around a long name is large and nearly empty: these have a frame instead, doubled where they accept.
    "long_state": BoxLook("box", "rounded,filled", '(["', '"])', *_BLUE, 1.2),
    "long_accepting": BoxLook("box", "rounded,filled", '[["', '"]]', *_BLUE, 1.2, 2),
    "point": BoxLook("point", "filled", '(("', '"))', _LINE, _LINE, _LINE),
    "tool": BoxLook("box", "filled", '["', '"]', *_BLUE),
    "input": BoxLook("box", "rounded,filled", '(["', '"])', *_SAND),
    "result": BoxLook("box", "rounded,filled", '(["', '"])', *_GREEN, 2.4),
    "decision": BoxLook("diamond", "filled", '{"', '"}', *_GREEN),
    "open": BoxLook("box", "rounded,filled,dashed", '(["', '"])', *_GREY),
}


def look_of(kind: BoxKind, tone: Tone) -> BoxLook:
    """How a box is drawn. What is marked keeps its colours and has a strong border, so it is no matter of hue alone."""
    look = _LOOKS[kind]
    if tone == "marked":
        return replace(look, fill=_MARK if kind == "point" else look.fill, border=_MARK, pen=2.6)
    if tone == "faded":
        fill, border, font = _FADED
        return replace(look, fill=border if kind == "point" else fill, border=border, font=font, pen=1)
    return look


def line_of(tone: Tone) -> tuple[str, float]:
    """The colour and the width of an arrow."""
    return {"plain": (_LINE, 1.0), "marked": (_MARK, 2.2), "faded": (_FADED_LINE, 1.0)}[tone]


def plate_of(tone: Tone) -> tuple[str, str]:
    """The colours of the plate beside an arrow: its fill and its font."""
    return {"plain": (_GREY[0], _GREY[2]), "marked": ("#FCE7D6", "#5C2803"), "faded": (_FADED[0], _FADED[2])}[tone]
