"""Flowcharts as token games: their words against brute force, and against processes that they were drawn for."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import Flowchart, FlowNode, Lookahead, Planner, ScriptedLLM
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.models import markings
from formal_llm.automata.models.flowgraph import FlowGraph
from formal_llm.errors import AutomatonError, NotationError
from tests.automata.charts import flowcharts
from tests.automata.processes import LONGEST, Process, drawn, processes
from tests.automata.tokens import Tokens, token_charts
from tests.strategies import examples


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
