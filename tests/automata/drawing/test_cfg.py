"""Pictures and graphs of grammars."""

from formal_llm import CFG
from formal_llm.automata.drawing.cfg import cfg_graph, cfg_picture
from formal_llm.pictures.picture import Box
from tests.pictures.forms import check_mermaid, needs_dot, squeeze, svg_text


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
    assert openagi._repr_svg_() is not None


def test_grammar_with_selection_texts_and_epsilon() -> None:
    cfg = CFG.from_string('S -> wok some(salt, pepper) "Season it" | ε | pan\nsalt "Sea salt"')
    boxes = {box.id: box for box in cfg_picture(cfg).nodes}
    assert boxes["S"].details == ("→ wok some(…)   “Season it”", "→ ε", "→ pan")
    assert boxes["some(salt, pepper)"] == Box("some(salt, pepper)", "some of", "class", ("Sea salt", "pepper"))
    graph = cfg.to_networkx()
    assert graph.nodes["some(salt, pepper)"]["kind"] == "selection"
    assert list(graph.successors("some(salt, pepper)")) == ["salt", "pepper"]


def test_long_lists_are_cut() -> None:
    cfg = CFG.from_string("S -> A x\nA -> " + " | ".join(f"a{n}" for n in range(100)))
    details = {box.id: box for box in cfg_picture(cfg, most=5).nodes}["A"].details
    assert details == ("a0", "a1", "a2", "a3", "a4", "… and 95 more")


def test_grammar_graph(openagi: CFG) -> None:
    graph = openagi.to_networkx()
    kinds = [kind for _, kind in graph.nodes(data="kind")]
    assert kinds.count("nonterminal") == len(openagi.nonterminals)
    assert kinds.count("terminal") == len(openagi.terminals)
    assert kinds.count("production") == len(openagi.productions)
    assert graph.number_of_edges() == len(openagi.productions) + sum(len(p.body) for p in openagi.productions)
    assert [node for node, start in graph.nodes(data="start") if start] == ["plan"]
    assert graph.nodes["T"]["label"] == "text"
    for production in openagi.productions:
        edges = sorted(graph.out_edges(production, data="position"), key=lambda edge: edge[2])
        assert tuple(target for _, target, _ in edges) == production.body
    alternatives = sorted(graph.out_edges("T", data="position"), key=lambda edge: edge[2])
    assert [p for _, p, _ in alternatives] == [p for p in openagi.productions if p.head == "T"]
    assert cfg_graph(openagi).edges == graph.edges
