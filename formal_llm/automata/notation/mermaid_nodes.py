"""The part after the name of a node in a Mermaid flowchart: its text in brackets, or its attributes.

A text is bare, in double quotes, or a Markdown string (``"`...`"``). ``<br/>`` ends a line; ``#quot;`` and ``#35;`` are
signs that could not be written otherwise. Pure formatting (bold, icons) is left out.
"""

from __future__ import annotations

import re
from html import unescape
from typing import NoReturn

from formal_llm.automata.models.flowgraph import PLACEHOLDER, SHAPES, normalize_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import did_you_mean

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:b|i|u|s|em|strong|small|big|sub|sup|span|code|font|center|p|div)\b[^<>]*>", re.IGNORECASE)
_ICON = re.compile(r"\bfa[a-z]?:fa-[\w-]+")
_ENTITY = re.compile(r"#(\d{1,7});|[#&](#?\w+);")
# Emphasis ends nearby: searching the whole text from each star would take too long.
_EMPHASIS = (
    re.compile(r"(\*\*|__)(?=\S)(.{1,500}?)(?<=\S)\1"),
    re.compile(r"(?<!\w)([*_])(?=\S)(.{1,500}?)(?<=\S)\1(?!\w)"),
)
_WRITTEN = re.compile(r'["#<>&`]|[^\S ]|[\x00-\x1f\x7f-\x9f\ud800-\udfff]')
#: Text that Mermaid would read as a list, at the beginning of a line, and as an icon.
_LIST = re.compile(r"^(\d+)\.(?= )|^([-+*])(?= )")
_ICON_COLON = re.compile(r":(?=fa-)")

#: The shapes with brackets: by opening bracket, the closing bracket and the name of each shape.
BRACKETS: dict[str, tuple[tuple[str, str], ...]] = {
    "(((": ((")))", "dbl-circ"),),
    "((": (("))", "circle"),),
    "([": (("])", "stadium"),),
    "(-": (("-)", "ellipse"),),
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
#: The shapes of comments: nodes that are drawn but are not part of the process.
COMMENTS = ("brace", "brace-l", "brace-r", "braces", "comment")


def read_text(written: str, *, markdown: bool = False) -> str:
    """Decode a text as it is written, without its quotes if it has any."""
    text = _ICON.sub(" ", _TAG.sub("", _BREAK.sub("\n", written)))
    if markdown:
        for emphasis in _EMPHASIS:
            text = emphasis.sub(r"\2", text)
    return normalize_text(_ENTITY.sub(_unescape_sign, text))


def _unescape_sign(match: re.Match[str]) -> str:
    if match[1] is not None:
        return chr(int(match[1])) if int(match[1]) < 0x110000 else match[0]
    sign = unescape(f"&{match[2]};")
    return match[0] if sign == f"&{match[2]};" else sign


def write_text(text: str) -> str:
    """Write ``text`` in double quotes; :func:`read_text` decodes what is between them."""
    lines = [_WRITTEN.sub(lambda match: f"#{ord(match[0])};", line) for line in text.split("\n")]
    lines = [_LIST.sub(lambda m: f"{m[1]}#46;" if m[1] else f"#{ord(m[2])};", line) for line in lines]
    return f'"{_ICON_COLON.sub("#58;", "<br/>".join(lines))}"'


SPACE = re.compile(r"\s*")
QUOTED = re.compile(r'\s*"(`?)([^"]*?)(\1)"\s*')
_ARROW_INSIDE = re.compile(r"\n[^\n]*(?:--|==|-\.)")
_PAIR = re.compile(
    r'[\s,]*(?P<key>[\w-]+)[ \t]*:[ \t]*(?:"(?P<double>[^"]*)"|\'(?P<single>[^\']*)\'|(?P<bare>[^,\n}"\'|]++))'
    r"\s*(?=[,\n}\w])"
)
#: A property that may precede the text in square brackets; Mermaid ignores it.
_PROPERTY = re.compile(r"(?<=\[)\|[\w-]+:[\w-]+\|")
_STYLING = {"icon", "form", "pos", "h", "w", "img", "constraint", "animate", "animation", "curve", "view",
            "labelType"}  # fmt: skip


class NodeScanner:
    """Scans a text and reads the texts and shapes of nodes.

    Attributes:
        source, text: the text being scanned.
        at: the current offset.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.text = source.text
        self.at = 0

    def fail_here(
        self, problem: str, at: int | None = None, *, expected: tuple[str, ...] = (), suggestion: str | None = None
    ) -> NoReturn:
        """Raise an error for a problem here, or at another offset."""
        self.source.fail_at(
            problem, self.source.place_of(self.at if at is None else at), expected=expected, suggestion=suggestion
        )

    def take_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip and return the match at the current offset; None if there is none."""
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def is_ahead(self, *words: str) -> bool:
        """Return whether one of these words is next."""
        return self.text.startswith(words, self.at)

    def read_bracketed_text(self, opening: str) -> tuple[str, str]:
        """Read the text and shape of a node whose opening bracket is here."""
        start = self.at
        self.at += len(opening)
        closings = dict(BRACKETS[opening])
        expected = tuple(f"{closing!r}" for closing in closings)
        self.take_match(_PROPERTY)
        quoted = self.take_match(QUOTED)
        if quoted is None:
            if re.compile(r'\s*"').match(self.text, self.at):
                self.fail_here("this quote is not closed", self.text.index('"', self.at), expected=("'\"'",))
            begin = self.at
            while self.at < len(self.text) and not self.is_ahead(*closings):
                if self.take_match(PLACEHOLDER):
                    continue
                if self.text[self.at] in '[](){}|"':
                    self._text_ends_badly(opening, start, begin, expected)
                self.at += 1
            if self.at >= len(self.text) or _ARROW_INSIDE.search(self.text, begin, self.at):
                self.fail_here(f"the bracket {opening!r} is not closed", start, expected=expected)
        for closing, shape in closings.items():
            if self.is_ahead(closing):
                text = quoted[2] if quoted is not None else self.text[begin : self.at]
                self.at += len(closing)
                return read_text(text, markdown=bool(quoted and quoted[1])), shape
        return self.fail_here(f"the bracket {opening!r} is not closed behind its text", expected=expected)

    def _text_ends_badly(self, opening: str, start: int, begin: int, expected: tuple[str, ...]) -> NoReturn:
        sign = self.text[self.at]
        if re.search(r"\n|--|==|-\.", self.text[begin : self.at]):
            self.fail_here(f"the bracket {opening!r} is not closed", start, expected=expected)
        if sign in "])}":
            self.fail_here(f"the bracket {opening!r} is closed by {sign!r}", expected=expected)
        self.fail_here(f"{sign!r} in a text without quotes", suggestion='put the text in quotes: A["text"]')

    def read_attributes(self) -> tuple[str | None, str | None]:
        """Read ``@{ shape: name, label: "text" }``."""
        start = self.at
        self.at += 2
        text: str | None = None
        shape: str | None = None
        if self.text.find("}", self.at) < 0:
            self.fail_here("the bracket '@{' is not closed", start, expected=("'}'",))
        while not re.compile(r"[\s,]*\}").match(self.text, self.at):
            pair = self.take_match(_PAIR)
            if pair is None:
                self.take_match(SPACE)
                self.fail_here("this cannot be read", expected=("shape: name", 'label: "text"'))
            value = pair["double"] or pair["single"] or (pair["bare"] or "").strip()
            if pair["key"] == "label":
                markdown = len(value) > 1 and value[0] == value[-1] == "`"
                text = read_text(value.strip("`") if markdown else value, markdown=markdown)
            elif pair["key"] == "shape":
                shape = self._read_shape(value, pair.end("key"))
            elif pair["key"] not in _STYLING:
                self.fail_here(f"unknown attribute {pair['key']}", pair.start("key"), expected=("shape", "label"))
        self.at = self.text.index("}", self.at) + 1
        return text, shape or (None if text is None else "rect")

    def _read_shape(self, name: str, at: int) -> str:
        at = self.text.index(name, at) if name else at
        if name in COMMENTS:
            return "comment"
        if name not in SHAPES:
            near = did_you_mean(name, SHAPES)
            self.fail_here(f"unknown shape {name}", at, suggestion=f"did you mean {near}?" if near else None)
        return SHAPES[name]
