"""Pictures of grammars."""

from hypothesis import given

from formal_llm import CFG, PDA
from formal_llm.automata.drawing.cfg import cfg_picture
from formal_llm.automata.models.symbols import selection_members
from formal_llm.pictures.picture import Box
from tests.pictures.forms import check_dot, check_mermaid, needs_dot, squeeze, svg_text
from tests.strategies import written_grammars


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
