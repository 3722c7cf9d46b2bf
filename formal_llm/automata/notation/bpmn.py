"""Processes in BPMN 2.0: read into flowcharts.

Tasks are steps, exclusive gateways are decisions (with the names or conditions of their flows for answers), parallel
gateways are forks, as is a task with several flows without conditions. A subprocess is a step with steps inside. An
error that is caught at the border of a task is an answer after it. Timers are left out, with a warning; data, lanes and
notes mean nothing. Inclusive and complex gateways are refused. (ISO/IEC 19510:2013, sections 10 and 13.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.flowgraph import RESERVED
from formal_llm.automata.models.symbols import reach
from formal_llm.automata.notation.flowchart import chart_of
from formal_llm.automata.notation.mermaid_groups import Group, Link, Vertex, meaning
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.automata.notation.xml_tree import Element, read_xml
from formal_llm.errors import NotationError, unknown

_TASKS = ("task", "userTask", "serviceTask", "scriptTask", "manualTask", "businessRuleTask", "sendTask", "receiveTask",
          "callActivity")  # fmt: skip
_EVENTS = ("startEvent", "endEvent", "intermediateCatchEvent", "intermediateThrowEvent")
_GATEWAYS = ("exclusiveGateway", "eventBasedGateway", "parallelGateway")
_INSIDE = ("subProcess", "transaction", "adHocSubProcess")
_REFUSED = {
    "inclusiveGateway": "an inclusive gateway follows any of its flows together",
    "complexGateway": "a complex gateway follows rules of its own",
}


def read_bpmn(text: str, file: str | None = None) -> Flowchart:
    """The flowchart that a BPMN 2.0 process is.

    Warns with :class:`~formal_llm.errors.GrammarWarning` for each timer, and for processes besides the first one.

    Raises:
        NotationError: the text is no BPMN, or the process describes no plans; with line and column.
    """
    source = SourceText.of(text, file, NotationError)
    root = read_xml(source)
    processes = (
        [root]
        if root.name == "process"
        else [one for one in root.all("process") if list(one.all("sequenceFlow", *_TASKS))]
    )
    if not processes:
        source.fail("there is no process in this", root.place, expected=("a <process> with tasks and flows",))
    for other in processes[1:]:
        source.warn(
            f"the process {other.get('id')} is left out: a chart is made of the first one", other.place, stacklevel=2
        )
    return _Process(source, processes[0]).chart()


class _Process:
    def __init__(self, source: SourceText, process: Element) -> None:
        self.source = source
        self.process = process
        self.vertices: dict[str, Vertex] = {}
        self.groups: dict[str, Group] = {}
        self.flows: list[tuple[Element, str, str]] = []
        self.names: dict[str, str] = {}
        self.elements: dict[str, Element] = {}
        self.late: set[str] = set()

    def chart(self) -> Flowchart:
        self._read(self.process, None)
        known = self.names
        leaving: dict[str, list[Element]] = {}
        arriving: set[str] = set()
        for flow, one, other in self.flows:
            for end in (one, other):
                if end not in known:
                    self.source.fail(unknown("end of a flow", end, known), flow.place)
            leaving.setdefault(one, []).append(flow)
            arriving.add(other)
        for key, element in self.elements.items():
            self._shape(key, element, leaving.get(key, []))
        links = [
            Link(
                known[one], known[other], self._text(flow, one, leaving[one]), flow.place, self._fork(one, leaving[one])
            )
            for flow, one, other in self.flows
            if one not in self.late
        ]
        self._drop_after_timers(links)
        for one, event in self.elements.items():
            host = event.get("attachedToRef")
            if event.name == "boundaryEvent" and one not in self.late and host in known:
                text = event.get("name") or "it fails"
                links = [
                    link._replace(source=known[host], text=text) if link.source == known[one] else link
                    for link in links
                ]
                self.vertices.pop(known[one], None)
        links = [link for link in links if {link.source, link.target} <= self.vertices.keys() | self.groups.keys()]
        title = self.process.get("name")
        return chart_of(meaning(self.vertices, links, self.groups), "LR", title, self.source)

    # -- what there is --------------------------------------------------------------------------------------------

    def _read(self, inside: Element, group: Group | None) -> None:
        for element in inside.children:
            key = element.get("id")
            if element.name == "sequenceFlow":
                self.flows.append((element, element.get("sourceRef"), element.get("targetRef")))
                continue
            if element.name in _REFUSED:
                self.source.fail(f"{_REFUSED[element.name]}, which is not covered", element.place,
                                 suggestion="use exclusive and parallel gateways")  # fmt: skip
            if element.name not in (*_TASKS, *_EVENTS, *_GATEWAYS, *_INSIDE, "boundaryEvent"):
                continue
            if element.get("triggeredByEvent") == "true":
                self.source.warn(
                    f"the subprocess {key} begins by an event of its own and is left out", element.place, stacklevel=4
                )
                continue
            name = self._new(key, element.place)
            self.names[key] = name
            self.elements[key] = element
            if group is not None:
                group.mentions[name] = None
                group.members += [] if element.name == "boundaryEvent" else [name]
            if element.name in _INSIDE:
                made = Group(element.get("name") or name, 0)
                self.groups[name] = made
                self._read(element, made)

    def _new(self, key: str, place: Place) -> str:
        if not key or key in self.names:
            self.source.fail("this element has no id" if not key else f"a second element with the id {key}", place)
        name = re.sub(r"\W+", "_", key).strip("_") or "node"
        name = f"{name}_" if name in RESERVED else name
        taken = set(self.names.values())
        while name in taken:
            name += "_"
        return name

    def _shape(self, key: str, element: Element, leaving: list[Element]) -> None:
        name, said = self.names[key], element.get("name")
        text, shape = said or name, "rect"
        timed = any(element.all("timerEventDefinition"))
        if timed:
            self.source.warn(
                f"the timer {said or key} is left out: plans have no clock of their own", element.place, stacklevel=3
            )
        if element.name == "startEvent":
            text, shape = said or "Start", "stadium"
        elif element.name == "endEvent":
            text, shape = said or "End", "stadium"
        elif element.name == "boundaryEvent":
            self.late |= {key} if timed else set()
        elif element.name == "parallelGateway":
            text, shape = "", "fork"
        elif element.name in _GATEWAYS:
            text, shape = (said, "diam") if len(leaving) > 1 else ("", "f-circ")
        elif element.name in _EVENTS:
            text, shape = ("", "f-circ") if timed or not said else (said, "rect")
        elif element.name in _INSIDE and not self.groups[name].members:
            text = said or name
        if element.name not in ("boundaryEvent",) or not timed:
            self.vertices[name] = Vertex(name, text, shape, element.place)

    # -- flows ----------------------------------------------------------------------------------------------------

    def _text(self, flow: Element, one: str, leaving: list[Element]) -> str:
        source = self.elements[one]
        if len(leaving) < 2 or self._fork(one, leaving) or source.name == "parallelGateway":
            return ""
        conditions = [found.text.strip() for found in flow.all("conditionExpression")]
        wrapped = re.fullmatch(r"[$#=]?\{(.*)\}", conditions[0], re.DOTALL) if conditions else None
        condition = wrapped[1].strip() if wrapped else (conditions or [""])[0].lstrip("= ")
        by_default = source.get("default") == flow.get("id") and bool(flow.get("id"))
        return condition if condition and not flow.get("name") else flow.get("name") or ("else" if by_default else "")

    def _fork(self, one: str, leaving: list[Element]) -> int:
        """A number for the flows out of something that follows all of them without being a gateway."""
        free = not any(any(flow.all("conditionExpression")) for flow in leaving)
        if self.elements[one].name in _GATEWAYS or len(leaving) < 2 or not free:
            return 0
        return 1 + list(self.elements).index(one)

    def _drop_after_timers(self, links: list[Link]) -> None:
        """Leave out what only a timer leads to."""
        first = {self.names[other] for _, one, other in self.flows if one in self.late}
        after: dict[str, list[str]] = {name: [] for name in [*self.vertices, *self.groups]}
        for link in links:
            after[link.source].append(link.target)
        for name, group in self.groups.items():
            after[name] += group.members
        entered = {target for name, targets in after.items() for target in targets if name != target}
        starts = [name for name in after if name not in entered and name not in first]
        kept = reach(starts, lambda name: list(self._with_borders(name, after)))
        for name in first - kept.keys():
            for lost in reach([name], after.__getitem__):
                if lost not in kept:
                    self.vertices.pop(lost, None)
                    self.groups.pop(lost, None)

    def _with_borders(self, name: str, after: dict[str, list[str]]) -> Iterator[str]:
        yield from after[name]
        for key, event in self.elements.items():
            if (
                event.name == "boundaryEvent"
                and key not in self.late
                and self.names.get(event.get("attachedToRef")) == name
            ):
                yield self.names[key]
