"""The meaning of a drawing with subgraphs and groups of nodes: a chart of nodes and arrows between them.

- ``A --> B & C``: both are done, in any order. A fork, which Mermaid has as a shape, is inserted between them.
- An arrow to a subgraph leads to the nodes in it that no inner arrow enters; if there are several, one is chosen. An
  arrow from a subgraph starts at the nodes in it that no inner arrow leaves; if there are none,
  at each node. If arrows with texts leave a subgraph, its title is the question.
- A subgraph without nodes is a node.
- Comments (nodes of a shape such as ``brace``) are left out, with the arrows to and from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from formal_llm.automata.models.flowgraph import FlowEdge, FlowNode
from formal_llm.automata.notation.source import Place


class Vertex(NamedTuple):
    """A node as written; text and shape are None if there is only a name."""

    id: str
    text: str | None
    shape: str | None
    place: Place


class Link(NamedTuple):
    """An arrow from one node to another; arrows to all of several nodes share the number ``group``."""

    source: str
    target: str
    text: str
    place: Place
    group: int = 0


@dataclass
class Group:
    """A subgraph: its title, its offset, and the nodes and subgraphs that it mentions."""

    title: str
    at: int
    mentions: dict[str, None] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)


class Meaning(NamedTuple):
    """Nodes and arrows with their places in the text."""

    nodes: tuple[FlowNode, ...]
    edges: tuple[FlowEdge, ...]
    node_places: Mapping[str, Place]
    edge_places: Sequence[Place]


def meaning(vertices: Mapping[str, Vertex], links: Sequence[Link], groups: Mapping[str, Group]) -> Meaning:
    """Return the chart that a drawing represents."""
    return _Meaning(vertices, links, groups).build_meaning()


class _Meaning:
    def __init__(self, vertices: Mapping[str, Vertex], links: Sequence[Link], groups: Mapping[str, Group]) -> None:
        self.groups = {name: group for name, group in groups.items() if group.members}
        comments = {v.id for v in vertices.values() if v.shape == "comment"}
        self.links = [link for link in links if not comments & {link.source, link.target}]
        self.nodes: dict[str, FlowNode] = {}
        self.places: dict[str, Place] = {}
        for v in vertices.values():
            if v.id not in self.groups and v.id not in comments:
                text = groups[v.id].title if v.id in groups else v.text
                self.nodes[v.id] = FlowNode(v.id, text, v.shape or "rect")  # type: ignore[arg-type]
                self.places[v.id] = v.place
        self.edges: list[tuple[FlowEdge, Place]] = []

    def build_meaning(self) -> Meaning:
        tied = [link for link in self.links if not self.groups.keys().isdisjoint((link.source, link.target))]
        doors = {link.target: () for link in tied if link.target in self.groups}
        into = {name: tuple(self._find_doors(name, into=True)) for name in doors}
        out = self._ways_out([link for link in tied if link.source in self.groups])
        forks: dict[tuple[int, str], str] = {}
        begun: set[tuple[str, str]] = set()
        wide: dict[int, set[str]] = {}
        for link in self.links:
            wide.setdefault(link.group, set()).add(link.target)
        for link in self.links:
            sources, targets = out.get(link.source, (link.source,)), into.get(link.target, (link.target,))
            bar = link.source in self.nodes and self.nodes[link.source].shape == "fork"
            if not link.group or len(wide[link.group]) == 1 or bar:
                for source in sources:
                    self._draw_link(source, targets, link)
                continue
            key = link.group, link.text
            if key not in forks:
                forks[key] = self._add_node(f"{link.source}_all", FlowNode("x", "", "fork"), link.place)
            fork = forks[key]
            for source in sources:
                if (source, fork) not in begun:
                    begun.add((source, fork))
                    self._draw_link(source, (fork,), link)
            if (fork, link.target) not in begun:
                begun.add((fork, link.target))
                if len(targets) > 1:  # the subgraph has several possible first nodes
                    choice = self._add_node(f"{link.target}_begin", FlowNode("x", "", "rect"), link.place)
                    self._draw_link(fork, (choice,), link._replace(text=""))
                    self._draw_link(choice, targets, link._replace(text=""))
                else:
                    self._draw_link(fork, targets, link._replace(text=""))
        edges, places = zip(*self.edges, strict=True) if self.edges else ((), ())
        return Meaning(tuple(self.nodes.values()), edges, self.places, places)

    def _draw_link(self, source: str, targets: Sequence[str], link: Link) -> None:
        if len(targets) > 1 and link.text:  # one answer, then a choice of the first node of the subgraph
            choice = self._add_node(f"{link.target}_begin", FlowNode("x", "", "rect"), link.place)
            self.edges.append((FlowEdge(source, choice, link.text), link.place))
            source, link = choice, link._replace(text="")
        self.edges += [(FlowEdge(source, target, link.text), link.place) for target in targets]

    def _add_node(self, name: str, node: FlowNode, place: Place) -> str:
        found, number = name, 1
        while found in self.nodes or found in self.groups:
            number += 1
            found = f"{name}_{number}"
        self.nodes[found] = FlowNode(found, node.text, node.shape)
        self.places[found] = place
        return found

    # -- subgraphs ------------------------------------------------------------------------------------------------

    def _ways_out(self, links: Sequence[Link]) -> dict[str, tuple[str, ...]]:
        """Return the nodes from which the arrows out of each subgraph start."""
        found: dict[str, tuple[str, ...]] = {}
        for name in dict.fromkeys(link.source for link in links):
            leaving = [link for link in links if link.source == name]
            exits = list(self._find_doors(name, into=False))
            if len(leaving) > 1 and any(link.text for link in leaving):
                asking = [one for one in exits if self.nodes[one].shape == "diam"]
                others = [one for one in exits if one not in asking]
                if others:
                    question = FlowNode("x", self.groups[name].title, "diam")
                    choice = self._add_node(f"{name}_next", question, leaving[0].place)
                    self.edges += [(FlowEdge(one, choice), leaving[0].place) for one in others]
                    exits = [*asking, choice]
            found[name] = tuple(exits)
        return found

    def _find_doors(self, name: str, *, into: bool) -> Iterator[str]:
        """Yield the nodes at which a subgraph is entered or left."""
        todo = [name]
        for group in todo:
            if group not in self.groups:
                yield group
                continue
            children = self.groups[group].members
            child_of = {inner: child for child in children for inner in self._iterate_members(child)}
            used, other = set[str](), set[str]()
            for link in self.links:
                one, two = child_of.get(link.source), child_of.get(link.target)
                door, inner = (two, one) if into else (one, two)
                if door is not None and inner != door:
                    (other if inner is None else used).add(door)
            free = [child for child in children if child not in used] or (children[:1] if into else children)
            todo += [child for child in free if child not in other] or free

    def _iterate_members(self, name: str) -> Iterator[str]:
        todo = [name]
        for one in todo:
            yield one
            todo += self.groups[one].members if one in self.groups else []
