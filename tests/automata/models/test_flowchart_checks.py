"""What is wrong with charts that can be drawn."""

import pytest

from formal_llm import (
    AutomatonError,
    Flowchart,
    FlowEdge,
    FlowNode,
)


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
            ([FlowNode("a"), FlowNode("b")], [FlowEdge("a", "b"), FlowEdge("a", "b", "x")], "has no text"),
        ],
    )
    def test_errors(self, nodes, edges, problem):
        with pytest.raises(AutomatonError, match=problem):
            Flowchart(tuple(nodes), tuple(edges))
