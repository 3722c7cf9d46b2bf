"""Flowcharts: names filled in, the automaton, plans made with one."""

import networkx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Flowchart, FlowEdge, FlowNode, Limits, Lookahead, Plan, Planner, ScriptedLLM, Walk, Wording
from formal_llm.automata.models.flowchart import find_problem
from formal_llm.automata.models.flowgraph import FlowGraph, one_line
from formal_llm.errors import AutomatonError
from tests.automata.charts import RETURNS, flowcharts
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
def drawn(draw):
    """Any arrows between a few steps and decisions; every arrow has a text of its own."""
    nodes = [FlowNode(name, name, draw(st.sampled_from(["rect", "rect", "diamond"]))) for name in "abcde"]
    ends = st.sampled_from("abcde")
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=8))
    first = draw(st.permutations(list(zip("abcd", "bcde", strict=True))))[: draw(st.integers(0, 4))]
    edges = [FlowEdge(one, other, f"answer {n}") for n, (one, other) in enumerate([*first, *pairs])]
    return FlowGraph(tuple(nodes), tuple(edges))


class TestFindProblem:
    @given(drawn())
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
