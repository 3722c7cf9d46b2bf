"""Reading Mermaid flowcharts: from a text to nodes and arrows, or to an error that names what was expected and where.

The reader covers the parts used for decisions: nodes of eight shapes, arrows with and without text, chains, ``&``,
subgraphs (which are drawing only), and styles (which are ignored). Everything else is refused by name. The scanner is
written by hand, since the meaning of a sign depends on what precedes it: ``o`` is a name, or the head of an arrow.

A text is bare, in double quotes, or a Markdown string (``"`...`"``). ``<br/>`` ends a line; ``#quot;`` and ``#35;`` are
signs that could not be written otherwise. Pure formatting (bold, icons) is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple, NoReturn

from formal_llm.authored.files import parse_json
from formal_llm.automata.models.flowgraph import ID, PLACEHOLDER, RESERVED, FlowEdge, FlowNode, normalize_text
from formal_llm.automata.notation.source import Place, PlacedWord, SourceText

#: The shapes by their opening bracket, each with the closing one.
BRACKETS = {
    "((": ("))", "circle"),
    "([": ("])", "stadium"),
    "(": (")", "rounded"),
    "[[": ("]]", "subroutine"),
    "[(": (")]", "cylinder"),
    "[": ("]", "rect"),
    "{{": ("}}", "hexagon"),
    "{": ("}", "diamond"),
}
_SHAPES = "A[text] A(text) A([text]) A[[text]] A[(text)] A((text)) A{text} A{{text}}"
#: Brackets of Mermaid's other shapes.
_OTHER_BRACKETS = ("(((", "(-", "[/", "[\\", ">")
DIRECTIONS = {"TD": "TB", "TB": "TB", "BT": "BT", "LR": "LR", "RL": "RL", ">": "LR", "<": "RL", "^": "BT", "v": "TB"}
_BLANKS = re.compile(r"[ \t\f]*")
_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r'\s*"(`?)([^"]*?)(\1)"\s*')
_GAP = re.compile(r"(?:\s|;|%%\{(?:(?!%%).)*\}%%|%%[^\n]*)*", re.DOTALL)
_REST = re.compile(r'(?:"[^"\n]*"|[^;\n])*')
#: Texts and the arguments of a callback may continue on the next line.
_CLICK = re.compile(r'(?:"[^"]*"|\([^)]*\)|[^;\n"(])*')
_HEADER = re.compile(r"(flowchart-elk|flowchart|graph)(?![\w-])[ \t]*([^\s;]*)")
_IGNORED = re.compile(
    r"(?:(?:classDef|class|style|linkStyle|click|accTitle)(?=[ \t:])|accDescr(?=[ \t:]|\s*\{))[ \t]*(?![-=.~]{2})"
)
_STYLED = re.compile(r"style[ \t]+([\w,-]+)")
_GROUP = re.compile(r'[ \t]*("?)(?P<name>[^"\[;\n]*?)\1[ \t]*(?:\[(?P<text>.*)\][ \t]*)?$')
_CLASS = re.compile(r":::(\w[\w-]*(?:,\w[\w-]*)*)")
_EDGE_ID = re.compile(r"[\w-]+@(?=[-=<~]|[xo][-=])")
_TAIL = r"(?P<tail>[<xo](?=--|==|-\.))?"
_LINK = re.compile(_TAIL + r"(?:--+(?P<normal>[-xo>])|==+(?P<thick>[=xo>])|-\.+-(?P<dotted>[xo>]?))")
_OPEN = re.compile(_TAIL + r"(?P<line>--|==|-\.)")
_CLOSE = {line: re.compile(end) for line, end in {"--": "--+[-xo>]", "==": "==+[=xo>]", "-.": r"\.+-[xo>]?"}.items()}
_WRONG_ARROW = re.compile(r"-->>|<->|->>?|=>|[—–―][—–―-]*>?|→|⇒|⟶|-(?![-.])|=(?!=)|<-")
_OTHER_DIAGRAM = re.compile(
    r"(sequenceDiagram|classDiagram|stateDiagram|erDiagram|gantt|pie|journey|mindmap|timeline|gitGraph|quadrantChart|"
    r"requirementDiagram|C4\w+|sankey|xychart|block|packet|kanban|architecture|swimlane|radar|treemap|zenuml)(?=[\s-]|$)"
)
#: By a sign that cannot stand where it does what was probably meant.
_MEANT = {
    **dict.fromkeys("[({", "write the bracket directly behind the name of the node: A[text]"),
    **dict.fromkeys("])}", "there is no bracket that it closes"),
    ":": "the text of an arrow is written in it: A -->|text| B",
    "|": "the text of an arrow stands directly behind it: A -->|text| B",
    "`": "leave out the lines with ``` around the flowchart",
}
_ARROW_INSIDE = re.compile(r"\n[^\n]*(?:--|==|-\.)")
#: A Mermaid comment that holds a directive, ``%% %limit 2 retry``, or seems to be meant as one.
_COMMENT = re.compile(r"%%(?!\{)[ \t]*(?:(%?)([^\W\d]\w*)[ \t]*)?([^\n]*)")
_WORD = re.compile(r"[^\s,]+")

# -- texts ------------------------------------------------------------------------------------------------------------

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


def read_text(written: str, *, markdown: bool = False) -> str:
    """Decode a text as it is written, without its quotes if it has any."""
    text = _ICON.sub(" ", _TAG.sub("", _BREAK.sub("\n", written)))
    if markdown:
        for emphasis in _EMPHASIS:
            text = emphasis.sub(r"\2", text)
    return normalize_text(_ENTITY.sub(_unescape_sign, text))


def _decode(quoted: re.Match[str] | None, bare: str) -> str:
    """Decode a text that stands in quotes, or bare where it does not."""
    return read_text(bare) if quoted is None else read_text(quoted[2], markdown=bool(quoted[1]))


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


# -- the title block --------------------------------------------------------------------------------------------------

_BLOCK = re.compile(r"\s*---[ \t]*\n(.*?)\n?---[ \t]*(?=\n|$)", re.DOTALL)
_TITLE = re.compile(r"^title[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_ENTRY = re.compile(r"^([^\W\d][\w-]*)[ \t]*:", re.MULTILINE)
#: The keys that Mermaid defines there.
_KEYS = ("title", "config", "displayMode")


def read_title(source: SourceText) -> tuple[str, int]:
    """Return the title of a chart, empty if it has none, and the offset where the block ends.

    Raises:
        NotationError: the block has an unknown key.
    """
    block = _BLOCK.match(source.text)
    if block is None:
        return "", 0
    for entry in _ENTRY.finditer(block[1]):
        if entry[1] not in _KEYS:
            hint = "limits are written as comments: %% %limit 2 NAME" if entry[1] in ("limit", "limits") else None
            place, problem = (
                source.place_of(block.start(1) + entry.start()),
                f"unknown key in the title block: {entry[1]}",
            )
            source.fail_near(problem, place, entry[1], _KEYS, hint, expected=_KEYS)
    title = _TITLE.search(block[1])
    return normalize_text(_read_yaml_scalar(title[1])) if title else "", block.end()


def _read_yaml_scalar(value: str) -> str:
    if value.startswith('"'):
        try:
            return str(parse_json(value))
        except ValueError:
            return value.strip('"')
    return value[1:-1].replace("''", "'") if len(value) > 1 and value[0] == value[-1] == "'" else value


# -- charts -----------------------------------------------------------------------------------------------------------


class DirectiveLine(NamedTuple):
    """A comment ``%% %directive word ...``; the place of the directive is that of the word after the ``%``.

    What stands behind ``%rule`` is one word. ``marked`` is False where the ``%`` is missing, so it is a comment.
    """

    directive: PlacedWord
    words: tuple[PlacedWord, ...]
    marked: bool


@dataclass
class ParsedChart:
    """The content of a chart, in order of appearance, with the places of its nodes and arrows."""

    direction: str = "TB"
    title: str = ""
    nodes: dict[str, FlowNode] = field(default_factory=dict)
    edges: list[FlowEdge] = field(default_factory=list)
    node_places: dict[str, Place] = field(default_factory=dict)
    edge_places: list[Place] = field(default_factory=list)
    directives: list[DirectiveLine] = field(default_factory=list)


def parse(source: SourceText) -> ParsedChart:
    """Parse the nodes and arrows of a Mermaid flowchart.

    Raises:
        NotationError: the text is not a flowchart, or uses parts that are not covered; with the place.
    """
    return _ChartParser(source).parse_chart()


class _ChartParser:
    def __init__(self, source: SourceText) -> None:
        self.source, self.text, self.at = source, source.text, 0
        self.drawing = ParsedChart()
        #: The nodes that have no brackets yet.
        self.bare: set[str] = set()
        #: The offsets of the subgraphs that are open, and of all that have a name.
        self.open: list[int] = []
        self.subgraphs: dict[str, int] = {}
        self.styled: dict[str, int] = {}

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

    # -- statements ---------------------------------------------------------------------------------------------

    def parse_chart(self) -> ParsedChart:
        self.drawing.title, self.at = read_title(self.source)
        self._skip_gap()
        self._read_header()
        while self.at < len(self.text):
            self._read_statement()
            self.take_match(_BLANKS)
            if self.at < len(self.text) and not self.is_ahead("\n", ";", "%%"):
                self._refuse_text()
            self._skip_gap()
        if self.open:
            self.fail_here("this subgraph does not end", self.open[-1], expected=("a line with 'end'",))
        drawing = self.drawing
        for name, at in self.subgraphs.items():
            if name in drawing.nodes:
                line = self.source.place_of(at).line
                self.source.fail_at(
                    f"{name} is the name of the subgraph in line {line}: a subgraph is drawing only, and no node",
                    drawing.node_places[name],
                    suggestion="draw the arrow to or from a node inside of it, or give the node another name",
                )
        for name, at in self.styled.items():
            if name not in drawing.nodes and name not in self.subgraphs:
                problem = f"the style of {name}, which is in no other line; Mermaid draws a box of its own for it"
                self.source.fail_near(problem, self.source.place_of(at), name, drawing.nodes, "leave the line out")
        return drawing

    def _read_header(self) -> None:
        start = self.at
        header = self.take_match(_HEADER)
        if header is None:
            if start == len(self.text):
                self.source.fail_at("the flowchart is empty", None, suggestion="write: flowchart TD, then A --> B")
            if self.is_ahead("---"):
                self.fail_here("the title block at the beginning does not end", expected=("a second line of ---",))
            if self.is_ahead("```"):
                self.fail_here(
                    "this is a block of Markdown", suggestion="leave out the lines with ``` around the flowchart"
                )
            if other := _OTHER_DIAGRAM.match(self.text, start):
                self.fail_here(f"this is a Mermaid diagram of another kind ({other[1]})", expected=("flowchart TD",))
            word = re.split(r"[\s;]", self.text[start:], maxsplit=1)[0]
            self.source.fail_near("the flowchart does not begin with its header", self.source.place_of(start), word,
                                  ("flowchart", "graph"), expected=("flowchart TD", "flowchart LR"))  # fmt: skip
        if header[2] and not header[2].startswith("%%"):
            self.drawing.direction = self._read_direction(header[2], header.start(2))
        elif header[2]:
            self.at = header.start(2)
        self.take_match(_BLANKS)
        if self.at < len(self.text) and not self.is_ahead("\n", ";", "%%"):
            self.fail_here("a new line is missing behind the header")
        self._skip_gap()

    def _skip_gap(self) -> None:
        """Skip whitespace, ends of statements and comments; directives in comments are recorded."""
        start = self.at
        self.take_match(_GAP)
        if "%" not in self.text[start : self.at]:
            return
        for found in _COMMENT.finditer(self.text, start, self.at):
            if found[2]:
                placed = self.source.place_of
                rest = [PlacedWord(word[0], placed(word.start())) for word in _WORD.finditer(self.text, *found.span(3))]
                if found[2] == "rule":
                    rest = [PlacedWord(found[3], placed(found.start(3)))]
                directive = PlacedWord(f"%{found[2]}", placed(found.start(2)))
                self.drawing.directives.append(DirectiveLine(directive, tuple(rest), bool(found[1])))

    def _read_direction(self, word: str, at: int) -> str:
        if word not in DIRECTIONS:
            self.fail_here(f"unknown direction {word}", at, expected=("TD", "TB", "LR", "RL", "BT"))
        return DIRECTIONS[word]

    def _read_statement(self) -> None:
        start = self.at
        word = ID.match(self.text, start)
        name = word[0] if word else ""
        if name == "subgraph":
            self.at += len(name)
            self._read_subgraph(start)
        elif name == "end" and not self.text[start + 3 : start + 4].strip(" \t\n;%"):
            if not self.open:
                self.fail_here(
                    "this 'end' ends no subgraph", suggestion="a node cannot be called end; write End, or stop"
                )
            self.open.pop()
            self.at += len(name)
        elif name == "direction":
            self.at += len(name)
            self.take_match(_BLANKS)
            found = re.compile(r"[^\s;]*").match(self.text, self.at)
            self._read_direction(found[0] if found else "", self.at)
            self.take_match(_REST)
        elif self.take_match(_IGNORED):
            styled = _STYLED.match(self.text, start) if name == "style" else None
            self.styled |= {styled[1]: start} if styled else {}
            block = re.compile(r"\s*\{[^}]*\}").match(self.text, self.at) if name == "accDescr" else None
            self.at = block.end() if block else self.at
            self.take_match(_CLICK if name == "click" else _REST)
        else:
            self._read_chain()

    def _read_subgraph(self, start: int) -> None:
        title = self.take_match(_REST)
        named = _GROUP.match(title[0]) if title else None
        name = named["name"].strip() if named else ""
        if ID.fullmatch(name):
            self.subgraphs.setdefault(name, start)
        self.open.append(start)

    def _read_chain(self) -> None:
        left = self._read_node_group(None)
        while True:
            start = self.at
            self.take_match(_SPACE)
            at = self.at
            if edge_id := self.take_match(_EDGE_ID):
                self.fail_here("names of arrows are not read", at, suggestion=f"leave {edge_id[0]} out")
            if self.is_ahead("~~~"):
                self.take_match(re.compile("~+"))  # an invisible link only affects the layout
                self.take_match(_SPACE)
                left = self._read_node_group(at)
                continue
            link = self._read_link()
            if link is None:
                self.at = start
                return
            text, direction = link
            self.take_match(_SPACE)
            right = self._read_node_group(at)
            for one, other in ((left, right), (right, left))[direction == "back" : 1 + (direction != "")]:
                self.drawing.edges.append(FlowEdge(one, other, text))
                self.drawing.edge_places.append(self.source.place_of(at))
            left = right

    # -- links --------------------------------------------------------------------------------------------------

    def _read_link(self) -> tuple[str, str] | None:
        """Read a link: its text, and ``back`` if it points backwards or ``both`` if both ways; or return None."""
        start = self.at
        link = self.take_match(_LINK)
        if link is not None:
            head = link["normal"] or link["thick"] or link["dotted"] or "-"
            ends = self._read_arrow_ends(start, link["tail"], head)
            self.take_match(_BLANKS)
            return (self._between_bars() if self.is_ahead("|") else ""), ends
        opened = self.take_match(_OPEN)
        if opened is None:
            return None
        quoted = self.take_match(_QUOTED)
        close = _CLOSE[opened["line"]].search(self.text, self.at)
        if close is None or "\n" in self.text[self.at : close.start()]:
            if opened["tail"] == "<":
                self.fail_here(f"the arrow {opened[0]} points backwards and is too short for Mermaid", start,
                          suggestion="write: B --> A")  # fmt: skip
            self.at = start
            wrong = _WRONG_ARROW.match(self.text, start)
            self.fail_here("this arrow does not end", expected=("-->", "-.->", "-->|text|", "-- text -->"),
                      suggestion="write '-->'" if wrong else None)  # fmt: skip
        if quoted is not None and close.start() != self.at:
            self.fail_here("the text of the arrow goes on behind its quotes", expected=("-->",))
        text = _decode(quoted, self.text[self.at : close.start()])
        self.at = close.end()
        return text, self._read_arrow_ends(start, opened["tail"], close[0][-1])

    def _read_arrow_ends(self, start: int, tail: str | None, head: str) -> str:
        """Return the direction of an arrow; circles and crosses at its ends have none."""
        if head in "xo" and re.match(r"\w", self.text[self.at : self.at + 1]):
            self.fail_here(f"{head!r} may be the head of the arrow or the first letter of a word", start,
                      suggestion=f"put a blank before or behind the {head}")  # fmt: skip
        if tail != "<":
            return ""
        return "both" if head == ">" else "back"

    def _between_bars(self) -> str:
        start = self.at
        self.at += 1
        quoted = self.take_match(_QUOTED)
        end = re.compile(r"[^|\n]*").match(self.text, self.at)
        assert end is not None
        if self.text[end.end() : end.end() + 1] != "|":
            self.fail_here("the text of the arrow does not end", start, expected=("'|' behind it",))
        if quoted is not None and end[0].strip():
            self.fail_here("the text of the arrow goes on behind its quotes", expected=("'|'",))
        self.at = end.end() + 1
        return _decode(quoted, end[0])

    # -- nodes --------------------------------------------------------------------------------------------------

    def _read_node_group(self, arrow: int | None) -> list[str]:
        """Read nodes with ``&`` between them; ``arrow`` is the offset of the arrow before them."""
        names = [self._read_node(arrow)]
        while (more := re.compile(r"\s*&\s*").match(self.text, self.at)) is not None:
            self.at = more.end()
            names.append(self._read_node(arrow))
        return list(dict.fromkeys(names))

    def _read_node(self, arrow: int | None) -> str:
        start = self.at
        name = self.take_match(ID)
        if name is None:
            if arrow is not None and self.is_ahead(">"):
                self.at = arrow
                self._refuse_text()
            if arrow is not None and (start >= len(self.text) or self.is_ahead(";", "%%")):
                self.fail_here("this arrow leads nowhere: a node is missing behind it", arrow)
            if _LINK.match(self.text, start) or _OPEN.match(self.text, start):
                self.fail_here("a node is missing before this arrow", start)
            self._refuse_text()
        if name[0] in RESERVED:
            near = name[0].capitalize()
            self.fail_here(f"{name[0]!r} is a word of Mermaid and cannot be the name of a node", start,
                      suggestion=f"write {near}, or {near}[{name[0]}]")  # fmt: skip
        if self.is_ahead("@{"):
            self.fail_here("attributes @{...} are not read", suggestion=f"write the text and the shape as {_SHAPES}")
        opening = next((one for one in (*_OTHER_BRACKETS, *BRACKETS) if self.is_ahead(one)), None)
        if opening is None:
            new = FlowNode(name[0])
        else:
            text = self._read_bracketed_text(opening)
            new = FlowNode(name[0], text, BRACKETS[opening][1])
        self.take_match(_CLASS)
        self._add_node(new, opening is None, self.source.place_of(start))
        return name[0]

    def _add_node(self, new: FlowNode, bare: bool, place: Place) -> None:
        nodes, places = self.drawing.nodes, self.drawing.node_places
        old = nodes.get(new.id)
        if old is None or (new.id in self.bare and not bare):
            nodes[new.id], places[new.id] = new, place
            (self.bare.add if bare else self.bare.discard)(new.id)
        elif not bare and new != old:
            what = f"texts: {old.text!r} and {new.text!r}" if new.text != old.text else "shapes"
            self.source.fail_at(
                f"{new.id} has two {what}; the first is in line {places[new.id].line}",
                place,
                suggestion="give the second node a name of its own, or leave its text out",
            )

    def _read_bracketed_text(self, opening: str) -> str:
        """Read the text of a node whose opening bracket is here."""
        start = self.at
        if opening not in BRACKETS:
            self.fail_here(f"a node that begins with {opening!r} has a shape that is not read",
                           suggestion=f"the shapes are {_SHAPES}; put a text that begins so in quotes")  # fmt: skip
        closing = BRACKETS[opening][0]
        expected = (f"{closing!r}",)
        self.at += len(opening)
        quoted = self.take_match(_QUOTED)
        if quoted is None:
            if re.compile(r'\s*"').match(self.text, self.at):
                self.fail_here("this quote is not closed", self.text.index('"', self.at), expected=("'\"'",))
            begin = self.at
            while self.at < len(self.text) and not self.is_ahead(closing):
                if self.take_match(PLACEHOLDER):
                    continue
                if self.text[self.at] in '[](){}|"':
                    self._refuse_sign(opening, start, begin)
                self.at += 1
            if self.at >= len(self.text) or _ARROW_INSIDE.search(self.text, begin, self.at):
                self.fail_here(f"the bracket {opening!r} is not closed", start, expected=expected)
        if not self.is_ahead(closing):
            self.fail_here(f"the bracket {opening!r} is not closed behind its text", expected=expected)
        text = _decode(quoted, "" if quoted else self.text[begin : self.at])
        self.at += len(closing)
        return text

    def _refuse_sign(self, opening: str, start: int, begin: int) -> NoReturn:
        sign, expected = self.text[self.at], (f"{BRACKETS[opening][0]!r}",)
        if re.search(r"\n|--|==|-\.", self.text[begin : self.at]):
            self.fail_here(f"the bracket {opening!r} is not closed", start, expected=expected)
        if sign in "])}":
            self.fail_here(f"the bracket {opening!r} is closed by {sign!r}", expected=expected)
        self.fail_here(f"{sign!r} in a text without quotes", suggestion='put the text in quotes: A["text"]')

    # -- errors -------------------------------------------------------------------------------------------------

    def _refuse_text(self) -> NoReturn:
        """Raise an error that describes the text here, and what its author probably meant."""
        if wrong := _WRONG_ARROW.match(self.text, self.at):
            self.fail_here(f"{wrong[0]!r} is no arrow of a flowchart", suggestion="write '-->'")
        word = re.compile(r"[^\s;]+").match(self.text, self.at)
        suggestion = _MEANT.get(self.text[self.at : self.at + 1])
        if suggestion is None and ID.match(self.text, self.at):
            suggestion = "the name of a node is one word; put its text in brackets: A[text]"
        self.fail_here(f"unexpected {word[0] if word else 'end of the text'!r}",
                  expected=("an arrow such as -->", "the end of the line"), suggestion=suggestion)  # fmt: skip
