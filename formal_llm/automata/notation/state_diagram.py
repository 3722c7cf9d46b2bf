"""Mermaid state diagrams, read into automata whose words are the labels of transitions, or the states.

- If any transition has a label, labels are events, and the words of the automaton are events, as in any
  :mod:`state machine <formal_llm.automata.notation.statecharts>`. A label is the name of its event, whole; what is in
  brackets at its end (``pay [valid]``), and each label on an arrow out of a choice, is a condition, not a step.
  A transition without a label takes no step: it may be followed at any time in its state.
- If no transition has one, states are activities: a word lists the innermost states that are entered.

One of these rules applies to the whole diagram: events and activities in one plan could not be distinguished. A
warning counts the transitions without labels if some have one.

In a state of the class ``world``, or named in a comment ``%% %world NAME`` by its name or text, the world makes every
choice: ``Probed:::world``, ``class Probed world``.

``[*]`` begins and ends the state or diagram directly around it. A transition without a label leaves a composite state
when it is done: in its ``[*]``, or, if it has none, in its inner states without outgoing transitions. The branches of a
fork run side by side until they meet in their join, as do the parts separated by ``--``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from formal_llm.automata.models.flowgraph import one_line
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.automata.notation.coverage import HISTORY, Coverage, by_name
from formal_llm.automata.notation.mermaid_nodes import NodeScanner, read_text
from formal_llm.automata.notation.mermaid_title import read_title
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.automata.notation.statecharts import DONE, Arc, State, build_automaton
from formal_llm.errors import NotationError, unknown

#: The treatment of each statement of Mermaid's state diagrams, and of each kind of state.
COVERAGE = Coverage(
    "Mermaid's state diagrams",
    meant={"state", "-->", "[*]", "--", "choice", "fork", "join", "class", ":::"},
    harmless=by_name({
        "a remark": "note accTitle accDescr",
        "how a diagram looks changes no plan": "direction scale hide classDef style click",
    }),
    refused={"history": HISTORY},
)  # fmt: skip
_COMMENT = r"%%\{(?:(?!%%).)*\}%%|%%[^\n]*|#[^\n]*"
_HEADER = re.compile(rf"(?>\s|{_COMMENT})*+stateDiagram(?:-v2)?(?![\w-])", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"\A\s*---[ \t]*\n.*?\n---[ \t]*(?=\n)", re.DOTALL)
_GAP = re.compile(rf"(?>\s|{_COMMENT})*+", re.DOTALL)
_ID = re.compile(r"\[\*\]|[^:\s\-{};]+")
_CLASSES = re.compile(r"[ \t]*:::[ \t]*([^:\s\-{}]+)")
#: A comment, and the rest of a line ``class``, that name states in which the world decides.
_WORLD = re.compile(r"%%[ \t]*%world(?!\w)([^\n]*)")
_WORLD_CLASS = re.compile(r"class[ \t]+([^\n]+?)[ \t]+world[ \t]*;?[ \t]*", re.IGNORECASE)
_ARROW = re.compile(r"[ \t]*-->[ \t]*")
_LABEL = re.compile(r"[ \t]*:((?:#\w+;|[^:\n;]|:(?=[^:\n;]))+)")
_STATE = re.compile(
    r'state[ \t]+(?:"(?P<text>[^"]*)"[ \t]*as[ \t]+(?P<alias>[^\n{:<]*[^\s{:<])|(?P<id>[^\s{:<\["]+))', re.IGNORECASE
)
_KIND = re.compile(r"[ \t]*(?:<<[ \t]*(?P<a>[\w*]+)[ \t]*>>|\[\[[ \t]*(?P<b>[\w*]+)[ \t]*\]\])")
_OPEN = re.compile(r"\s*\{")
_ENDS = re.compile(r"[ \t]*(?=\n|\}|%%|#|$)")
_REMARKS = re.compile(
    r"(?P<note>note)[ \t]+(?:(?:left|right) of[ \t]+[^:\n]+(?::[^\n]*|\n.*?\n[ \t]*end note\b)|\"[^\"]*\"[^\n]*)"
    r"|(?P<word>direction|scale|hide|classDef|class|style|click|accTitle|accDescr)(?=[ \t:{])"
    r"(?:[ \t]*\{[^}]*\}|[^\n]*)",
    re.IGNORECASE | re.DOTALL,
)
_GUARDED = re.compile(r"(?P<event>[^\[\]]*)(?<!\S)\[(?P<guard>[^\[\]]+)\](?P<rest>(?: ?/.*)?)")


@dataclass
class _Link:
    """An arrow: its target, event and condition."""

    target: str
    text: str
    place: Place
    event: str = ""
    guard: str = ""


@dataclass
class _DrawnState:
    """A state, start, end, choice, fork or join; its scope is the state around it.

    The names of starts (``A:start``), ends and parts (``A:1``) contain a colon, which no state's name can.
    """

    name: str
    scope: str
    kind: str
    place: Place
    label: str = ""
    links: list[_Link] = field(default_factory=list)
    world: bool = False


def is_state_diagram(text: str) -> bool:
    """Return whether a text begins as a Mermaid state diagram, possibly after a title block and comments."""
    return _HEADER.match(_TITLE.sub("", text.removeprefix("\ufeff"))) is not None


def read_state_diagram(text: str, file: str | None = None, *, final: Sequence[str] = ()) -> PDA:
    """Read the automaton of a Mermaid state diagram.

    Warns if only some transitions have labels, if the first state of a composite state is not drawn, and of the
    assumption that a plan may end anywhere if the diagram reaches no end.

    Args:
        text: the diagram.
        file: the name of the source, for messages.
        final: the names of the states in which plans end, instead of ``[*]``.

    Raises:
        NotationError: it is not a state diagram, or uses parts that are not covered; with line and column.
        ResourceNotFound: a name in ``final`` is not a state.
    """
    source = SourceText.from_text(text, file, NotationError)
    parser = Parser(source)
    parser.parse_diagram()
    return _Diagram(source, parser.nodes, parser.regions).build_automaton(parser.title, final)


class Parser(NodeScanner):
    """Reads the drawing: the nodes by name, and the number of parts of each composite state."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self.title, self.at = read_title(source)
        self.nodes = {"": _DrawnState("", "", "composite", Place(1, 1))}
        self.regions: dict[str, int] = {}  # the number of parts of each composite state
        self.marked: list[tuple[str, int]] = []  # states in which the world decides, each line with its offset
        self.open: list[tuple[str, int]] = []  # the composite states around the current position, each with its offset

    def parse_diagram(self) -> None:
        """Read all statements."""
        if self.take_match(_HEADER) is None:
            self.fail_here("the state diagram does not begin with its header", expected=("stateDiagram-v2",))
        self.take_match(_GAP)
        while self.at < len(self.text):
            self._read_statement()
            self.take_match(_GAP)
        if self.open:
            self.fail_here(f"the state {self.open[-1][0]} does not end", self.open[-1][1], expected=("}",))
        for found in _WORLD.finditer(self.text):
            self.marked.append((found[1], found.start()))
        for names, at in self.marked:
            self._mark_world(names, at)

    def _mark_world(self, names: str, at: int) -> None:
        """Mark states that are listed by their names, or one by its text."""
        text, words = one_line(names), re.findall(r"[^\s,]+", names)
        labelled = [node.name for node in self.nodes.values() if text and node.label == text]
        for name in labelled if len(labelled) == 1 else words or [""]:
            if name not in self.nodes or not name:
                known = [one for one in self.nodes if one and ":" not in one]
                self.fail_here(unknown("state of the world's", name or "nothing", known), at)
            self.nodes[name].world = True

    @property
    def scope(self) -> str:
        """The part of a composite state that contains the current statements; empty for the diagram."""
        return f"{self.open[-1][0]}:{self.regions[self.open[-1][0]]}" if self.open else ""

    def _read_statement(self) -> None:
        start = self.at
        if self.open and self.is_ahead("}"):
            self.at += 1
            self.open.pop()
        elif self.open and self.is_ahead("--") and not self.is_ahead("-->"):
            self.at += 2
            self.regions[self.open[-1][0]] += 1
        elif remark := self.take_match(_REMARKS):
            self._report_keyword(remark["word"] or remark["note"], start)
            if classed := _WORLD_CLASS.fullmatch(remark[0]):
                self.marked.append((classed[1], start))
        elif state := self.take_match(_STATE):
            self._read_state(state, start)
        else:
            self._read_transition(start)

    def _report_keyword(self, name: str, start: int) -> None:
        known = {one.lower(): one for one in (*COVERAGE.meant, *COVERAGE.harmless, *COVERAGE.refused)}
        if name.lower() not in known:
            self.fail_here(f"unknown kind of state: {name}", start, expected=("choice", "fork", "join"))
        COVERAGE.report_part(known[name.lower()], name, self.source, self.source.place_of(start))

    def _read_state(self, state: re.Match[str], start: int) -> None:
        node = self._find_or_add_state(state["alias"] or state["id"], start)
        self._read_description(node, state["text"])
        if kind := self.take_match(_KIND):
            node.kind = (kind["a"] or kind["b"]).lower()
            self._report_keyword(node.kind, start)
        elif label := self.take_match(_LABEL):
            self._read_description(node, label[1])
        classes = self.take_match(_CLASSES)
        node.world |= classes is not None and classes[1] == "world"
        if self.take_match(_OPEN):
            self.open.append((node.name, start))
            self.regions[node.name] = self.regions.get(node.name, 0) + 1
        elif self.take_match(_ENDS) is None:
            self._refuse_text()

    def _read_transition(self, start: int) -> None:
        source = self._read_arrow_end("start")
        arrow = self.take_match(_ARROW)
        target = self._read_arrow_end("end") if arrow else None
        label = self.take_match(_LABEL)
        if self.take_match(_ENDS) is None:
            self._refuse_text()
        if target is None:
            self._read_description(source, label[1] if label else None)
            return
        text = one_line(read_text(label[1])) if label else ""
        guarded = _GUARDED.fullmatch(text)
        event, guard = (guarded["event"].strip(), guarded["guard"] + guarded["rest"]) if guarded else (text, "")
        source.links.append(_Link(target.name, text, self.source.place_of(start), event, guard))

    def _read_description(self, node: _DrawnState, text: str | None) -> None:
        node.label = "; ".join(filter(None, [node.label, one_line(read_text(text or ""))]))

    def _read_arrow_end(self, kind: str) -> _DrawnState:
        """Read the state at one end of an arrow; ``[*]`` is the start or end of the scope around it."""
        start = self.at
        name = self.take_match(_ID)
        if name is None:
            self._refuse_text()
        if name[0].upper() in ("[H]", "[H*]"):
            self._report_keyword("history", start)
        classes = self.take_match(_CLASSES)
        if name[0] != "[*]":
            node = self._find_or_add_state(name[0], start)
            node.world |= classes is not None and classes[1] == "world"
            return node
        named = f"{self.scope}:{kind}"
        return self.nodes.setdefault(named, _DrawnState(named, self.scope, kind, self.source.place_of(start)))

    def _find_or_add_state(self, name: str, start: int) -> _DrawnState:
        """Return the node of a name; one mentioned both inside and outside a composite state is inside."""
        node = self.nodes.setdefault(name, _DrawnState(name, self.scope, "state", self.source.place_of(start)))
        if node.scope in self._list_scopes(self.scope):
            node.scope = self.scope
        elif self.scope not in self._list_scopes(node.scope):
            self.fail_here(f"{name} is drawn inside {node.scope.rpartition(':')[0]} and elsewhere", start,
                      suggestion="give one of both a name of its own")  # fmt: skip
        return node

    def _list_scopes(self, scope: str) -> Iterator[str]:
        while scope:
            yield scope
            scope = self.nodes[scope.rpartition(":")[0]].scope
        yield ""

    def _refuse_text(self) -> NoReturn:
        self.take_match(re.compile(r"[ \t]*"))
        found = re.compile(r"\S*").match(self.text, self.at)
        self.fail_here(f"unexpected {found[0] if found and found[0] else 'end of the line'!r}",
                  expected=("A --> B : label", "state A { ... }", "A : text"))  # fmt: skip


class _Diagram:
    """The meaning of the nodes of a drawing."""

    def __init__(self, source: SourceText, nodes: dict[str, _DrawnState], regions: dict[str, int]) -> None:
        self.source = source
        self.nodes = nodes
        self.done: dict[str, str] = {}  # by state: the node that follows when the state is done
        self.events: dict[str, str] = {}  # by label: the name of its event
        for name, count in regions.items():
            parts = [part for n in range(1, count + 1) if self._states_inside(part := f"{name}:{n}")]
            for part in parts:
                if len(parts) > 1:
                    self._add_state(part, name, "composite", nodes[name])
                for node in self._states_inside(part) if len(parts) < 2 else ():
                    node.scope = name
            nodes[name].kind = "parallel" if len(parts) > 1 else "composite" if parts else nodes[name].kind

    def _add_state(self, name: str, scope: str, kind: str, like: _DrawnState) -> _DrawnState:
        return self.nodes.setdefault(name, _DrawnState(name, scope, kind, like.place))

    def _states_inside(self, scope: str) -> list[_DrawnState]:
        return [node for node in self.nodes.values() if node.scope == scope and node.name]

    def _depth_of(self, node: _DrawnState) -> int:
        return 1 + self._depth_of(self.nodes[node.scope]) if node.name else 0

    def build_automaton(self, title: str, final: Sequence[str]) -> PDA:
        """Build the automaton of the diagram."""
        if not self._states_inside(""):
            self.source.fail_at("the state diagram is empty", None, suggestion="write: stateDiagram-v2, then [*] --> A")
        nodes = list(self.nodes.values())
        for link in (link for node in nodes if node.kind == "choice" for link in node.links):
            link.event, link.guard = "", link.text
        links = [(node, link) for node in nodes for link in node.links]
        by_states = not any(link.event for _, link in links)
        inner = ("state", "composite", "parallel")
        silent = [
            link for node, link in links
            if not link.event and not link.guard and node.kind == "state" and self.nodes[link.target].kind in inner
        ]  # fmt: skip
        if silent and not by_states:
            self.source.warn_at(
                f"{len(silent)} of {len(links)} transitions have no label and are no steps: the steps of plans are the "
                "labels; label all transitions, or none and the states are the steps", silent[0].place, stacklevel=4,
            )  # fmt: skip
        for fork in [node for node in nodes if node.kind == "fork"]:
            self._split_fork(fork)
        for node in nodes:
            if node.kind == "join" and node.name not in {
                link.target for n in self.done.values() for link in self.nodes[n].links
            }:
                self.source.fail_at(
                    f"the join {node.name} ends no fork: not all branches of one lead to it", node.place
                )
        for node in sorted(self.nodes.values(), key=self._depth_of):
            if node.kind in ("composite", "parallel") and node.name:
                self._lead_on(node, by_states)
        for node in list(self.nodes.values()):
            if node.kind == "composite":
                self._draw_start(node)
        states: dict[str, State] = {}
        self._collect_states(self.nodes[""], states, by_states)
        labels = {name: text for text, name in self.events.items()}
        return build_automaton(states, "", title, self.source, final=final, labels=labels)

    def _collect_states(self, node: _DrawnState, states: dict[str, State], by_states: bool) -> None:
        """Add the state of a node, and those in it."""
        inside = self._states_inside(node.name)
        state = states[node.name] = State(
            node.name, node.scope if node.name else None, node.place, label=node.label,
            kind="final" if node.kind == "end" else "parallel" if node.kind == "parallel" else "state",
            children=[one.name for one in inside], initial=tuple(one.name for one in inside if one.kind == "start"),
            world=node.world,
        )  # fmt: skip
        events = [self._name_event(link, by_states) for link in node.links]
        for number, (link, event) in enumerate(zip(node.links, events, strict=True)):
            later = events[number + 1 :]
            passing = node.kind in ("start", "choice", "join", "done")
            sure = passing or (self.nodes[link.target].kind in ("end", "join") and len(events) == 1)
            optional = event in later if event or sure else True
            optional = optional or (not event and any(events))
            state.arcs.append(
                Arc((event,) if event else (), (link.target,), text=link.guard, optional=optional, place=link.place)
            )
        if node.name in self.done:
            state.arcs.append(Arc((DONE + node.name,), (self.done[node.name],)))
        for one in inside:
            self._collect_states(one, states, by_states)

    def _name_event(self, link: _Link, by_states: bool) -> str:
        """Return the name of the event of a link; empty if it takes no step."""
        target = self.nodes[link.target]
        text = link.event if not by_states else (target.label or target.name) if target.kind == "state" else ""
        if not text or text in self.events:
            return self.events.get(text, "")
        name = target.name if by_states else re.sub(r"\W+", "_", text).strip("_") or "event"
        while name in self.events.values():
            name += "_"
        self.events[text] = name
        return name

    def _draw_start(self, node: _DrawnState) -> None:
        """Draw the start of a composite state if the diagram does not."""
        inside = [one for one in self._states_inside(node.name) if one.kind != "end"]
        for one in inside:
            if one.kind == "start" and len(one.links) > 1 and not all(link.text for link in one.links):
                message = (
                    f"{node.name or 'the diagram'} has {len(one.links)} arrows from [*]: a plan follows one of them"
                )
                self.source.warn_at(message, one.place, stacklevel=4)
        if inside and all(one.kind != "start" for one in inside):
            start = self._add_state(f"{node.name}:start", node.name, "start", node)
            start.links.append(_Link(inside[0].name, "", node.place))
            entered = {link.target for one in self.nodes.values() for link in one.links}
            if not node.name or node.name in entered or self.nodes[node.scope].kind == "parallel":
                message = f"{node.name or 'the diagram'} has no [*] --> ...: it begins with {inside[0].name}"
                self.source.warn_at(message, node.place, stacklevel=4)

    def _lead_on(self, node: _DrawnState, by_states: bool) -> None:
        """Restrict transitions without an event out of a composite state to when the state is done."""
        leaving = [link for link in node.links if by_states or not link.event]
        if not leaving:
            return
        for part in [node] if node.kind == "composite" else self._states_inside(node.name):
            inside = self._states_inside(part.name)
            if all(one.kind != "end" for one in inside):
                end = self._add_state(f"{part.name}:end", part.name, "end", part)
                inside = [one for one in inside if one.kind in ("state", "composite", "parallel")]
                for one in [one for one in inside if not one.links] or inside:
                    one.links.append(_Link(end.name, "", part.place))
        node.links = [link for link in node.links if link not in leaving]
        self.done[node.name] = self._add_state(f"{node.name}:done", node.scope, "done", node).name
        self.nodes[self.done[node.name]].links = leaving

    def _split_fork(self, fork: _DrawnState) -> None:
        """Turn a fork into a parallel state: its branches up to the join where all of them meet, or to the end."""
        around = {node.name: node for node in self._states_inside(fork.scope)}

        def find_targets(name: str, stop: str = "") -> list[str]:
            return [link.target for link in around[name].links if link.target in around and link.target != stop]

        def find_branch(first: str, stop: str) -> list[str]:
            found = find_reachable([first], lambda name: find_targets(name, stop))
            return [name for name in found if stop in find_reachable([name], find_targets)]

        ends = [name for name in find_reachable([fork.name], find_targets) if around[name].kind in ("join", "end")]
        for stop in sorted(ends, key=lambda name: around[name].kind == "end"):
            parts = [find_branch(link.target, stop) for link in fork.links]
            if all(link.target in part for link, part in zip(fork.links, parts, strict=True)) and len(
                {name for part in parts for name in part}
            ) == sum(map(len, parts)):
                break
        else:
            self.source.fail_at(
                f"the branches of the fork {fork.name} do not meet in one join, or lead into each other", fork.place,
                suggestion="let each branch lead to one state <<join>>, or to [*]",
            )  # fmt: skip
        inside = {name for part in parts for name in part}
        for node in around.values():
            for link in node.links:
                if node is not fork and node.name not in inside and link.target in inside:
                    self.source.fail_at(f"this leads into a branch of the fork {fork.name}, past it", link.place)
        fork.kind = "parallel"
        for number, (first, part) in enumerate(zip(fork.links, parts, strict=True), 1):
            region = self._add_state(f"{fork.name}:{number}", fork.name, "composite", fork)
            self._add_state(f"{region.name}:start", region.name, "start", fork).links = [first]
            end = self._add_state(f"{region.name}:end", region.name, "end", fork)
            for name in part:
                around[name].scope = region.name
                for link in around[name].links:
                    link.target = end.name if link.target == stop else link.target
        self.done[fork.name] = self._add_state(f"{fork.name}:done", fork.scope, "done", fork).name
        self.nodes[self.done[fork.name]].links = [_Link(stop, "", fork.place)]
        fork.links = []
