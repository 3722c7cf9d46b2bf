"""State machines in SCXML (W3C, 2015), read into automata whose words are events.

Events that a machine raises itself (``raise``, and ``send`` to itself without a delay) are followed. Events with a
delay, events from services and other machines, and errors may occur at any time: they are steps of a plan. Guards
(``cond``) are displayed as written. Data is ignored: conditions about it are choices. In a state with an attribute
``world="true"`` of another vocabulary (``<state id="probed" my:world="true">``) the world makes every choice.
See :mod:`formal_llm.automata.notation.statecharts` for everything else.
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
#: The treatment of each element and attribute of SCXML 1.0.
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
#: The names in <send> for the sending machine, and for its own kind of receiver.
_SELF = ("", "#_internal")
_SCXML = ("", "scxml", "http://www.w3.org/TR/scxml/", "http://www.w3.org/TR/scxml/#SCXMLEventProcessor")
_LITERAL = re.compile(r"""(["'])([\w.]+)\1""")


def read_scxml(text: str, file: str | None = None, *, final: Sequence[str] = ()) -> PDA:
    """Read the automaton of a state machine in SCXML.

    Warns of omissions, of events that the machine raises itself, and of the assumption that a plan may end
    anywhere if the machine reaches no final state.

    Args:
        text: the machine.
        file: the name of the source, for messages.
        final: the names of the states in which plans end, instead of the final ones of the outermost level.

    Raises:
        NotationError: it is not SCXML, it has history, or it names an unknown state; with line and column.
        ResourceNotFound: a name in ``final`` is not a state.
    """
    source = SourceText.from_text(text, file, NotationError)
    root = read_xml(source)
    if root.name != "scxml":
        source.fail_at(f"this is no state machine: it begins with <{root.name}>", root.place, expected=("<scxml>",))
    COVERAGE.check_tree(root, source)
    states: dict[str, State] = {}
    name = _ScxmlReader(source, states).read_state(root, None)
    if not states[name].children:
        source.fail_at("the machine has no states", root.place, expected=("<state>", "<parallel>", "<final>"))
    return build_automaton(states, name, root.get_attribute("name"), source, final=final)


class _ScxmlReader:
    def __init__(self, source: SourceText, states: dict[str, State]) -> None:
        self.source = source
        self.states = states

    def read_state(self, element: Element, parent: str | None) -> str:
        """Read a state and those in it, and return its name."""
        name = element.get_attribute("id") or (f"state_{len(self.states)}" if parent is not None else "(machine)")
        if name in self.states:
            self.source.fail_at(f"a second state with the id {name}", element.place)
        kind = element.name if element.name in ("parallel", "final") else "state"
        state = self.states[name] = State(
            name, parent, element.place, cast("Kind", kind),
            tuple(element.get_attribute("initial").split()), entry=self._read_blocks(element.list_children("onentry")),
            exit=self._read_blocks(element.list_children("onexit")), world=self._read_world_mark(element),
        )  # fmt: skip
        state.arcs = [self._read_arc(one, name) for one in element.list_children("transition")]
        for arc in state.arcs:
            arc.within &= kind != "parallel"
        for first in (
            self._read_arc(arc, name)
            for one in element.list_children("initial")
            for arc in one.list_children("transition")
        ):
            state.initial, state.start = first.targets, first.content
        state.children = [self.read_state(child, name) for child in element.list_children("state", "parallel", "final")]
        return name

    def _read_world_mark(self, element: Element) -> bool:
        mark = element.extensions.get("world", "false")
        if mark not in ("true", "false"):
            self.source.fail_at(f"world is true or false, not {mark!r}", element.place)
        return mark == "true"

    def _read_arc(self, element: Element, source: str) -> Arc:
        names = element.get_attribute("event").split()
        targets = tuple(element.get_attribute("target").split())
        within = element.get_attribute("type") == "internal" and source not in targets
        return Arc(
            tuple(one if one == "*" else one.removesuffix(".*").rstrip(".") + ".*" for one in names),
            targets,
            element.get_attribute("cond"),
            within=within,
            content=self._read_actions(element.children),
            place=element.place,
        )

    # -- actions ------------------------------------------------------------------------------------------------------

    def _read_blocks(self, blocks: Iterator[Element]) -> Content:
        return self._read_actions([child for block in blocks for child in block.children])

    def _read_actions(self, actions: Sequence[Element]) -> Content:
        """Return the events that actions may raise, for each way in which their conditions may hold."""
        raised = [self._read_action(action) for action in actions if action.is_standard]
        return join_contents(raised, self.source, actions[0].place if actions else None)

    def _read_action(self, action: Element) -> Content:
        if action.name == "raise":
            return ((Raised(action.get_attribute("event")),),)
        if action.name == "send":
            return self._read_send(action)
        if action.name == "if":
            return self._read_branches(action)
        if action.name == "foreach" and self._read_actions(action.children) != NOTHING:
            self.source.warn_at("what is raised in <foreach> is left out: its number is data", action.place)
        return NOTHING

    def _read_send(self, send: Element) -> Content:
        if send.get_attribute("target") not in _SELF or send.get_attribute("type") not in _SCXML:
            return NOTHING  # another machine or service receives it
        literal = _LITERAL.fullmatch(send.get_attribute("eventexpr"))
        event = literal[2] if literal else send.get_attribute("event")
        if data := [name for name in ("eventexpr", "targetexpr", "typeexpr") if send.get_attribute(name)][
            literal is not None :
        ]:
            self.source.warn_at(f"what is sent is left out: its {data[0]} is data", send.place)
            return NOTHING
        if send.get_attribute("delay") or send.get_attribute("delayexpr"):
            self.source.warn_at(
                f"{event} is sent with a delay: plans have no clock, so it may come at any time", send.place
            )
            return ((Raised(event, "later"),),)
        return ((Raised(event, "now" if send.get_attribute("target") else "next"),),)

    def _read_branches(self, action: Element) -> Content:
        branches: list[list[Element]] = [[]]
        for child in action.children:
            if child.is_standard and child.name in ("elseif", "else"):
                branches.append([])
            else:
                branches[-1].append(child)
        if not any(child.name == "else" for child in action.children):
            branches.append([])
        return tuple(dict.fromkeys(way for branch in branches for way in self._read_actions(branch)))
