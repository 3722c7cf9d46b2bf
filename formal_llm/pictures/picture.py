"""A picture as plain data, and its formats: Mermaid, Graphviz, SVG, PNG.

A :class:`Picture` is independent of grammars and plans: it has boxes of a few kinds and arrows between them. The
modules that draw grammars, automata and plans determine their appearance.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

from formal_llm.errors import FormalLLMError, MissingDependency

BoxKind = Literal[
    "start", "nonterminal", "class", "terminal", "state", "accepting", "long_state", "long_accepting", "point", "tool",
    "input", "result", "open", "decision",
]  # fmt: skip
Direction = Literal["LR", "TB"]
#: The emphasis of a part: if something is highlighted in a picture, its parts are marked and the rest is faded.
Tone = Literal["plain", "marked", "faded"]


@dataclass(frozen=True, slots=True)
class BoxLook:
    """The appearance of a kind of box: Graphviz' shape and style, Mermaid's brackets, colours, border."""

    shape: str
    style: str
    opening: str
    closing: str
    fill: str
    border: str
    font: str
    pen: float = 1
    borders: int = 1


# Each box has its own fill and font colour, and lines are a middle grey, so that pictures are legible on light and
# dark pages. Blue: what is built or done; green: a choice of one; sand: what is given; grey: what is open.
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
    # A circle around a long name is large and nearly empty, so long names have a frame, doubled if they accept.
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
    """Return how to draw a box. A marked box keeps its colours and has a strong border, visible without colour."""
    look = _LOOKS[kind]
    if tone == "marked":
        return replace(look, fill=_MARK if kind == "point" else look.fill, border=_MARK, pen=2.6)
    if tone == "faded":
        fill, border, font = _FADED
        return replace(look, fill=border if kind == "point" else fill, border=border, font=font, pen=1)
    return look


def line_of(tone: Tone) -> tuple[str, float]:
    """Return the colour and the width of an arrow."""
    return {"plain": (_LINE_COLOUR, 1.0), "marked": (_MARK, 2.2), "faded": (_FADED_LINE, 1.0)}[tone]


def plate_of(tone: Tone) -> tuple[str, str]:
    """Return the fill and the font colour of the plate beside an arrow."""
    return {"plain": (_GREY[0], _GREY[2]), "marked": ("#FCE7D6", "#5C2803"), "faded": (_FADED[0], _FADED[2])}[tone]


__all__ = ["Arrow", "Box", "BoxKind", "Direction", "Picture", "Tone", "printable"]

_FONT = "Helvetica,Arial,sans-serif"
_NO_BREAK_SPACE = "\u00a0"
#: Additional Graphviz attributes of some kinds. A diamond leaves enough room around its text without a margin.
_MORE: dict[BoxKind, str] = {"point": ", width=0.12, height=0.12", "decision": ', margin="0.01,0.01"'}
#: The resolution of a PNG picture, in dots per inch.
_RESOLUTION = 110

# Characters that XML cannot contain or that control a terminal: control characters, surrogates, two non-characters.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Mermaid reads labels as Markdown with entities of its own: each character with a special meaning becomes a number.
# Commas, and hyphens or underscores inside words, stay. "ﬂ" and "¶" mark Mermaid's entities internally.
_MERMAID = re.compile(r"(?!(?<=[^\W_])[-_](?=[^\W_]))[!-+\--/:-@\[-`{-~ﬂ¶]")
_SVG_NOISE = re.compile(r'<!--.*?-->\s*|<title>.*?</title>\s*|(?<=[\w"]) id="[^"]*"', re.DOTALL)


def printable(text: str) -> str:
    """Return ``text`` with line breaks and tabs as spaces and control characters as visible signs."""
    return _UNPRINTABLE.sub(
        lambda match: chr(0x2400 + ord(match[0])) if match[0] < " " else "\ufffd",
        " ".join(text.splitlines()).replace("\t", " "),
    )


#: The maximum width of a line in a picture, in characters.
WIDTH = 52


def shorten(text: str, width: int = WIDTH) -> str:
    """Return ``text`` on one line, truncated to ``width`` characters."""
    text = printable(text)
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def wrap_text(text: str, width: int) -> str:
    """Wrap ``text`` at ``width`` characters, without breaking words and with its line breaks kept."""
    lines = [printable(line) for line in text.splitlines()]
    return "\n".join(
        row
        for line in lines
        for row in textwrap.wrap(line, width, break_on_hyphens=False, break_long_words=False) or [""]
    )


def cut_lines(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """At most ``most`` lines, and one with the number of those left out (a single one is not worth that)."""
    if len(lines) <= most + 1:
        return tuple(lines)
    return (*lines[:most], f"… and {len(lines) - most} more")


def number_text(numbers: Iterable[int], text: str) -> str:
    """Prefix ``text`` with the numbers of its steps, abbreviated if there are many."""
    labels = [*map(str, dict.fromkeys(numbers))]
    if len(labels) > 5:
        labels = [*labels[:3], "…", labels[-1]]
    return f"{', '.join(labels)}: {text}" if labels and text else ", ".join(labels) or text


def _split_rows(text: str) -> list[str]:
    return [printable(line) for line in text.splitlines()]


@dataclass(frozen=True, slots=True)
class Box:
    """A node of a picture.

    Attributes:
        id: the identifier in the picture, never displayed.
        label: the text; may have several lines.
        kind: what the box represents, which determines shape and colour.
        details: additional lines in smaller type below the label.
        tone: whether the box is marked or faded, in a picture with something highlighted.
        strong: the indices, from 0, of the details to emphasize in a marked box; the others are faded.
    """

    id: str
    label: str
    kind: BoxKind
    details: tuple[str, ...] = ()
    tone: Tone = "plain"
    strong: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge of a picture, from the box ``source`` to the box ``target``, given by their ids.

    The greater the ``weight``, the straighter and shorter Graphviz draws it.
    """

    source: str
    target: str
    label: str = ""
    style: Literal["solid", "dashed"] = "solid"
    tone: Tone = "plain"
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and arrows between them.

    Args:
        nodes: the boxes; their ids must be distinct.
        edges: the arrows between the boxes.
        direction: ``LR`` if arrows run mostly to the right, ``TB`` if mostly downwards.
        title: a line displayed above the picture.

    Raises:
        ValueError: two boxes have the same id, or an arrow leads from or to a box that does not exist.
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
        # Ids may be any text, so the boxes are numbered: no identifier can then be read as a keyword of the language.
        return {box.id: f"n{number}" for number, box in enumerate(self.nodes)}

    def to_mermaid(self) -> str:
        """Return the picture as a Mermaid flowchart."""
        names = self._name_boxes()
        lines = []
        if self.title:
            # JSON strings are valid YAML, and characters that Mermaid might read as markup become \uXXXX.
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
        """Return the picture in Graphviz' language."""
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
            extra = _MORE.get(box.kind, "") + (f", peripheries={look.borders}" if look.borders > 1 else "")
            lines.append(
                f"    {names[box.id]} [label={_write_caption(box)}, shape={look.shape}, "
                f'style="{look.style}", fillcolor="{look.fill}", color="{look.border}", fontcolor="{look.font}", '
                f"penwidth={look.pen:g}{extra}]"
            )
        # Draw loops last: they hardly move, and other arrows are not drawn over their labels.
        for arrow in sorted(self.edges, key=lambda arrow: arrow.source == arrow.target):
            attributes = [f"label={_write_plate(arrow.label, arrow.tone)}"] if arrow.label else []
            attributes += ["style=dashed"] if arrow.style == "dashed" else []
            attributes += [f"weight={arrow.weight}"] if arrow.weight > 1 else []
            if arrow.tone != "plain":
                colour, pen = line_of(arrow.tone)
                attributes.append(f'color="{colour}", penwidth={pen:g}')
            suffix = f" [{', '.join(attributes)}]" if attributes else ""
            lines.append(f"    {names[arrow.source]} -> {names[arrow.target]}{suffix}")
        return "\n".join([*lines, "}"]) + "\n"

    def to_svg(self, *, timeout: float = 60) -> str:
        """Return the picture as SVG, laid out by Graphviz.

        Args:
            timeout: the time limit of Graphviz, in seconds.

        Raises:
            MissingDependency: the program ``dot`` is not installed.
            FormalLLMError: Graphviz took too long or failed.
        """
        svg = self._laid_out("SVG", timeout, "-Tsvg").decode()
        # Remove the prologue (SVG is often pasted into HTML), comments (they name Graphviz' version), tooltips, which
        # contain internal names, and ids (those of two pictures on one page would clash).
        return _SVG_NOISE.sub("", svg[svg.index("<svg") :])

    def to_png(self, *, timeout: float = 60) -> bytes:
        """Return the picture as PNG on white, laid out by Graphviz; arguments and errors as in :meth:`to_svg`."""
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
    # Graphviz rejects empty lines and strips outer spaces: a no-break space represents an empty line.
    # It expands \N, \G and the like even in HTML-like labels, unless the backslash is doubled.
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
    """Return text for an arrow or the title on a light plate, since the page behind it may be dark."""
    fill, font = plate_of(tone)
    rows = _split_rows(text) or [""]
    # The reader's font may be wider than the one that Graphviz measured with: the longest line gets some room.
    longest = max(range(len(rows)), key=lambda n: len(rows[n]))
    rows[longest] += _NO_BREAK_SPACE * (len(rows[longest]) // 20)
    return (
        f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="5"><TR>'
        f'<TD BGCOLOR="{fill}" ALIGN="LEFT" BALIGN="LEFT"><FONT COLOR="{font}">'
        f"{_write_markup(rows).removesuffix('<BR/>')}</FONT></TD></TR></TABLE>>"
    )
