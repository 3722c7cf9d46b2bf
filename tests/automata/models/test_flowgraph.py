"""The nodes and arrows of flowcharts."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Flowchart, Lookahead, Planner, ScriptedLLM
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.models import flowgraph
from formal_llm.automata.models.flowgraph import (
    END,
    ID,
    PLACEHOLDER,
    RESERVED,
    SHAPES,
    BranchSplit,
    FlowEdge,
    FlowGraph,
    FlowNode,
    find_splits,
    normalize_text,
    one_line,
)
from formal_llm.automata.notation.mermaid_nodes import BRACKETS, COMMENTS
from formal_llm.errors import AutomatonError
from tests.automata.charts import NASTY, RETURNS, WILD
from tests.automata.processes import LONGEST, Process, drawn, processes
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
            ("B@{ shape: stop }", "end"), ("B[End the call]", "step"), ("B", "step"),
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
            (FlowNode("a", shape="decision"), "a", "diam"), (FlowNode("a", shape="start"), "", "sm-circ"),
            (FlowNode("a", "x", "stop"), "x", "fr-circ"), (FlowNode("a", "", "rect"), "", "rect"),
            (FlowNode("a", shape="no-such-shape"), "a", "no-such-shape"),
        ],
    )  # fmt: skip
    def test_text_and_shape_in_one_form(self, node, text, shape):
        assert (node.text, node.shape) == (text, shape)

    def test_text_of_an_arrow_in_one_form(self):
        assert FlowEdge("a", "b", "  yes,\t of  course ") == FlowEdge("a", "b", "yes, of course")


@st.composite
def graphs(draw):
    """Any nodes and arrows at all, whether they describe plans or not."""
    shapes = st.sampled_from(["rect", "diam", "hex", "stadium", "circle"])
    nodes = [FlowNode(name, draw(st.sampled_from(["x", "Start", ""])), draw(shapes)) for name in "abcd"]
    edges = draw(st.lists(st.builds(FlowEdge, st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=8))
    return FlowGraph(tuple(nodes), tuple(edges))


class TestGraph:
    @given(graphs())
    def test_arrows_out_of_each_node_in_their_order(self, graph):
        assert {name: list(edges) for name, edges in graph.leaving.items()} == {
            node.id: list(dict.fromkeys(edge for edge in graph.edges if edge.source == node.id)) for node in graph.nodes
        }
        assert {name: node.id for name, node in graph.node.items()} == {name: name for name in "abcd"}

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

    @given(graphs())
    @examples(200)
    def test_kinds(self, graph):
        for node in graph.nodes:
            kind, out = graph.kind(node.id), {edge for edge in graph.edges if edge.source == node.id}
            assert kind != "decision" or node.shape == "diam" or len(out) > 1
            assert kind == "decision" or node.shape != "diam"
            assert kind != "start" or node.id in graph.starts
            assert kind != "end" or not out
            assert kind != "step" or node.text
            assert kind != "junction" or not node.text or node.text == "Start"
            assert bool(graph.answer_edges(node.id)) == bool(
                out and (kind == "decision" or (kind == "step" and len(out) > 1))
            )

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

    @given(NASTY | st.text())
    def test_only_blanks_and_line_ends_change(self, text):
        assert normalize_text(text).split() == one_line(text).split() == text.split()
        assert "\n" not in one_line(text)
        for line in normalize_text(text).split("\n"):
            assert line == " ".join(line.split())

    def test_lines_are_kept(self):
        assert normalize_text("\n  Pay\t the\n\n buyer \n\n") == "Pay the\n\nbuyer"

    def test_placeholders(self):
        assert PLACEHOLDER.findall("{who} pays {sum_2} { not} {} {a b}") == ["who", "sum_2"]


class TestNames:
    @pytest.mark.parametrize("name", ["a", "A1", "é_1", "12", "a-b", "c.d", "a:b", "x/y", *RESERVED])
    def test_words(self, name):
        assert ID.fullmatch(name)

    @pytest.mark.parametrize("name", ["", "a b", "-a", "a-", "a--b", "a[", "a&b", "a\n"])
    def test_other_signs_make_no_word(self, name):
        assert not ID.fullmatch(name)


class TestShapes:
    def test_each_name_is_in_one_group(self):
        listed = flowgraph._NAMES.replace("|", " ").split()
        assert len(listed) == len(set(listed)) == len(SHAPES)

    def test_the_name_used_here_stands_for_itself(self):
        assert all(SHAPES[short] == short for short in SHAPES.values())

    def test_brackets_are_for_shapes_that_there_are(self):
        assert {shape for group in BRACKETS.values() for _, shape in group} <= set(SHAPES.values())
        assert not set(COMMENTS) & set(SHAPES)


@given(processes())
@examples(40)
def test_a_chart_has_the_plans_of_the_process_that_it_was_drawn_for(process: Process) -> None:
    text, plans = drawn(process)
    chart = Flowchart.from_mermaid(text)
    assert set(words(chart.pda(decisions=False), LONGEST)) == {word for word in plans if len(word) <= LONGEST}
    assert Flowchart.from_mermaid(str(chart)) == chart


@given(processes())
@examples(30)
def test_words_with_decisions_are_read_in_one_way_and_tell_the_same_steps(process: Process) -> None:
    chart = Flowchart.from_mermaid(drawn(process)[0])
    pda = chart.pda()
    assert len({(t.state, t.read) for t in pda.transitions}) == len(pda.transitions)
    assert None not in {t.read for t in pda.transitions}
    steps = chart.pda(decisions=False)
    for word in words(pda, 5):
        assert steps.accepts([name for name in word if "=" not in name])


def chart(body: str) -> Flowchart:
    return Flowchart.from_mermaid(f"flowchart TD\n{body}")


def plans(body: str, length: int = 8) -> set[str]:
    return {" ".join(word) for word in words(chart(body).pda(decisions=False), length)}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("A --> B\nA --> C", {"A B", "A C"}),
        ("A --> B & C", {"A B C", "A C B"}),
        ("A & C --> B", {"A B", "C B"}),
        ("A --> B & C --> D", {"A B C D", "A C B D"}),
        ("A --> B & C & D\nB & C --> E --> F\nD --> F", {  # two of three meet first
            "A B C D E F", "A B C E D F", "A B D C E F", "A C B D E F", "A C B E D F", "A C D B E F", "A D B C E F",
            "A D C B E F"}),
        ("A --> B & C\nB --> C --> D", {"A B C D"}),  # one branch is empty
        ("A --> B & B", {"A B"}),
        ("A --> B\nA --> B", {"A B"}),
        ("A <--> B --> C", {"A B C", "A B A B C", "A B A B A B C"}),
        ("A --> B & C\nX --> B", {"A B C", "A C B", "X B"}),
        ("A --> B --> C --> B\nC --> D", {"A B C D", "A B C B C D", "A B C B C B C D"}),
        ("B --> A\nA --> B\nA --> C", {"B A C", "B A B A C", "B A B A B A C"}),  # begins with the first one written
        ("A\nB", {"A", "B"}),
    ],
)  # fmt: skip
def test_small_charts(body: str, told: set[str]) -> None:
    assert plans(body) == told


SUBGRAPHS = "subgraph one [Do the work]\n a1 --> a2\nend\n"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("X --> one --> Y", {"X a1 a2 Y"}),
        ("one -->|well| Y\none -->|badly| Z", {"a1 a2 Y", "a1 a2 Z"}),
        ("one --> Y\none --> Z", {"a1 a2 Y", "a1 a2 Z"}),
        ("subgraph two\nb1 --> b2\nc\nend\none --> two --> Y", {"a1 a2 b1 b2 Y", "a1 a2 c Y"}),
        ("subgraph two\nb1\nend\nX --> one & two --> Y", {"X a1 a2 b1 Y", "X a1 b1 a2 Y", "X b1 a1 a2 Y"}),
        ("subgraph all\none --> d\nend\nX --> all --> Y", {"X a1 a2 d Y"}),
        ("X --> a2\none --> Y", {"X a2 Y", "a1 a2 Y"}),
        ("subgraph empty [Rest]\nend\none --> empty --> Y", {"a1 a2 empty Y"}),
        ("subgraph ask\nq{Well?}\nend\none --> ask\nask -->|yes| Y\nask -->|no| Z", {"a1 a2 Y", "a1 a2 Z"}),
        ("subgraph ring\nr1 --> r2 --> r1\nend\none --> ring --> Y", {
            "a1 a2 r1 Y", "a1 a2 r1 r2 Y", "a1 a2 r1 r2 r1 Y", "a1 a2 r1 r2 r1 r2 Y"}),
    ],
)  # fmt: skip
def test_subgraphs(body: str, told: set[str]) -> None:
    assert plans(SUBGRAPHS + body, 7) == told


def test_the_title_of_a_subgraph_is_the_question_of_its_arrows() -> None:
    done = chart(SUBGRAPHS + "one -->|well| Y\none -->|badly| Z")
    assert done.question("one_next") == "Do the work"
    assert list(done.answers("one_next")) == ["one_next=well", "one_next=badly"]


def test_where_it_begins_is_a_question() -> None:
    begun = chart("call([A customer calls]) --> note[Take a note]\nmail([A customer writes]) --> note")
    llm = ScriptedLLM([2])
    plan = Planner(begun.pda(), llm).plan("x")
    assert 'To get the answer to "Where does it begin?"' in llm.questions[0].prompt
    assert [option.text for option in llm.questions[0].options] == ["A customer calls", "A customer writes"]
    assert plan.word == ("start=a_customer_writes", "note")
    assert begun.terminals == ("start=a_customer_calls", "start=a_customer_writes", "note")
    assert chart("start --> A\nB --> A").opening == "start_"


def test_branches_in_the_order_in_which_they_are_drawn() -> None:
    body = "flowchart TD\n%% %parallel drawn\nA --> B & C\nB --> B2"
    drawn_so = Flowchart.from_mermaid(body)
    assert {" ".join(word) for word in words(drawn_so.pda(), 9)} == {"A B B2 C"}
    assert Flowchart.from_mermaid(str(drawn_so)) == drawn_so
    assert drawn_so != chart("A --> B & C\nB --> B2")
    with pytest.raises(AutomatonError, match="'any' or 'drawn', not 'both'"):
        Flowchart((FlowNode("a"),), order="both")


def test_too_many_orders_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flowgraph, "MOST_PLACES", 100)
    body = "A --> " + " & ".join(f"B{n}" for n in range(12))
    with pytest.raises(AutomatonError, match=r"forks such as A_all can be ordered in more ways.*%parallel drawn"):
        chart(body).pda()
    assert Lookahead(chart(f"%% %parallel drawn\n{body}").pda()).count() == 1


def test_forks_stand_in_each_other_to_a_depth() -> None:
    nodes, edges = [FlowNode("s")], []
    before = "s"
    for n in range(80):
        nodes += [FlowNode(f"f{n}", shape="fork"), FlowNode(f"a{n}")]
        edges += [FlowEdge(before, f"f{n}"), FlowEdge(f"f{n}", f"a{n}")]
        before = f"f{n}"
    nodes.append(FlowNode("last"))
    edges.append(FlowEdge(before, "last"))
    with pytest.raises(AutomatonError, match="more than 50 deep"):
        Flowchart(tuple(nodes), tuple(edges)).pda()


def test_several_answers_in_a_branch_are_given_at_once() -> None:
    packed = chart("A --> pack{{What?}} & C\npack -->|tent| leave\npack -->|rope| leave\nleave & C --> D")
    found = set(words(packed.pda(), 8))
    one = {("A", "pack=tent", "leave", "C", "D"), ("A", "C", "pack=tent", "pack=rope", "leave", "D")}
    assert one <= found
    assert ("A", "pack=tent", "C", "pack=rope", "leave", "D") not in found
    assert len(found) == 3 * 3


def test_questions_of_branches_are_asked_side_by_side_and_drawn() -> None:
    both = chart(
        "a([A call]) --> b[Do]\nm([A mail]) --> b\nb --> q{Good?} & r{Late?}\nq -->|yes| x\nq -->|no| y\n"
        "r -->|yes| z\nr -->|no| j(( ))\nx & y & z & j --> e[Tell]"
    )
    llm = ScriptedLLM([1, 3, 1, 2])
    plan = Planner(both.pda(), llm).plan("t")
    assert [[option.text for option in question.options] for question in llm.questions] == [
        ["A call", "A mail"],
        ["Good? yes", "Good? no", "Late? yes", "Late? no"],
        ["Good? yes", "Good? no", "z"],
        ["x", "z"],
    ]
    assert plan.word == ("start=a_call", "b", "r=yes", "q=yes", "z", "x", "e")
    taken = {box.id: box.tone for box in plan.over(both).picture.nodes}
    assert {name for name, tone in taken.items() if tone == "marked"} == {"a", "b", "b_all", "q", "r", "x", "z", "e"}


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
