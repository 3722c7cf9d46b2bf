"""State machines in SCXML (W3C, 2015): read into automata whose words are events.

Guards (``cond``) are shown as they are written. What a machine does (``onentry``, ``invoke``, its data) means nothing
here; events that are sent later are left out with a warning. An event is a name as it is written; ``*`` is any of the
machine's.
"""

from __future__ import annotations

from formal_llm.automata.models.pda import PDA
from formal_llm.automata.notation.source import SourceText
from formal_llm.automata.notation.statecharts import Arc, State, automaton
from formal_llm.automata.notation.xml_tree import Element, read_xml
from formal_llm.errors import NotationError


def read_scxml(text: str, file: str | None = None) -> PDA:
    """The automaton of a state machine in SCXML.

    Raises:
        NotationError: it is no SCXML, it has parallel states or history, or it never ends; with line and column.
    """
    source = SourceText.of(text, file, NotationError)
    root = read_xml(source)
    if root.name != "scxml":
        source.fail(f"this is no state machine: it begins with <{root.name}>", root.place, expected=("<scxml>",))
    states: dict[str, State] = {}
    name = _read(root, None, states, source)
    for state in list(states.values()):  # what is followed when an inner machine is done is an event by its name
        for holder in states.values():
            state.done += [arc for arc in holder.arcs if arc.event == f"done.state.{state.name}"]
    for state in states.values():
        state.arcs = [arc for arc in state.arcs if not (arc.event or "").startswith("done.state.")]
    return automaton(states, name, root.get("name"), source)


def _read(element: Element, parent: str | None, states: dict[str, State], source: SourceText) -> str:
    name = element.get("id") or (f"state_{len(states)}" if parent is not None else "(machine)")
    if name in states:
        source.fail(f"a second state with the id {name}", element.place)
    state = states[name] = State(name, parent, element.place, final=element.name == "final")
    first = element.get("initial").split()
    if len(first) > 1:
        source.fail("several first states are parallel states, which are not covered", element.place)
    state.initial = first[0] if first else None
    for child in element.children:
        if child.name in ("parallel", "history"):
            what = "parallel states are" if child.name == "parallel" else "history is"
            source.fail(f"{what} not covered", child.place, suggestion="write the states out, one for each combination")
        if child.name in ("state", "final"):
            state.children.append(_read(child, name, states, source))
        elif child.name == "initial":
            state.initial = next((arc.get("target") for arc in child.all("transition")), None)
        elif child.name == "transition":
            events: list[str | None] = [*child.get("event").split()]
            for event in events or [None]:
                state.arcs.append(Arc(event, child.get("target") or None, child.get("cond"), child.place))
        _warn_of_time(child, source)
    return name


def _warn_of_time(element: Element, source: SourceText) -> None:
    for sent in (element, *element.children):
        if sent.name == "send" and (sent.get("delay") or sent.get("delayexpr")):
            source.warn("an event that is sent later is left out: plans have no clock of their own", sent.place)
