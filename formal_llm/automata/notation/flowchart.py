"""Reading and writing flowcharts in Mermaid, with errors that show the author where a chart is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from formal_llm.automata.languages.emptiness import why_no_plan
from formal_llm.automata.models.flowchart import Flowchart, find_problem
from formal_llm.automata.models.flowgraph import FlowGraph
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.quantities import Number, read_amount
from formal_llm.automata.notation.chart_limits import number_lines, read_limits, read_order
from formal_llm.automata.notation.mermaid import parse
from formal_llm.automata.notation.mermaid_groups import Meaning, meaning
from formal_llm.automata.notation.mermaid_nodes import BRACKETS, write_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError, did_you_mean

#: Text that looks like numbers at the end of a label.
_NUMBERS = re.compile(r"(?:\s[^\W\d]\w*=[^\s=]+)+$")
_BRACKETS_OF = {shape: (opening, closing) for opening, group in BRACKETS.items() for closing, shape in reversed(group)}


def read_flowchart(text: str, file: str | None = None) -> Flowchart:
    """Read the flowchart that ``text`` draws.

    Raises:
        NotationError: it cannot be read, or describes no plans; with line, column and a caret.
    """
    source = SourceText.from_text(text, file, NotationError)
    drawing = parse(source)
    meant = meaning(drawing.vertices, drawing.links, drawing.groups)
    chart = chart_of(meant, drawing.direction, drawing.title, source, read_order(drawing.limits, source))
    _warn_of_lonely(chart, meant, source)
    limits, numbers = read_limits(drawing.limits, chart, source)
    _warn_of_numbers(chart, numbers, meant, source)
    if not limits and not numbers:
        return chart
    chart = replace(chart, limits=limits, numbers=numbers)
    why = why_no_plan(chart.pda())
    if why is not None:
        first = next((line for line in drawing.limits if line.meant), drawing.limits[0])
        source.fail_at(f"no way through the chart keeps its limits: {why.reason}", first.directive.place)
    return chart


def chart_of(
    meant: Meaning, direction: str, title: str, source: SourceText, order: Literal["any", "drawn"] = "any"
) -> Flowchart:
    """Build a flowchart from the nodes and arrows of a text.

    Raises:
        NotationError: they describe no plans; with the place.
    """
    problem = find_problem(FlowGraph(meant.nodes, meant.edges, direction, title))
    if problem is not None:
        place = meant.node_places[problem.node] if problem.node is not None else None
        place = meant.edge_places[problem.edge] if problem.edge is not None else place
        source.fail_at(problem.message, place, suggestion=problem.suggestion)
    return Flowchart(meant.nodes, meant.edges, direction, title, order=order, places=FrozenDict(meant.node_places))


def _warn_of_lonely(chart: Flowchart, meant: Meaning, source: SourceText) -> None:
    """Warn of a start without any arrow: several starts are a choice, but such a node is rarely intended."""
    if len(chart.starts) < 2 or not chart.edges:
        return
    for name in chart.starts:
        if not chart.leaving[name]:
            near = did_you_mean(name, (other.id for other in chart.nodes if other.id != name))
            source.warn_at(
                f"no arrow leads to {name} or from it, so it is a whole plan by itself"
                + (f"; did you mean {near}?" if near else "; draw an arrow to it, or leave it out"),
                meant.node_places[name], stacklevel=4,
            )  # fmt: skip


def _warn_of_numbers(
    chart: Flowchart, numbers: Mapping[str, Mapping[str, Number]], meant: Meaning, source: SourceText
) -> None:
    """Warn of numbers in the text of a step, as ``Acknowledge time=5m``: they are text, which is rarely intended."""
    for node in chart.nodes:
        found = _NUMBERS.search(node.text)
        if found is None or chart.kind(node.id) != "step" or node.id in numbers:
            continue
        pairs = " ".join(found[0].split())
        with suppress(ValueError):
            for pair in pairs.split():
                read_amount(pair.partition("=")[2])
            source.warn_at(f"{pairs!r} is text of the step {node.id}, and no number of it; write numbers as a comment:"
                        f" %% %numbers {node.id} {pairs}", meant.node_places[node.id], stacklevel=4)  # fmt: skip


def write_flowchart(chart: Flowchart) -> str:
    """Write a flowchart in Mermaid; :func:`read_flowchart` reads an equal one."""
    lines = []
    if chart.title:
        quoted = chart.title.replace("'", "''")
        lines += ["---", f"title: '{quoted}'", "---"]
    statements = (f"    {line}" for line in _write_statements(chart))
    return "\n".join([*lines, f"flowchart {chart.direction}", *statements]) + "\n"


def _write_statements(chart: Flowchart) -> Iterator[str]:
    """Yield the lines below the header."""
    first = ["%parallel drawn"] if chart.order == "drawn" else []
    for line in (*first, *chart.limits.lines(), *number_lines(chart.numbers)):
        yield f"%% {line}"
    for node in chart.nodes:
        text = write_text(node.text) if node.text else '" "'
        if node.shape in _BRACKETS_OF:
            opening, closing = _BRACKETS_OF[node.shape]
            yield f"{node.id}{opening}{text}{closing}"
        else:
            yield f"{node.id}@{{ shape: {node.shape}, label: {text} }}"
    for edge in chart.edges:
        yield f"{edge.source} -->{f'|{write_text(edge.text)}|' if edge.text else ''} {edge.target}"
