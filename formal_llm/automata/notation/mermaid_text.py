"""Texts and shapes of Mermaid flowcharts: what is written between brackets and bars, and what it says.

A text is written bare, in double quotes, or as a Markdown string (``"`...`"``). ``<br/>`` ends a line, ``#quot;`` and
``#35;`` are signs that could not be written otherwise. What only makes it look different (bold, icons) is left out.
"""

from __future__ import annotations

import re
from html import unescape

from formal_llm.automata.models.flowchart_shapes import plain

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:b|i|u|s|em|strong|small|big|sub|sup|span|code|font|center|p|div)\b[^<>]*>", re.IGNORECASE)
_ICON = re.compile(r"\bfa[a-z]?:fa-[\w-]+")
_ENTITY = re.compile(r"#(\d{1,7});|[#&](#?\w+);")
_EMPHASIS = (re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1"), re.compile(r"(?<!\w)([*_])(?=\S)(.+?)(?<=\S)\1(?!\w)"))
_WRITTEN = re.compile(r'["#<>&`]|[^\S ]|[\x00-\x1f\x7f-\x9f\ud800-\udfff]')
#: What Mermaid would read as a list, at the beginning of a line, and an icon.
_LIST = re.compile(r"^(\d+)\.(?= )|^([-+*])(?= )")
_ICON_COLON = re.compile(r":(?=fa-)")

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
#: Shapes that mean something which a chart of decisions does not have.
REFUSED_SHAPES = {
    **dict.fromkeys(("fork", "join"), "branches that run at the same time are not covered"),
    **dict.fromkeys(("brace", "brace-l", "brace-r", "braces", "comment"), "comments are not covered; write %% comment"),
}


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
