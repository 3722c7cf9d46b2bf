"""Pictures and graphs of automata."""

import re
from html import unescape

import pytest
from hypothesis import given

from formal_llm import CFG, PDA
from formal_llm.automata.drawing.pda import pda_picture
from formal_llm.pictures.picture import Picture
from tests.pictures.forms import check_dot, check_mermaid, needs_dot, squeeze, svg_text
from tests.strategies import automata


@pytest.fixture
def anbn() -> PDA:
    return PDA(
        [
            ("more a", "a", None, "more a", ("A",)),
            ("more a", None, None, "more b", ()),
            ("more b", "b", "A", "more b", ()),
            ("more b", None, "$", "done", ()),
        ],
        start="more a",
        accepting=["done"],
        stack=["$"],
    )


def test_automaton_picture(anbn: PDA) -> None:
    picture = pda_picture(anbn)
    kinds = {box.label: box.kind for box in picture.nodes}
    assert kinds == {"": "point", "more a": "state", "more b": "state", "done": "accepting"}
    labels = {box.id: box.label for box in picture.nodes}
    assert [(labels[a.source], labels[a.target], a.label) for a in picture.edges] == [
        ("", "more a", ""),
        ("more a", "more a", "a, ε → A"),
        ("more a", "more b", "ε, ε → ε"),
        ("more b", "more b", "b, A → ε"),
        ("more b", "done", "ε, $ → ε"),
    ]
    assert "doublecircle" in anbn.to_dot()
    check_mermaid(anbn.to_mermaid())


@needs_dot
def test_automaton_svg_has_every_label(anbn: PDA) -> None:
    text = svg_text(anbn.to_svg())
    for label in ("more a", "more b", "done", "a, ε → A", "b, A → ε", "ε, $ → ε"):
        assert squeeze(label) in text


def loop_lines(pda: PDA, most: int = 12) -> list[str]:
    picture = pda_picture(pda, most=most)
    return next(a.label for a in picture.edges if a.source == a.target).split("\n")


def test_few_transitions_stand_one_to_a_line() -> None:
    assert loop_lines(PDA.from_cfg(CFG.from_string("S -> a S b | ε"))) == [
        "ε, S → a S b", "ε, S → ε", "a, a → ε", "b, b → ε",
    ]  # fmt: skip


def test_many_transitions_are_folded(openagi: CFG) -> None:
    lines = loop_lines(PDA.from_cfg(openagi))
    assert lines[0] == "a, a → ε   for each of 17 terminals a"
    assert "ε, T → B I | D T | E I T | F T T | input_text" in lines
    assert len(lines) == 1 + len(openagi.nonterminals)
    assert loop_lines(PDA.from_cfg(openagi), most=3)[3:] == ["… and 9 more"]


def test_many_selections_are_one_line() -> None:
    lines = loop_lines(PDA.from_cfg(CFG.from_string("S -> wok some(a, b, c, d)")))
    assert lines == [
        "a, a → ε   for each of 5 terminals a", "ε, some(…) → its terminals, one or more of 4", "ε, S → wok some(…)",
    ]  # fmt: skip


def test_what_leaves_the_stack_alone_is_told_by_what_it_reads() -> None:
    pda = PDA(
        [("p", "a", None, "q", ("A",)), ("q", "b", None, "r", ()), ("r", "c", "A", "s", ())], start="p", accepting="s"
    )
    assert [arrow.label for arrow in pda_picture(pda).edges] == ["", "a, ε → A", "b", "c, A → ε"]


def says(picture: Picture) -> list[tuple[str, str, str]]:
    """The arrows, by what their boxes say."""
    labels = {box.id: box.label for box in picture.nodes}
    return [(labels[a.source], labels[a.target], a.label) for a in picture.edges]


def test_long_names_have_frames_and_are_wrapped() -> None:
    picture = pda_picture(
        PDA(
            [("begin", "a", None, "after this or that thing", ())],
            start="begin",
            accepting=["after this or that thing"],
        )
    )
    assert [(box.label, box.kind) for box in picture.nodes[1:]] == [
        ("begin", "long_state"), ("after this or that\nthing", "long_accepting"),
    ]  # fmt: skip
    assert "peripheries=2" in picture.to_dot()


def test_of_a_large_automaton_only_the_way_of_a_plan_is_left() -> None:
    """A state with 42 ways out, each back by another state."""
    ways = [move for n in range(1, 43) for move in ((0, "a", None, n), (n, "c", None, 0))]
    pda = PDA(ways, start=0, accepting=[0])
    assert len(pda_picture(pda).nodes) == 44
    walked = {move: (number,) for number, move in enumerate(pda.transitions[:2], 1)}
    picture = pda_picture(pda, walked=walked)
    assert {box.label for box in picture.nodes} == {"", "0", "1"}
    assert picture.title == "41 states that the plan does not come by left out"


def test_of_a_product_what_leads_nowhere_is_left_out() -> None:
    one = PDA([(0, "a", None, 1, ()), (1, "b", None, 2, ()), (0, "c", None, 2, ())], start=0, accepting=[2])
    other = PDA([("x", "a", None, "y", ()), ("x", "c", None, "z", ())], start="x", accepting=["z"])
    picture = pda_picture(one & other)
    assert picture.title == "1 state from which no plan can be finished left out"
    assert says(picture) == [("", "0", ""), ("0", "2", "c")]
    assert picture.nodes[-1].details == ("z",)


def test_alternatives_are_counted_when_they_do_not_fit() -> None:
    cfg = CFG.from_string("S -> " + " | ".join(f"word_number_{n}" for n in range(30)))
    assert re.fullmatch(r"ε, S → word_number_0( \| word_number_\d+)+ \| … \d\d more", loop_lines(PDA.from_cfg(cfg))[1])


def test_automaton_graph(anbn: PDA, openagi: CFG) -> None:
    for pda in (anbn, PDA.from_cfg(openagi)):
        graph = pda.to_networkx()
        assert list(graph.nodes) == list(pda.states)
        assert [s for s, start in graph.nodes(data="start") if start] == [pda.start_state]
        assert {s for s, accepting in graph.nodes(data="accepting") if accepting} == pda.accepting_states
        edges = sorted((s, d["read"], d["pop"], t, d["push"]) for s, t, d in graph.edges(data=True) if d["read"])
        assert edges == sorted(t.parts() for t in pda.transitions if t.read)
        assert graph.number_of_edges() == len(pda.transitions)
    assert anbn.to_networkx().edges["more a", "more a", 0] == {
        "read": "a", "pop": None, "push": ("A",), "text": "", "label": "a, ε → A",
    }  # fmt: skip


def test_states_may_be_any_value() -> None:
    pda = PDA([(0, "a\nb", None, ("x", 1), ())], start=0, accepting=[("x", 1)])
    check_mermaid(pda.to_mermaid())
    assert any("('x', 1)" in unescape(label) for label in check_dot(pda.to_dot()))


def test_what_a_plan_takes_is_marked(anbn: PDA) -> None:
    push, turn, pop, _ = anbn.transitions
    picture = pda_picture(anbn, walked={push: (1, 2), turn: (), pop: (3, 4)})
    tones = {box.label: box.tone for box in picture.nodes}
    assert tones == {"": "marked", "more a": "marked", "more b": "marked", "done": "faded"}
    assert [(a.tone, a.label) for a in picture.edges] == [
        ("marked", ""), ("marked", "1, 2: a, ε → A"), ("marked", "ε, ε → ε"), ("marked", "3, 4: b, A → ε"),
        ("faded", "ε, $ → ε"),
    ]  # fmt: skip


@given(automata())
def test_every_transition_of_a_small_automaton_is_drawn(pda: PDA) -> None:
    picture = pda_picture(pda, most=1000)
    assert [box.label for box in picture.nodes[1:]] == order(pda)
    assert {box.label for box in picture.nodes if "accepting" in box.kind} == pda.accepting_states
    rows = [row for arrow in picture.edges[1:] for row in arrow.label.split("\n")]
    assert len(rows) == len(pda.transitions)
    check_mermaid(picture.to_mermaid())
    check_dot(picture.to_dot())


def order(pda: PDA) -> list[str]:
    """The states as a search in breadth finds them."""
    found = [pda.start_state]
    for state in found:
        found += dict.fromkeys(t.target for t in pda.transitions if t.state == state and t.target not in found)
    return found
