"""What is wrong with charts that can be drawn."""

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Flowchart, FlowEdge, FlowNode
from formal_llm.automata.models.flowchart_checks import find_problem
from formal_llm.automata.models.flowgraph import FlowGraph
from formal_llm.errors import AutomatonError
from tests.automata.charts import flowcharts
from tests.strategies import examples


class TestInCode:
    @pytest.mark.parametrize(
        ("nodes", "edges", "problem"),
        [
            ([], [], "no nodes"),
            ([FlowNode("a"), FlowNode("a")], [], "the same name"),
            ([FlowNode("a b")], [], "cannot be the name"),
            ([FlowNode("end")], [], "cannot be the name"),
            ([FlowNode("a", "a", "diamnd")], [], "did you mean diamond"),
            ([FlowNode("a")], [FlowEdge("a", "b")], "no such node"),
            ([FlowNode("a"), FlowNode("b")], [FlowEdge("a", "b", "X"), FlowEdge("a", "b", "x")], "two answers 'x'"),
        ],
    )
    def test_errors(self, nodes, edges, problem):
        with pytest.raises(AutomatonError, match=problem):
            Flowchart(tuple(nodes), tuple(edges))

    def test_an_unknown_direction(self):
        with pytest.raises(AutomatonError, match="unknown direction 'TD'; there are TB, BT, LR and RL"):
            Flowchart((FlowNode("a"),), direction="TD")


@st.composite
def drawn(draw):
    """Any arrows between a few steps and decisions; every arrow has a text of its own."""
    nodes = [FlowNode(name, name, draw(st.sampled_from(["rect", "rect", "diam"]))) for name in "abcde"]
    ends = st.sampled_from("abcde")
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=8))
    first = draw(st.permutations(list(zip("abcd", "bcde", strict=True))))[: draw(st.integers(0, 4))]
    edges = [FlowEdge(one, other, f"answer {n}") for n, (one, other) in enumerate([*first, *pairs])]
    return FlowGraph(tuple(nodes), tuple(edges))


class TestFindProblem:
    @given(flowcharts())
    def test_nothing_is_wrong_with_charts_that_describe_plans(self, chart):
        assert find_problem(FlowGraph(chart.nodes, chart.edges, chart.direction, chart.title)) is None

    @given(drawn())
    @examples(300)
    def test_what_is_wrong_is_wrong_and_nothing_else_is(self, chart):
        graph = networkx.DiGraph()
        graph.add_nodes_from("abcde")
        graph.add_edges_from((edge.source, edge.target) for edge in chart.edges)
        sinks = {name for name in "abcde" if not graph.out_degree(name)}
        asking = {node.id for node in chart.nodes if node.shape == "diam"}
        lost = [name for name in "abcde" if not sinks & (networkx.descendants(graph, name) | {name})]
        problem = find_problem(chart)
        if asking & sinks:
            assert "has no answers" in problem.message
            assert problem.node in asking & sinks
        elif lost:
            assert "no end can be reached" in problem.message
            assert problem.node == lost[0]
        else:
            assert problem is None

    def test_an_answer_given_twice_is_found_at_its_second_arrow(self):
        chart = FlowGraph(
            (FlowNode("q", "q?", "diam"), FlowNode("a"), FlowNode("b")),
            (FlowEdge("q", "a", "Yes"), FlowEdge("q", "b", "no"), FlowEdge("q", "b", " yes")),
        )
        problem = find_problem(chart)
        assert (problem.edge, problem.node) == (2, None)
        assert "two answers 'yes'" in problem.message
        assert "leads to a" in problem.suggestion
