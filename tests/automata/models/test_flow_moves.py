"""What a chart means as an automaton, against processes whose plans are known."""

import pytest
from hypothesis import given

from formal_llm import Flowchart, FlowEdge, FlowNode, Lookahead, Planner, ScriptedLLM
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.models import flow_moves
from formal_llm.errors import AutomatonError
from tests.automata.processes import LONGEST, Process, drawn, processes
from tests.strategies import examples


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
    monkeypatch.setattr(flow_moves, "MOST_PLACES", 100)
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
