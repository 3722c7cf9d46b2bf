"""A picture as plain data, and its forms: Mermaid, Graphviz, SVG, PNG.

A :class:`Picture` knows nothing of grammars or plans: it has boxes of a few kinds and arrows between them. What a
grammar, an automaton or a plan looks like is defined in the modules that draw them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

from formal_llm.errors import FormalLLMError, MissingDependency

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
_LINE_COLOUR, _FADED_LINE, _MARK = "#7A8794", "#C3CAD1", "#C2560C"
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
    "point": BoxLook("point", "filled", '(("', '"))', _LINE_COLOUR, _LINE_COLOUR, _LINE_COLOUR),
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
    return {"plain": (_LINE_COLOUR, 1.0), "marked": (_MARK, 2.2), "faded": (_FADED_LINE, 1.0)}[tone]


def plate_of(tone: Tone) -> tuple[str, str]:
    """The colours of the plate beside an arrow: its fill and its font."""
    return {"plain": (_GREY[0], _GREY[2]), "marked": ("#FCE7D6", "#5C2803"), "faded": (_FADED[0], _FADED[2])}[tone]


__all__ = ["Arrow", "Box", "BoxKind", "Direction", "Picture", "Tone", "printable"]

_FONT = "Helvetica,Arial,sans-serif"
_NO_BREAK_SPACE = "\u00a0"
#: Further attributes of some kinds for Graphviz. A diamond leaves enough room around its text without a margin.
_MORE: dict[BoxKind, str] = {"point": ", width=0.12, height=0.12", "decision": ', margin="0.01,0.01"'}
#: Dots to the inch of a PNG picture.
_RESOLUTION = 110

# What XML cannot hold or a terminal would obey: control characters, halves of surrogate pairs, two non-characters.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Mermaid reads labels as Markdown with entities of its own: all that could mean something there is written as a number.
# Left as they are: a comma, a hyphen or underscore inside a word. "ﬂ" and "¶" mark Mermaid's entities on the way.
_MERMAID = re.compile(r"(?!(?<=[^\W_])[-_](?=[^\W_]))[!-+\--/:-@\[-`{-~ﬂ¶]")
_SVG_NOISE = re.compile(r'<!--.*?-->\s*|<title>.*?</title>\s*|(?<=[\w"]) id="[^"]*"', re.DOTALL)


def printable(text: str) -> str:
    """``text`` with line ends and tabs as blanks and control characters as visible signs."""
    return _UNPRINTABLE.sub(
        lambda match: chr(0x2400 + ord(match[0])) if match[0] < " " else "\ufffd",
        " ".join(text.splitlines()).replace("\t", " "),
    )


def _split_rows(text: str) -> list[str]:
    return [printable(line) for line in text.splitlines()]


@dataclass(frozen=True, slots=True)
class Box:
    """A node of a picture.

    Attributes:
        id: its name in the picture, never shown.
        label: its text; may have several lines.
        kind: what it stands for, which gives it shape and colour.
        details: more lines, smaller, under the label.
        tone: whether it is marked or faded, in a picture with something drawn over it.
        strong: which of the details are meant where it is marked, counted from 0; the others are faded.
    """

    id: str
    label: str
    kind: BoxKind
    details: tuple[str, ...] = ()
    tone: Tone = "plain"
    strong: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge of a picture, from the box ``source`` to the box ``target`` (their ids).

    The greater its ``weight``, the more it is drawn straight and short, for Graphviz.
    """

    source: str
    target: str
    label: str = ""
    style: Literal["solid", "dashed"] = "solid"
    tone: Tone = "plain"
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and arrows.

    Args:
        nodes: the boxes; their ids differ.
        edges: the arrows between them.
        direction: ``LR``: arrows run mostly to the right; ``TB``: mostly downwards.
        title: a line above the picture.

    Raises:
        ValueError: two boxes of one id, or an arrow from or to a box that is not there.
    """

    nodes: tuple[Box, ...]
    edges: tuple[Arrow, ...] = ()
    direction: Direction = "LR"
    title: str | None = None

    def __post_init__(self) -> None:
        known = {box.id for box in self.nodes}
        if len(known) < len(self.nodes):
            raise ValueError("two boxes of a picture have the same id")
        for arrow in self.edges:
            if not known >= {arrow.source, arrow.target}:
                raise ValueError(f"an arrow leads from {arrow.source!r} to {arrow.target!r}: there is no such box")

    def _name_boxes(self) -> dict[str, str]:
        # Ids may be any text, so the boxes are numbered: no id can then be taken for a keyword of the language.
        return {box.id: f"n{number}" for number, box in enumerate(self.nodes)}

    def to_mermaid(self) -> str:
        """The picture as a Mermaid flowchart."""
        names = self._name_boxes()
        lines = []
        if self.title:
            # A YAML string: JSON's form is one, and what Mermaid might take for markup is written as \uXXXX.
            quoted = json.dumps(printable(self.title), ensure_ascii=False)
            quoted = re.sub(r"[#<>&%{};]", lambda match: f"\\u{ord(match[0]):04x}", quoted)
            lines += ["---", f"title: {quoted}", "---"]
        lines.append(f"flowchart {self.direction}")
        for box in self.nodes:
            look = look_of(box.kind, box.tone)
            text = " " if box.kind == "point" else _write_mermaid("\n".join((box.label, *box.details)))
            lines.append(f"    {names[box.id]}{look.opening}{text}{look.closing}")
        for arrow in self.edges:
            line = "-.->" if arrow.style == "dashed" else "-->"
            label = f'|"{_write_mermaid(arrow.label)}"|' if arrow.label else ""
            lines.append(f"    {names[arrow.source]} {line}{label} {names[arrow.target]}")
        for kind, tone in dict.fromkeys((box.kind, box.tone) for box in self.nodes):
            look = look_of(kind, tone)
            name = f"{kind}{'' if tone == 'plain' else tone.capitalize()}Box"
            dashes = ",stroke-dasharray:4 3" if "dashed" in look.style else ""
            lines.append(
                f"    classDef {name} fill:{look.fill},stroke:{look.border},color:{look.font},"
                f"stroke-width:{look.pen:g}px{dashes}"
            )
            members = ",".join(names[box.id] for box in self.nodes if (box.kind, box.tone) == (kind, tone))
            lines.append(f"    class {members} {name}")
        for tone in dict.fromkeys(arrow.tone for arrow in self.edges if arrow.tone != "plain"):
            colour, pen = line_of(tone)
            numbers = ",".join(str(number) for number, arrow in enumerate(self.edges) if arrow.tone == tone)
            lines.append(f"    linkStyle {numbers} stroke:{colour},stroke-width:{pen:g}px")
        return "\n".join(lines) + "\n"

    def to_dot(self) -> str:
        """The picture in Graphviz' language."""
        names = self._name_boxes()
        lines = [
            "digraph {",
            f'    graph [rankdir={self.direction}, bgcolor="transparent", nodesep=0.3, ranksep=0.55, pad=0.1,',
            f'        fontname="{_FONT}", fontsize=13, labelloc=t]',
            f'    node [fontname="{_FONT}", fontsize=12, margin="0.16,0.08", height=0.4]',
            f'    edge [fontname="{_FONT}", fontsize=11, color="{_LINE_COLOUR}", arrowsize=0.7]',
        ]
        if self.title:
            lines.append(f"    label={_write_plate(self.title)}")
        for box in self.nodes:
            look = look_of(box.kind, box.tone)
            more = _MORE.get(box.kind, "") + (f", peripheries={look.borders}" if look.borders > 1 else "")
            lines.append(
                f"    {names[box.id]} [label={_write_caption(box)}, shape={look.shape}, "
                f'style="{look.style}", fillcolor="{look.fill}", color="{look.border}", fontcolor="{look.font}", '
                f"penwidth={look.pen:g}{more}]"
            )
        # Of the arrows out of a box, loops come last: they hardly move, and others are not drawn over their labels.
        for arrow in sorted(self.edges, key=lambda arrow: arrow.source == arrow.target):
            marks = [f"label={_write_plate(arrow.label, arrow.tone)}"] if arrow.label else []
            marks += ["style=dashed"] if arrow.style == "dashed" else []
            marks += [f"weight={arrow.weight}"] if arrow.weight > 1 else []
            if arrow.tone != "plain":
                colour, pen = line_of(arrow.tone)
                marks.append(f'color="{colour}", penwidth={pen:g}')
            after = f" [{', '.join(marks)}]" if marks else ""
            lines.append(f"    {names[arrow.source]} -> {names[arrow.target]}{after}")
        return "\n".join([*lines, "}"]) + "\n"

    def to_svg(self, *, timeout: float = 60) -> str:
        """The picture as SVG, laid out by Graphviz.

        Args:
            timeout: how many seconds Graphviz may take.

        Raises:
            MissingDependency: the program ``dot`` is not installed.
            FormalLLMError: Graphviz took too long or failed.
        """
        svg = self._laid_out("SVG", timeout, "-Tsvg").decode()
        # Gone: the prologue (SVG is often pasted into HTML), comments (they name Graphviz' version), tooltips that
        # show internal names, and ids (those of two pictures on one page would clash).
        return _SVG_NOISE.sub("", svg[svg.index("<svg") :])

    def to_png(self, *, timeout: float = 60) -> bytes:
        """The picture as PNG on white, laid out by Graphviz; arguments and errors are those of :meth:`to_svg`."""
        return self._laid_out("PNG", timeout, "-Tpng", "-Gbgcolor=white", f"-Gdpi={_RESOLUTION}")

    def _laid_out(self, form: str, timeout: float, *options: str) -> bytes:
        import shutil
        import subprocess

        dot = shutil.which("dot")
        if dot is None:
            raise MissingDependency(
                f"{'an' if form == 'SVG' else 'a'} {form} picture needs the program 'dot': install Graphviz "
                "(graphviz.org), or use Mermaid or DOT output, which work without it"
            )
        try:
            done = subprocess.run(  # noqa: S603  # a fixed command; the picture goes in as data
                [dot, *options], input=self.to_dot().encode(), capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise FormalLLMError(
                f"Graphviz did not lay out {len(self.nodes)} boxes within {timeout:g} seconds"
            ) from None
        if done.returncode:
            raise FormalLLMError(f"Graphviz failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout


def _write_mermaid(text: str) -> str:
    rows = (_MERMAID.sub(lambda match: f"#{ord(match[0])};", row).strip() for row in _split_rows(text))
    return "<br/>".join(rows) or " "


def _write_markup(rows: list[str], end: str = "<BR/>") -> str:
    # Graphviz takes no empty line and drops blanks at the ends: a no-break space stands for nothing.
    # It replaces \N, \G and the like also in HTML-like labels, unless the backslash is doubled.
    return "".join((escape(row).replace("\\", "\\\\") or _NO_BREAK_SPACE) + end for row in rows)


def _write_caption(box: Box) -> str:
    if box.kind == "point":
        return '""'
    rows = _split_rows(box.label) or [""]
    if not box.details:
        return f"<{_write_markup(rows).removesuffix('<BR/>')}>"
    details = ""
    for number, detail in enumerate(box.details):
        markup = _write_markup(_split_rows(detail), '<BR ALIGN="LEFT"/>')
        if box.strong and markup:
            faded = look_of(box.kind, "faded").font
            markup = f"<B>{markup}</B>" if number in box.strong else f'<FONT COLOR="{faded}">{markup}</FONT>'
        details += markup
    return f'<<B>{_write_markup(rows).removesuffix("<BR/>")}</B><BR/><FONT POINT-SIZE="11">{details}</FONT>>'


def _write_plate(text: str, tone: Tone = "plain") -> str:
    """Text beside an arrow or above the picture, on a light plate: the page behind it may be dark."""
    fill, font = plate_of(tone)
    rows = _split_rows(text) or [""]
    # The reader's font may be wider than the one Graphviz measured with: the longest line gets some room.
    longest = max(range(len(rows)), key=lambda n: len(rows[n]))
    rows[longest] += _NO_BREAK_SPACE * (len(rows[longest]) // 20)
    return (
        f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="5"><TR>'
        f'<TD BGCOLOR="{fill}" ALIGN="LEFT" BALIGN="LEFT"><FONT COLOR="{font}">'
        f"{_write_markup(rows).removesuffix('<BR/>')}</FONT></TD></TR></TABLE>>"
    )
