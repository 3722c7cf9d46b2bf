"""Pictures of grammars, flowcharts and automata."""

from html import unescape

import pytest
from hypothesis import given

from formal_llm import CFG, PDA, Flowchart, TaskPack, authored
from formal_llm.automata.drawing import cfg_picture, flowchart_picture, pda_picture
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.symbols import selection_members
from formal_llm.cli.sources import load
from formal_llm.pictures.picture import Box, printable
from tests.automata.charts import RETURNS, flowcharts
from tests.pictures.forms import check_dot, check_mermaid, laid_out, needs_dot, squeeze, svg_text
from tests.strategies import automata, written_grammars


@pytest.fixture(scope="module")
def openagi() -> CFG:
    return TaskPack.load("openagi").cfg


# -- grammars ----------------------------------------------------------------------------------------------------------


def test_grammar_picture(openagi: CFG) -> None:
    picture = cfg_picture(openagi)
    boxes = {box.id: box for box in picture.nodes}
    assert boxes["plan"].kind == "start"
    assert [a.target for a in picture.edges if a.source == ""] == ["plan"]
    assert boxes["T"].label == "text  (T)"
    assert boxes["T"].details == ("→ B I", "→ D T", "→ E I T", "→ F T T", "→ input_text")
    assert boxes["A"].label == "A: one of"
    assert boxes["A"].details == ("Colorization", "Super Resolution", "Image Denoising", "Image Deblurring")
    assert boxes["input_text"] == Box("input_text", "the input text", "terminal")
    assert {a.target for a in picture.edges if a.source == "I"} == {"A", "I", "C", "T", "input_image"}
    # The terminals of a class have no box of their own.
    assert set(boxes) == {"", *openagi.nonterminals, "input_image", "input_text"}
    check_mermaid(openagi.to_mermaid())


@needs_dot
def test_grammar_svg_has_every_label(openagi: CFG) -> None:
    text = svg_text(openagi.to_svg())
    for name in (*openagi.nonterminals, *openagi.terminals):
        assert squeeze(openagi.label(name)) in text
    assert "image/svg+xml" in openagi._repr_mimebundle_()


def test_grammar_with_selection_texts_and_epsilon() -> None:
    cfg = CFG.from_string('S -> wok some(salt, pepper) "Season it" | ε | pan\nsalt "Sea salt"')
    boxes = {box.id: box for box in cfg_picture(cfg).nodes}
    assert boxes["S"].details == ("→ wok some(…)   “Season it”", "→ ε", "→ pan")
    assert boxes["some(salt, pepper)"] == Box("some(salt, pepper)", "some of", "class", ("Sea salt", "pepper"))
    assert list(cfg.to_networkx().successors("S")) == ["wok", "some(salt, pepper)", "pan"]


def test_long_lists_are_cut() -> None:
    cfg = CFG.from_string("S -> A x\nA -> " + " | ".join(f"a{n}" for n in range(100)))
    details = {box.id: box for box in cfg_picture(cfg, most=5).nodes}["A"].details
    assert details == ("a0", "a1", "a2", "a3", "a4", "… and 95 more")


def test_a_grammar_of_nested_calls_says_which_way_it_is_read() -> None:
    text = "plan -> brighten image"
    for order, title in (("forward", None), ("prefix", "Words are read from the last step to the first")):
        cfg = CFG.from_string(f"%order {order}\n{text}")
        assert cfg.picture.title == PDA.from_cfg(cfg).picture.title == title


def test_what_a_plan_uses_is_marked_with_its_steps() -> None:
    cfg = CFG.from_string("S -> T S | some(x, y) | ε | U\nT -> a | b\nU -> a")
    used = {
        ("S", ("T", "S")): (1, 2), ("S", ("some(x, y)",)): (3,), ("T", ("b",)): (1, 2), ("some(x, y)", ("x",)): (3,),
    }  # fmt: skip
    picture = cfg_picture(cfg, used=used)
    boxes = {box.id: box for box in picture.nodes}
    assert boxes["S"].details == ("1, 2: → T S", "3: → some(…)", "→ ε", "→ U")
    assert boxes["S"].strong == (0, 1)
    assert boxes["T"].details == ("a", "1, 2: b")
    assert boxes["some(x, y)"].details == ("3: x", "y")
    assert {name: box.tone for name, box in boxes.items()} == {
        "": "marked", "S": "marked", "T": "marked", "U": "faded", "some(x, y)": "marked",
    }  # fmt: skip
    assert {box.tone for box in cfg_picture(cfg).nodes} == {"plain"}


def test_rows_that_are_used_are_never_cut() -> None:
    cfg = CFG.from_string("S -> " + " | ".join(f"a{n} b" for n in range(30)))
    used = {("S", ("a20", "b")): (2,), ("S", ("a29", "b")): (1,)}
    details = {box.id: box for box in cfg_picture(cfg, most=1, used=used).nodes}["S"].details
    assert details == ("2: → a20 b", "1: → a29 b", "… and 28 more")


@given(written_grammars())
def test_everything_is_drawn_once(cfg: CFG) -> None:
    picture = cfg_picture(cfg, most=1000)
    boxes = {box.id: box for box in picture.nodes}
    assert len(boxes) == len(picture.nodes)
    # A terminal that only a class or a selection holds is a row of its box.
    outside = {name for p in cfg.productions if p.head not in cfg.classes for name in p.body}
    assert set(boxes) == {"", *cfg.nonterminals, *outside}
    for head in cfg.nonterminals:
        assert len(boxes[head].details) == sum(p.head == head for p in cfg.productions)
    for chosen in cfg.selections:
        assert len(boxes[chosen].details) == len(selection_members(chosen))
    check_mermaid(picture.to_mermaid())
    check_dot(picture.to_dot())


# -- flowcharts --------------------------------------------------------------------------------------------------------


def test_flowchart_picture() -> None:
    chart = Flowchart.from_mermaid(
        'flowchart LR\n s([Start]) --> q{"Is this a question that takes more than one line?"}\n'
        " q -->|Yes| a[Answer it]\n"
        " q -->|No| p{{Pack what?}}\n p -->|Rope| a\n p -->|Tent| a"
    )
    picture = chart.picture
    assert picture.direction == "LR"
    assert [(box.kind, box.label) for box in picture.nodes] == [
        ("input", "Start"), ("decision", "Is this a question that\ntakes more than one line?"), ("tool", "Answer it"),
        ("decision", "Pack what?"),
    ]  # fmt: skip
    assert [arrow.label for arrow in picture.edges] == ["", "Yes", "No", "• Rope\n• Tent"]
    check_mermaid(picture.to_mermaid())


@given(flowcharts())
def test_every_text_is_drawn(chart: Flowchart) -> None:
    picture = flowchart_picture(chart, most=1000)
    assert [box.id for box in picture.nodes] == [node.id for node in chart.nodes]
    for box, node in zip(picture.nodes, chart.nodes, strict=True):
        assert squeeze(box.label) == squeeze(printable(node.text))
        assert (box.kind == "decision") == (chart.kind(node.id) == "decision")
    assert {(arrow.source, arrow.target) for arrow in picture.edges} == {(e.source, e.target) for e in chart.edges}
    assert len(picture.edges) == len({(e.source, e.target) for e in chart.edges})
    for arrow in picture.edges:
        texts = [e.text for e in chart.edges if (e.source, e.target) == (arrow.source, arrow.target)]
        bullet = "•" if len(texts) > 1 else ""
        assert squeeze(arrow.label) == squeeze("".join(bullet + printable(text) for text in texts))
    check_mermaid(picture.to_mermaid())
    check_dot(picture.to_dot())


def test_what_a_plan_takes_is_marked() -> None:
    yes, no = RETURNS.leaving["days"]
    picture = flowchart_picture(RETURNS, nodes={"ask": (), "days": (), "take": (1,)}, arrows={yes: (1,)})
    boxes = {box.id: (box.tone, box.label) for box in picture.nodes}
    assert boxes["take"] == ("marked", "1: Take the goods")
    assert boxes["days"][0] == "marked"
    assert boxes["refuse"] == ("faded", "Refuse")
    assert {(a.source, a.target): (a.tone, a.label) for a in picture.edges if a.source == "days"} == {
        (yes.source, yes.target): ("marked", "1: yes"),
        (no.source, no.target): ("faded", "no"),
    }
    assert {box.tone for box in flowchart_picture(RETURNS).nodes} == {"plain"}


def test_answers_that_a_plan_does_not_take_are_counted() -> None:
    chart = Flowchart.from_mermaid("flowchart TD\n q{q?} -->|a| x\n q -->|b| x\n q -->|c| x\n q -->|d| y")
    taken = {chart.edges[1]: (2,)}
    labels = [arrow.label for arrow in flowchart_picture(chart, nodes={"q": ()}, arrows=taken).edges]
    assert labels == ["2: b\n… or 2 others", "d"]


# -- automata ----------------------------------------------------------------------------------------------------------


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


def test_what_leaves_the_stack_alone_is_told_by_what_it_reads() -> None:
    pda = PDA(
        [("p", "a", None, "q", ("A",)), ("q", "b", None, "r", ()), ("r", "c", "A", "s", ())], start="p", accepting="s"
    )
    assert [arrow.label for arrow in pda_picture(pda).edges] == ["", "a, ε → A", "b", "c, A → ε"]


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
    labels = {box.id: box.label for box in picture.nodes}
    assert [(labels[a.source], labels[a.target], a.label) for a in picture.edges] == [("", "0", ""), ("0", "2", "c")]
    assert picture.nodes[-1].details == ("z",)


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


def test_transitions_that_a_plan_takes_are_marked(anbn: PDA) -> None:
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


# -- all that is shipped -----------------------------------------------------------------------------------------------

SHIPPED = ["openagi", "cooking", "daily", "risk", *sorted(authored.names("agents"))]


@needs_dot
@pytest.mark.parametrize("what", ["rules", "pda"])
@pytest.mark.parametrize("name", SHIPPED)
def test_texts_of_the_shipped_rules_do_not_overlap(name: str, what: str) -> None:
    """No box lies on another, and no label of an arrow on a box or another label, as Graphviz lays them out."""
    loaded = load(name)
    drawn = as_automaton(loaded.whole) if what == "pda" else loaded.rules
    picture = drawn.picture
    if len(picture.nodes) > 60:
        pytest.skip("the command draws none so large")
    for title, one in (areas := list(laid_out(picture.to_dot()).items())):
        for other_title, other in areas:
            if title < other_title:
                across = min(one[2], other[2]) - max(one[0], other[0])
                along = min(one[3], other[3]) - max(one[1], other[1])
                assert min(across, along) <= 1, (title, other_title)
