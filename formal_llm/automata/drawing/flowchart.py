"""Drawings of flowcharts as a :class:`Picture`; texts are wrapped, since Graphviz would draw them on one line."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.flowgraph import FlowEdge, NodeKind
from formal_llm.pictures.captions import cut_lines, number_text, wrap_text
from formal_llm.pictures.picture import Arrow, Box, BoxKind, Picture, Tone

#: The nodes and arrows that a plan visits in a chart, with the numbers of its steps.
Nodes = Mapping[str, tuple[int, ...]]
Arrows = Mapping[FlowEdge, tuple[int, ...]]

_LOOKS: dict[NodeKind, BoxKind] = {
    "start": "input", "end": "result", "decision": "decision", "step": "tool", "junction": "point",
}  # fmt: skip
#: The maximum widths of texts, in characters. A diamond has room for about half the text of a box of its size.
_BOX, _DIAMOND, _ANSWER = 34, 26, 24


def flowchart_picture(
    chart: Flowchart, *, most: int = 12, nodes: Nodes | None = None, arrows: Arrows | None = None
) -> Picture:
    """Draw a flowchart: decisions as diamonds, steps as boxes, one arrow with all answers between two nodes.

    Args:
        chart: the flowchart.
        most: how many lines an arrow's label may have.
        nodes: the nodes that a plan visits: marked, with the numbers of its steps; the rest is faded.
        arrows: the arrows that it follows, likewise.
    """
    boxes = []
    for node in chart.nodes:
        kind = chart.kind(node.id)
        text = number_text((nodes or {}).get(node.id, ()), node.text)
        label = wrap_text(text, _DIAMOND if kind == "decision" else _BOX)
        boxes.append(Box(node.id, label, _LOOKS[kind], tone=_get_tone(nodes, node.id)))
    between: dict[tuple[str, str], list[FlowEdge]] = {}
    beyond: list[Arrow] = []
    for number, edge in enumerate(dict.fromkeys(chart.edges)):
        target = edge.target
        if len(edge.targets) > 1:  # to a point, and from there to all of them
            tone, target = _get_tone(arrows, edge), f"{edge.source} & {number}"
            boxes.append(Box(target, "", "point", tone=tone))
            beyond += [Arrow(target, one, "", tone=tone) for one in edge.targets]
        for source in edge.sources:
            between.setdefault((source, target), []).append(edge)
    lines = [
        _draw_arrow(*ends, group, most, arrows if nodes is None or ends[0] in nodes else {})
        for ends, group in between.items()
    ]
    sideways = chart.direction in ("LR", "RL")
    return Picture(tuple(boxes), (*lines, *beyond), "LR" if sideways else "TB", chart.title or None)


def _get_tone(taken: Collection[object] | None, what: object) -> Tone:
    if taken is None:
        return "plain"
    return "marked" if what in taken else "faded"


def _draw_arrow(source: str, target: str, edges: list[FlowEdge], most: int, taken: Arrows | None) -> Arrow:
    followed = [edge for edge in edges if taken is not None and edge in taken]
    texts = [wrap_text(number_text((taken or {}).get(edge, ()), edge.text), _ANSWER) for edge in followed or edges]
    if len(texts) > 1:
        texts = [f"• {text}" for text in texts]
    if followed and len(followed) < len(edges):
        others = len(edges) - len(followed)
        texts.append(f"… or {others} other{'s' if others > 1 else ''}")
    label = "\n".join(cut_lines([text for text in texts if text], most))
    return Arrow(source, target, label, tone=_get_tone(taken, (followed or edges)[0]))
