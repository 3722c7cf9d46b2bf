"""A picture as plain data, its three forms (Mermaid, Graphviz, SVG), and :class:`Drawable`, for what has a picture.

A :class:`Picture` knows nothing of grammars or plans: it has boxes of a few kinds and arrows between them. What a
grammar, an automaton or a plan looks like is told in the two modules named ``drawing``.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import Literal, NamedTuple

from formal_llm.errors import FormalLLMError, MissingDependency

Kind = Literal[
    "start", "nonterminal", "class", "terminal", "state", "accepting", "point", "tool", "input", "result", "open",
    "decision",
]  # fmt: skip
Direction = Literal["LR", "TB"]


class _Look(NamedTuple):
    """How a kind of box is drawn: Graphviz' shape and style, Mermaid's brackets, colours, width of the border."""

    shape: str
    style: str
    opening: str
    closing: str
    fill: str
    border: str
    font: str
    pen: float = 1


# Each box brings its own fill and font colour, and lines are a middle grey: so a picture can be read on a light page
# and on a dark one. Blue is what is built up or done, green a choice of one, sand what is given, grey what is open.
_BLUE = ("#DDE9F6", "#3B6EA5", "#12283F")
_GREEN = ("#E2F0E3", "#4F7F52", "#17331A")
_SAND = ("#F7F2E4", "#94824F", "#352E17")
_GREY = ("#ECEFF2", "#7A8794", "#27303A")
_LINE = "#7A8794"
_LOOKS: dict[Kind, _Look] = {
    "start": _Look("box", "rounded,filled", '("', '")', *_BLUE, 2.4),
    "nonterminal": _Look("box", "rounded,filled", '("', '")', *_BLUE),
    "class": _Look("box", "rounded,filled", '("', '")', *_GREEN),
    "terminal": _Look("box", "filled", '["', '"]', *_SAND),
    "state": _Look("circle", "filled", '(("', '"))', *_BLUE, 1.2),
    "accepting": _Look("doublecircle", "filled", '((("', '")))', *_BLUE, 1.2),
    "point": _Look("point", "filled", '(("', '"))', _LINE, _LINE, _LINE),
    "tool": _Look("box", "filled", '["', '"]', *_BLUE),
    "input": _Look("box", "rounded,filled", '(["', '"])', *_SAND),
    "result": _Look("box", "rounded,filled", '(["', '"])', *_GREEN, 2.4),
    "decision": _Look("diamond", "filled", '{"', '"}', *_GREEN),
    "open": _Look("box", "rounded,filled,dashed", '(["', '"])', *_GREY),
}
_FONT = "Helvetica,Arial,sans-serif"
_NO_BREAK_SPACE = "\u00a0"

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


def _rows(text: str) -> list[str]:
    return [printable(line) for line in text.splitlines()]


@dataclass(frozen=True, slots=True)
class Box:
    """A node of a picture.

    Attributes:
        id: its name in the picture, never shown.
        label: what it says; may have several lines.
        kind: what it stands for, which gives it shape and colour.
        details: more lines, smaller, under the label.
    """

    id: str
    label: str
    kind: Kind
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge of a picture, from the box ``source`` to the box ``target`` (their ids)."""

    source: str
    target: str
    label: str = ""
    style: Literal["solid", "dashed"] = "solid"


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

    def _names(self) -> dict[str, str]:
        # Ids may be any text, so the boxes are numbered: no id can then be taken for a keyword of the language.
        return {box.id: f"n{number}" for number, box in enumerate(self.nodes)}

    def to_mermaid(self) -> str:
        """The picture as a Mermaid flowchart."""
        names = self._names()
        lines = []
        if self.title:
            # A YAML string: JSON's form is one, and what Mermaid might take for markup is written as \uXXXX.
            quoted = json.dumps(printable(self.title), ensure_ascii=False)
            quoted = re.sub(r"[#<>&%{};]", lambda match: f"\\u{ord(match[0]):04x}", quoted)
            lines += ["---", f"title: {quoted}", "---"]
        lines.append(f"flowchart {self.direction}")
        for box in self.nodes:
            look = _LOOKS[box.kind]
            text = " " if box.kind == "point" else _mermaid("\n".join((box.label, *box.details)))
            lines.append(f"    {names[box.id]}{look.opening}{text}{look.closing}")
        for arrow in self.edges:
            line = "-.->" if arrow.style == "dashed" else "-->"
            label = f'|"{_mermaid(arrow.label)}"|' if arrow.label else ""
            lines.append(f"    {names[arrow.source]} {line}{label} {names[arrow.target]}")
        for kind in dict.fromkeys(box.kind for box in self.nodes):
            look = _LOOKS[kind]
            dashes = ",stroke-dasharray:4 3" if "dashed" in look.style else ""
            lines.append(
                f"    classDef {kind}Box fill:{look.fill},stroke:{look.border},color:{look.font},"
                f"stroke-width:{look.pen:g}px{dashes}"
            )
            lines.append(f"    class {','.join(names[box.id] for box in self.nodes if box.kind == kind)} {kind}Box")
        return "\n".join(lines) + "\n"

    def to_dot(self) -> str:
        """The picture in Graphviz' language."""
        names = self._names()
        lines = [
            "digraph {",
            f'    graph [rankdir={self.direction}, bgcolor="transparent", nodesep=0.3, ranksep=0.55, pad=0.1,',
            f'        fontname="{_FONT}", fontsize=13, labelloc=t]',
            f'    node [fontname="{_FONT}", fontsize=12, margin="0.16,0.08", height=0.4]',
            f'    edge [fontname="{_FONT}", fontsize=11, color="{_LINE}", arrowsize=0.7]',
        ]
        if self.title:
            lines.append(f"    label={_plate(self.title)}")
        for box in self.nodes:
            look = _LOOKS[box.kind]
            more = ", width=0.12, height=0.12" if box.kind == "point" else ""
            lines.append(
                f"    {names[box.id]} [label={_caption(box)}, shape={look.shape}, "
                f'style="{look.style}", fillcolor="{look.fill}", color="{look.border}", fontcolor="{look.font}", '
                f"penwidth={look.pen:g}{more}]"
            )
        for arrow in self.edges:
            marks = [f"label={_plate(arrow.label)}"] if arrow.label else []
            marks += ["style=dashed"] if arrow.style == "dashed" else []
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
        import shutil
        import subprocess

        dot = shutil.which("dot")
        if dot is None:
            raise MissingDependency(
                "an SVG picture needs the program 'dot': install Graphviz (graphviz.org), "
                "or use Mermaid or DOT output, which work without it"
            )
        try:
            done = subprocess.run(  # noqa: S603  # a fixed command; the picture goes in as data
                [dot, "-Tsvg"], input=self.to_dot().encode(), capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise FormalLLMError(
                f"Graphviz did not lay out {len(self.nodes)} boxes within {timeout:g} seconds"
            ) from None
        if done.returncode:
            raise FormalLLMError(f"Graphviz failed: {done.stderr.decode(errors='replace').strip()}")
        svg = done.stdout.decode()
        # Gone: the prologue (SVG is often pasted into HTML), comments (they name Graphviz' version), tooltips that
        # show internal names, and ids (those of two pictures on one page would clash).
        return _SVG_NOISE.sub("", svg[svg.index("<svg") :])


def _mermaid(text: str) -> str:
    rows = (_MERMAID.sub(lambda match: f"#{ord(match[0])};", row).strip() for row in _rows(text))
    return "<br/>".join(rows) or " "


def _markup(rows: list[str], end: str = "<BR/>") -> str:
    # Graphviz takes no empty line and drops blanks at the ends: a no-break space stands for nothing.
    # It replaces \N, \G and the like also in HTML-like labels, unless the backslash is doubled.
    return "".join((escape(row).replace("\\", "\\\\") or _NO_BREAK_SPACE) + end for row in rows)


def _caption(box: Box) -> str:
    if box.kind == "point":
        return '""'
    rows = _rows(box.label) or [""]
    if not box.details:
        return f"<{_markup(rows).removesuffix('<BR/>')}>"
    details = _markup([row for detail in box.details for row in _rows(detail)], '<BR ALIGN="LEFT"/>')
    return f'<<B>{_markup(rows).removesuffix("<BR/>")}</B><BR/><FONT POINT-SIZE="11">{details}</FONT>>'


def _plate(text: str) -> str:
    """Text beside an arrow or above the picture, on a light plate: the page behind it may be dark."""
    fill, _, font = _GREY
    rows = _rows(text) or [""]
    # The reader's font may be wider than the one Graphviz measured with: the longest line gets some room.
    longest = max(range(len(rows)), key=lambda n: len(rows[n]))
    rows[longest] += _NO_BREAK_SPACE * (len(rows[longest]) // 20)
    return (
        f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="5"><TR>'
        f'<TD BGCOLOR="{fill}" ALIGN="LEFT" BALIGN="LEFT"><FONT COLOR="{font}">'
        f"{_markup(rows).removesuffix('<BR/>')}</FONT></TD></TR></TABLE>>"
    )


class Drawable(ABC):
    """What has a picture: gives the forms of a picture to a class that makes one in ``_picture``."""

    __slots__ = ()

    #: A notebook is shown no picture of more boxes than this: it would take long and show nothing.
    _most_boxes = 400

    @abstractmethod
    def _picture(self) -> Picture: ...

    def to_mermaid(self) -> str:
        """A Mermaid flowchart, which GitHub and many editors draw."""
        return self._picture().to_mermaid()

    def to_dot(self) -> str:
        """A graph in Graphviz' language."""
        return self._picture().to_dot()

    def to_svg(self) -> str:
        """A picture as SVG; needs Graphviz.

        Raises:
            MissingDependency: the program ``dot`` is not installed.
        """
        return self._picture().to_svg()

    def _repr_svg_(self) -> str | None:
        """For notebooks; None, so that they show the text instead, where there is no Graphviz or too much to draw."""
        picture = self._picture()
        if len(picture.nodes) > self._most_boxes:
            return None
        try:
            return picture.to_svg(timeout=10)
        except FormalLLMError:
            return None
