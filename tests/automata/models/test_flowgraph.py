"""The nodes and arrows of flowcharts."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Flowchart
from formal_llm.automata.models.flowgraph import (
    FlowEdge,
    FlowGraph,
    FlowNode,
    normalize_text,
    one_line,
)
from tests.automata.charts import NASTY, RETURNS, WILD
from tests.strategies import examples


class TestMeaning:
    def test_kinds(self):
        kinds = {node.id: RETURNS.kind(node.id) for node in RETURNS.nodes}
        assert kinds == {
            "ask": "start", "days": "decision", "take": "step", "refuse": "step", "seal": "decision", "half": "step",
            "all": "step", "stop": "end",
        }  # fmt: skip
        assert RETURNS.start == "ask"
        assert repr(RETURNS) == "<Flowchart: 2 decisions, 4 steps>"

    @pytest.mark.parametrize(
        ("first", "kind"),
        [
            ("A([Claim received])", "start"), ("A((Go))", "start"), ("A[Start]", "start"), ("A[Begin!]", "start"),
            ("A[Start the engine]", "step"), ("A(Claim received)", "step"), ("A[ ]", "start"), ("A", "step"),
        ],
    )  # fmt: skip
    def test_the_first_node(self, first, kind):
        assert Flowchart.from_mermaid(f"flowchart TD\n{first} --> B").kind("A") == kind

    @pytest.mark.parametrize(
        ("last", "kind"),
        [
            ("B([End])", "end"), ("B[Stop]", "end"), ("B((Done.))", "end"), ("B([Refuse])", "step"),
            ("B(( ))", "end"), ("B[End the call]", "step"), ("B", "step"),
        ],
    )  # fmt: skip
    def test_the_last_node(self, last, kind):
        assert Flowchart.from_mermaid(f"flowchart TD\nA --> {last}").kind("B") == kind

    def test_what_stands_in_the_middle_is_a_step_where_it_tells_one(self):
        chart = Flowchart.from_mermaid(
            "flowchart TD\nA --> B([End]) --> C(( )) --> D((2)) --> E[End] --> F{{Go}} --> G"
        )
        kinds = ["step", "junction", "junction", "step", "step", "step", "step"]
        assert [chart.kind(name) for name in "ABCDEFG"] == kinds

    def test_a_marker_with_several_arrows_is_a_question(self):
        chart = Flowchart.from_mermaid("flowchart TD\nA --> B([End]) --> B\nB --> C\nB --> D")
        assert chart.kind("B") == "decision"
        assert chart.pda().accepts(["A", "B=end", "B=d", "D"])

    def test_a_start_that_is_come_back_to(self):
        chart = Flowchart.from_mermaid("flowchart TD\nS([Start]) --> A{more?}\nA -->|yes| B --> S\nA -->|no| C")
        assert chart.start == "S"
        assert chart.pda().accepts(["A=yes", "B", "A=yes", "B", "A=no", "C"])

    @pytest.mark.parametrize(("text", "decisions", "steps"), WILD)
    def test_as_people_draw(self, text, decisions, steps):
        chart = Flowchart.from_mermaid(text)
        by_kind = {kind: [n.text for n in chart.nodes if chart.kind(n.id) == kind] for kind in ("decision", "step")}
        assert sorted(by_kind["decision"]) == sorted(decisions)
        assert sorted(by_kind["step"]) == sorted(steps)


class TestNodes:
    @pytest.mark.parametrize(
        ("node", "text", "shape"),
        [
            (FlowNode("a"), "a", "rect"), (FlowNode("a", " Do \t it \n  now\n"), "Do it\nnow", "rect"),
            (FlowNode("a", "", "diamond"), "", "diamond"), (FlowNode("a", shape="no-such-shape"), "a", "no-such-shape"),
        ],
    )  # fmt: skip
    def test_text_and_shape_in_one_form(self, node, text, shape):
        assert (node.text, node.shape) == (text, shape)

    def test_an_arrow_in_one_form(self):
        assert FlowEdge("a", "b", "  yes,\t of  course ") == FlowEdge(["a"], ("b",), "yes, of course")
        edge = FlowEdge(["a", "b", "a"], ["c", "c", "d"])
        assert (edge.sources, edge.targets) == (("a", "b"), ("c", "d"))
        assert (edge.source, edge.target, str(edge)) == ("a & b", "c & d", "a & b --> c & d")


@st.composite
def graphs(draw):
    """Any nodes and arrows at all, whether they describe plans or not."""
    shapes = st.sampled_from(["rect", "diamond", "hexagon", "stadium", "circle"])
    nodes = [FlowNode(name, draw(st.sampled_from(["x", "Start", ""])), draw(shapes)) for name in "abcd"]
    edges = draw(st.lists(st.builds(FlowEdge, st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=8))
    return FlowGraph(tuple(nodes), tuple(edges))


class TestGraph:
    @given(graphs())
    @examples(200)
    def test_starts(self, graph):
        """One of each group of nodes that lead to each other and to which no other arrow leads."""
        drawn = networkx.DiGraph()
        drawn.add_nodes_from("abcd")
        drawn.add_edges_from((edge.source, edge.target) for edge in graph.edges)
        groups = networkx.condensation(drawn)
        first = [groups.nodes[one]["members"] for one in groups if not groups.in_degree(one)]
        assert len(graph.starts) == len(first)
        for members in first:
            (start,) = [name for name in graph.starts if name in members]
            marked = [name for name in sorted(members) if graph.is_start_marker(name)]
            assert start == (marked or sorted(members))[0]

    def test_a_box_with_several_arrows_without_texts_is_a_step_and_then_a_choice(self):
        chart = Flowchart.from_mermaid(
            "flowchart TD\nA[Look] --> B[Buy]\nA --> C{Ask?}\nC --> D[Buy] & E((.))\nA -->|no| B"
        )
        assert [chart.kind(name) for name in "ABC"] == ["step", "step", "decision"]
        assert [text for text, _ in chart.answer_texts("A").values()] == ["Buy", "Ask?", "no"]
        assert [text for text, _ in chart.answer_texts("C").values()] == ["Buy and ."]
        assert chart.question("A") == 'What follows "Look"?'
        alike = Flowchart.from_mermaid("flowchart TD\nA{?} --> B[Buy]\nA --> C[Buy]")
        assert [text for text, _ in alike.answer_texts("A").values()] == ["Buy (B)", "Buy (C)"]
        assert list(alike.answers("A")) == ["A=buy_b", "A=buy_c"]

    def test_the_markers_of_langgraph_are_markers(self):
        """As langgraph 1.2 draws a graph of two nodes."""
        chart = Flowchart.from_mermaid("""
graph TD;
\t__start__([<p>__start__</p>]):::first
\tsearch(search)
\twrite(write)
\t__end__([<p>__end__</p>]):::last
\t__start__ --> search;
\tsearch -.-> search;
\tsearch -.-> write;
\twrite --> __end__;
\tclassDef default fill:#f2f0ff,line-height:1.2
""")
        assert [chart.kind(name) for name in ("__start__", "search", "write", "__end__")] == [
            "start",
            "step",
            "step",
            "end",
        ]


class TestTexts:
    @given(NASTY | st.text())
    def test_bringing_into_form_twice_is_once(self, text):
        assert normalize_text(normalize_text(text)) == normalize_text(text)
        assert one_line(one_line(text)) == one_line(text)
        assert one_line(normalize_text(text)) == one_line(text)
