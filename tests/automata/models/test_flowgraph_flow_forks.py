"""Where the branches of a fork meet, against every way through the chart."""

from __future__ import annotations

import networkx
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.models.flowgraph import END, BranchSplit, FlowEdge, FlowGraph, FlowNode, find_splits
from tests.strategies import examples


@st.composite
def charts(draw: st.DrawFn) -> FlowGraph:
    """A fork ``f`` and arrows that lead on from it, without circles."""
    names = "fabcdeg"
    pairs = [(one, other) for n, one in enumerate(names) for other in names[n + 1 :]]
    chosen = set(draw(st.lists(st.sampled_from(pairs), min_size=3, max_size=9))) | {("f", "a"), ("f", "b")}
    nodes = [FlowNode(name, shape="fork" if name == "f" else "rect") for name in names]
    return FlowGraph(tuple(nodes), tuple(FlowEdge(one, other) for one, other in sorted(chosen)))


def leaves(split: BranchSplit) -> list[str]:
    return [name for branch in split.branches for name in ([branch] if isinstance(branch, str) else leaves(branch))]


@given(charts())
@examples(200)
def test_branches_are_apart_and_meet_at_the_nearest_node(chart: FlowGraph) -> None:
    drawn = networkx.DiGraph((edge.source, edge.target) for edge in chart.edges)
    drawn.add_edges_from((name, END) for name in list(drawn) if not drawn.out_degree(name))
    targets = list(drawn.successors("f"))
    ways = [way[1:] for way in networkx.all_simple_paths(drawn, "f", END)]
    common = set.intersection(*map(set, ways))
    nearest = next(name for name in ways[0] if name in common)
    split = find_splits(chart)["f"]

    def region(name: str, join: str) -> set[str]:
        return (
            {one for way in networkx.all_simple_paths(drawn, name, join) for one in way} - {join}
            if name != join
            else set()
        )

    if split is None:
        return
    assert split.join == nearest
    assert sorted(leaves(split)) == sorted(targets)
    todo = [split]
    for one in todo:
        regions = [
            {
                name
                for leaf in ([branch] if isinstance(branch, str) else leaves(branch))
                for name in region(leaf, one.join)
            }
            for branch in one.branches
        ]
        assert sum(map(len, regions)) == len(set().union(*regions))
        todo += [branch for branch in one.branches if not isinstance(branch, str)]


def test_what_cannot_be_told_apart() -> None:
    def fork(*pairs: str) -> BranchSplit | None:
        names = dict.fromkeys("f" + "".join(pairs))
        nodes = tuple(FlowNode(name, shape="fork" if name == "f" else "rect") for name in names)
        return find_splits(FlowGraph(nodes, tuple(FlowEdge(*pair) for pair in pairs)))["f"]

    assert fork("fa", "fb") == BranchSplit(END, ("a", "b"))
    assert fork("fa", "fb", "ac", "bc") == BranchSplit("c", ("a", "b"))
    assert fork("fa", "fb", "ab") == BranchSplit("b", ("a", "b"))
    assert fork("fa", "fb", "fc", "ad", "bd", "de", "ce") == BranchSplit("e", (BranchSplit("d", ("a", "b")), "c"))
    assert fork("fa", "fb", "ac", "bc", "ad", "bd") is None
    assert find_splits(FlowGraph((FlowNode("a"),))) == {}
