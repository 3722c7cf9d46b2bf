"""What is wrong with a flowchart that can be read: it describes no plans."""

from __future__ import annotations

from typing import NamedTuple

from formal_llm.automata.models.flow_forks import find_splits
from formal_llm.automata.models.flowgraph import ID, RESERVED, SHAPES, FlowEdge, FlowGraph, one_line
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.errors import did_you_mean


class ChartProblem(NamedTuple):
    """Something wrong with a chart: what, at which node or arrow, and the way out."""

    message: str
    node: str | None = None
    edge: int | None = None
    suggestion: str | None = None


def find_problem(chart: FlowGraph) -> ChartProblem | None:
    """The first thing that keeps a chart from describing plans; None where nothing does."""
    found = _check_parts(chart) or _check_start(chart) or _check_decisions(chart)
    return found or _check_ways(chart)


def _check_parts(chart: FlowGraph) -> ChartProblem | None:
    if not chart.nodes:
        return ChartProblem("the flowchart has no nodes", suggestion="write, for instance: A[Do this] --> B[Do that]")
    if len({node.id for node in chart.nodes}) < len(chart.nodes):
        return ChartProblem("two nodes have the same name")
    for node in chart.nodes:
        if not ID.fullmatch(node.id) or node.id in RESERVED:
            return ChartProblem(f"{node.id!r} cannot be the name of a node; names are single words")
        if node.shape not in SHAPES:
            near = did_you_mean(node.shape, SHAPES)
            return ChartProblem(f"unknown shape {node.shape}", suggestion=f"did you mean {near}?" if near else None)
    known = {node.id for node in chart.nodes}
    for edge in chart.edges:
        if not known >= {edge.source, edge.target}:
            return ChartProblem(f"an arrow leads from {edge.source} to {edge.target}: there is no such node")
    if chart.direction not in ("TB", "BT", "LR", "RL"):
        return ChartProblem(f"unknown direction {chart.direction!r}; there are TB, BT, LR and RL")
    return None


def _check_start(chart: FlowGraph) -> ChartProblem | None:
    said = [name for name in chart.starts if chart.is_start_marker(name)]
    others = [name for name in chart.starts if name not in said]
    if said and others:
        return ChartProblem(
            f"no arrow leads to {_describe_node(chart, others[0])}: it cannot be reached from the start {said[0]}",
            others[0],
            suggestion="draw an arrow to it, or leave it out",
        )
    return None


def _check_decisions(chart: FlowGraph) -> ChartProblem | None:
    for node in chart.nodes:
        if chart.kind(node.id) != "decision":
            continue
        if not chart.leaving[node.id]:
            return ChartProblem(
                f"the decision {_describe_node(chart, node.id)} has no answers: no arrow leads out of it",
                node.id,
                suggestion=f"draw its answers: {node.id} -->|yes| A, or make it a step: {node.id}[...]",
            )
        seen: dict[str, FlowEdge] = {}
        for edge in chart.leaving[node.id]:
            said = one_line(edge.text).casefold()
            if said and said in seen:
                return ChartProblem(
                    f"the decision {_describe_node(chart, node.id)} has two answers {edge.text!r}",
                    edge=chart.edges.index(edge),
                    suggestion=f"the other one leads to {seen[said].target}; give each a text of its own, or draw them"
                    " as branches of one answer: A -->|answer| B & C",
                )
            seen[said] = edge
    return None


def _check_ways(chart: FlowGraph) -> ChartProblem | None:
    """Every node lies on a way to an end, and branches that run side by side meet again."""
    follow = {name: [edge.target for edge in edges] for name, edges in chart.leaving.items()}
    before: dict[str, list[str]] = {name: [] for name in follow}
    for edge in chart.edges:
        before[edge.target].append(edge.source)
    ending = find_reachable([name for name, targets in follow.items() if not targets], before.__getitem__)
    for node in chart.nodes:
        if node.id not in ending:
            return ChartProblem(
                f"no end can be reached from {_describe_node(chart, node.id)}: "
                "every way from it goes round in a circle",
                node.id,
                suggestion="draw a way out of the circle",
            )
    for name, split in find_splits(chart).items():
        if split is None:
            targets = [edge.target for edge in chart.leaving[name]]
            return ChartProblem(
                f"the branches {', '.join(targets[:-1])} and {targets[-1]} run side by side, but arrows lead from one"
                " into another, or back before they part",
                name,
                suggestion="let all of them meet at one node; where only one of them is followed, draw a decision (in"
                " Mermaid arrows of their own instead of '&')",
            )
    return None


def _describe_node(chart: FlowGraph, name: str) -> str:
    text = one_line(chart.node[name].text)
    text = text if len(text) <= 40 else f"{text[:39]}…"
    return name if text in (name, "") else f"{name} ({text!r})"
