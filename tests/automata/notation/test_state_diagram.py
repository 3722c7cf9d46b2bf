"""Mermaid state diagrams."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from formal_llm import PDA, Flowchart, Planner, ScriptedLLM
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.notation.files import read_rules
from formal_llm.automata.notation.state_diagram import COVERAGE, is_state_diagram
from formal_llm.errors import NotationError, ResourceNotFound


def read(body: str, **options: object) -> tuple[PDA, list[str]]:
    """The automaton of a diagram, and what is warned of."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        pda = PDA.from_mermaid(f"stateDiagram-v2\n{body}", **options)  # type: ignore[arg-type]
    return pda, [str(one.message) for one in caught]


def spelled(body: str, length: int, **options: object) -> set[str]:
    return {" ".join(word) for word in words(read(body, **options)[0], length)}


ORDER = """---
title: Order
---
%% an order
stateDiagram-v2
    direction LR
    [*] --> Cart
    Cart --> Cart : add an item
    Cart --> Paying : pay [known]
    Cart --> Login : pay [else]
    Login --> Paying : ok
    state "To be paid" as Paying {
        [*] --> Card
        Card --> [*] : charge<br/>the card
        Card --> Card : retry
    }
    note right of Cart
        --> no transition
    end note
    Paying --> Sent
    Paying --> Cart : cancel
    Sent --> [*]
    classDef bold font-weight:bold
    class Cart bold
"""


def test_where_transitions_have_labels_these_are_the_steps(tmp_path: Path) -> None:
    (tmp_path / "order.mmd").write_text(ORDER)
    pda = read_rules(tmp_path / "order.mmd")
    assert isinstance(pda, PDA)
    assert pda == PDA.from_file(tmp_path / "order.mmd")
    assert pda.name == "Order"
    assert {" ".join(word) for word in words(pda, 3)} == {
        "pay charge_the_card", "pay ok charge_the_card", "pay retry charge_the_card", "add_an_item pay charge_the_card",
    }  # fmt: skip
    assert pda.label("charge_the_card") == "charge the card"
    plan = Planner(pda, llm := ScriptedLLM([2, 1])).plan("x")
    assert [option.text for option in llm.questions[0].options] == ["add an item", "pay (known)", "pay (else)"]
    assert plan.word == ("pay", "charge_the_card")
    assert PDA.from_string(str(pda)) == pda


def test_where_none_has_states_are_the_steps() -> None:
    body = """
        [*] --> Still
        Still --> [*]
        Still --> Moving
        Moving --> Still
        Moving --> Crash
        Crash --> [*]
        Still : Stands still
        Still : and waits"""
    pda, warned = read(body)
    assert warned == []
    assert {" ".join(word) for word in words(pda, 3)} == {"Still", "Still Moving Crash", "Still Moving Still"}
    assert pda.label("Still") == "Stands still; and waits"


def test_what_leaves_a_choice_is_a_condition() -> None:
    body = """
        [*] --> Asked
        state amount <<choice>>
        Asked --> amount
        amount --> Approved : if n < 100
        amount --> Checked : if n >= 100
        Checked --> Approved
        Approved --> [*]"""
    pda, warned = read(body)
    assert warned == []
    assert {" ".join(word) for word in words(pda, 4)} == {"Asked Approved", "Asked Checked Approved"}
    assert [move.text for move in pda.transitions if move.state == "amount"] == [
        "Approved (if n < 100)", "Checked (if n >= 100)"
    ]  # fmt: skip
    events = body.replace("Asked --> amount", "Asked --> amount : send")
    assert spelled(events, 2) == {"send"}
    assert spelled(body.replace("<<choice>>", "[[choice]]"), 4) == spelled(body, 4)


def test_some_transitions_with_labels() -> None:
    pda, (warning,) = read("[*] --> A\nA --> B\nB --> C : go\nC --> [*]")
    assert "3:1: 1 of 4 transitions have no label and are no steps" in warning
    assert list(words(pda, 3)) == [("go",)]


def test_a_label_is_an_event_whole() -> None:
    pda, _ = read("[*] --> A\nA --> A : GET /users\nA --> B : x#58; y / z\nB --> [*]\nA --> A : done [a] b")
    labels = {pda.label(name) for name in pda.terminals}
    assert labels == {"GET /users", "x: y / z", "done [a] b"}
    pda, _ = read("[*] --> A\nA --> B : go [x > 0] / note\nA --> C : [late]\nB --> [*]\nC --> [*]")
    assert list(pda.terminals) == ["go"]
    assert {move.text for move in pda.transitions} >= {"go (x > 0 / note)", "late"}
    pda, _ = read("[*] --> A\nA --> B : a-b\nA --> B : a.b\nB --> [*]")
    assert set(words(pda, 1)) == {("a_b",), ("a_b_",)}


CALLS = """
    [*] --> Call
    state Call {
        [*] --> Ring
        Ring --> [*] : answer
        --
        [*] --> Note
        Note --> Filed : file
        Filed --> [*]
    }
    Call --> End : hang up
    Call --> Done
    Done --> [*]
    End --> [*]"""


def test_the_parts_of_a_composite_state_run_side_by_side() -> None:
    assert spelled(CALLS, 2) == {"answer file", "file answer", "hang_up", "answer hang_up", "file hang_up"}
    without = (
        CALLS.replace(" : answer", "")
        .replace(" : file", "")
        .replace("    Call --> End : hang up\n", "")
        .replace("    End --> [*]", "")
    )
    assert spelled(without, 4) == {"Ring Note Filed Done", "Note Ring Filed Done", "Note Filed Ring Done"}


FORK = """
    [*] --> order
    state split <<fork>>
    order --> split
    split --> pack
    split --> bill
    pack --> label
    state meet <<join>>
    label --> meet
    bill --> meet
    meet --> ship
    ship --> [*]"""


def test_the_branches_of_a_fork_run_side_by_side_until_they_join() -> None:
    orders = {"pack label bill", "pack bill label", "bill pack label"}
    assert spelled(FORK, 5) == {f"order {word} ship" for word in orders}
    to_the_end = FORK.replace("label --> meet", "label --> [*]").replace("bill --> meet", "bill --> [*]")
    to_the_end = to_the_end.replace("    state meet <<join>>\n", "").replace("    meet --> ship\n    ship --> [*]", "")
    assert spelled(to_the_end, 5) == {f"order {word}" for word in orders}
    left = FORK + "\n    pack --> lost\n    lost --> [*]"
    assert spelled(left, 5) == {f"order {word} ship" for word in orders} | {
        "order pack lost",
        "order pack bill lost",
        "order bill pack lost",
    }


def test_states_that_are_called_as_parts_might_be() -> None:
    body = CALLS.replace("Note", "Call.1").replace("Filed", "Call(start)")
    assert spelled(body, 2) == spelled(CALLS, 2)


def test_a_fork_inside_a_branch_of_another() -> None:
    body = """
        [*] --> f
        state f <<fork>>
        state g <<fork>>
        state h <<join>>
        state j <<join>>
        f --> a
        f --> g
        g --> b
        g --> c
        b --> h
        c --> h
        h --> d
        d --> j
        a --> j
        j --> e
        e --> [*]"""
    found = spelled(body, 5)
    assert len(found) == 8
    assert all(word.endswith("e") and word.index("d") > max(word.index("b"), word.index("c")) for word in found)


def test_a_composite_state_without_an_end_is_left_where_nothing_leads_on() -> None:
    body = "[*] --> X\nstate X {\n[*] --> a\na --> b\na --> c\n}\nX --> Y\nY --> [*]"
    assert spelled(body, 3) == {"a b Y", "a c Y"}
    assert spelled(body.replace("a --> c", "b --> a"), 3) == {"a Y", "a b Y"}


def test_where_something_begins_that_has_no_start() -> None:
    pda, (first, second) = read("A --> B : go\nstate B {\n x --> y : on\n}\nB --> [*] : off")
    assert "B has no [*] --> ...: it begins with x" in first + second
    assert "1:1: the diagram has no [*] --> ...: it begins with A" in first + second
    assert {" ".join(word) for word in words(pda, 3)} == {"go off", "go on off"}


def test_several_arrows_from_a_start_are_a_choice() -> None:
    pda, (warning,) = read("[*] --> A\n[*] --> B\nA --> [*]\nB --> [*]")
    assert "2:1: the diagram has 2 arrows from [*]: a plan follows one of them" in warning
    assert set(words(pda, 2)) == {("A",), ("B",)}


def test_where_no_end_is_drawn_a_plan_may_end_anywhere() -> None:
    body = "[*] --> A\nA --> B : go\nB --> A : back"
    pda, (warning,) = read(body)
    assert "a plan may end wherever the machine waits; --final STATE" in warning
    assert {" ".join(word) for word in words(pda, 2)} == {"", "go", "go back"}
    assert spelled(body, 3, final=["B"]) == {"go", "go back go"}
    with pytest.raises(ResourceNotFound, match=r"no state 'b'\. (?:There are: A, B|Did you mean)"):
        read(body, final=["b"])


@pytest.mark.parametrize(
    ("body", "problem", "line"),
    [
        ("", "the state diagram is empty", None),
        ("A -> B", "unexpected '->'", 2),
        ("A --> ", "unexpected 'end of the line'", 2),
        ("A --> B : a; b", "unexpected '; b'|unexpected ';'", 2),
        ("state A {\nB --> C", "the state A does not end", 2),
        ("A --> [H]", r"\[H\]|history is not covered", 2),
        ("state h <<history>>", "history is not covered: which states were active", 2),
        ("state h <<entry>>", "unknown kind of state: entry", 2),
        ("A --> B\n}", "unexpected '}'", 3),
        ("state A {\nx --> y\n}\nstate B {\nx --> z\n}", "x is drawn inside A and elsewhere", 6),
        ("state j <<join>>\nA --> j\nj --> B", "the join j ends no fork", 2),
        ("state f <<fork>>\nA --> f\nf --> B\nf --> C\nB --> D\nC --> D\nD --> [*]", "the branches of the fork f", 2),
        (f"{FORK}\norder --> label", "this leads into a branch of the fork split, past it", 14),
        ("linkStyle 0 stroke:#ff0000", "unexpected '0'", 2),
    ],
)
def test_what_is_refused(body: str, problem: str, line: int | None) -> None:
    with pytest.raises(NotationError, match=problem) as caught:
        read(body)
    assert caught.value.line == line


HEALTH = """{0}
[*] --> a
state "Is it healthy?" as h
a --> h : look
h --> [*] : fine
h --> b : sick
b --> [*] : wake
b --> a : restart
{1}"""


@pytest.mark.parametrize(
    ("above", "below", "marked"),
    [
        ("%% %world h", "", {"h"}), ("%% %world Is it healthy?", "", {"h"}), ("", "class h world", {"h"}),
        ("", "class b, h world", {"h", "b"}), ("", "h:::world", {"h"}), ("%%   %world b,h", "", {"h", "b"}),
        ("state b:::world", "", {"b"}), ("", "class h worldly", set()), ("%% the %world h", "", set()), ("", "", set()),
    ],
)  # fmt: skip
def test_the_world_decides_in_states_of_its_class(above: str, below: str, marked: set[str]) -> None:
    pda, _ = read(HEALTH.format(above, below))
    assert pda.world == marked
    assert PDA.from_string(str(pda)) == pda


def test_the_world_decides_at_a_choice_and_in_all_regions() -> None:
    pda, _ = read("%% %world c\n[*] --> a\nstate c <<choice>>\na --> c : look\nc --> [*] : fine\nc --> a : sick")
    assert pda.world == {"c"}
    regions = "[*] --> P\nstate P {\n[*] --> x\nx --> y : one\n--\n[*] --> u\nu --> v : two\n}\nP --> [*] : off\n"
    assert read(f"{regions}class P world")[0].world == {"x+u", "y+u", "x+v", "y+v"}


@pytest.mark.parametrize(
    ("mark", "problem", "line"),
    [
        ("%% %world g", "unknown state of the world's: g", 2),
        ("%% %world", "unknown state of the world's: nothing", 2),
        ("class a g world", "unknown state of the world's: g", 2),
        ("class x world", "the world decides in x, and the plan in u beside it", 5),
        ("state Lonely:::world", "a plan never waits there", 2),
    ],
)
def test_where_the_world_cannot_decide(mark: str, problem: str, line: int) -> None:
    body = f"{mark}\n[*] --> a\nstate P {{\n[*] --> x\nx --> y : one\n--\n[*] --> u\nu --> v : two\n}}\n"
    with pytest.raises(NotationError, match=problem) as caught:
        read(f"{body}a --> P : go\nP --> [*] : off")
    assert caught.value.line == line


#: The statements and kinds of states of Mermaid's grammar of state diagrams, each as it is written.
STATEMENTS = {
    "state": 'state "A state" as A', "-->": "A --> B", "[*]": "[*] --> A", "--": "state A {\nx\n--\ny\n}",
    "choice": "state A <<choice>>", "note": "note left of A : text", "direction": "direction RL",
    "scale": "scale 600 width", "hide": "hide empty description", "classDef": "classDef x fill:red",
    "class": "class A,B x", "style": "style A fill:red", "click": 'click A "https://a.b" "tip"',
    ":::": "A:::x --> B:::x",
    "accTitle": "accTitle: a title", "accDescr": "accDescr {\nmore\n}",
}  # fmt: skip


@pytest.mark.parametrize("statement", [*STATEMENTS, "fork", "join"])
def test_each_statement_of_the_grammar_is_in_a_table(statement: str) -> None:
    assert COVERAGE.get_treatment(statement) in ("meant", "harmless")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_statement_of_the_grammar_is_read(statement: str) -> None:
    pda, _ = read(f"[*] --> A\n{STATEMENTS[statement]}\nA --> End\nEnd --> [*]")
    assert pda.accepts(["A", "End"]) or pda.accepts(["x", "y", "End"]) or pda.accepts(["End"])


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("stateDiagram\nA --> B", True),
        ("\ufeff%% remark\n%%{init: {}}%%\n  stateDiagram-v2\nA --> B", True),
        ("---\ntitle: x\n---\nstateDiagram-v2\nA --> B", True),
        ("flowchart TD\nstateDiagram --> B", False),
        ("stateDiagrams\n", False),
        ("%%{a}%%\n" * 200 + "flowchart TD\n", False),
    ],
)
def test_a_state_diagram_is_known_by_its_header(text: str, is_one: bool) -> None:
    assert is_state_diagram(text) == is_one


def test_a_flowchart_is_none_and_the_error_names_the_reader() -> None:
    with pytest.raises(NotationError, match=r"PDA\.from_mermaid or read_rules"):
        Flowchart.from_string("stateDiagram-v2\nA --> B")
    with pytest.raises(NotationError, match="does not begin with its header"):
        PDA.from_mermaid("flowchart TD\nA --> B")
