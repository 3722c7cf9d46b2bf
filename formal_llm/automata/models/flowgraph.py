"""The nodes and arrows of a flowchart, their names, texts and shapes, and what they mean. Nothing is checked here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from formal_llm.automata.models.frozen import PickledByFields
from formal_llm.automata.models.symbols import find_reachable

#: A place in a text that a task fills in.
PLACEHOLDER = re.compile(r"\{(\w+)\}")

#: A node's name: a word; some signs may be inside it.
ID = re.compile(r"\w(?:\w|[-./'+:](?=\w))*")
#: Words that Mermaid does not take for names.
RESERVED = ("end", "subgraph", "graph", "flowchart", "direction", "style", "linkStyle", "classDef", "class", "click")

#: The shapes of nodes.
SHAPES = ("rect", "rounded", "stadium", "subroutine", "cylinder", "circle", "diamond", "hexagon")


def normalize_text(text: str) -> str:
    """A text as it is compared: every line without blanks around it and with single blanks in it."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join(lines).strip("\n")


def one_line(text: str) -> str:
    """A text of several lines on one."""
    return " ".join(text.split())


#: What a node means: see :mod:`formal_llm.automata.models.flowchart`.
NodeKind = Literal["start", "end", "decision", "step", "junction"]

_MARKERS = ("stadium", "circle")
_START_WORDS = frozenset(["start", "begin"])
_END_WORDS = frozenset(["end", "stop", "done", "finish"])
#: The name of the state after all ends; no node can have it.
END = "end"


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A node of a flowchart.

    Attributes:
        id: its name, a word.
        text: its text; its name, where none was given.
        shape: its shape, one of :data:`SHAPES`.
    """

    id: str
    text: str = None  # type: ignore[assignment]  # replaced at once
    shape: str = "rect"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.id if self.text is None else normalize_text(self.text))


@dataclass(frozen=True, slots=True, init=False)
class FlowEdge:
    """An arrow of a flowchart, from one node or several to one or several: ``a & b -->|text| c & d``.

    Args:
        sources: the name of its source; of several all are waited for that can still come.
        targets: the name of its target; of several each is done, side by side.
        text: the answer, where it leaves a decision.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    text: str = ""

    def __init__(self, sources: str | Iterable[str], targets: str | Iterable[str], text: str = "") -> None:
        for end, names in (("sources", sources), ("targets", targets)):
            object.__setattr__(self, end, (names,) if isinstance(names, str) else tuple(dict.fromkeys(names)))
        object.__setattr__(self, "text", normalize_text(text))

    @property
    def source(self) -> str:
        """Where it comes from, as it is written: ``a`` or ``a & b``."""
        return " & ".join(self.sources)

    @property
    def target(self) -> str:
        """Where it leads to, as it is written."""
        return " & ".join(self.targets)

    def __str__(self) -> str:
        return f"{self.source} --> {self.target}"


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
        """The arrows out of each node; what is drawn twice is there once.

        So is ``a & b --> c`` beside ``a --> c``: out of ``a`` both lead to the same, since where ``b`` could still come
        a chart with both of them is refused.
        """
        found: dict[str, dict[FlowEdge, None]] = {node.id: {} for node in self.nodes}
        alone = {(*edge.sources, edge.targets, edge.text) for edge in self.edges if len(edge.sources) == 1}
        for edge in self.edges:
            for source in edge.sources:
                if len(edge.sources) == 1 or (source, edge.targets, edge.text) not in alone:
                    found[source][edge] = None
        return {name: tuple(edges) for name, edges in found.items()}

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """The nodes that a plan can begin with: those to which no arrow leads but from themselves.

        Of nodes in a circle to which no arrow leads from outside it is the marker with the text "Start", or the first
        one.
        """
        before: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            for target in edge.targets:
                before[target] += edge.sources
        # The first pass keeps one node of each circle into which no arrow leads, and perhaps nodes behind it that came
        # before it. The second one, from the end, comes to it first, and drops these.
        kept = self._skip_reached(reversed(self._skip_reached(before)))
        rank = {name: number for number, name in enumerate(before)}
        circles = (find_reachable([name], before.__getitem__) for name in kept)
        found = [min(circle, key=lambda one: (not self.is_start_marker(one), rank[one])) for circle in circles]
        return tuple(sorted(found, key=rank.__getitem__))

    def _skip_reached(self, names: Iterable[str]) -> list[str]:
        """Return the nodes to which no earlier one of them leads."""
        kept, reached = list[str](), dict[str, None]()
        for name in names:
            if name not in reached:
                kept.append(name)
                reached.update(
                    find_reachable([name], lambda one: (t for t in self.list_targets(one) if t not in reached))
                )
        return kept

    def list_targets(self, name: str) -> list[str]:
        """The nodes to which arrows out of a node lead."""
        return [target for edge in self.leaving[name] for target in edge.targets]

    @property
    def start(self) -> str:
        """The node that a plan begins with; the first of them, where there are several."""
        return self.starts[0]

    def is_start_marker(self, name: str) -> bool:
        """Whether the text of a node marks the beginning of the chart."""
        node = self.node[name]
        return node.shape in _MARKERS and _is_labelled_with(node, _START_WORDS)

    @cached_property
    def opening(self) -> str:
        """The name of the choice of a start, where there are several: ``start``, if no node is called that."""
        name = "start"
        while name in self.node:
            name += "_"
        return name

    def kind(self, name: str) -> NodeKind:
        """What a node means.

        It is a ``start``, an ``end``, a ``decision``, a ``step``, or a ``junction``, where arrows only meet.
        """
        node, leaving = self.node[name], self.leaving[name]
        if node.shape == "diamond" or (node.shape == "hexagon" and (len(leaving) > 1 or any(e.text for e in leaving))):
            return "decision"
        marker = name in self._start_set and (node.shape in _MARKERS or _is_labelled_with(node, _START_WORDS))
        has_text = node.text and not (node.shape in _MARKERS and _is_labelled_with(node, _START_WORDS | _END_WORDS))
        if len(leaving) > 1 and (marker or not has_text or all(edge.text for edge in leaving)):
            return "decision"
        if name in self._start_set and (marker or not node.text):
            return "start"
        if not leaving and (not node.text or _is_labelled_with(node, _END_WORDS)):
            return "end"
        return "step" if has_text else "junction"

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
        return self.node[name].shape == "hexagon" and len(leaving) > 1 and len({edge.targets for edge in leaving}) == 1

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
        texts = [one_line(edge.text) or self._text_of_all(edge.targets) for edge in edges]
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
        arrows = self.leaving[name][:9]
        return " or ".join(dict.fromkeys(self._text_of_all(edge.targets, depth - 1) for edge in arrows)) or "End"

    def _text_of_all(self, names: Sequence[str], depth: int = 9) -> str:
        return " and ".join(self._text_of(name, depth) for name in names[:9])


def _is_labelled_with(node: FlowNode, words: frozenset[str]) -> bool:
    # LangGraph draws __start__ and __end__.
    return node.text.casefold().strip(" .!:_") in words
