"""Flowcharts in Mermaid: read so that the author is shown where a chart is wrong, and written."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from formal_llm.automata.languages.why_empty import why_empty
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.flowchart_checks import find_problem
from formal_llm.automata.models.flowgraph import FlowGraph
from formal_llm.automata.notation.chart_limits import number_lines, read_limits, read_order
from formal_llm.automata.notation.mermaid import parse
from formal_llm.automata.notation.mermaid_groups import Meaning, meaning
from formal_llm.automata.notation.mermaid_nodes import BRACKETS, write_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import AutomatonError, NotationError

_BRACKETS_OF = {shape: (opening, closing) for opening, group in BRACKETS.items() for closing, shape in reversed(group)}


def read_flowchart(text: str, file: str | None = None) -> Flowchart:
    """The flowchart that ``text`` draws.

    Raises:
        NotationError: it cannot be read, or describes no plans; with line, column and a caret.
    """
    source = SourceText.of(text, file, NotationError)
    drawing = parse(source)
    meant = meaning(drawing.vertices, drawing.links, drawing.groups)
    chart = chart_of(meant, drawing.direction, drawing.title, source, read_order(drawing.limits, source))
    limits, numbers = read_limits(drawing.limits, chart, source)
    if not limits and not numbers:
        return chart
    try:
        chart = replace(chart, limits=limits, numbers=numbers)
    except AutomatonError as error:
        first = next((line for line in drawing.limits if line.meant), drawing.limits[0])
        source.fail(str(error), source.at(first.directive.at))
    pda = chart.pda()
    if Lookahead(pda).completable().value == "no":
        first = next((line for line in drawing.limits if line.meant), drawing.limits[0])
        source.fail(f"no way through the chart keeps its limits: {why_empty(pda).reason}",
                    source.at(first.directive.at))  # fmt: skip
    return chart


def chart_of(
    meant: Meaning, direction: str, title: str, source: SourceText, order: Literal["any", "drawn"] = "any"
) -> Flowchart:
    """The flowchart of nodes and arrows that stand in a text.

    Raises:
        NotationError: they describe no plans; with the place.
    """
    problem = find_problem(FlowGraph(meant.nodes, meant.edges, direction, title))
    if problem is not None:
        place = meant.node_places[problem.node] if problem.node is not None else None
        place = meant.edge_places[problem.edge] if problem.edge is not None else place
        source.fail(problem.message, place, suggestion=problem.suggestion)
    return Flowchart(meant.nodes, meant.edges, direction, title, order=order)


def write_flowchart(chart: Flowchart) -> str:
    """A flowchart in Mermaid; :func:`read_flowchart` reads an equal one from it."""
    lines = []
    if chart.title:
        quoted = chart.title.replace("'", "''")
        lines += ["---", f"title: '{quoted}'", "---"]
    lines.append(f"flowchart {chart.direction}")
    lines += ["    %% %parallel drawn"] if chart.order == "drawn" else []
    lines += [f"    %% {line}" for line in (*chart.limits.lines(), *number_lines(chart.numbers))]
    for node in chart.nodes:
        text = write_text(node.text) if node.text else '" "'
        if node.shape in _BRACKETS_OF:
            opening, closing = _BRACKETS_OF[node.shape]
            lines.append(f"    {node.id}{opening}{text}{closing}")
        else:
            lines.append(f"    {node.id}@{{ shape: {node.shape}, label: {text} }}")
    for edge in chart.edges:
        label = f"|{write_text(edge.text)}|" if edge.text else ""
        lines.append(f"    {edge.source} -->{label} {edge.target}")
    return "\n".join(lines) + "\n"
