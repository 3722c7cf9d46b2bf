"""What is wrong with a flowchart that can be read: it describes no plans."""

from __future__ import annotations

from typing import NamedTuple

from formal_llm.automata.models.flowgraph import DECISIONS, ID, MARKERS, RESERVED, SHAPES, FlowEdge, FlowGraph, one_line
from formal_llm.automata.models.symbols import reach
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
    starts = chart.starts
    if not starts:
        return ChartProblem(
            "there is no node to start from: an arrow leads to every node",
            chart.nodes[0].id,
            suggestion=f"draw a start: Start([Start]) --> {chart.nodes[0].id}",
        )
    if len(starts) == 1:
        return None
    marked = [name for name in starts if chart.node[name].shape in MARKERS and chart.leaving[name]]
    others = [name for name in starts if name not in marked]
    if len(marked) == 1:
        return ChartProblem(
            f"no arrow leads to {_named(chart, others[0])}: it cannot be reached from the start {marked[0]}",
            others[0],
            suggestion="draw an arrow to it, or leave it out",
        )
    return ChartProblem(
        f"several starts: no arrow leads to {', '.join(starts[:-1])} or {starts[-1]}",
        starts[1],
        suggestion="a flowchart has one start; draw arrows to the other nodes, or leave them out",
    )


def _check_decisions(chart: FlowGraph) -> ChartProblem | None:
    for node in chart.nodes:
        if chart.kind(node.id) != "decision":
            continue
        if not chart.leaving[node.id]:
            return ChartProblem(
                f"the decision {_named(chart, node.id)} has no answers: no arrow leads out of it",
                node.id,
                suggestion=f"draw its answers: {node.id} -->|yes| A, or make it a step: {node.id}[...]",
            )
        seen: dict[str, FlowEdge] = {}
        for number, edge in enumerate(chart.edges):
            if edge.source != node.id:
                continue
            said = one_line(edge.text).casefold()
            if not said:
                why = "" if node.shape in DECISIONS else f"; with several arrows out of it, {node.id} is a decision"
                return ChartProblem(
                    f"an answer of the decision {_named(chart, node.id)} has no text",
                    edge=number,
                    suggestion=f"write: {edge.source} -->|answer| {edge.target}{why}",
                )
            if said in seen:
                return ChartProblem(
                    f"the decision {_named(chart, node.id)} has two answers {edge.text!r}",
                    edge=number,
                    suggestion=f"the other one leads to {seen[said].target}; give each a text of its own",
                )
            seen[said] = edge
    return None


def _check_ways(chart: FlowGraph) -> ChartProblem | None:
    """Every node lies on a way from the start to an end."""
    follow = {name: [edge.target for edge in edges] for name, edges in chart.leaving.items()}
    before: dict[str, list[str]] = {name: [] for name in follow}
    for edge in chart.edges:
        before[edge.target].append(edge.source)
    reached = reach([chart.start], follow.__getitem__)
    for node in chart.nodes:
        if node.id not in reached:
            return ChartProblem(
                f"{_named(chart, node.id)} cannot be reached from the start {chart.start}",
                node.id,
                suggestion="draw an arrow to it, or leave it out",
            )
    ending = reach([name for name, targets in follow.items() if not targets], before.__getitem__)
    for node in chart.nodes:
        if node.id not in ending:
            return ChartProblem(
                f"no end can be reached from {_named(chart, node.id)}: every way from it goes round in a circle",
                node.id,
                suggestion="draw a way out of the circle",
            )
    return None


def _named(chart: FlowGraph, name: str) -> str:
    text = one_line(chart.node[name].text)
    text = text if len(text) <= 40 else f"{text[:39]}…"
    return name if text in (name, "") else f"{name} ({text!r})"
