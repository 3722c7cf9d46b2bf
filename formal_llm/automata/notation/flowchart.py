"""Reading and writing flowcharts in Mermaid, with errors that show the author where a chart is wrong.

Limits stand in comments, which Mermaid ignores: ``%% %limit 2 retry``, ``%% %rule SENTENCE`` and all other lines as in
a grammar; ``%% %numbers retry time=15min cost=1.20`` gives a step numbers, ``%% %parallel drawn`` orders the branches
of forks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from formal_llm.automata.languages.emptiness import why_no_plan
from formal_llm.automata.models.flowchart import Flowchart, find_problem
from formal_llm.automata.models.flowgraph import FlowGraph, one_line
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.quantities import Number, format_amount, read_amount
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.notation.limit_lines import DIRECTIVES, LimitsReader, read_numbers
from formal_llm.automata.notation.mermaid import BRACKETS, DirectiveLine, ParsedChart, parse, write_text
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import NotationError, did_you_mean, unknown

#: Text that looks like numbers at the end of a label.
_NUMBERS = re.compile(r"(?:\s[^\W\d]\w*=[^\s=]+)+$")
_BRACKETS_OF = {shape: (opening, closing) for opening, (closing, shape) in BRACKETS.items()}
_KNOWN = (*DIRECTIVES, "%rule", "%numbers", "%parallel")


def read_flowchart(text: str, file: str | None = None) -> Flowchart:
    """Read the flowchart that ``text`` draws.

    Raises:
        NotationError: it cannot be read, or describes no plans; with line, column and a caret.
    """
    source = SourceText.from_text(text, file, NotationError)
    drawing = parse(source)
    directives = [line for line in drawing.directives if line.marked]
    chart = _build_chart(drawing, _read_order(directives, source), source)
    _warn_of_lonely(chart, source)
    limits, numbers = _read_limits(directives, chart, source)
    _refuse_unmarked(drawing.directives, chart, source)
    _warn_of_numbers(chart, numbers, source)
    if not limits and not numbers:
        return chart
    chart = replace(chart, limits=limits, numbers=numbers)
    why = why_no_plan(chart.pda())
    if why is not None:
        source.fail_at(f"no way through the chart keeps its limits: {why.reason}", directives[0].directive.place)
    return chart


def _build_chart(drawing: ParsedChart, order: Literal["any", "drawn"], source: SourceText) -> Flowchart:
    nodes, edges = tuple(drawing.nodes.values()), tuple(drawing.edges)
    problem = find_problem(FlowGraph(nodes, edges, drawing.direction, drawing.title))
    if problem is not None:
        place = drawing.node_places[problem.node] if problem.node is not None else None
        place = drawing.edge_places[problem.edge] if problem.edge is not None else place
        source.fail_at(problem.message, place, suggestion=problem.suggestion)
    places = FrozenDict(drawing.node_places)
    return Flowchart(nodes, edges, drawing.direction, drawing.title, order=order, places=places)


def _warn_of_lonely(chart: Flowchart, source: SourceText) -> None:
    """Warn of a start without any arrow: several starts are a choice, but such a node is rarely intended."""
    if len(chart.starts) < 2 or not chart.edges:
        return
    for name in chart.starts:
        if not chart.leaving[name]:
            near = did_you_mean(name, (other.id for other in chart.nodes if other.id != name))
            source.warn_at(
                f"no arrow leads to {name} or from it, so it is a whole plan by itself"
                + (f"; did you mean {near}?" if near else "; draw an arrow to it, or leave it out"),
                Place(*chart.places[name]), stacklevel=4,
            )  # fmt: skip


def _warn_of_numbers(chart: Flowchart, numbers: Mapping[str, Mapping[str, Number]], source: SourceText) -> None:
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
                        f" %% %numbers {node.id} {pairs}", Place(*chart.places[node.id]), stacklevel=4)  # fmt: skip


# -- directives -------------------------------------------------------------------------------------------------------


def _read_order(lines: Sequence[DirectiveLine], source: SourceText) -> Literal["any", "drawn"]:
    """Return how the branches of forks are ordered, as declared in a line ``%parallel``."""
    order: Literal["any", "drawn"] = "any"
    for line in lines:
        if line.directive.text == "%parallel":
            values = [word.text for word in line.words]
            if values not in (["any"], ["drawn"]):
                problem = f"%parallel is any or drawn, not {' '.join(values) or 'nothing'}"
                hint = "write: %% %parallel drawn, to have branches done one after the other"
                source.fail_at(problem, line.directive.place, suggestion=hint)
            order = "drawn" if values == ["drawn"] else "any"
    return order


def _read_limits(
    lines: Sequence[DirectiveLine], chart: Flowchart, source: SourceText
) -> tuple[Limits, dict[str, dict[str, Number]]]:
    """Read the limits of a chart, and the numbers of its steps.

    Names are those of its steps, and of answers as ``name=answer``.

    Raises:
        NotationError: a line cannot be read, or names something that is not in the chart; with its place.
    """
    reader, numbers, known = LimitsReader(source, "%% "), dict[str, dict[str, Number]](), chart.terminals
    for line in lines:
        directive = line.directive.text
        if directive == "%numbers":
            _read_numbers(line, known, numbers, source)
        elif directive == "%rule":
            reader.read_rule(*line.words[0])
        elif directive in DIRECTIVES:
            reader.read_line(line.directive, line.words)
        elif directive != "%parallel":
            hint = f"a comment of a flowchart may hold {', '.join(_KNOWN)}"
            source.fail_near(f"unknown directive {directive}", line.directive.place, directive, _KNOWN, hint)
    for name in reader.names:
        if name.text not in known:
            answers = chart.answers(name.text) if chart.is_decision(name.text) else {}
            way_out = f"it is a decision; count its answers: {', '.join(answers)}" if answers else None
            source.fail_at(unknown("step or answer in a limit", name.text, known), name.place, suggestion=way_out)
    texts = {node.id: one_line(node.text) for node in chart.nodes}
    symbols = {name: Symbol(texts.get(name, ""), numbers=numbers.get(name, {})) for name in known}
    return reader.build_limits(known, symbols, called="step or answer"), numbers


def _refuse_unmarked(lines: Sequence[DirectiveLine], chart: Flowchart, source: SourceText) -> None:
    """Refuse a comment ``%% limit retry 2``: without its second ``%`` a limit would be lost in silence."""
    for line in lines:
        names = [word.text for word in line.words if not word.text[:1].isdigit() and word.text not in ("*", "<=", ">=")]
        if not line.marked and line.directive.text in _KNOWN and names and {*names} <= {*chart.terminals}:
            written = " ".join([line.directive.text, *(word.text for word in line.words)])
            source.fail_at(
                "a limit in a comment begins with %", line.directive.place, suggestion=f"write: %% {written}"
            )


def _read_numbers(
    line: DirectiveLine, known: Sequence[str], numbers: dict[str, dict[str, Number]], source: SourceText
) -> None:
    name, *pairs = line.words or (line.directive,)
    if not pairs:
        hint = "write: %% %numbers NAME time=15min"
        source.fail_at("%numbers has a step and its numbers", name.place, suggestion=hint)
    if name.text not in known:
        source.fail_at(unknown("step or answer", name.text, known), name.place)
    for before, pair in pairwise(pairs):
        if pair.text.isdigit() and before.text[-1:].isdigit():
            hint = f"write {before.text}.{pair.text}"
            source.fail_at("a comma stands for a decimal point here", before.place, suggestion=hint)
    split = [(pair, *pair.text.partition("=")) for pair in pairs]
    for pair, _, sign, _ in split:
        if not sign:
            source.fail_at(f"{pair.text!r} is no number", pair.place, suggestion="write, for instance, time=15min")
    words = [(pair._replace(text=quantity), pair._replace(text=amount)) for pair, quantity, _, amount in split]
    numbers[name.text] = read_numbers(source, name.text, words, numbers.get(name.text))


# -- writing ----------------------------------------------------------------------------------------------------------


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
    for line in (*first, *chart.limits.lines(), *_number_lines(chart.numbers)):
        yield f"%% {line}"
    for node in chart.nodes:
        opening, closing = _BRACKETS_OF[node.shape]
        yield f"{node.id}{opening}{write_text(node.text)}{closing}"
    for edge in chart.edges:
        yield f"{edge.source} -->{f'|{write_text(edge.text)}|' if edge.text else ''} {edge.target}"


def _number_lines(numbers: Mapping[str, Mapping[str, Number]]) -> Iterator[str]:
    for name, amounts in numbers.items():
        yield " ".join(["%numbers", name, *(f"{kind}={format_amount(value)}" for kind, value in amounts.items())])
