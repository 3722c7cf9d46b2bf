"""State machines in SCXML (W3C, 2015): read into automata whose words are events.

What a machine raises itself (``raise``, and ``send`` to itself without a delay) is followed. What it sends with a
delay, what it hears of services and other machines, and errors may come at any time: they are steps of a plan. Guards
(``cond``) are shown as they are written. Data means nothing here: conditions about it are choices. What
:mod:`formal_llm.automata.notation.statecharts` explains holds for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

from formal_llm.automata.models.pda import PDA
from formal_llm.automata.notation.coverage import HISTORY, Coverage, by_name
from formal_llm.automata.notation.source import SourceText
from formal_llm.automata.notation.statecharts import (
    NOTHING,
    Arc,
    Content,
    Kind,
    Raised,
    State,
    build_automaton,
    join_contents,
)  # fmt: skip
from formal_llm.automata.notation.xml_tree import Element, read_xml
from formal_llm.errors import NotationError

_MEANT = """
@id scxml scxml@initial scxml@name state state@initial parallel final initial onentry onexit raise raise@event
transition transition@event transition@cond transition@target transition@type if if@cond elseif elseif@cond else foreach
send send@event send@eventexpr send@target send@targetexpr send@type send@typeexpr send@delay send@delayexpr
"""
#: What each element and attribute of SCXML 1.0 means here.
COVERAGE = Coverage(
    "SCXML 1.0",
    meant=frozenset(_MEANT.split()),
    harmless=by_name({
        "there is one version": "scxml@version",
        "how strictly a machine is run is its engine's affair": "scxml@exmode",
        "data decides no plan: conditions about it are choices": """
            scxml@datamodel scxml@binding datamodel data assign script donedata content param foreach@array foreach@item
            foreach@index send@namelist send@idlocation""",
        "a remark": "log",
        "what a service does is no part of a plan; the events that it answers with are steps": "invoke finalize",
        "an event that is sent with a delay may as well not come": "cancel",
    }),
    refused={"history": HISTORY},
)  # fmt: skip
#: What <send> calls the machine that sends, and its own kind of receiver.
_SELF = ("", "#_internal")
_SCXML = ("", "scxml", "http://www.w3.org/TR/scxml/", "http://www.w3.org/TR/scxml/#SCXMLEventProcessor")
_LITERAL = re.compile(r"""(["'])([\w.]+)\1""")


def read_scxml(text: str, file: str | None = None, *, final: Sequence[str] = ()) -> PDA:
    """The automaton of a state machine in SCXML.

    Warns of what is left out, of events that the machine raises itself, and of the assumption that a plan may end
    anywhere where the machine reaches no final state.

    Args:
        text: the machine.
        file: what messages call the place it is from.
        final: the names of the states in which plans end, instead of the final ones of the outermost level.

    Raises:
        NotationError: it is no SCXML, it has history, or a state that there is not; with line and column.
        ResourceNotFound: a name in ``final`` is no state.
    """
    source = SourceText.of(text, file, NotationError)
    root = read_xml(source)
    if root.name != "scxml":
        source.fail(f"this is no state machine: it begins with <{root.name}>", root.place, expected=("<scxml>",))
    COVERAGE.check_tree(root, source)
    states: dict[str, State] = {}
    name = _ScxmlReader(source, states).read(root, None)
    if not states[name].children:
        source.fail("the machine has no states", root.place, expected=("<state>", "<parallel>", "<final>"))
    return build_automaton(states, name, root.get("name"), source, final=final)


class _ScxmlReader:
    def __init__(self, source: SourceText, states: dict[str, State]) -> None:
        self.source = source
        self.states = states

    def read(self, element: Element, parent: str | None) -> str:
        """Read a state and those in it; its name."""
        name = element.get("id") or (f"state_{len(self.states)}" if parent is not None else "(machine)")
        if name in self.states:
            self.source.fail(f"a second state with the id {name}", element.place)
        kind = element.name if element.name in ("parallel", "final") else "state"
        state = self.states[name] = State(
            name, parent, element.place, cast("Kind", kind),
            tuple(element.get("initial").split()), entry=self._contents(element.all("onentry")),
            exit=self._contents(element.all("onexit")),
        )  # fmt: skip
        state.arcs = [self._arc(one, name) for one in element.all("transition")]
        for arc in state.arcs:
            arc.within &= kind != "parallel"
        for first in (self._arc(arc, name) for one in element.all("initial") for arc in one.all("transition")):
            state.initial, state.start = first.targets, first.content
        state.children = [self.read(child, name) for child in element.all("state", "parallel", "final")]
        return name

    def _arc(self, element: Element, source: str) -> Arc:
        names = element.get("event").split()
        targets = tuple(element.get("target").split())
        within = element.get("type") == "internal" and source not in targets
        return Arc(
            tuple(one if one == "*" else one.removesuffix(".*").rstrip(".") + ".*" for one in names), targets,
            element.get("cond"), within=within, content=self._content(element.children), place=element.place,
        )  # fmt: skip

    # -- what is done on the way --------------------------------------------------------------------------------------

    def _contents(self, blocks: Iterator[Element]) -> Content:
        return self._content([child for block in blocks for child in block.children])

    def _content(self, actions: Sequence[Element]) -> Content:
        """The events that actions may raise, in each way in which their conditions may hold."""
        raised = [self._raised(action) for action in actions if action.is_standard]
        return join_contents(raised, self.source, actions[0].place if actions else None)

    def _raised(self, action: Element) -> Content:
        if action.name == "raise":
            return ((Raised(action.get("event")),),)
        if action.name == "send":
            return self._sent(action)
        if action.name == "if":
            return self._branches(action)
        if action.name == "foreach" and self._content(action.children) != NOTHING:
            self.source.warn("what is raised in <foreach> is left out: its number is data", action.place)
        return NOTHING

    def _sent(self, send: Element) -> Content:
        if send.get("target") not in _SELF or send.get("type") not in _SCXML:
            return NOTHING  # another machine or service hears it
        literal = _LITERAL.fullmatch(send.get("eventexpr"))
        event = literal[2] if literal else send.get("event")
        if data := [name for name in ("eventexpr", "targetexpr", "typeexpr") if send.get(name)][literal is not None :]:
            self.source.warn(f"what is sent is left out: its {data[0]} is data", send.place)
            return NOTHING
        if send.get("delay") or send.get("delayexpr"):
            self.source.warn(
                f"{event} is sent with a delay: plans have no clock, so it may come at any time", send.place
            )
            return ((Raised(event, "later"),),)
        return ((Raised(event, "now" if send.get("target") else "next"),),)

    def _branches(self, action: Element) -> Content:
        branches: list[list[Element]] = [[]]
        for child in action.children:
            if child.is_standard and child.name in ("elseif", "else"):
                branches.append([])
            else:
                branches[-1].append(child)
        if not any(child.name == "else" for child in action.children):
            branches.append([])
        return tuple(dict.fromkeys(way for branch in branches for way in self._content(branch)))
