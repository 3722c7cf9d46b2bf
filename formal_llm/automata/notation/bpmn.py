"""Processes in BPMN 2.0, read into flowcharts (ISO/IEC 19510:2013, sections 10 and 13).

A plan is a path of tokens through the process. Tasks are steps, as are subprocesses without content and named
events; exclusive and event-based gateways are decisions; parallel gateways, and tasks with several flows, are forks.
A step counts when it begins, so a step that an event interrupts is part of the plan. An interrupting event at the
border of a subprocess may leave it at any point, or at the point where the event is thrown.

In a chart, the branches of a fork meet again, whereas tokens may move freely. A process whose tokens would not behave
as the chart shows is therefore refused: where branches meet without a parallel gateway, or where a gateway waits for
a token that never arrives. Assumptions and omissions cause warnings; every plan is still one of the standard's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from formal_llm.automata.models.flowchart import Flowchart, find_problem
from formal_llm.automata.models.flowgraph import END, RESERVED, BranchSplit, FlowEdge, FlowGraph, FlowNode, find_splits
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.automata.notation.bpmn_parts import CHOICES, COVERAGE, NODES, SUBPROCESSES, TASKS, choose_process
from formal_llm.automata.notation.flowchart import chart_of
from formal_llm.automata.notation.mermaid_groups import Meaning
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.automata.notation.xml_tree import Element, read_xml
from formal_llm.errors import NotationError, unknown


def read_bpmn(
    text: str, file: str | None = None, *, process: str | None = None, world_after_service_tasks: bool = False
) -> Flowchart:
    """Read a BPMN 2.0 process as a flowchart.

    Warns with :class:`~formal_llm.errors.GrammarWarning` of each assumption and omission.

    Args:
        text: the XML.
        file: the name of the source, for messages.
        process: the id or the name of the process, or the name of its pool; required if the text has several processes.
        world_after_service_tasks: whether the world decides at exclusive gateways into which flows lead from service
            tasks alone: what the service returns then determines the way.

    Raises:
        NotationError: the text is not BPMN, it lacks the process or has several, or no chart can show the plans of the
            process; with line and column.
    """
    source = SourceText.from_text(text, file, NotationError)
    root = read_xml(source)
    chosen = choose_process(source, root, process)
    if chosen is not root:
        COVERAGE.check_tree(replace(root, children=[one for one in root.children if one.name != "process"]), source)
    reader = _ProcessReader(source, chosen, {one.get_attribute("id"): one for one in root.children})
    chart = reader.read_chart()
    world = reader.after_services & chart.node.keys() if world_after_service_tasks else set()
    return replace(chart, world=frozenset(name for name in world if chart.answer_edges(name)))


@dataclass(eq=False)
class _Scope:
    """A process or a subprocess."""

    element: Element
    around: tuple[_Scope, ...] = ()  # this scope and those around it; the process is last
    catches: Sequence[Element] = ()  # the events at its border
    nodes: dict[str, Element] = field(default_factory=dict)  # the elements directly in it, by id
    borders: dict[str, list[Element]] = field(default_factory=dict)  # the events at the border of each node
    leaving: dict[str, list[Element]] = field(default_factory=dict)  # the flows out of each node
    entered: dict[str, int] = field(default_factory=dict)  # the number of flows into each node
    end: str = ""  # the node of the chart where its branches end; empty for a process

    def __post_init__(self) -> None:
        self.around = (self, *self.around)


class _ProcessReader:
    """Draws a process as a chart: nodes and arrows, with the data for checking its forks."""

    def __init__(self, source: SourceText, process: Element, definitions: Mapping[str, Element]) -> None:
        self.source = source
        self.process = process
        self.definitions = definitions
        self.top = _Scope(process)
        self.nodes: dict[str, FlowNode] = {}
        self.places: dict[str, Place] = {}
        self.scopes: dict[str, _Scope] = {}  # by node of the chart
        self.edges: list[tuple[FlowEdge, Place]] = []
        self.elements: dict[str, tuple[str, Element]] = {}  # by id: the entry node of each element, and the element
        self.exits: dict[str, str] = {}  # by id: the node from which flows continue
        self.left_out: set[str] = set()
        self.caught_apart: dict[str, set[str]] = {}  # by id: the kinds of events that its event subprocesses catch
        self.thrown: set[str] = set()  # the events at borders that are thrown inside
        self.interrupted: list[tuple[_Scope, Element]] = []
        self.stops: list[tuple[str, _Scope]] = []  # the nodes that stop everything running in a scope
        self.after_services: set[str] = set()  # the exclusive gateways that only service tasks lead to
        self.joins: dict[str, int] = {}  # the parallel gateways that wait, with the number of flows

    def read_chart(self) -> Flowchart:
        self._leave_out(self.process)
        COVERAGE.check_tree(self.process, self.source)
        self._drop_unreached(self._read_scope(self.top))
        if find_problem(self._build_graph()) is not None:
            self._copy_ends()
        if find_problem(self._build_graph()) is None:
            self._draw_interruptions()
            self._check_forks()
        edges, places = zip(*self.edges, strict=True) if self.edges else ((), ())
        meant = Meaning(tuple(self.nodes.values()), edges, self.places, places)
        return chart_of(meant, "LR", self.process.get_attribute("name"), self.source)

    # -- nodes and arrows -----------------------------------------------------------------------------------------

    def _add_node(self, name: str, text: str, shape: str, place: Place, scope: _Scope) -> str:
        name = re.sub(r"\W+", "_", name).strip("_") or "node"
        name = f"{name}_" if name in RESERVED else name
        while name in self.nodes:
            name += "_"
        self.nodes[name] = FlowNode(name, text, shape)
        self.places[name] = place
        self.scopes[name] = scope
        return name

    def _add_edge(self, source: str, target: str, place: Place, text: str = "") -> None:
        self.edges.append((FlowEdge(source, target, text), place))

    def _add_question(
        self, name: str, text: str, answers: Sequence[tuple[str, str]], place: Place, scope: _Scope
    ) -> str:
        asked = self._add_node(name, text, "diam", place, scope)
        for answer, target in answers:
            self._add_edge(asked, target, place, answer)
        return asked

    def _add_fork(self, name: str, targets: Sequence[str], place: Place, scope: _Scope) -> str:
        fork = self._add_node(name, "", "fork", place, scope)
        for target in targets:
            self._add_edge(fork, target, place)
        return fork

    def _build_graph(self) -> FlowGraph:
        return FlowGraph(tuple(self.nodes.values()), tuple(edge for edge, _ in self.edges))

    def _read_events(self, element: Element) -> dict[str, Element]:
        """Return the definitions of what an event waits for or throws, by kind, such as ``error``."""
        refs = [ref.text.strip().rpartition(":")[2] for ref in element.list_children("eventDefinitionRef")]
        found = [*element.children, *(self.definitions[ref] for ref in refs if ref in self.definitions)]
        ending = "EventDefinition"
        return {one.name.removesuffix(ending): one for one in found if one.name.endswith(ending)}

    def _describe_event(self, event: Element) -> str:
        kinds = [*self._read_events(event), "other"]
        return event.get_attribute("name") or ("it fails" if kinds[0] == "error" else f"{kinds[0]} event")

    def _warn_about(self, message: str, element: Element) -> None:
        self.source.warn_at(message, element.place, stacklevel=3)

    # -- elements -------------------------------------------------------------------------------------------------

    def _leave_out(self, inside: Element) -> None:
        """Remove compensation and event subprocesses from the tree."""
        kept = []
        for element in inside.children:
            border = element.name == "boundaryEvent" and "compensate" in self._read_events(element)
            reason = "compensation undoes what is done" if border or _is_flag_set(element, "isForCompensation") else ""
            if _is_flag_set(element, "triggeredByEvent"):
                reason = "it begins by an event of its own"
                caught = {kind for start in element.list_children("startEvent") for kind in self._read_events(start)}
                self.caught_apart.setdefault(inside.get_attribute("id"), set()).update(caught)
            if reason and element.is_standard:
                self._warn_about(f"<{element.name}> {_get_name(element)} is left out: {reason}", element)
                self.left_out.add(element.get_attribute("id"))
                continue
            if element.name in SUBPROCESSES:
                self._leave_out(element)
            kept.append(element)
        inside.children = kept

    def _read_scope(self, scope: _Scope) -> str:
        """Draw the content of a process or subprocess and return its first node."""
        for element in scope.element.list_children(*NODES):
            key = element.get_attribute("id")
            if not key or key in self.elements:
                self.source.fail_at("this element has no id" if not key else f"a second element with the id {key}",
                                 element.place)  # fmt: skip
            self.elements[key] = "", element
            scope.nodes[key] = element
            if "timer" in self._read_events(element) and element.name != "startEvent":
                self._warn_about(
                    f"the timer {_get_name(element)} is an event that may happen at any time: plans have no clock",
                    element,
                )
        for element in scope.nodes.values():
            host = element.get_attribute("attachedToRef")
            if element.name == "boundaryEvent":
                if host not in scope.nodes:
                    self.source.fail_at(unknown("task with an event at its border", host, scope.nodes), element.place)
                scope.borders.setdefault(host, []).append(element)
                self._declare_element(
                    element, self._add_node(element.get_attribute("id"), "", "f-circ", element.place, scope)
                )
        self._read_flows(scope)
        for element in scope.nodes.values():
            if element.name != "boundaryEvent":
                self._read_node(element, scope)
        before: dict[str, set[str]] = {}
        for key, flows in scope.leaving.items():
            for flow in flows:
                before.setdefault(flow.get_attribute("targetRef"), set()).add(scope.nodes[key].name)
        self.after_services |= {
            self._get_entry(key)
            for key, element in scope.nodes.items()
            if element.name == "exclusiveGateway" and before.get(key) == {"serviceTask"}
        }
        for key, element in scope.nodes.items():
            self._draw_flows(element, scope.leaving.get(key, []), scope)
        return self._draw_start(scope)

    def _declare_element(self, element: Element, entry: str, leave: str | None = None) -> None:
        self.elements[element.get_attribute("id")] = entry, element
        self.exits[element.get_attribute("id")] = leave or entry

    def _get_entry(self, key: str) -> str:
        return self.elements[key][0]

    def _read_node(self, element: Element, scope: _Scope) -> None:
        name, text = element.get_attribute("id"), element.get_attribute("name")
        for quantity in ("startQuantity", "completionQuantity"):
            if element.get_attribute(quantity) not in ("", "1"):
                self.source.fail_at(f"the {quantity} of {_get_name(element)} is not covered: several tokens at once",
                                 element.place)  # fmt: skip
        if element.name in SUBPROCESSES and any(element.list_children(*NODES)):
            self._declare_element(
                element, *self._draw_repetition(element, *self._read_subprocess(element, scope), scope)
            )
        elif element.name in (*TASKS, *SUBPROCESSES):
            step = self._add_node(name, text or name, "rect", element.place, scope)
            self._declare_element(
                element, *self._draw_repetition(element, step, self._read_borders(element, step, scope), scope)
            )
        elif element.name == "parallelGateway":
            self._declare_element(element, self._add_node(name, "", "fork", element.place, scope))
            if scope.entered.get(name, 0) > 1:
                self.joins[self._get_entry(name)] = scope.entered[name]
        elif element.name in CHOICES:
            if element.get_attribute("eventGatewayType") == "Parallel":
                self.source.fail_at(f"{_get_name(element)} waits for several events at once, which is not covered",
                                 element.place)  # fmt: skip
            several = len(scope.leaving.get(name, [])) > 1
            asked = "What happens?" if element.name == "eventBasedGateway" else "Which way?"
            shape, text = ("diam", text or asked) if several else ("f-circ", "")
            self._declare_element(element, self._add_node(name, text, shape, element.place, scope))
        else:
            self._declare_element(
                element, self._add_node(name, *self._event_shape(element, scope), element.place, scope)
            )

    def _event_shape(self, element: Element, scope: _Scope) -> tuple[str, str]:
        """Return the text and shape of an event: a named one is a step, unless it only begins, ends or jumps."""
        text, kinds = element.get_attribute("name"), self._read_events(element)
        if element.name == "startEvent":
            return (text or "Start", "stadium") if scope is self.top else ("", "f-circ")
        if "compensate" in kinds:
            self._warn_about(f"<{element.name}> {_get_name(element)} is passed over: compensation is left out", element)
        if kinds.keys() & {"link", "compensate"}:
            return "", "f-circ"
        if element.name == "endEvent":
            return (text or "End", "stadium") if text or scope is self.top else ("", "f-circ")
        return (text, "rect") if text else ("", "f-circ")

    def _read_borders(self, element: Element, step: str, scope: _Scope) -> str:
        """Draw the events at the border of a step and return the node from which flows continue."""
        events = scope.borders.get(element.get_attribute("id"), [])
        if not events:
            return step
        rest = first = self._add_node(f"{step}_done", "", "f-circ", element.place, scope)
        stops = [
            (self._describe_event(event), self._get_entry(event.get_attribute("id")))
            for event in events
            if _is_interrupting(event)
        ]
        if 0 < len(stops) < len(events):  # what runs beside the step continues when the step is interrupted
            question = f"What follows {_get_name(element)}?"
            first = self._add_question(f"{step}_next", question, [("it is done", rest), *stops], element.place, scope)
        for event in events:
            first = first if _is_interrupting(event) else self._draw_side_event(event, first, scope)
        self._add_edge(step, first, element.place)
        for text, target in stops if len(stops) == len(events) else ():
            self._add_edge(step, target, element.place, text)
        return rest

    def _draw_side_event(self, event: Element, rest: str, scope: _Scope) -> str:
        """Ask whether a non-interrupting event happens; what it starts runs beside the rest."""
        self._warn_about(f"{_get_name(event)} may happen once at most here; the standard lets it happen again", event)
        key, text = event.get_attribute("id"), self._describe_event(event)
        fork = self._add_fork(f"{key}_beside", (rest, self._get_entry(key)), event.place, scope)
        return self._add_question(
            f"{key}_asked", f"{text.rstrip('?')}?", [("no", rest), ("yes", fork)], event.place, scope
        )

    def _read_subprocess(self, element: Element, scope: _Scope) -> tuple[str, str]:
        """Draw a subprocess with the events at its border and return its first and last nodes."""
        name = element.get_attribute("id")
        events = scope.borders.get(name, [])
        inner = _Scope(element, scope.around, events)
        inner.end = end = self._add_node(f"{name}_end", "", "f-circ", element.place, inner)
        entry = self._read_scope(inner)
        if element.name == "adHocSubProcess":
            end = self._add_node(f"{name}_done", "", "f-circ", element.place, inner)
            self._add_edge(entry, end, element.place, "done")
            self._add_edge(inner.end, entry, element.place)
        for event in sorted(events, key=_is_interrupting, reverse=True):
            key = event.get_attribute("id")
            if key in self.thrown:
                continue
            if _is_interrupting(event):
                self.interrupted.append((inner, event))
                answers = [("no", entry), ("yes", self._get_entry(key))]
                text = f"{self._describe_event(event).rstrip('?')}?"
                entry = self._add_question(f"{key}_asked", text, answers, event.place, inner)
            else:
                entry = self._draw_side_event(event, entry, scope)
        return entry, end

    def _draw_repetition(self, element: Element, entry: str, leave: str, scope: _Scope) -> tuple[str, str]:
        """Draw the repetition of an element, if it repeats, and return the first and last nodes."""
        several = next(element.list_children("multiInstanceLoopCharacteristics"), None)
        loop = several or next(element.list_children("standardLoopCharacteristics"), None)
        if loop is None:
            return entry, leave
        if several is not None:
            self._warn_about(
                f"{_get_name(element)} is done for each of several things: here it is done any number of times, one"
                " after the other",
                element,
            )
        elif loop.get_attribute("loopMaximum"):
            self._warn_about(
                f"the loopMaximum of {_get_name(element)} is left out: here it is done any number of times", element
            )
        name = element.get_attribute("id")
        done = self._add_node(f"{name}_left", "", "f-circ", element.place, scope)
        answers = [("yes", entry), ("no", done)]
        again = self._add_question(f"{name}_again", f"{_get_name(element)}: once more?", answers, element.place, scope)
        self._add_edge(leave, again, element.place)
        before = several is not None or _is_flag_set(loop, "testBefore")
        return (again if before else entry), done

    # -- flows ----------------------------------------------------------------------------------------------------

    def _read_flows(self, scope: _Scope) -> None:
        for flow in scope.element.list_children("sequenceFlow"):
            ends = flow.get_attribute("sourceRef"), flow.get_attribute("targetRef")
            if self.left_out.isdisjoint(ends):
                for end in ends:
                    if end not in scope.nodes:
                        self.source.fail_at(unknown("end of a flow", end, scope.nodes), flow.place,
                                         suggestion="flows lead over no border of a process or subprocess")  # fmt: skip
                one, other = (scope.nodes[end].name for end in ends)
                if one == "endEvent" or other in ("startEvent", "boundaryEvent"):
                    self.source.fail_at(
                        "a flow leads out of no end event, and into no start event or event at a border", flow.place
                    )
                scope.leaving.setdefault(ends[0], []).append(flow)
            scope.entered[ends[1]] = scope.entered.get(ends[1], 0) + 1

    def _draw_flows(self, element: Element, flows: Sequence[Element], scope: _Scope) -> None:
        leave, kinds = self.exits[element.get_attribute("id")], self._read_events(element)
        throws = element.name in ("endEvent", "intermediateThrowEvent")
        if throws and "link" in kinds:
            self._add_edge(leave, self._link_target(element, kinds["link"], scope), element.place)
            return
        if throws and (caught := self._draw_throw(element, kinds, scope)) is not None:
            leave = caught
            if not leave:
                return
        targets = [self._get_entry(flow.get_attribute("targetRef")) for flow in flows]
        if not flows and scope is not self.top:
            self._add_edge(leave, scope.end, element.place)
        elif len({*targets}) < len(targets) and element.name not in CHOICES:
            self._refuse_node(
                leave, "two of its flows lead to one place, so what follows would be done by each of them"
            )
        elif len(flows) < 2 or element.name in (*CHOICES, "parallelGateway"):
            for flow, target in zip(flows, targets, strict=True):
                text = _get_answer_text(element, flow) if element.name in CHOICES and len(flows) > 1 else ""
                self._add_edge(leave, target, flow.place, text)
        else:
            self._draw_several(element, leave, flows, targets, scope)

    def _draw_several(
        self, element: Element, leave: str, flows: Sequence[Element], targets: Sequence[str], scope: _Scope
    ) -> None:
        """Draw several flows out of an element that is no gateway: all of them, or one if the other is its default."""
        default = [flow for flow in flows if flow.get_attribute("id") == element.get_attribute("default")]
        conditional = [flow for flow in flows if any(flow.list_children("conditionExpression")) and flow not in default]
        if not conditional and not default:
            self._add_edge(leave, self._add_fork(f"{leave}_all", targets, element.place, scope), element.place)
        elif len(flows) == 2 and len(conditional) == len(default) == 1:
            texts = [_get_answer_text(element, flow) or "its condition holds" for flow in flows]
            answers = list(zip(texts, targets, strict=True))
            question = self._add_question(
                f"{leave}_next", f"What follows {_get_name(element)}?", answers, element.place, scope
            )
            self._add_edge(leave, question, element.place)
        else:
            self.source.fail_at(
                f"of the flows out of {_get_name(element)} any may be followed together, since some have"
                " conditions; that is not covered",
                flows[0].place,
                suggestion="put an exclusive or a parallel gateway behind it",
            )

    def _link_target(self, element: Element, link: Element, scope: _Scope) -> str:
        for key, other in scope.nodes.items():
            caught = self._read_events(other).get("link", link)
            if (
                caught is not link
                and caught.get_attribute("name") == link.get_attribute("name")
                and other.name == "intermediateCatchEvent"
            ):
                return self._get_entry(key)
        name = link.get_attribute("name") or _get_name(element)
        return self.source.fail_at(f"the link {name} leads nowhere: no event catches it", element.place)

    def _draw_throw(self, element: Element, kinds: Mapping[str, Element], scope: _Scope) -> str | None:
        """Draw the event that an end or throw event throws to a border.

        Returns:
            The node from which flows continue, empty if there is none; None if nothing is thrown to a border.
        """
        leave = self.exits[element.get_attribute("id")]
        if "terminate" in kinds:
            self.stops.append((leave, scope))
        kind = next((kind for kind in ("error", "cancel", "escalation") if kind in kinds), None)
        if kind is None:
            return None
        thrown = kinds[kind].get_attribute(f"{kind}Ref")
        for around in scope.around:
            if kind in self.caught_apart.get(around.element.get_attribute("id"), ()):
                self.source.fail_at(
                    f"{_get_name(element)} throws what an event subprocess catches, which is not covered",
                    element.place,
                    suggestion="catch it at the border of a subprocess",
                )
            for event in around.catches:
                caught = self._read_events(event).get(kind)
                if caught is None or caught.get_attribute(f"{kind}Ref") not in ("", thrown):
                    continue
                key = event.get_attribute("id")
                self.thrown.add(key)
                if _is_interrupting(event):
                    self.stops.append((leave, around))
                    self._add_edge(leave, self._get_entry(key), element.place)
                    return ""
                fork = self._add_fork(f"{leave}_beside", (self._get_entry(key),), element.place, scope)
                self._add_edge(leave, fork, element.place)
                return fork
        if kind == "escalation":
            return None
        self.stops.append((leave, self.top))
        if scope is not self.top:
            self._warn_about(f"{_get_name(element)} is caught at no border: it ends the process here", element)
            last = self._add_node(f"{leave}_end", "", "f-circ", element.place, self.top)
            self._add_edge(leave, last, element.place)
        return ""

    def _draw_start(self, scope: _Scope) -> str:
        """Return the node with which a process or subprocess begins."""
        starts = [one for one in scope.nodes.values() if one.name == "startEvent"]
        first = [one for key, one in scope.nodes.items()
                 if key not in scope.entered and one.name not in ("startEvent", "boundaryEvent")
                 and not (one.name == "intermediateCatchEvent" and "link" in self._read_events(one))]  # fmt: skip
        place, name = scope.element.place, _get_name(scope.element)
        names = [one.get_attribute("name") for one in starts or first]
        entries = [
            (
                text if text and names.count(text) == 1 else one.get_attribute("id"),
                self._get_entry(one.get_attribute("id")),
            )
            for text, one in zip(names, starts or first, strict=True)
        ]
        if scope.element.name == "adHocSubProcess":
            if scope.element.get_attribute("ordering") != "Sequential" and any(
                scope.element.list_children("sequenceFlow")
            ):
                self._warn_about(
                    f"what {name} holds is done one after the other here; the standard lets it run side by side",
                    scope.element,
                )
            return self._add_question(f"{scope.end}_next", f"{name}: what next?", entries, place, scope)
        if len(starts) == 1 or (not starts and len(first) == 1):
            return entries[0][1]
        if not entries:
            self.source.fail_at(f"nothing begins in {name}: flows lead to all that is in it" if scope.nodes
                             else f"the process {name} is empty: it has no tasks", place)  # fmt: skip
        waiting = [one for one in first if _is_flag_set(one, "instantiate")]
        if starts and scope is not self.top:
            self.source.fail_at(f"{name} has several start events; a subprocess begins at one", starts[1].place)
        if starts or len(waiting) == len(first):
            for _, entry in entries:
                self.nodes[entry] = FlowNode(entry, "", "f-circ") if starts else self.nodes[entry]
            return self._add_question("begin", "Where does it begin?", entries, place, scope)
        return self._add_fork("begin", [entry for _, entry in entries], place, scope)

    # -- the whole chart --------------------------------------------------------------------------------------------

    def _drop_unreached(self, start: str) -> None:
        graph = self._build_graph()
        reached = find_reachable([start], lambda name: [edge.target for edge in graph.leaving[name]])
        lost = [one for entry, one in self.elements.values() if entry not in reached and one.name != "boundaryEvent"]
        if lost:
            self._warn_about(f"no flow leads from the start to {', '.join(map(_get_name, lost))}: left out", lost[0])
        self.nodes = {name: node for name, node in self.nodes.items() if name in reached}
        self.edges = [(edge, place) for edge, place in self.edges if edge.source in reached]

    def _copy_ends(self) -> None:
        """Draw a separate end for each flow to an end event, since tokens do not meet there."""
        for entry, element in list(self.elements.values()):
            if element.name == "endEvent" and entry in self.nodes:
                leaving = [edge for edge, _ in self.edges if edge.source == entry]
                for number in [n for n, (edge, _) in enumerate(self.edges) if edge.target == entry][1:]:
                    edge, place = self.edges[number]
                    shape, text = self.nodes[entry].shape, self.nodes[entry].text
                    copy = self._add_node(f"{entry}_", text, shape, place, self.scopes[entry])
                    self.edges[number] = replace(edge, target=copy), place
                    self.edges += [(replace(out, source=copy), place) for out in leaving]
                    self.stops += [(copy, scope) for stop, scope in self.stops if stop == entry]

    def _draw_interruptions(self) -> None:
        """Draw an arrow from each step of an interruptible subprocess to the event that interrupts it."""
        graph = self._build_graph()
        forks = [(fork, _find_region(graph, split)) for fork, split in find_splits(graph).items() if split]
        for scope, event in self.interrupted:
            target = self._get_entry(event.get_attribute("id"))
            steps = [name for name in self.nodes if scope in self.scopes[name].around and graph.kind(name) == "step"]
            forked = {name for fork, region in forks if scope in self.scopes[fork].around for name in region}
            if forked.intersection(steps):
                self._warn_about(
                    f"{_get_name(event)} interrupts {_get_name(scope.element)} only where nothing runs side by side"
                    " here; the standard lets it come at any point",
                    event,
                )
            for step in steps:
                if step not in forked and target in self.nodes:
                    self._add_edge(step, target, event.place, self._describe_event(event))

    def _check_forks(self) -> None:
        """Refuse forks whose tokens would not behave as the chart shows."""
        graph = self._build_graph()
        before: dict[str, set[str]] = {name: set() for name in self.nodes}
        for edge in graph.edges:
            before[edge.target].add(edge.source)
        joined: set[str] = set()
        for fork, split in find_splits(graph).items():
            if split is None:
                return  # refused with the chart
            region = _find_region(graph, split)
            if fork in region:
                self._refuse_node(fork, "a branch of it leads back to it while others run")
            for stop, scope in self.stops:
                if stop in region and scope in self.scopes[fork].around:
                    self._refuse_node(stop, f"it stops what runs side by side since {self._describe_node(fork)}")
            for part in _iterate_splits(split):
                self._check_join(fork, part, graph, before, joined)
        for gateway in self.joins:
            if gateway in self.nodes and gateway not in joined:
                self._refuse_node(gateway, "it waits for all of its flows, and they do not all come from one fork")

    def _check_join(
        self, fork: str, split: BranchSplit, graph: FlowGraph, before: Mapping[str, set[str]], joined: set[str]
    ) -> None:
        join = split.join
        if join in self.joins:
            region = _find_region(graph, split)
            entered = any(before[name] - region.keys() - {fork} for name in region)
            if entered or join in joined or self.joins[join] != len(split.branches):
                self._refuse_node(
                    join,
                    f"it waits for {self.joins[join]} flows, and not each of them comes from one of the"
                    f" {len(split.branches)} branches since {self._describe_node(fork)}",
                )
            joined.add(join)
            return
        ends = [scope.end for scope in self.scopes[fork].around]
        while join not in (END, *ends, *self.joins) and graph.kind(join) in ("junction", "end"):
            join = graph.leaving[join][0].target if graph.leaving[join] else END
        if join != END and join not in ends:
            element = next((one for entry, one in self.elements.values() if entry == join), self.process)
            if element.name != "endEvent" or self._read_events(element):
                self._refuse_node(
                    split.join,
                    f"the branches since {self._describe_node(fork)} meet at it without a parallel"
                    " gateway, so what follows would be done by each of them",
                )
            self._warn_about(
                f"{_get_name(element)} is passed once, when all branches since {self._describe_node(fork)} have come "
                "to it",
                element,
            )

    def _describe_node(self, node: str) -> str:
        """Return the name for messages of a node: that of the element that it was drawn for."""
        for key, (entry, element) in self.elements.items():
            if node in (entry, self.exits.get(key)) or node.startswith(f"{entry}_"):
                return _get_name(element)
        return _get_name(self.process)

    def _refuse_node(self, node: str, reason: str) -> NoReturn:
        self.source.fail_at(f"a chart cannot show {self._describe_node(node)}: {reason}", self.places[node],
                         suggestion="let all branches of a parallel gateway meet at one")  # fmt: skip


def _get_name(element: Element) -> str:
    return " ".join(element.get_attribute("name").split()) or element.get_attribute("id") or "(no name)"


def _is_flag_set(element: Element, name: str) -> bool:
    return element.get_attribute(name) in ("true", "1")


def _is_interrupting(event: Element) -> bool:
    return event.get_attribute("cancelActivity") not in ("false", "0")


def _get_answer_text(source: Element, flow: Element) -> str:
    """Return the text of a flow out of a decision: its name, its condition, or ``else`` for the default."""
    conditions = [found.text.strip() for found in flow.list_children("conditionExpression")]
    wrapped = re.fullmatch(r"[$#=]?\{(.*)\}", conditions[0], re.DOTALL) if conditions else None
    condition = wrapped[1].strip() if wrapped else (conditions or [""])[0].lstrip("= ")
    by_default = source.get_attribute("default") == flow.get_attribute("id") and bool(flow.get_attribute("id"))
    return flow.get_attribute("name") or condition or ("else" if by_default else "")


def _iterate_splits(split: BranchSplit) -> Iterator[BranchSplit]:
    """Yield a split and those inside it."""
    yield split
    for branch in split.branches:
        if isinstance(branch, BranchSplit):
            yield from _iterate_splits(branch)


def _find_region(graph: FlowGraph, split: BranchSplit) -> Mapping[str, None]:
    """Return the nodes in the branches of a fork, before they meet."""
    begins = [branch for part in _iterate_splits(split) for branch in part.branches if isinstance(branch, str)]

    def find_targets(name: str) -> list[str]:
        return [edge.target for edge in graph.leaving[name] if edge.target != split.join]

    return find_reachable([name for name in begins if name != split.join], find_targets)
