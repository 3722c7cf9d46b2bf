"""Reading Mermaid flowcharts: from a text to nodes and links, or to an error that names what was expected and where.

The reader covers the parts used for decisions: nodes of every shape, links with and without text, chains and groups,
subgraphs, and styles (which are ignored).
Everything else is refused by name. The meaning of subgraphs and groups is defined in
:mod:`formal_llm.automata.notation.mermaid_groups`. The scanner is written by hand, since the meaning of a sign depends
on what precedes it: ``o`` is a name, or the head of an arrow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from formal_llm.automata.models.flowgraph import ID, RESERVED
from formal_llm.automata.notation.chart_limits import LimitLine, lines_in
from formal_llm.automata.notation.mermaid_groups import Group, Link, Vertex
from formal_llm.automata.notation.mermaid_nodes import BRACKETS, QUOTED, SPACE, NodeScanner, read_text
from formal_llm.automata.notation.mermaid_title import read_title
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import did_you_mean

DIRECTIONS = {"TD": "TB", "TB": "TB", "BT": "BT", "LR": "LR", "RL": "RL", ">": "LR", "<": "RL", "^": "BT", "v": "TB"}
_BLANKS = re.compile(r"[ \t\f]*")
_GAP = re.compile(r"(?:\s|;|%%\{(?:(?!%%).)*\}%%|%%[^\n]*)*", re.DOTALL)
_REST = re.compile(r'(?:"[^"\n]*"|[^;\n])*')
#: Texts and the arguments of a callback may continue on the next line.
_CLICK = re.compile(r'(?:"[^"]*"|\([^)]*\)|[^;\n"(])*')
_HEADER = re.compile(r"(flowchart-elk|flowchart|graph)(?![\w-])[ \t]*([^\s;]*)")
_IGNORED = re.compile(
    r"(?:(?:classDef|class|style|linkStyle|click|accTitle)(?=[ \t:])|accDescr(?=[ \t:]|\s*\{))[ \t]*(?![-=.~]{2})"
)
#: The maximum number of arrows that one chain link may represent, with "&" between the nodes.
_MOST_ARROWS = 100_000
_STYLED = re.compile(r"style[ \t]+([\w,-]+)")
_GROUP = re.compile(r'[ \t]*("?)(?P<name>[^"\[;\n]*?)\1[ \t]*(?:\[(?P<text>.*)\][ \t]*)?$')
_CLASS = re.compile(r":::(\w[\w-]*(?:,\w[\w-]*)*)")
_EDGE_ID = re.compile(r"\w[\w-]*@(?=[-=<~]|[xo][-=])")
_TAIL = r"(?P<tail>[<xo](?=--|==|-\.))?"
_LINK = re.compile(_TAIL + r"(?:--+(?P<normal>[-xo>])|==+(?P<thick>[=xo>])|-\.+-(?P<dotted>[xo>]?))")
_OPEN = re.compile(_TAIL + r"(?P<line>--|==|-\.)")
_CLOSE = {line: re.compile(end) for line, end in {"--": "--+[-xo>]", "==": "==+[=xo>]", "-.": r"\.+-[xo>]?"}.items()}
_WRONG_ARROW = re.compile(r"-->>|<->|->>?|=>|[—–―][—–―-]*>?|→|⇒|⟶|-(?![-.])|=(?!=)|<-")
_OTHER_DIAGRAM = re.compile(
    r"(sequenceDiagram|classDiagram|stateDiagram|erDiagram|gantt|pie|journey|mindmap|timeline|gitGraph|quadrantChart|"
    r"requirementDiagram|C4\w+|sankey|xychart|block|packet|kanban|architecture|swimlane|radar|treemap|zenuml)(?=[\s-]|$)"
)


@dataclass
class ParsedChart:
    """The content of a chart: its nodes and links in order of appearance."""

    direction: str = "TB"
    title: str = ""
    vertices: dict[str, Vertex] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    limits: list[LimitLine] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)


def parse(source: SourceText) -> ParsedChart:
    """Parse the nodes and links of a Mermaid flowchart.

    Raises:
        NotationError: the text is not a flowchart, or uses parts that are not covered; with the place.
    """
    return _ChartParser(source).parse_chart()


class _ChartParser(NodeScanner):
    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self.drawing = ParsedChart()
        self.edge_ids: set[str] = set()
        self.open: list[tuple[str, Group]] = []
        self.owned: set[str] = set()
        self.styled: dict[str, int] = {}
        self.wide = 0

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
            self.fail_here("this subgraph does not end", self.open[-1][1].at, expected=("a line with 'end'",))
        for name, at in self.styled.items():
            if name not in self.drawing.vertices and name not in self.drawing.groups:
                near = did_you_mean(name, self.drawing.vertices)
                self.fail_here(
                    f"the style of {name}, which is in no other line; Mermaid draws a box of its own for it",
                    at,
                    suggestion=f"did you mean {near}?" if near else "leave the line out",
                )
        return self.drawing

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
            near = did_you_mean(word, ["flowchart", "graph"])
            self.fail_here(
                "the flowchart does not begin with its header",
                expected=("flowchart TD", "flowchart LR"),
                suggestion=f"did you mean {near}?" if near else None,
            )
        if header[2] and not header[2].startswith("%%"):
            self.drawing.direction = self._read_direction(header[2], header.start(2))
        elif header[2]:
            self.at = header.start(2)
        self.take_match(_BLANKS)
        if self.at < len(self.text) and not self.is_ahead("\n", ";", "%%"):
            self.fail_here("a new line is missing behind the header")
        self._skip_gap()

    def _skip_gap(self) -> None:
        """Skip whitespace, ends of statements and comments; limits in comments are recorded."""
        start = self.at
        self.take_match(_GAP)
        if "%" in self.text[start : self.at]:
            self.drawing.limits += lines_in(self.source, start, self.at)

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
            closed, group = self.open.pop()
            group.members = [one for one in group.mentions if one not in self.owned and one != closed]
            self.owned |= set(group.members)
            if self.open:
                self.open[-1][1].mentions[closed] = None
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
        name, text = (named["name"].strip(), named["text"]) if named else ("", None)
        text = name if text is None else text.strip('"` ')
        name = name if ID.fullmatch(name) and name not in self.drawing.groups else f"({start}"
        self.drawing.groups[name] = Group(read_text(text), start)
        self.open.append((name, self.drawing.groups[name]))

    def _read_chain(self) -> None:
        left = self._read_node_group(None)
        while True:
            start = self.at
            self.take_match(SPACE)
            if edge_id := self.take_match(_EDGE_ID):
                self.edge_ids.add(edge_id[0][:-1])
            at = self.at
            if self.is_ahead("~~~"):
                self.take_match(re.compile("~+"))  # an invisible link only affects the layout
                self.take_match(SPACE)
                left = self._read_node_group(at)
                continue
            link = self._read_link()
            if link is None:
                self.at = start
                return
            text, tail = link
            self.take_match(SPACE)
            right = self._read_node_group(at)
            place = self.source.place_of(at)
            if len(left) * len(right) > _MOST_ARROWS:
                self.fail_here(f"this stands for more than {_MOST_ARROWS:,} arrows", at)
            for one, others in ((left, right), (right, left))[tail == "back" : 1 + (tail != "")]:
                self.wide += len(others) > 1
                number = self.wide if len(others) > 1 else 0
                self.drawing.links += [Link(a, b, text, place, number) for a in one for b in others]
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
        quoted = self.take_match(QUOTED)
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
        text = quoted[2] if quoted is not None else self.text[self.at : close.start()]
        self.at = close.end()
        ends = self._read_arrow_ends(start, opened["tail"], close[0][-1])
        return read_text(text, markdown=bool(quoted and quoted[1])), ends

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
        quoted = self.take_match(QUOTED)
        end = re.compile(r"[^|\n]*").match(self.text, self.at)
        assert end is not None
        if self.text[end.end() : end.end() + 1] != "|":
            self.fail_here("the text of the arrow does not end", start, expected=("'|' behind it",))
        if quoted is not None and end[0].strip():
            self.fail_here("the text of the arrow goes on behind its quotes", expected=("'|'",))
        self.at = end.end() + 1
        return read_text(quoted[2] if quoted is not None else end[0], markdown=bool(quoted and quoted[1]))

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
        text: str | None = None
        shape: str | None = None
        if self.is_ahead("@{"):
            text, shape = self.read_attributes()
            if name[0] in self.edge_ids:
                return name[0]
        else:
            for opening in BRACKETS:
                if self.is_ahead(opening):
                    text, shape = self.read_bracketed_text(opening)
                    break
        self.take_match(_CLASS)
        self._add_node(Vertex(name[0], text, shape, self.source.place_of(start)))
        if self.open:
            self.open[-1][1].mentions[name[0]] = None
        return name[0]

    def _add_node(self, new: Vertex) -> None:
        old = self.drawing.vertices.get(new.id)
        if old is None or (old.text is None and old.shape is None):
            self.drawing.vertices[new.id] = new if old is None or new.shape is not None else old
        elif new.shape is not None and (new.text, new.shape) != (old.text, old.shape):
            what = f"texts: {old.text!r} and {new.text!r}" if new.text != old.text else "shapes"
            self.source.fail_at(
                f"{new.id} has two {what}; the first is in line {old.place.line}", new.place,
                suggestion="give the second node a name of its own, or leave its text out",
            )  # fmt: skip

    # -- errors -------------------------------------------------------------------------------------------------

    def _refuse_text(self) -> NoReturn:
        """Raise an error that describes the text here, and what its author probably meant."""
        if wrong := _WRONG_ARROW.match(self.text, self.at):
            self.fail_here(f"{wrong[0]!r} is no arrow of a flowchart", suggestion="write '-->'")
        word = re.compile(r"[^\s;]+").match(self.text, self.at)
        sign = self.text[self.at : self.at + 1]
        suggestion = None
        if sign in "[({" and sign:
            suggestion = "write the bracket directly behind the name of the node: A[text]"
        elif sign == ":":
            suggestion = "the text of an arrow is written in it: A -->|text| B"
        elif sign == "|":
            suggestion = "the text of an arrow stands directly behind it: A -->|text| B"
        elif sign in "])}" and sign:
            suggestion = "there is no bracket that it closes"
        elif sign == "`":
            suggestion = "leave out the lines with ``` around the flowchart"
        elif ID.match(self.text, self.at):
            suggestion = "the name of a node is one word; put its text in brackets: A[text]"
        self.fail_here(f"unexpected {word[0] if word else 'end of the text'!r}",
                  expected=("an arrow such as -->", "the end of the line"), suggestion=suggestion)  # fmt: skip
