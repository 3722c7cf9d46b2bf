"""Flowcharts: what nodes mean, the words of the token game against brute force, plans made with one."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import (
    CFG,
    Flowchart,
    FlowEdge,
    FlowNode,
    Limits,
    Lookahead,
    Plan,
    Planner,
    ScriptedLLM,
    Walk,
    Wording,
)
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.models import markings
from formal_llm.automata.models.flowchart import find_problem
from formal_llm.automata.models.flowgraph import FlowGraph, normalize_text, one_line
from formal_llm.automata.models.rules import automaton_of
from formal_llm.errors import AutomatonError, NotationError
from tests.automata.charts import NASTY, RETURNS, WILD, flowcharts
from tests.automata.processes import LONGEST, Process, drawn, processes
from tests.automata.tokens import Tokens, token_charts
from tests.strategies import examples


class TestFill:
    def test_names_are_filled_in_everywhere(self):
        chart = Flowchart.from_mermaid(
            "---\ntitle: For {who}\n---\nflowchart TD\n"
            "A{Is {who} entitled?} -->|{yes}| B[Pay {sum} to {who}]\nA -->|no| C"
        )
        assert chart.placeholders == ("who", "sum", "yes")
        filled = chart.fill({"who": "Microsoft", "sum": 5, "yes": "Sí"})
        assert [node.text for node in filled.nodes] == ["Is Microsoft entitled?", "Pay 5 to Microsoft", "C"]
        assert (filled.title, filled.edges[0].text, filled.placeholders) == ("For Microsoft", "Sí", ())

    def test_missing_and_unknown_names_are_all_told(self):
        with pytest.raises(AutomatonError) as caught:
            RETURNS.fill({"lmit": 14, "x": 1})
        assert str(caught.value) == ("no value for {limit}; the flowchart has no {lmit}, {x}; its names are: {limit}")

    def test_what_clashes_when_it_is_filled_is_told(self):
        chart = Flowchart.from_mermaid("flowchart TD\nA{who?} -->|{one}| B\nA -->|{other}| C")
        with pytest.raises(AutomatonError, match="two answers"):
            chart.fill({"one": "us", "other": "Us"})


class TestAutomaton:
    def test_names_and_labels(self):
        pda = RETURNS.pda()
        assert list(pda.terminals) == [
            "days=yes", "days=no", "take", "refuse", "seal=yes", "seal=no", "half", "all",
        ]  # fmt: skip
        assert pda.label("days=yes") == "yes"
        assert pda.label("take") == "Take the goods"
        assert pda.accepts(["days=yes", "take", "seal=no", "all"])
        assert not pda.accepts(["days=yes", "take", "seal=no", "half"])
        assert RETURNS.pda(decisions=False).accepts(["take", "half"])

    def test_answers_that_look_alike_have_names_of_their_own(self):
        chart = Flowchart.from_mermaid(
            "flowchart TD\nA{Age?} -->|≥ 18| B\nA -->|< 18| C\nA -->|?| D\nA -->|Not known yet| E"
        )
        assert list(chart.answers("A")) == ["A=18", "A=18_2", "A=answer", "A=not_known_yet"]

    def test_as_a_constraint(self):
        """The steps of a grammar in the order of a chart."""
        cfg = CFG.from_string("Plan -> Step Plan | Step\nStep -> take | refuse | half | all")
        planner = Planner(cfg, "test:first", constraints=[RETURNS.pda(decisions=False)])
        assert planner.plan("x").word in {("take", "half"), ("take", "all"), ("refuse",)}


def ways(chart):
    """Every way through a chart without loops: the decisions asked with the answer, and the texts of the steps."""
    todo = [(chart.start, (), (), ())]
    while todo:
        at, answers, steps, word = todo.pop()
        kind, leaving, text = chart.kind(at), chart.leaving[at], one_line(chart.node[at].text)
        if kind == "decision":
            for number, (name, edge) in enumerate(chart.answers(at).items(), 1):
                asked = (text, [one_line(e.text) for e in leaving], number)
                todo.append((edge.target, (*answers, asked), steps, (*word, name)))
            continue
        if kind == "step":
            steps, word = (*steps, text), (*word, at)
        if leaving:
            todo.append((leaving[0].target, answers, steps, word))
        else:
            yield answers, steps, word


class TestPlanning:
    @given(flowcharts(loops=False, texts=st.text("abc? :.", max_size=5)))
    @examples(80)
    def test_every_way_is_asked_as_drawn(self, chart):
        assume(not any(chart.is_selection(node.id) for node in chart.nodes))  # these have tests of their own
        for decisions in (True, False):
            pda = chart.pda(decisions=decisions)
            for answers, steps, word in ways(chart):
                walk = Walk(pda, "the task")
                made = []
                for text, options, number in answers:
                    if len(options) > 1:
                        if text:
                            assert f'To get the answer to "{text}", we have' in walk.question.prompt
                        assert [option.text for option in walk.question.options] == options
                        for line in made:
                            assert line in walk.question.prompt
                        walk.answer(number)
                    if text:
                        colon = "" if text[-1] in "?:." else ":"
                        made.append(f"{text}{colon} {options[number - 1]};")
                plan = walk.plan
                if all(text for text, *_ in answers):
                    assert tuple(step.text for step in plan.steps) == steps
                assert plan.word == (word if decisions else tuple(name for name in word if "=" not in name))
                assert Plan.from_json(plan.to_json()) == plan

    def test_what_is_asked(self):
        llm = ScriptedLLM([1, 2])
        chart = RETURNS.fill({"limit": 14})
        plan = Planner(chart.pda(), llm).plan("A phone comes back")
        assert llm.questions[1].prompt == (
            "Task description: A phone comes back\n\nCurrent progress:\nWithin 14 days? yes;\nStep 1: Take the goods;\n"
            'Step 2: ?\n\nTo get the answer to "Seal broken?", we have the following choices:\n1: yes\n2: no\n\n'
            "Answer with the number of your choice, an integer from 1 to 2, and nothing else."
        )
        assert str(plan) == "Step 1: Take the goods\nStep 2: Refund all"
        assert plan.word == ("days=yes", "take", "seal=no", "all")

    def test_the_words_of_a_decision_can_be_changed(self):
        llm = ScriptedLLM([1, 2])
        wording = Wording(prompt="{progress}\n{target}", question_target="Q: {question}",
                          decision="{question} -> {answer}")  # fmt: skip
        Planner(RETURNS.pda(), llm, wording=wording).plan("x")
        assert (
            llm.questions[1].prompt
            == "Within {limit} days? -> yes\nStep 1: Take the goods;\nStep 2: ?\nQ: Seal broken?"
        )


PACKING = """flowchart TD
    pack{{"What goes into the bag?"}}
    pack -->|Pack the tent| leave
    pack -->|Pack the stove| leave
    pack -->|Pack the rope| leave
    leave[Leave]
"""


def test_a_hexagon_that_leads_to_one_node_is_a_selection() -> None:
    chart = Flowchart.from_mermaid(PACKING)
    assert chart.is_selection("pack")
    llm = ScriptedLLM([(1, 3)])
    plan = Planner(chart.pda(), llm).plan("A day in the hills")
    assert llm.questions[0].several
    assert "What goes into the bag?" in llm.questions[0].prompt
    assert [step.text for step in plan.steps] == ["Pack the tent", "Pack the rope", "Leave"]
    assert plan.word == ("pack=pack_the_tent", "pack=pack_the_rope", "leave")
    assert Lookahead(chart.pda()).count() == 7
    assert Lookahead(chart.pda(decisions=False)).count() == 1
    assert Flowchart.from_mermaid(chart.to_mermaid()) == chart
    # Not where the answers lead to different places, and not in another shape.
    assert not Flowchart.from_mermaid(PACKING.replace("{{", "{").replace("}}", "}")).is_selection("pack")
    elsewhere = PACKING.replace("Pack the rope| leave", "Pack the rope| climb")
    assert not Flowchart.from_mermaid(elsewhere).is_selection("pack")


def test_limits_on_a_selection() -> None:
    pda = Flowchart.from_mermaid(PACKING).pda()
    tent, stove, rope = (f"pack=pack_the_{name}" for name in ("tent", "stove", "rope"))
    assert Lookahead(pda, Limits(at_least={tent: 1})).count() == 4
    plan = Planner(pda, ScriptedLLM([(1, 2)]), limits=Limits({stove: 0}, {rope: 1})).plan("t")
    assert rope in plan.word
    assert stove not in plan.word


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


@st.composite
def any_graphs(draw):
    """Any arrows between a few steps and decisions; every arrow has a text of its own."""
    nodes = [FlowNode(name, name, draw(st.sampled_from(["rect", "rect", "diamond"]))) for name in "abcde"]
    ends = st.sampled_from("abcde")
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=8))
    first = draw(st.permutations(list(zip("abcd", "bcde", strict=True))))[: draw(st.integers(0, 4))]
    edges = [FlowEdge(one, other, f"answer {n}") for n, (one, other) in enumerate([*first, *pairs])]
    return FlowGraph(tuple(nodes), tuple(edges))


class TestFindProblem:
    @given(any_graphs())
    @examples(300)
    def test_what_is_wrong_is_wrong_and_nothing_else_is(self, chart):
        graph = networkx.DiGraph()
        graph.add_nodes_from("abcde")
        graph.add_edges_from((edge.source, edge.target) for edge in chart.edges)
        sinks = {name for name in "abcde" if not graph.out_degree(name)}
        asking = {node.id for node in chart.nodes if node.shape == "diamond"}
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
            (FlowNode("q", "q?", "diamond"), FlowNode("a"), FlowNode("b")),
            (FlowEdge("q", "a", "Yes"), FlowEdge("q", "b", "no"), FlowEdge("q", "b", " yes")),
        )
        problem = find_problem(chart)
        assert (problem.edge, problem.node) == (2, None)
        assert "two answers 'yes'" in problem.message
        assert "leads to a" in problem.suggestion


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


def built(graph: FlowGraph) -> Flowchart:
    """The chart of nodes and arrows that describe plans."""
    try:
        return Flowchart(graph.nodes, graph.edges)
    except AutomatonError:
        assume(False)
        raise


@given(token_charts())
@examples(120)
def test_the_words_are_those_of_the_token_game(graph: FlowGraph) -> None:
    chart = built(graph)
    for decisions in (True, False):
        assert set(words(chart.pda(decisions=decisions), 6)) == Tokens(chart, decisions=decisions).words(6)


@given(flowcharts(), st.booleans())
@examples(150)
def test_charts_of_all_shapes_have_the_words_of_the_game(chart: Flowchart, decisions: bool) -> None:
    pda = chart.pda(decisions=decisions)
    # Several answers together are worked off on the stack.
    assert pda.uses_stack == (decisions and any(chart.is_selection(node.id) for node in chart.nodes))
    assume(not pda.uses_stack)
    assert set(words(pda, 5)) == Tokens(chart, decisions=decisions).words(5)
    if decisions:
        assert len({(t.state, t.read) for t in pda.transitions}) == len(pda.transitions)
        assert None not in {t.read for t in pda.transitions}


@given(token_charts())
@examples(120)
def test_branches_in_the_order_of_their_arrows_are_some_of_the_plans(graph: FlowGraph) -> None:
    chart = built(graph)
    ordered = set(words(Flowchart(chart.nodes, chart.edges, order="drawn").pda(), 6))
    assert ordered <= set(words(chart.pda(), 6))
    if all(len(edge.targets) == 1 for edge in chart.edges):
        assert ordered == set(words(chart.pda(), 6))


@given(token_charts())
@examples(120)
def test_branches_that_meet_are_refused_where_two_tokens_can_come_to_one_node(graph: FlowGraph) -> None:
    try:
        chart = Flowchart(graph.nodes, graph.edges)
    except AutomatonError as error:
        assume("side by side" in str(error))
        assert Tokens(graph, decisions=True).can_meet()
    else:
        assert not Tokens(chart, decisions=True).can_meet()


@given(processes())
@examples(40)
def test_a_chart_has_the_plans_of_the_process_that_it_was_drawn_for(process: Process) -> None:
    text, plans = drawn(process)
    chart = Flowchart.from_mermaid(text)
    assert set(words(chart.pda(decisions=False), LONGEST)) == {word for word in plans if len(word) <= LONGEST}
    assert Flowchart.from_mermaid(str(chart)) == chart


def chart(body: str) -> Flowchart:
    return Flowchart.from_mermaid(f"flowchart TD\n{body}")


def plans(body: str, length: int = 8) -> set[str]:
    return {" ".join(word) for word in words(chart(body).pda(decisions=False), length)}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("A --> B\nA --> C", {"A B", "A C"}),
        ("A --> B & C", {"A B C", "A C B"}),
        ("A & C --> B", {"A B", "C B"}),  # only one of them can come
        ("A --> B & C --> D", {"A B C D", "A C B D"}),
        ("A --> B & C & D\nB & C --> E --> F2(( ))\nF2 & D --> F", {  # two of three meet first
            "A B C D E F", "A B C E D F", "A B D C E F", "A C B D E F", "A C B E D F", "A C D B E F", "A D B C E F",
            "A D C B E F"}),
        ("A --> B & C & D\nB & C --> E\nE & D --> F", {
            "A B C D E F", "A B C E D F", "A B D C E F", "A C B D E F", "A C B E D F", "A C D B E F", "A D B C E F",
            "A D C B E F"}),
        ("A --> B & j(( ))\nB & j --> C --> D", {"A B C D"}),  # one branch is empty
        ("A --> B & C\nB --> D & E\nD & E & C --> F", {
            "A B C D E F", "A B C E D F", "A B D C E F", "A B E C D F", "A B D E C F", "A B E D C F", "A C B D E F",
            "A C B E D F"}),
        ("A --> B & B", {"A B"}),
        ("A --> B\nA --> B", {"A B"}),
        ("A <--> B --> C", {"A B C", "A B A B C", "A B A B A B C"}),
        ("A --> B & C\nX --> B", {"A B C", "A C B", "X B"}),
        ("A --> B --> C --> B\nC --> D", {"A B C D", "A B C B C D", "A B C B C B C D"}),
        ("B --> A\nA --> B\nA --> C", {"B A C", "B A B A C", "B A B A B A C"}),  # begins with the first one written
        ("A\nB", {"A", "B"}),
        # Of what is begun by one answer only, the others are not waited for.
        ("q{?} -->|one| A & B\nq -->|two| A2\nA & B & A2 --> C", {"A B C", "B A C", "A2 C"}),
        ("q{?} -->|both| A & B --> C\nq -->|one| A", {"A B C", "B A C", "A C"}),
        # Two arrows from A, one of which also waits: after A it is asked which.
        ("q{?} -->|one| A\nq -->|two| B\nA --> C\nA & B --> C", {"A C", "B C"}),
        ("S --> A & B --> E((End))", {"S A B", "S B A"}),  # at an end they may meet without waiting
        ("S --> A & B\nA --> E((End))\nB --> E", {"S A B", "S B A"}),
        ("S --> A & B --> C{More?} -->|yes| S\nC -->|no| D", {
            "S A B D", "S B A D", "S A B S A B D", "S A B S B A D", "S B A S A B D", "S B A S B A D"}),
    ],
)  # fmt: skip
def test_small_charts(body: str, told: set[str]) -> None:
    found = plans(body)
    assert {plan for plan in found if len(plan.split()) <= max(len(plan.split()) for plan in told)} == told


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
    monkeypatch.setattr(markings, "MOST_MARKINGS", 100)
    body = "A --> " + " & ".join(f"B{n}" for n in range(9))
    with pytest.raises(AutomatonError, match=r"such as those of A --> B0 & B1.*more ways.*%parallel drawn"):
        chart(body).pda()
    assert Lookahead(chart(f"%% %parallel drawn\n{body}").pda()).count() == 1


def test_a_fork_of_many_branches_is_read_at_once() -> None:
    # It was looked through marking by marking, each as long as the fork: 44 s for these.
    branches = " & ".join(f"B{n}" for n in range(120))
    assert Lookahead(chart(f"%% %parallel drawn\nA --> {branches} --> C").pda()).count() == 1


@pytest.mark.parametrize(
    ("body", "place", "fork", "node", "way_out"),
    [
        ("A --> B & C\nB --> D\nC --> D --> E", (2, 3), "A --> B & C", "D", "B & C --> D"),
        ("A --> B & C\nB --> C", (2, 3), "A --> B & C", "C", "A & B --> C"),
        ("A --> B & C --> D\nC --> C2{?} -->|again| C\nC2 -->|on| D", (2, 3), "A --> B & C", "D", "B & C & C2 --> D"),
        ("A --> B & C\nB --> D{ok?} -->|no| A\nD -->|yes| E", (2, 3), "A --> B & C", "C", "A --> C"),
    ],
)
def test_branches_that_meet_without_waiting(
    body: str, place: tuple[int, int], fork: str, node: str, way_out: str
) -> None:
    with pytest.raises(NotationError) as caught:
        chart(body)
    assert (caught.value.line, caught.value.column) == place
    assert f"the branches of {fork} run side by side and meet at {node} without '&'" in str(caught.value)
    assert way_out in str(caught.value)


def test_arrows_that_wait_for_each_other() -> None:
    with pytest.raises(NotationError, match="can wait for ever, for another arrow that waits for it"):
        chart("S --> A & B & E0\nA & D --> C\nB & C --> D\nD -->|on| E\nC -->|on| F")


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
    marked = {name for name, tone in taken.items() if tone == "marked"}
    assert {name for name in marked if "&" not in name} == {"a", "b", "q", "r", "x", "z", "e"}


class TestAutomatonOf:
    def test_a_flowchart_is_filled_first(self):
        pda = automaton_of(RETURNS, {"limit": 14})
        assert pda == RETURNS.fill({"limit": 14}).pda()
        assert {t.question for t in pda.transitions} == {"Within 14 days?", "Seal broken?", ""}

    def test_what_a_flowchart_misses_is_told(self):
        with pytest.raises(AutomatonError, match=r"no value for \{limit\}"):
            automaton_of(RETURNS)

    def test_what_was_filled_is_not_filled_again(self):
        text = "flowchart TD\na[Write to {company}] --> b{Does {company} answer?}\nb -->|yes| c\nb -->|no| d"
        filled = Flowchart.from_mermaid(text).fill({"company": "ACME {Holding} Ltd"})
        assert (filled.placeholders, filled.fill({})) == ((), filled)
        assert automaton_of(filled) == Lookahead(filled).pda
        texts = {text for t in filled.pda().transitions for text in (t.text, t.question)}
        assert {"Write to ACME {Holding} Ltd", "Does ACME {Holding} Ltd answer?"} <= texts
        with pytest.raises(AutomatonError, match=r"no \{Holding\}; its names are: none"):
            filled.fill({"Holding": "x"})
