"""Procedures that are drawn: Mermaid flowcharts and BPMN processes that declare tools.

::

    flowchart TD
        %% check find_order(order_id: text)
        %% action verify_customer(email: text, code: text)
        %%     changes nothing
        %% goal action refund(order_id: text, email: text, amount: number)
        Start([Start]) --> V["verify_customer(email, code)"] --> S{"find_order(order_id).status"}
        S -->|delivered| L{"amount <= find_order(order_id).total"}
        S -->|else| N([Not yet])
        L -->|yes| R["refund(order_id, email, amount)"]
        L -->|no| N

A *step* is a call, or the name of a tool, as its text or as the name of its node. A *decision* is a condition whose
arrows are labelled yes and no (or true and false), or a value whose arrows are labelled with values, comparisons
(``> 10``), or ``else``. Of other arrows any may be followed: which one, the goal decides. What must hold before an
action or a goal is derived: one of the ways to it, with the decisions on it as they were answered, and the actions on
it done, in that order.

- Where several ways agree, what does not matter is left out: a decision whose answers meet again (resolution), and
  ways that another one implies (absorption).
- An action makes earlier results of checks obsolete, and ends facts. What held before it was asked for by its own need.
- An action that is a step has to succeed. What establishes that is a fact that is declared, or one made here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import NoReturn

from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.flowgraph import MARKERS, FlowEdge, leaving_order, one_line
from formal_llm.automata.notation.bpmn_parts import choose_process
from formal_llm.automata.notation.files import read_rules_text
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.automata.notation.xml_tree import Element, read_xml
from formal_llm.errors import NotationError
from formal_llm.guard.rules.expressions import BinaryOperation, Constant, Expression, FieldPath, FunctionCall
from formal_llm.procedures.procedure import (
    NO_NEED,
    ConditionNeed,
    Fact,
    FactNeed,
    Hole,
    Need,
    NeedGroup,
    NotNeed,
    Procedure,
    ProcedureTool,
    walk_need,
    walk_terms,
)
from formal_llm.procedures.reading import ProcedureReader
from formal_llm.procedures.terms import CallSucceeds, CallValue

#: The decisions and actions on a way through a diagram, as what must hold.
Way = tuple[Need, ...]

_DECLARATION = re.compile(r"((goal[ \t]+)?(check|action)[ \t]+\w+|fact[ \t]+\w+)[ \t]*\(|constant[ \t]+\w+[ \t]*=")
_COMMENT = re.compile(r"([ \t]*)%%(?!\{)")
_CALL = re.compile(r"\w+\s*\(")
_YES, _NO, _ELSE = ("yes", "true"), ("no", "false"), ("else", "otherwise")
#: The most ways to one node that do not agree.
_MOST_WAYS = 100


def read_diagram(text: str, file: str, process: str | None = None) -> Procedure:
    """Read a procedure from a Mermaid flowchart or a BPMN process.

    Args:
        text: the diagram.
        file: the file that it is from, whose ending names the notation.
        process: the id or the name of the process; needed where there are several.

    Raises:
        NotationError: it cannot be read, it declares no tools, or it has what a procedure cannot express; with the
            place.
    """
    source = SourceText.from_text(text, file, NotationError)
    lines = _list_declarations(source, process, whole=False)
    if not any(lines):
        source.fail_at(
            "this diagram declares no tools", None,
            suggestion="write them as comments (in BPMN as documentation): goal action refund(order_id: text)",
        )  # fmt: skip
    chart = read_rules_text(source.text, file, process=process)
    if not isinstance(chart, Flowchart):
        source.fail_at("a state diagram is no procedure", None, suggestion="draw a flowchart")
    if chart.limits or chart.numbers:
        source.fail_at("a procedure has no limits and no numbers", None, suggestion="leave %limit and %numbers out")
    return _DiagramReader(source, lines, chart).read()


def declares_tools(text: str) -> bool:
    """Return whether a diagram is a procedure.

    Raises:
        NotationError: it is no text, or no XML.
    """
    return any(_list_declarations(SourceText.from_text(text, None, NotationError)))


def _list_declarations(source: SourceText, process: str | None = None, *, whole: bool = True) -> list[str]:
    """Return the lines of a diagram without all that declares nothing, each in its place.

    Of a BPMN file that is the ``whole`` file, or one process.
    """
    if source.text.lstrip().startswith("<"):
        root = read_xml(source)
        written = [*_iterate_documentation(root if whole else choose_process(source, root, process))]
    else:
        written = [*_iterate_comments(source.text)]
    lines = [""] * (source.text.count("\n") + 1)
    for number, text in written:
        lines[number] = text
    return lines


def _iterate_comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the declarations among the comments, each with the comments right below it that are indented further."""
    indent = None
    for number, line in enumerate(text.split("\n")):
        found = _COMMENT.match(line)
        bare = " " * found.end() + line[found.end() :] if found else ""
        depth = len(bare) - len(bare.lstrip())
        if _DECLARATION.match(bare.lstrip()):
            indent = depth
        elif indent is not None and (not bare or depth <= indent):
            indent = None
        if indent is not None:
            yield number, bare


def _iterate_documentation(element: Element) -> Iterator[tuple[int, str]]:
    """Yield the lines of documentation and of remarks that begin with a declaration."""
    if element.name in ("documentation", "text") and _DECLARATION.match(element.text.lstrip()):
        yield from enumerate(element.text.split("\n"), element.place.line - 1)
    for child in element.children:
        yield from _iterate_documentation(child)


class _DiagramReader(ProcedureReader):
    """A reader of a procedure whose tools are declared in a diagram, which draws their needs."""

    def __init__(self, source: SourceText, lines: list[str], chart: Flowchart) -> None:
        super().__init__(source, lines)
        self.chart = chart
        self.calls: dict[str, CallValue] = {}  # by node
        self.ways: dict[str, list[Way]] = {}  # to each node
        self.known: dict[str, Fact] = {}
        self.done: set[Need] = set()  # the facts that actions on the ways have established

    def add_needs(self, tools: dict[str, ProcedureTool], facts: dict[str, Fact]) -> None:
        """Add what the diagram draws to the needs of actions and goals."""
        self.tools.update(tools)
        self.known = facts
        self.calls = {node.id: call for node in self.chart.nodes if (call := self._read_step(node.id)) is not None}
        self._follow_arrows()
        for tool in tools.values():
            nodes = [name for name, call in self.calls.items() if call.tool == tool.name]
            if tool.is_goal and not nodes:
                self.source.fail_at(f"no step of the diagram is the goal {tool.name}", self.places[tool.name],
                                    suggestion=f"draw it: {tool.name}(...)")  # fmt: skip
            if nodes and (tool.acts or tool.is_goal):
                ways = [way for name in nodes for way in self._list_tool_ways(tool, name)]
                drawn = _join_ways([*map(_leave_out_made, self._simplify(nodes[0], ways))])
                needs = tuple(need for need in (tool.need, drawn) if need != NO_NEED)
                tools[tool.name] = replace(tool, need=needs[0] if len(needs) == 1 else NeedGroup("all of", needs))
                here, read = Place(*self.chart.places[nodes[0]]), dict(self.found[""])
                leaves = (one for one in walk_need(drawn) if not one.parts)
                self.found[tool.name] += [(one, read.get(one, here)) for one in leaves]

    def _simplify(self, name: str, ways: Sequence[Way]) -> list[Way]:
        if len(ways) > _MOST_WAYS:
            self._fail_in(name, f"more than {_MOST_WAYS} ways lead here", "draw a diagram for each goal")
        return _simplify_ways(ways)

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _fail_in(self, name: str, problem: str, suggestion: str | None = None) -> NoReturn:
        self.source.fail_at(problem, Place(*self.chart.places[name]), suggestion=suggestion)

    def _read_step(self, name: str) -> CallValue | None:
        """Return the call that a node is; None for decisions, ends, and where arrows meet."""
        node, kind = self.chart.node[name], self.chart.kind(name)
        if kind == "fork":
            self._fail_in(name, "a procedure has nothing side by side", "draw the branches one after the other")
        if kind != "step":
            return None
        text = one_line(node.text)
        need = self._read_condition(name, text) if _CALL.match(text) else None
        if isinstance(need, ConditionNeed) and isinstance(need.condition, CallValue) and not need.condition.steps:
            return need.condition
        for tool in (text, name):
            if need is None and tool in self.tools:
                return CallValue(tool, tuple(FieldPath((one.name,)) for one in self.tools[tool].parameters))
        if need is None and node.shape in MARKERS and not self.chart.leaving[name]:
            return None  # an end that has a name
        return self._fail_in(name, f"this step is no call of a tool: {text}",
                             "write, for instance, find_order(order_id); an end is drawn as ([...])")  # fmt: skip

    def _read_condition(self, name: str, text: str) -> Need:
        place = Place(*self.chart.places[name])
        text = re.sub(r"'([^'\"]*)'", r'"\1"', text)  # where a diagram cannot have double quotes in a text
        column = max(self.source.text.split("\n")[place.line - 1].find(text, place.column - 1), place.column - 1)
        return self.read_need(text, Place(place.line, column + 1))

    def _read_arrows(self, name: str) -> list[tuple[FlowEdge, Way]]:
        """Return the arrows out of a node, each with what must hold to follow it."""
        edges, node = self.chart.leaving[name], self.chart.node[name]
        kind = self.chart.kind(name)
        if kind == "step" and any(edge.text for edge in edges):
            self._fail_in(name, "an arrow out of a step has an answer", f"draw a decision behind it: {{{node.text}}}")
        if kind != "decision" or (name in self.chart.starts and node.shape in MARKERS):
            return [(edge, ()) for edge in edges]
        if self.chart.is_selection(name):
            self._fail_in(name, "of this decision several answers may be chosen together", f"draw it so: {name}{{...}}")
        answers = [one_line(edge.text) for edge in edges]
        if not all(answers):
            self._fail_in(name, "an arrow out of this decision has no answer",
                          "write yes, no, a value, a comparison or else on it")  # fmt: skip
        text = one_line(node.text).rstrip("? ") if not node.text.startswith("?") else one_line(node.text)
        need = self._read_condition(name, text)
        if {answer.casefold() for answer in answers} <= {*_YES, *_NO}:
            return [(edge, (need if edge.text.casefold() in _YES else _negate(need),)) for edge in edges]
        if not isinstance(need, ConditionNeed):
            self._fail_in(name, f"{need} holds or does not: {', '.join(answers)} are no answers", "write yes and no")
        needs = [
            None if answer.casefold() in _ELSE else self._read_answer(name, need.condition, answer)
            for answer in answers
        ]
        others = tuple(_negate(one) for one in needs if one is not None)
        return [(edge, others if one is None else (one,)) for edge, one in zip(edges, needs, strict=True)]

    def _read_answer(self, name: str, value: Expression, answer: str) -> Need:
        if answer[0] in "<>=!":
            return self._read_condition(name, f"{value} {answer}")
        try:
            read = self._read_condition(name, answer)
        except NotationError:  # it is a text
            read = None
        constant = read.condition if isinstance(read, ConditionNeed) else None
        return ConditionNeed(
            BinaryOperation("==", value, constant if isinstance(constant, Constant) else Constant(answer))
        )

    # -- ways -----------------------------------------------------------------------------------------------------

    def _follow_arrows(self) -> None:
        """Find the ways to each node."""
        chart, tools, calls = self.chart, self.tools, self.calls
        order = leaving_order(chart.starts, lambda name: [edge.target for edge in chart.leaving[name][::-1]])[::-1]
        position = {name: at for at, name in enumerate(order)}
        ahead: set[str] = set()  # the nodes behind which there is something whose need is derived
        needy = {name for name, call in calls.items() if tools[call.tool].acts or tools[call.tool].is_goal}
        for name in reversed(order):
            ahead |= {name} if {edge.target for edge in chart.leaving[name]} & (ahead | needy) else set()
        self.ways = {name: [()] if name in chart.starts else [] for name in order}
        for name in order:
            here = self.ways[name] = self._simplify(name, self.ways[name])
            if name in calls:
                here = [self._pass_step(name, way) for way in here] if name in ahead else []
            for edge, needs in self._read_arrows(name):
                if position[edge.target] <= position[name]:
                    self._fail_in(name, f"the diagram goes round in a circle: from here back to {edge.target}",
                                  "a procedure has no circles; leave the arrow out")  # fmt: skip
                for fact in self.done.intersection(map(_negate, needs)):
                    if any(fact in way for way in here):
                        self._fail_in(name, f"{fact} holds here, since a step before it has it done",
                                      "leave that step out: what a decision asks for is done if it can be")  # fmt: skip
                self.ways[edge.target] += [way + needs for way in here if {*map(_negate, needs)}.isdisjoint(way)]

    def _pass_step(self, name: str, way: Way) -> Way:
        """Return a way that goes on behind a step."""
        call = self.calls[name]
        tool = self.tools[call.tool]
        if not tool.acts:
            return (*way, ConditionNeed(FunctionCall("has", (call,))))
        fact = self._find_fact(call) or self._make_fact(name, call)
        kept = tuple(need for need in way if not self._is_obsolete(need, tool))
        if kept != way and sum(one.tool == tool.name for one in self.calls.values()) > 1:
            self._fail_in(name, f"{tool.name} is drawn several times, and makes obsolete what decided between them",
                          "draw it once, or write below its declaration what it changes: changes nothing")  # fmt: skip
        self.done.add(fact)
        return (*(need for need in kept if need != _negate(fact)), fact)

    def _make_fact(self, node: str, call: CallValue) -> FactNeed:
        name = f"{call.tool}_done"
        while name in self.places:
            name += "_"
        names = tuple(one.name for one in self.tools[call.tool].parameters[: len(call.given)])
        body = CallSucceeds(CallValue(call.tool, tuple(FieldPath((one,)) for one in names)))
        self.known[name], self.places[name] = Fact(name, names, ConditionNeed(body)), Place(*self.chart.places[node])
        return FactNeed(name, call.given)

    def _find_fact(self, call: CallValue) -> FactNeed | None:
        """Return the fact that a call establishes when it succeeds."""
        for fact in self.known.values():
            shown = fact.need.condition if isinstance(fact.need, ConditionNeed) else None
            if not isinstance(shown, CallSucceeds) or shown.call.tool != call.tool:
                continue
            pairs = [*zip(shown.call.given, call.given, strict=False)]
            bound = {str(one): value for one, value in pairs if str(one) in fact.parameters}
            same = all(one == value for one, value in pairs if str(one) not in bound)
            if same and len(shown.call.given) == len(call.given) and len(bound) == len(fact.parameters):
                return FactNeed(fact.name, tuple(bound[name] for name in fact.parameters))
        return None

    def _is_obsolete(self, need: Need, step: ProcedureTool) -> bool:
        """Return whether a step makes obsolete what was decided, or ends what was established."""
        named = [self.known[one.fact] for one in walk_need(need) if isinstance(one, FactNeed)]
        called = [term.tool for term in walk_terms(need) if isinstance(term, CallValue)]
        return (
            any(end.tool == step.name for fact in named for end in fact.until)
            or any(step.makes_obsolete(name) for name in called if not self.tools[name].acts)
            or any(self._is_obsolete(fact.need, step) for fact in named)
        )

    def _list_tool_ways(self, tool: ProcedureTool, name: str) -> Iterator[Way]:
        """Yield the ways to a step, with the arguments that are drawn."""
        call = self.calls[name]
        if not self.ways[name]:
            self._fail_in(name, f"no way leads to {call}: what is decided before it contradicts itself")
        own = self._find_fact(call)
        given = [*call.given, *(Constant(one.default) for one in tool.parameters[len(call.given) :])]
        drawn = [(FieldPath((one.name,)), value) for one, value in zip(tool.parameters, given, strict=True)]
        others = tuple(
            ConditionNeed(BinaryOperation("==", parameter, value)) for parameter, value in drawn if parameter != value
        )
        for way in self.ways[name]:
            for parameter, value in drawn:
                terms = [*value.walk(), *(term for need in way for term in walk_terms(need))]
                names = [term.steps[:1] for term in terms if isinstance(term, FieldPath)]
                if parameter != value and parameter.steps in names:
                    self._fail_in(name, f"{parameter} in the diagram is not the {parameter} of {tool.name}: {value}",
                                  "give the parameter another name in its declaration")  # fmt: skip
            # That it is not done yet is no need of what does it: a procedure does nothing that is done.
            yield (*(need for need in way if tool.is_goal or own is None or need != _negate(own)), *others)


def _negate(need: Need) -> Need:
    if isinstance(need, NotNeed):
        return need.inner
    if isinstance(need, NeedGroup) and need.grouping == "none of":
        return need.items[0]
    return NeedGroup("none of", (need,)) if isinstance(need, NeedGroup | Hole) else NotNeed(need)


def _simplify_ways(ways: Sequence[Way]) -> list[Way]:
    """Leave out what does not matter, so that the same ways hold: by resolution and absorption (Quine 1955)."""
    found = list(dict.fromkeys(tuple(dict.fromkeys(way)) for way in ways))
    at = 0
    while at < len(found):
        way, known = found[at], set(found[at])
        for other in (one for one in found if one is not way):
            clashing = {need for need in other if _negate(need) in known}
            if len(clashing) < 2 and known.issuperset({*other} - clashing):
                # Where all else holds, the other way holds, or the need on which they differ does not matter.
                shorter = tuple(need for need in way if _negate(need) not in clashing)
                found[at : at + 1] = [shorter] if clashing and shorter not in found else []
                at = 0
                break
        else:
            at += 1
    return found


def _leave_out_made(way: Way) -> Way:
    """Leave out that a check was made where something else is about its result."""
    made = {need: str(need)[len("has(") : -1] for need in way if str(need).startswith("has(")}
    calls = {
        term.format_call()
        for need in way if need not in made
        for term in walk_terms(need) if isinstance(term, CallValue)
    }  # fmt: skip
    return tuple(need for need in way if made.get(need) not in calls)


def _join_ways(ways: Sequence[Way]) -> Need:
    """Return that one of some ways holds, with what they begin and end with in common written once."""
    first = _find_common_start(ways)
    ways = [way[len(first) :] for way in ways]
    last = _find_common_start([way[::-1] for way in ways])[::-1]
    ways = [way[: len(way) - len(last)] for way in ways]
    groups: dict[Need, list[Way]] = {}
    for way in ways:
        if way:
            groups.setdefault(way[0], []).append(way)
    middle = [NeedGroup("any of", tuple(map(_join_ways, groups.values())))] if groups else []
    needs = (*first, *middle, *last)
    return needs[0] if len(needs) == 1 else NeedGroup("in order", needs) if needs else NO_NEED


def _find_common_start(ways: Sequence[Way]) -> Way:
    columns = zip(*ways, strict=False)
    return tuple(column[0] for column in takewhile(lambda column: len({*column}) == 1, columns))
