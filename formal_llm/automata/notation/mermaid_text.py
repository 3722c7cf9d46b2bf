"""Texts and shapes of Mermaid flowcharts: what is written between brackets and bars, and what it says.

A text is written bare, in double quotes, or as a Markdown string (``"`...`"``). ``<br/>`` ends a line, ``#quot;`` and
``#35;`` are signs that could not be written otherwise. What only makes it look different (bold, icons) is left out.
"""

from __future__ import annotations

import re
from html import unescape

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:b|i|u|s|em|strong|small|big|sub|sup|span|code|font|center|p|div)\b[^<>]*>", re.IGNORECASE)
_ICON = re.compile(r"\bfa[a-z]?:fa-[\w-]+")
_ENTITY = re.compile(r"#(\d{1,7});|[#&](#?\w+);")
_EMPHASIS = (re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1"), re.compile(r"(?<!\w)([*_])(?=\S)(.+?)(?<=\S)\1(?!\w)"))
_WRITTEN = re.compile(r'["#<>&`]|[^\S ]|[\x00-\x1f\x7f-\x9f\ud800-\udfff]')
#: What Mermaid would read as a list, at the beginning of a line, and an icon.
_LIST = re.compile(r"^(\d+)\.(?= )|^([-+*])(?= )")
_ICON_COLON = re.compile(r":(?=fa-)")

#: A place in a text that a task fills in.
PLACEHOLDER = re.compile(r"\{(\w+)\}")

#: The shapes that have brackets: their name and the bracket that closes them, by the bracket that opens them.
BRACKETS: dict[str, tuple[tuple[str, str], ...]] = {
    "(((": ((")))", "dbl-circ"),),
    "((": (("))", "circle"),),
    "([": (("])", "stadium"),),
    "(": ((")", "rounded"),),
    "[[": (("]]", "fr-rect"),),
    "[(": ((")]", "cyl"),),
    "[/": (("/]", "lean-r"), ("\\]", "trap-b")),
    "[\\": (("\\]", "lean-l"), ("/]", "trap-t")),
    "[": (("]", "rect"),),
    "{{": (("}}", "hex"),),
    "{": (("}", "diam"),),
    ">": (("]", "odd"),),
}
#: The shapes of ``id@{ shape: name }``: groups of names for one shape, the first of which is the one used here.
_NAMES = """
rect proc process rectangle | rounded event | stadium pill terminal | fr-rect framed-rectangle subproc subprocess
subroutine | cyl cylinder database db | circle circ | odd | diam decision diamond question | hex hexagon prepare |
lean-r in-out lean-right | lean-l lean-left out-in | trap-b priority trapezoid trapezoid-bottom |
trap-t inv-trapezoid manual trapezoid-top | dbl-circ double-circle | sm-circ small-circle start |
fr-circ framed-circle stop | f-circ filled-circle junction | cross-circ crossed-circle summary |
notch-rect card notched-rectangle | bang | cloud | hourglass collate | bolt com-link lightning-bolt | delay
half-rounded-rectangle | h-cyl das horizontal-cylinder | lin-cyl disk lined-cylinder | curv-trap curved-trapezoid
display | div-rect div-proc divided-process divided-rectangle | doc document | tri extract triangle | win-pane
internal-storage window-pane | lin-doc lined-document | lin-rect lin-proc lined-process lined-rectangle shaded-process |
notch-pent loop-limit notched-pentagon | flip-tri flipped-triangle manual-file | sl-rect manual-input sloped-rectangle |
docs documents st-doc stacked-document | st-rect processes procs stacked-rectangle | flag paper-tape |
bow-rect bow-tie-rectangle stored-data | tag-doc tagged-document | tag-rect tag-proc tagged-process tagged-rectangle |
text
"""
#: Every name of a shape, with the name of that shape used here.
SHAPES = {name: group.split()[0] for group in _NAMES.split("|") for name in group.split()}
#: Shapes that mean something which a chart of decisions does not have.
REFUSED_SHAPES = {
    **dict.fromkeys(("fork", "join"), "branches that run at the same time are not covered"),
    **dict.fromkeys(("brace", "brace-l", "brace-r", "braces", "comment"), "comments are not covered; write %% comment"),
}


def plain(text: str) -> str:
    """A text as it is compared: every line without blanks around it and with single blanks in it."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join(lines).strip("\n")


def read_text(written: str, *, markdown: bool = False) -> str:
    """What a text says that is written like this (between its quotes, if it has some)."""
    text = _ICON.sub(" ", _TAG.sub("", _BREAK.sub("\n", written)))
    if markdown:
        for emphasis in _EMPHASIS:
            text = emphasis.sub(r"\2", text)
    return plain(_ENTITY.sub(_sign, text))


def _sign(match: re.Match[str]) -> str:
    if match[1] is not None:
        return chr(int(match[1])) if int(match[1]) < 0x110000 else match[0]
    sign = unescape(f"&{match[2]};")
    return match[0] if sign == f"&{match[2]};" else sign


def write_text(text: str) -> str:
    """``text`` in double quotes; :func:`read_text` of what is between them gives it back."""
    lines = [_WRITTEN.sub(lambda match: f"#{ord(match[0])};", line) for line in text.split("\n")]
    lines = [_LIST.sub(lambda m: f"{m[1]}#46;" if m[1] else f"#{ord(m[2])};", line) for line in lines]
    return f'"{_ICON_COLON.sub("#58;", "<br/>".join(lines))}"'
