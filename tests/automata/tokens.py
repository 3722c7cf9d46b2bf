"""The token game of a flowchart by brute force, and random charts for it.

Each token moves by itself, one arrow at a time, in every order; only at an end it vanishes at once. What a node means
and how an answer is called is taken from the chart; how tokens move is written down here once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import networkx
from hypothesis import strategies as st

from formal_llm import FlowEdge, FlowNode
from formal_llm.automata.models.flowgraph import FlowGraph

Word = tuple[str, ...]
#: A node at which a token stands; then the arrow from several nodes at which it waits, ``asked`` where what follows is
#: being asked, or None.
Token = tuple[str, FlowEdge | str | None]
Marking = frozenset[tuple[Token, int]]


class Tokens:
    """All that can happen in a chart."""

    def __init__(self, chart: FlowGraph, *, decisions: bool) -> None:
        self.chart, self.decisions = chart, decisions
        ways = networkx.DiGraph()
        ways.add_nodes_from(node.id for node in chart.nodes)
        ways.add_edges_from((one, other) for edge in chart.edges for one in edge.sources for other in edge.targets)
        self.behind = {name: {name} | networkx.descendants(ways, name) for name in ways}

    def first(self) -> Iterator[tuple[str, Counter[Token]]]:
        """What is read at the beginning, and the tokens after it."""
        if len(self.chart.starts) == 1:
            yield "", Counter([(self.chart.start, None)])
        for answer, edge in self.chart.answers(self.chart.opening).items():
            yield answer if self.decisions else "", Counter([(edge.target, None)])

    def can_come(self, token: Token, name: str) -> bool:
        at, waits = token
        begins = waits.targets if isinstance(waits, FlowEdge) else (at,)
        return any(name in self.behind[begin] for begin in begins)

    def moves(self, tokens: Counter[Token]) -> Iterator[tuple[str, Counter[Token]]]:
        """What one token can do, or those that wait at one arrow, and what is read then."""
        for token in tokens:
            name, state = token
            kind, leaving = self.chart.kind(name), self.chart.leaving[name]
            if isinstance(state, FlowEdge):
                waiting = {(source, state) for source in state.sources}
                missing = [source for source, edge in waiting if (source, edge) not in tokens]
                others = [other for other in tokens if other not in waiting]
                if not any(self.can_come(other, source) for source in missing for other in others):
                    yield "", tokens - Counter(waiting) + Counter((target, None) for target in state.targets)
            elif kind == "step" and state is None:
                after: list[Token] = [(name, "asked")] if len(leaving) > 1 else self.along(name, leaving)
                yield name, tokens - Counter([token]) + Counter(after)
            elif kind in ("step", "decision"):
                for answer, edge in self.chart.answers(name).items():
                    read = answer if self.decisions else ""
                    yield read, tokens - Counter([token]) + Counter(self.along(name, (edge,)))
            else:
                yield "", tokens - Counter([token]) + Counter(self.along(name, leaving))

    def along(self, name: str, edges: tuple[FlowEdge, ...]) -> list[Token]:
        """Where a token is after it has left a node along the one arrow, or nowhere."""
        if not edges:
            return []
        (edge,) = edges
        return [(target, None) for target in edge.targets] if len(edge.sources) == 1 else [(name, edge)]

    def reached(self, longest: int) -> dict[Word, set[Marking]]:
        """The markings after each word of at most so many terminals."""
        found: dict[Word, set[Marking]] = {}
        todo = [((read,) if read else (), frozenset(tokens.items())) for read, tokens in self.first()]
        for word, marking in todo:
            marking = frozenset((token, many) for token, many in marking if self.chart.kind(token[0]) != "end")
            if marking in found.setdefault(word, set()):
                continue
            found[word].add(marking)
            for read, after in self.moves(Counter(dict(marking))):
                longer = (*word, read) if read else word
                if len(longer) <= longest:
                    todo.append((longer, frozenset(after.items())))
        return found

    def words(self, longest: int) -> set[Word]:
        """The words after which no token is left."""
        return {word for word, markings in self.reached(longest).items() if frozenset() in markings}

    def can_meet(self) -> bool:
        """Whether two tokens can stand at one node that is no end, or wait there for one arrow."""
        todo = [frozenset(tokens.items()) for _, tokens in self.first()]
        found = set(todo)
        for marking in todo:
            if any(many > 1 and self.chart.kind(name) != "end" for (name, _), many in marking):
                return True
            new = {
                frozenset((token, many) for token, many in after.items() if self.chart.kind(token[0]) != "end")
                for _, after in self.moves(Counter(dict(marking)))
            }
            todo += new - found
            found |= new
        return False


@st.composite
def token_charts(draw: st.DrawFn) -> FlowGraph:
    """A few nodes with arrows from several and to several of them, whether they describe plans or not."""
    names = "abcdefg"[: draw(st.integers(3, 7))]
    edges: list[FlowEdge] = []
    for at in range(1, len(names)):
        sources = draw(st.lists(st.sampled_from(names[max(0, at - 3) : at]), min_size=1, max_size=2, unique=True))
        more = draw(st.lists(st.sampled_from(names[at : at + 3]), max_size=2, unique=True))
        edges.append(FlowEdge(sources, [names[at], *more], draw(st.sampled_from(["", f"answer {at}"]))))
    for one, other in draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=1)):
        edges.append(FlowEdge(one, other, "again"))
    leaving = {source for edge in edges for source in edge.sources}
    drawn = st.sampled_from([("x", "rect"), ("x", "rect"), ("x", "diamond"), ("", "circle")])
    nodes = [FlowNode(name, *(draw(drawn) if name in leaving else ("x", "rect"))) for name in names]
    return FlowGraph(tuple(nodes), tuple(edges))
