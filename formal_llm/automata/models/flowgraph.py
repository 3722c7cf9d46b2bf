"""The nodes and arrows of a flowchart, their names, texts and shapes, and what they mean. Nothing is checked here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from formal_llm.automata.models.frozen import ByFields

#: A place in a text that a task fills in.
PLACEHOLDER = re.compile(r"\{(\w+)\}")

#: A node's name: a word; some signs may stand inside it.
ID = re.compile(r"\w(?:\w|[-./'+:](?=\w))*")
#: Words that Mermaid does not take for names.
RESERVED = ("end", "subgraph", "graph", "flowchart", "direction", "style", "linkStyle", "classDef", "class", "click")

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


def plain(text: str) -> str:
    """A text as it is compared: every line without blanks around it and with single blanks in it."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join(lines).strip("\n")


def one_line(text: str) -> str:
    """A text of several lines on one."""
    return " ".join(text.split())


#: What a node means: see :mod:`formal_llm.automata.models.flowchart`.
NodeKind = Literal["start", "end", "decision", "step", "junction"]

DECISIONS = ("diam", "hex")
MARKERS = ("stadium", "circle", "dbl-circ", "sm-circ", "fr-circ")
#: Shapes that Mermaid draws without a text.
_TEXTLESS = ("sm-circ", "fr-circ", "f-circ", "cross-circ")
START_WORDS = frozenset(["start", "begin", "beginning", "anfang", "beginn", "début", "inicio", "inizio"])
END_WORDS = frozenset(["end", "stop", "finish", "finished", "done", "exit", "ende", "fertig", "schluss", "fin", "fine"])


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A node of a flowchart.

    Attributes:
        id: its name, a word.
        text: what it says; its name, where nothing was given.
        shape: its shape, by the short name that Mermaid has for it (``rect``, ``diam``, ``stadium`` ...).
    """

    id: str
    text: str = None  # type: ignore[assignment]  # replaced at once
    shape: str = "rect"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", SHAPES.get(self.shape, self.shape))
        default = "" if self.shape in _TEXTLESS else self.id
        object.__setattr__(self, "text", default if self.text is None else plain(self.text))


@dataclass(frozen=True, slots=True)
class FlowEdge:
    """An arrow of a flowchart; ``text`` is the answer, where it leaves a decision."""

    source: str
    target: str
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", plain(self.text))


@dataclass(frozen=True)
class FlowGraph(ByFields):
    """Nodes and arrows, as they are drawn; for the arguments see :class:`Flowchart`."""

    nodes: tuple[FlowNode, ...]
    edges: tuple[FlowEdge, ...] = ()
    direction: str = "TB"
    title: str = ""

    @cached_property
    def node(self) -> Mapping[str, FlowNode]:
        """The nodes, by name."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def leaving(self) -> Mapping[str, tuple[FlowEdge, ...]]:
        """The arrows out of each node."""
        found: dict[str, list[FlowEdge]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            found[edge.source].append(edge)
        return {name: tuple(edges) for name, edges in found.items()}

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """The nodes that a plan could begin with; of a chart there is one.

        They are those to which no arrow leads (but from themselves); without any, the markers that say "Start".
        """
        entered = {edge.target for edge in self.edges if edge.source != edge.target}
        first = tuple(node.id for node in self.nodes if node.id not in entered)
        return first or tuple(n.id for n in self.nodes if n.shape in MARKERS and _says(n, START_WORDS))

    @property
    def start(self) -> str:
        """The node that a plan begins with."""
        return self.starts[0]

    def kind(self, name: str) -> NodeKind:
        """What a node means: ``start``, ``end``, ``decision``, ``step``, or ``junction``, where arrows only meet."""
        node, leaving = self.node[name], self.leaving[name]
        if node.shape in DECISIONS or len(leaving) > 1:
            return "decision"
        if self.starts == (name,) and (node.shape in MARKERS or not node.text or _says(node, START_WORDS)):
            return "start"
        if not leaving and (not node.text or _says(node, END_WORDS)):
            return "end"
        return "step" if node.text else "junction"


def _says(node: FlowNode, words: frozenset[str]) -> bool:
    return node.text.casefold().strip(" .!:") in words
