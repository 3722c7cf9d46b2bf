"""The nodes and arrows of a flowchart, their names, texts and shapes, and what they mean. Nothing is checked here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from formal_llm.automata.models.frozen import PickledByFields
from formal_llm.automata.models.symbols import find_reachable

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
text | fork join | ellipse |
datastore data-store | folder directory | bucket | console | browser | person
"""
#: Every name of a shape, with the name of that shape used here.
SHAPES = {name: group.split()[0] for group in _NAMES.split("|") for name in group.split()}


def normalize_text(text: str) -> str:
    """A text as it is compared: every line without blanks around it and with single blanks in it."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join(lines).strip("\n")


def one_line(text: str) -> str:
    """A text of several lines on one."""
    return " ".join(text.split())


#: What a node means: see :mod:`formal_llm.automata.models.flowchart`.
NodeKind = Literal["start", "end", "decision", "step", "junction", "fork"]

MARKERS = ("stadium", "circle", "dbl-circ", "sm-circ", "fr-circ")
#: Shapes that Mermaid draws without a text.
_TEXTLESS = ("sm-circ", "fr-circ", "f-circ", "cross-circ", "fork")
START_WORDS = frozenset(["start", "begin", "beginning", "anfang", "beginn", "début", "inicio", "inizio"])
END_WORDS = frozenset(["end", "stop", "finish", "finished", "done", "exit", "ende", "fertig", "schluss", "fin", "fine"])


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A node of a flowchart.

    Attributes:
        id: its name, a word.
        text: its text; its name, where none was given.
        shape: its shape, by the short name that Mermaid has for it (``rect``, ``diam``, ``stadium`` ...).
    """

    id: str
    text: str = None  # type: ignore[assignment]  # replaced at once
    shape: str = "rect"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", SHAPES.get(self.shape, self.shape))
        default = "" if self.shape in _TEXTLESS else self.id
        object.__setattr__(self, "text", default if self.text is None else normalize_text(self.text))


@dataclass(frozen=True, slots=True)
class FlowEdge:
    """An arrow of a flowchart; ``text`` is the answer, where it leaves a decision."""

    source: str
    target: str
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", normalize_text(self.text))


@dataclass(frozen=True)
class FlowGraph(PickledByFields):
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
        """The arrows out of each node; what is drawn twice is there once."""
        found: dict[str, dict[FlowEdge, None]] = {node.id: {} for node in self.nodes}
        for edge in self.edges:
            found[edge.source][edge] = None
        return {name: tuple(edges) for name, edges in found.items()}

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """The nodes that a plan can begin with: those to which no arrow leads but from themselves.

        Of nodes in a circle to which no arrow leads from outside it is the marker with the text "Start", or the first
        one.
        """
        before: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            if edge.source != edge.target:
                before[edge.target].append(edge.source)
        found = {name for name, sources in before.items() if not sources}
        reached = find_reachable(found, self._target_names)
        circles = [name for name in before if name not in reached]
        for name in reversed(
            leaving_order(circles, self._target_names)
        ):  # the last lies in a circle with no arrow into it
            if name not in reached:
                circle = find_reachable([name], before.__getitem__)
                found.add(min((one for one in before if one in circle), key=lambda one: not self.is_start_marker(one)))
                reached |= find_reachable([name], self._target_names)
        return tuple(name for name in before if name in found)

    def _target_names(self, name: str) -> list[str]:
        return [edge.target for edge in self.leaving[name]]

    @property
    def start(self) -> str:
        """The node that a plan begins with; the first of them, where there are several."""
        return self.starts[0]

    def is_start_marker(self, name: str) -> bool:
        """Whether the text of a node marks the beginning of the chart."""
        node = self.node[name]
        return node.shape == "sm-circ" or (node.shape in MARKERS and _is_labelled_with(node, START_WORDS))

    @cached_property
    def opening(self) -> str:
        """The name of the choice of a start, where there are several: ``start``, if no node is called that."""
        name = "start"
        while name in self.node:
            name += "_"
        return name

    def kind(self, name: str) -> NodeKind:
        """What a node means.

        It is a ``start``, an ``end``, a ``decision``, a ``step``, a ``fork``, from where all arrows are followed, or a
        ``junction``, where arrows only meet.
        """
        node, leaving = self.node[name], self.leaving[name]
        if node.shape == "fork":
            return "fork" if len(leaving) > 1 else "junction" if leaving else "end"
        if node.shape == "diam" or (node.shape == "hex" and (len(leaving) > 1 or any(e.text for e in leaving))):
            return "decision"
        marker = name in self._start_set and (node.shape in MARKERS or _is_labelled_with(node, START_WORDS))
        if len(leaving) > 1 and (marker or not node.text or all(edge.text for edge in leaving)):
            return "decision"
        if name in self._start_set and (marker or not node.text):
            return "start"
        if not leaving and (not node.text or _is_labelled_with(node, END_WORDS)):
            return "end"
        told = node.text and not (node.shape in MARKERS and _is_labelled_with(node, START_WORDS | END_WORDS))
        return "step" if told else "junction"

    @cached_property
    def _start_set(self) -> frozenset[str]:
        return frozenset(self.starts)

    # -- what is asked --------------------------------------------------------------------------------------------

    def is_decision(self, name: str) -> bool:
        """Whether there is a node of that name that asks something and is no step."""
        return name in self.node and self.kind(name) == "decision"

    def is_selection(self, name: str) -> bool:
        """Whether several answers of a node may be chosen together."""
        leaving = self.leaving[name]
        return self.node[name].shape == "hex" and len(leaving) > 1 and len({edge.target for edge in leaving}) == 1

    def question(self, name: str) -> str:
        """What is asked at a node, or for the start."""
        if name == self.opening:
            return "Where does it begin?"
        text = one_line(self.node[name].text)
        return text if self.is_decision(name) else f'What follows "{text}"?'

    def answer_edges(self, name: str) -> tuple[FlowEdge, ...]:
        """The arrows of which one is chosen at a node, or at the :attr:`opening`; none where nothing is asked."""
        if name == self.opening:
            return tuple(FlowEdge(name, start) for start in self.starts) if len(self.starts) > 1 else ()
        kind, leaving = self.kind(name), self.leaving[name]
        return leaving if kind == "decision" or (kind == "step" and len(leaving) > 1) else ()

    def answers(self, name: str) -> dict[str, FlowEdge]:
        """The arrows of which one is chosen at a node, by the terminals that stand for them, as ``entitled=yes``."""
        return {terminal: edge for terminal, (_, edge) in self.answer_texts(name).items()}

    def answer_texts(self, name: str) -> dict[str, tuple[str, FlowEdge]]:
        """The answers at a node, each with its text and its arrow, by the terminals that stand for them.

        The text is that of the arrow; where it has none, that of the node to which it leads.
        """
        found: dict[str, tuple[str, FlowEdge]] = {}
        edges = self.answer_edges(name)
        texts = [one_line(edge.text) or self._text_of(edge.target) for edge in edges]
        for text, edge in zip(texts, edges, strict=True):
            if not edge.text and texts.count(text) > 1:
                text = f"{text} ({edge.target})"
            slug = re.sub(r"\W+", "_", text.casefold()).strip("_") or "answer"
            terminal, number = f"{name}={slug}", 1
            while terminal in found:
                number += 1
                terminal = f"{name}={slug}_{number}"
            found[terminal] = text, edge
        return found

    def _text_of(self, name: str, depth: int = 9) -> str:
        """The text of a node; where it has none, that of what comes after it."""
        text = one_line(self.node[name].text)
        if text or depth == 0:
            return text or name
        after = list(dict.fromkeys(edge.target for edge in self.leaving[name]))
        between = " and " if self.kind(name) == "fork" else " or "
        return between.join(self._text_of(one, depth - 1) for one in after[:9]) or "End"


def _is_labelled_with(node: FlowNode, words: frozenset[str]) -> bool:
    # LangGraph draws its own as <p>__start__</p> and <p>__end__</p>.
    return node.text.casefold().removeprefix("<p>").removesuffix("</p>").strip(" .!:_") in words


def leaving_order(first: Iterable[str], after: Callable[[str], Iterable[str]]) -> list[str]:
    """The nodes to which steps lead from the first ones, in the order in which a search to the depth leaves them."""
    seen: set[str] = set()
    found: list[str] = []
    for one in first:
        path = [] if one in seen else [(one, iter(after(one)))]
        seen.add(one)
        while path:
            for name in path[-1][1]:
                if name not in seen:
                    seen.add(name)
                    path.append((name, iter(after(name))))
                    break
            else:
                found.append(path.pop()[0])
    return found
