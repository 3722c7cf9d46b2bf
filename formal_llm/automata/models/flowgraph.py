"""The nodes and arrows of a flowchart, their names, texts and shapes, and what they mean. Nothing is checked here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from formal_llm.automata.models.frozen import PickledByFields
from formal_llm.automata.models.symbols import Symbol, expand_selections, find_reachable, selection
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError

#: A place in a text that a task fills in.
PLACEHOLDER = re.compile(r"\{(\w+)\}")

#: A node's name: a word; some signs may be inside it.
ID = re.compile(r"\w(?:\w|[-./'+:](?=\w))*")
#: Words that Mermaid does not take for names.
RESERVED = ("end", "subgraph", "graph", "flowchart", "direction", "style", "linkStyle", "classDef", "class", "click")

#: The shapes of ``id@{ shape: name }``: groups of names for one shape, the first of which is the one used here.
_NAMES = """
rect proc process rectangle | rounded event | stadium pill terminal | fr-rect framed-rectangle subproc subprocess
subroutine | cyl cylinder database db | circle circ | odd | diam decision diamond question | hex hexagon prepare |
lean-r in-out lean-right | lean-l lean-left out-in | trap-b priority trapezoid trapezoid-bottom |
trap-t inv-trapezoid manual trapezoid-top | dbl-circ double-circle | sm-circ small-circle start |
fr-circ framed-circle stop | f-circ filled-circle junction | cross-circ crossed-circle summary |
notch-rect card notched-rectangle | bang | cloud | hourglass collate | bolt com-link lightning-bolt | delay
half-rounded-rectangle | h-cyl das horizontal-cylinder | lin-cyl disk lined-cylinder | curv-trap curved-trapezoid
display | div-rect div-proc divided-process divided-rectangle | doc document | tri extract triangle | win-pane
internal-storage window-pane | lin-doc lined-document | lin-rect lin-proc lined-process lined-rectangle shaded-process |
notch-pent loop-limit notched-pentagon | flip-tri flipped-triangle manual-file | sl-rect manual-input sloped-rectangle |
docs documents st-doc stacked-document | st-rect processes procs stacked-rectangle | flag paper-tape |
bow-rect bow-tie-rectangle stored-data | tag-doc tagged-document | tag-rect tag-proc tagged-process tagged-rectangle |
text | fork join | ellipse |
datastore data-store | folder directory | bucket | console | browser | person
"""
#: Every name of a shape, with the name of that shape used here.
SHAPES = {name: group.split()[0] for group in _NAMES.split("|") for name in group.split()}


def normalize_text(text: str) -> str:
    """A text as it is compared: every line without blanks around it and with single blanks in it."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join(lines).strip("\n")


def one_line(text: str) -> str:
    """A text of several lines on one."""
    return " ".join(text.split())


#: What a node means: see :mod:`formal_llm.automata.models.flowchart`.
NodeKind = Literal["start", "end", "decision", "step", "junction", "fork"]

MARKERS = ("stadium", "circle", "dbl-circ", "sm-circ", "fr-circ")
#: Shapes that Mermaid draws without a text.
_TEXTLESS = ("sm-circ", "fr-circ", "f-circ", "cross-circ", "fork")
START_WORDS = frozenset(["start", "begin", "beginning", "anfang", "beginn", "début", "inicio", "inizio"])
END_WORDS = frozenset(["end", "stop", "finish", "finished", "done", "exit", "ende", "fertig", "schluss", "fin", "fine"])


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A node of a flowchart.

    Attributes:
        id: its name, a word.
        text: its text; its name, where none was given.
        shape: its shape, by the short name that Mermaid has for it (``rect``, ``diam``, ``stadium`` ...).
    """

    id: str
    text: str = None  # type: ignore[assignment]  # replaced at once
    shape: str = "rect"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", SHAPES.get(self.shape, self.shape))
        default = "" if self.shape in _TEXTLESS else self.id
        object.__setattr__(self, "text", default if self.text is None else normalize_text(self.text))


@dataclass(frozen=True, slots=True)
class FlowEdge:
    """An arrow of a flowchart; ``text`` is the answer, where it leaves a decision."""

    source: str
    target: str
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", normalize_text(self.text))


@dataclass(frozen=True)
class FlowGraph(PickledByFields):
    """Nodes and arrows, as they are drawn; for the arguments see :class:`Flowchart`."""

    nodes: tuple[FlowNode, ...]
    edges: tuple[FlowEdge, ...] = ()
    direction: str = "TB"
    title: str = ""

    @cached_property
    def node(self) -> Mapping[str, FlowNode]:
        """The nodes, by name."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def leaving(self) -> Mapping[str, tuple[FlowEdge, ...]]:
        """The arrows out of each node; what is drawn twice is there once."""
        found: dict[str, dict[FlowEdge, None]] = {node.id: {} for node in self.nodes}
        for edge in self.edges:
            found[edge.source][edge] = None
        return {name: tuple(edges) for name, edges in found.items()}

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """The nodes that a plan can begin with: those to which no arrow leads but from themselves.

        Of nodes in a circle to which no arrow leads from outside it is the marker with the text "Start", or the first
        one.
        """
        before: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            if edge.source != edge.target:
                before[edge.target].append(edge.source)
        found = {name for name, sources in before.items() if not sources}
        reached = find_reachable(found, self._target_names)
        circles = [name for name in before if name not in reached]
        for name in reversed(
            leaving_order(circles, self._target_names)
        ):  # the last lies in a circle with no arrow into it
            if name not in reached:
                circle = find_reachable([name], before.__getitem__)
                found.add(min((one for one in before if one in circle), key=lambda one: not self.is_start_marker(one)))
                reached |= find_reachable([name], self._target_names)
        return tuple(name for name in before if name in found)

    def _target_names(self, name: str) -> list[str]:
        return [edge.target for edge in self.leaving[name]]

    @property
    def start(self) -> str:
        """The node that a plan begins with; the first of them, where there are several."""
        return self.starts[0]

    def is_start_marker(self, name: str) -> bool:
        """Whether the text of a node marks the beginning of the chart."""
        node = self.node[name]
        return node.shape == "sm-circ" or (node.shape in MARKERS and _is_labelled_with(node, START_WORDS))

    @cached_property
    def opening(self) -> str:
        """The name of the choice of a start, where there are several: ``start``, if no node is called that."""
        name = "start"
        while name in self.node:
            name += "_"
        return name

    def kind(self, name: str) -> NodeKind:
        """What a node means.

        It is a ``start``, an ``end``, a ``decision``, a ``step``, a ``fork``, from where all arrows are followed, or a
        ``junction``, where arrows only meet.
        """
        node, leaving = self.node[name], self.leaving[name]
        if node.shape == "fork":
            return "fork" if len(leaving) > 1 else "junction" if leaving else "end"
        if node.shape == "diam" or (node.shape == "hex" and (len(leaving) > 1 or any(e.text for e in leaving))):
            return "decision"
        marker = name in self._start_set and (node.shape in MARKERS or _is_labelled_with(node, START_WORDS))
        if len(leaving) > 1 and (marker or not node.text or all(edge.text for edge in leaving)):
            return "decision"
        if name in self._start_set and (marker or not node.text):
            return "start"
        if not leaving and (not node.text or _is_labelled_with(node, END_WORDS)):
            return "end"
        has_text = node.text and not (node.shape in MARKERS and _is_labelled_with(node, START_WORDS | END_WORDS))
        return "step" if has_text else "junction"

    @cached_property
    def _start_set(self) -> frozenset[str]:
        return frozenset(self.starts)

    # -- what is asked --------------------------------------------------------------------------------------------

    def is_decision(self, name: str) -> bool:
        """Whether there is a node of that name that asks something and is no step."""
        return name in self.node and self.kind(name) == "decision"

    def is_selection(self, name: str) -> bool:
        """Whether several answers of a node may be chosen together."""
        leaving = self.leaving[name]
        return self.node[name].shape == "hex" and len(leaving) > 1 and len({edge.target for edge in leaving}) == 1

    def question(self, name: str) -> str:
        """What is asked at a node, or for the start."""
        if name == self.opening:
            return "Where does it begin?"
        text = one_line(self.node[name].text)
        return text if self.is_decision(name) else f'What follows "{text}"?'

    def answer_edges(self, name: str) -> tuple[FlowEdge, ...]:
        """The arrows of which one is chosen at a node, or at the :attr:`opening`; none where nothing is asked."""
        if name == self.opening:
            return tuple(FlowEdge(name, start) for start in self.starts) if len(self.starts) > 1 else ()
        kind, leaving = self.kind(name), self.leaving[name]
        return leaving if kind == "decision" or (kind == "step" and len(leaving) > 1) else ()

    def answers(self, name: str) -> dict[str, FlowEdge]:
        """The arrows of which one is chosen at a node, by the terminals that stand for them, as ``entitled=yes``."""
        return {terminal: edge for terminal, (_, edge) in self.answer_texts(name).items()}

    def answer_texts(self, name: str) -> dict[str, tuple[str, FlowEdge]]:
        """The answers at a node, each with its text and its arrow, by the terminals that stand for them.

        The text is that of the arrow; where it has none, that of the node to which it leads.
        """
        found: dict[str, tuple[str, FlowEdge]] = {}
        edges = self.answer_edges(name)
        texts = [one_line(edge.text) or self._text_of(edge.target) for edge in edges]
        for text, edge in zip(texts, edges, strict=True):
            if not edge.text and texts.count(text) > 1:
                text = f"{text} ({edge.target})"
            slug = re.sub(r"\W+", "_", text.casefold()).strip("_") or "answer"
            terminal, number = f"{name}={slug}", 1
            while terminal in found:
                number += 1
                terminal = f"{name}={slug}_{number}"
            found[terminal] = text, edge
        return found

    def _text_of(self, name: str, depth: int = 9) -> str:
        """The text of a node; where it has none, that of what comes after it."""
        text = one_line(self.node[name].text)
        if text or depth == 0:
            return text or name
        after = list(dict.fromkeys(edge.target for edge in self.leaving[name]))
        between = " and " if self.kind(name) == "fork" else " or "
        return between.join(self._text_of(one, depth - 1) for one in after[:9]) or "End"


def _is_labelled_with(node: FlowNode, words: frozenset[str]) -> bool:
    # LangGraph draws its own as <p>__start__</p> and <p>__end__</p>.
    return node.text.casefold().removeprefix("<p>").removesuffix("</p>").strip(" .!:_") in words


def leaving_order(first: Iterable[str], after: Callable[[str], Iterable[str]]) -> list[str]:
    """The nodes to which steps lead from the first ones, in the order in which a search to the depth leaves them."""
    seen: set[str] = set()
    found: list[str] = []
    for one in first:
        path = [] if one in seen else [(one, iter(after(one)))]
        seen.add(one)
        while path:
            for name in path[-1][1]:
                if name not in seen:
                    seen.add(name)
                    path.append((name, iter(after(name))))
                    break
            else:
                found.append(path.pop()[0])
    return found


#: The name of what comes after all ends; no node can have it.
END = "end"


class BranchSplit(NamedTuple):
    """Branches that run side by side.

    Attributes:
        join: the node at which all of them meet, :data:`END` where each runs to an end.
        branches: the nodes that they begin with; several that meet before the others do are a split of their own.
    """

    join: str
    branches: tuple[str | BranchSplit, ...]


def find_splits(graph: FlowGraph) -> Mapping[str, BranchSplit | None]:
    """What each fork means, by its name; None for one whose branches cannot be distinguished.

    From every node of the graph an end must be reached.
    """
    forks = [node.id for node in graph.nodes if graph.kind(node.id) == "fork"]
    if not forks:
        return {}
    after = {name: list(dict.fromkeys(edge.target for edge in edges)) or [END] for name, edges in graph.leaving.items()}
    after[END] = []
    later = _PostdominatorTree(after)
    return {name: _split_branches(after[name], later.meeting_node(after[name]), after, later) for name in forks}


def _split_branches(
    targets: Sequence[str], join: str, after: Mapping[str, Sequence[str]], later: _PostdominatorTree, depth: int = 0
) -> BranchSplit | None:
    """Branches that begin at ``targets`` and meet at ``join``; None where they cannot be distinguished."""
    apart: list[tuple[list[str], dict[str, None]]] = []
    for target in targets:
        region = {} if target == join else find_reachable([target], lambda name: [n for n in after[name] if n != join])
        shared = [one for one in apart if not one[1].keys().isdisjoint(region)]
        apart = [one for one in apart if one not in shared]
        begin = [name for one in shared for name in one[0]]
        apart.append(([*begin, target], {name: None for one in shared for name in one[1]} | region))
    branches: list[str | BranchSplit] = []
    for begin, _ in sorted(apart, key=lambda one: targets.index(one[0][0])):
        if len(begin) == 1:
            branches.append(begin[0])
            continue
        meeting = later.meeting_node(begin)
        inner = None if meeting == join or depth > 50 else _split_branches(begin, meeting, after, later, depth + 1)
        if inner is None:
            return None
        branches.append(inner)
    return BranchSplit(join, tuple(branches))


class _PostdominatorTree:
    """For each node the nearest one that every way from it to the end comes by."""

    def __init__(self, after: Mapping[str, Sequence[str]]) -> None:
        before: dict[str, list[str]] = {name: [] for name in after}
        for name, targets in after.items():
            for target in targets:
                before[target].append(name)
        order = leaving_order([END], before.__getitem__)
        self.number = {name: number for number, name in enumerate(order)}
        self.next = {END: END}
        changed = True
        while changed:
            changed = False
            for name in reversed(order[:-1]):
                nearest = self.meeting_node([target for target in after[name] if target in self.next])
                if self.next.get(name) != nearest:
                    self.next[name] = nearest
                    changed = True

    def meeting_node(self, names: Sequence[str]) -> str:
        """The nearest node that every way from each of these comes by; it may be one of them."""
        found, *others = names
        for other in others:
            while found != other:
                if self.number[found] < self.number[other]:
                    found = self.next[found]
                else:
                    other = self.next[other]
        return found


#: A chart whose branches can be ordered in more ways than this has places is refused.
MOST_PLACES = 100_000
#: How deep forks may be nested.
_DEEPEST = 50
#: The place of a branch that has come to where the branches meet.
_DONE = "."


class ForkPlace(NamedTuple):
    """A place in a fork: its name, where its branches meet, and where each of them is."""

    name: str
    join: str
    parts: tuple[Place, ...]


Place = str | ForkPlace


class _ChartStep(NamedTuple):
    """A move from a place: what it reads, its text, and what is asked where it is a decision."""

    read: str
    label: str
    question: str | None
    selects: str | None = None


class FlowchartTransitions:
    """Makes the transitions of a flowchart.

    Args:
        graph: the chart, which describes plans.
        decisions: whether the answers to decisions are read.
        drawn: whether the branches of a fork are worked off one after the other, in the order of the arrows.
        never: answers that are never given.
    """

    def __init__(self, graph: FlowGraph, *, decisions: bool, drawn: bool, never: frozenset[str] = frozenset()) -> None:
        self.never = never
        self.graph = graph
        self.decisions = decisions
        self.drawn = drawn
        self.splits = find_splits(graph)

    def make_transitions(self) -> tuple[dict[str, Symbol], list[Transition], str]:
        """The symbols of the terminals, the transitions, and the first state.

        Raises:
            AutomatonError: the branches of forks can be ordered in too many ways.
        """
        graph = self.graph
        several = len(graph.starts) > 1
        start = f"{graph.opening}?" if several else self._enter_place(graph.start, END, 0)
        places: dict[Place, None] = {start: None}
        found: dict[Place, list[Transition]] = {}
        symbols: dict[str, Symbol] = {}
        todo = list(places)
        for place in todo:
            state, seen = name_of(place), set[str]()
            found[place] = []
            for step, after in self._list_moves(place, END, 0):
                target = name_of(after)
                found[place] += self._transitions_of_step(state, step, target, seen, symbols)
                if after not in places:
                    places[after] = None
                    todo.append(after)
            if len(places) > MOST_PLACES + len(graph.nodes):
                first = next(name for name in self.splits)
                raise AutomatonError(
                    f"what stands in the branches of forks such as {first} can be ordered in more ways than can be"
                    " told apart here; have them worked off in the order of their arrows: %% %parallel drawn"
                )
        number = {node.id: n for n, node in enumerate(graph.nodes)}

        def rank_place(place: Place) -> float:
            return -1 if place == start else number.get(name_of(place).removesuffix("?"), len(number))

        made = [transition for place in sorted(found, key=rank_place) for transition in found[place]]
        known = [*graph.answers(graph.opening)]
        for node in graph.nodes:
            known += [node.id, *graph.answers(node.id)]
        return {name: symbols[name] for name in known if name in symbols}, made, name_of(start)

    # -- places ---------------------------------------------------------------------------------------------------

    def _enter_place(self, name: str, join: str, depth: int) -> Place:
        """The place to which an arrow leads, past what is no step, in a branch that ends at ``join``."""
        while name != join:
            kind = self.graph.kind(name)
            leaving = self.graph.leaving[name]
            if kind == "fork":
                split = self.splits[name]
                assert split is not None
                place = self._open_fork(split, name, depth + 1)
                if any(part != _DONE for part in place.parts):
                    return place
                name = place.join
            elif kind in ("start", "junction", "end"):
                name = leaving[0].target if leaving else END
            else:
                return name
        return END if depth == 0 else _DONE

    def _open_fork(self, split: BranchSplit, name: str, depth: int) -> ForkPlace:
        if depth > _DEEPEST:
            raise AutomatonError(f"forks stand in each other more than {_DEEPEST} deep; the last one is {name}")
        parts: list[Place] = []
        for branch in split.branches:
            if isinstance(branch, str):
                parts.append(self._enter_place(branch, split.join, depth))
            else:
                parts.append(self._settle_fork(self._open_fork(branch, name, depth + 1), split.join, depth))
        return ForkPlace(name, split.join, tuple(parts))

    def _settle_fork(self, fork: ForkPlace, join: str, depth: int) -> Place:
        """A place in a fork, or where the way continues when all branches are done."""
        return fork if any(part != _DONE for part in fork.parts) else self._enter_place(fork.join, join, depth)

    # -- moves ----------------------------------------------------------------------------------------------------

    def _list_moves(self, place: Place, join: str, depth: int) -> Iterator[tuple[_ChartStep, Place]]:
        """What can be done at a place, and where it leads, in a branch that ends at ``join``."""
        if isinstance(place, ForkPlace):
            for number, part in enumerate(place.parts):
                for step, after in self._list_moves(part, place.join, depth + 1):
                    parts = (*place.parts[:number], after, *place.parts[number + 1 :])
                    yield step, self._settle_fork(place._replace(parts=parts), join, depth)
                if self.drawn and part != _DONE:
                    return
            return
        if place in (END, _DONE):
            return
        graph = self.graph
        name = place.removesuffix("?")
        if place == name and graph.kind(name) == "step":
            targets = [edge.target for edge in graph.leaving[name]] or [END]
            reached = f"{name}?" if len(targets) > 1 else self._enter_place(targets[0], join, depth)
            yield _ChartStep(name, one_line(graph.node[name].text), None), reached
        elif name != graph.opening and graph.is_selection(name):
            yield (
                _ChartStep("", "", graph.question(name), name),
                self._enter_place(graph.leaving[name][0].target, join, depth),
            )
        else:
            question = graph.question(name)
            for terminal, (text, edge) in graph.answer_texts(name).items():
                if terminal in self.never:
                    continue
                yield _ChartStep(terminal, text, question), self._enter_place(edge.target, join, depth)

    def _transitions_of_step(
        self, state: str, step: _ChartStep, target: str, seen: set[str], symbols: dict[str, Symbol]
    ) -> Iterator[Transition]:
        if step.selects is not None:
            yield from self._transitions_of_selection(state, step.selects, target, symbols)
        elif step.question is None:
            symbols[step.read] = Symbol(step.label)
            yield Transition(state, step.read, None, target, (), step.label)
        else:
            read, decided = step.read if self.decisions else None, target
            if self.decisions:
                symbols[step.read] = Symbol(step.label)
            elif target in seen:
                # Two answers that lead to one place are two transitions all the same.
                decided = step.read if state in self.graph.node else f"{state}:{step.read}"
                yield Transition(decided, None, None, target)
            seen.add(decided)
            yield Transition(state, read, None, decided, (), step.label, question=step.question, decision=True)

    def _transitions_of_selection(
        self, state: str, name: str, target: str, symbols: dict[str, Symbol]
    ) -> Iterator[Transition]:
        """Several answers together: they are worked off on the stack before anything else moves."""
        if not self.decisions:
            yield Transition(state, None, None, target)
            return
        texts = self.graph.answer_texts(name)
        symbols |= {terminal: Symbol(text) for terminal, (text, _) in texts.items()}
        inside = f"{state}?" if state == name else f"{state}?{name}"
        choice, end, question = selection(*texts), f"{name}$", self.graph.question(name)
        yield Transition(state, None, None, inside, (choice, end))
        for production in expand_selections([choice]):
            yield Transition(inside, None, production.head, inside, production.body, question=question)
        for terminal, (text, _) in texts.items():
            yield Transition(inside, terminal, terminal, inside, (), text)
        yield Transition(inside, None, end, target)


def name_of(place: Place) -> str:
    """The name of the state that a place is."""
    return place if isinstance(place, str) else f"{place.name}({' '.join(map(name_of, place.parts))})"
