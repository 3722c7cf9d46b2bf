"""Pictures and graphs of grammars and automata."""

import os
import re
import shutil
import subprocess
import sys
from html import unescape
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formal_llm import CFG, PDA, MissingDependency, TaskPack
from formal_llm.automata.drawable import Arrow, Box, Picture, printable
from formal_llm.automata.drawing import cfg_graph, cfg_picture, pda_graph, pda_picture, shorten
from formal_llm.errors import FormalLLMError

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (dot) is not installed")

NASTY = [
    'say "hi"', "a [b] (c) {d}", "x|y||z", "two\nlines", "<b>bold</b> & <br/>", "&lt;", "ε → ü 漢字 🙂", "\\slash\\n",
    "#35; #quot; 100%", "%%{init}%%", "`code` *x* _y_ $$z$$", "end", "1. list", "- item", "style:a#;", "\x00\x07\x1b[3",
    "\ud800", "\ufffe", "", "   ", "tab\there", "-->", "]]>", "<!-- c -->", ' id="x"', "ﬂ°°35¶ß", "\\N \\G \\\\l",
]  # fmt: skip

#: The lines that a Mermaid flowchart of ours is made of; a label holds no ASCII sign that means anything to Mermaid.
LABEL = r"(?:[^\x00-+./:-@\[-`{-~]|#\d+;|[ _]|<br/>)*"
MERMAID_LINE = re.compile(
    r"flowchart (LR|TB)"
    rf'|    n\d+(\("{LABEL}"\)|\["{LABEL}"\]|\(\["{LABEL}"\]\)|\(\("{LABEL}"\)\)|\(\(\("{LABEL}"\)\)\))'
    rf'|    n\d+ (-->|-\.->)(\|"{LABEL}"\|)? n\d+'
    r"|    classDef \w+ fill:#\w{6},stroke:#\w{6},color:#\w{6},stroke-width:[\d.]+px(,stroke-dasharray:4 3)?"
    r"|    class n\d+(,n\d+)* \w+"
)


def nasty_picture(text: str) -> Picture:
    boxes = (Box("", "", "point"), Box(text + "!", text, "tool"), Box("end", "end", "open", (text, "x", text)))
    arrows = (Arrow("", "end"), Arrow(text + "!", "end", text), Arrow("end", "end", text, "dashed"))
    return Picture(boxes, arrows, "TB", text)


def check_mermaid(text: str) -> None:
    lines = text.rstrip("\n").split("\n")
    if lines[0] == "---":
        assert re.fullmatch(r'title: "(?:[^"\\\x00-\x1f]|\\.)*"', lines[1])
        assert lines[2] == "---"
        lines = lines[3:]
    for line in lines:
        assert MERMAID_LINE.fullmatch(line), line


def mermaid_labels(text: str) -> list[str]:
    """What a reader sees: entities decoded, line ends as blanks."""
    quoted = re.findall(r'"((?:[^"])*)"', text.split("flowchart", 1)[1])
    return [re.sub(r"#(\d+);", lambda m: chr(int(m[1])), label.replace("<br/>", "\n")) for label in quoted]


def check_dot(text: str) -> list[str]:
    """Reads the few forms of Graphviz' language that we write; the texts of the HTML-like labels."""
    labels = []
    rest = text
    while (at := rest.find("label=<")) >= 0:
        depth, end = 0, at + len("label=")
        while True:
            depth += {"<": 1, ">": -1}.get(rest[end], 0)
            end += 1
            if not depth:
                break
        markup = rest[at + len("label=<") : end - 1]
        tree = ElementTree.fromstring(f"<x>{markup}</x>")
        labels.append("".join(tree.itertext()).replace("\\\\", "\\"))
        rest = rest[:at] + "label=_" + rest[end:]
    assert rest.startswith("digraph {\n")
    assert rest.endswith("\n}\n")
    assert rest.count('"') % 2 == 0
    assert not re.search(r'[<>](?!\s*n\d)(?!")', rest.replace("->", ""))
    return labels


def svg_text(svg: str) -> str:
    """All text of an SVG picture without blanks, since lines are broken."""
    return squeeze("".join(ElementTree.fromstring(svg).itertext()))


def squeeze(text: str) -> str:
    return "".join(text.split())


@pytest.fixture(scope="module")
def openagi() -> CFG:
    return TaskPack.load("openagi").cfg


# -- pictures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", NASTY)
def test_nasty_labels(text: str) -> None:
    picture = nasty_picture(text)
    check_mermaid(picture.to_mermaid())
    shown = squeeze("".join(mermaid_labels(picture.to_mermaid())))
    assert squeeze(printable(text)) in shown
    assert squeeze(printable(text)) in squeeze("".join(check_dot(picture.to_dot())))


@given(st.text())
def test_any_label(text: str) -> None:
    picture = nasty_picture(text)
    check_mermaid(picture.to_mermaid())
    assert squeeze(printable(text)) in squeeze("".join(mermaid_labels(picture.to_mermaid())))
    assert squeeze(printable(text)) in squeeze("".join(check_dot(picture.to_dot())))


@needs_dot
@pytest.mark.parametrize("text", NASTY)
def test_nasty_labels_in_svg(text: str) -> None:
    assert squeeze(printable(text)) in svg_text(nasty_picture(text).to_svg())


@needs_dot
@settings(max_examples=15, deadline=None)
@given(st.text(max_size=30))
def test_any_label_in_svg(text: str) -> None:
    assert squeeze(printable(text)) in svg_text(nasty_picture(text).to_svg())


@needs_dot
def test_svg_tells_nothing_of_the_machine() -> None:
    svg = Picture((Box("secret-id", "a", "tool"), Box("b", "b", "input")), (Arrow("secret-id", "b"),)).to_svg()
    assert svg.startswith("<svg")
    for word in ("graphviz", "<!--", "<title>", " id=", "<?xml", "secret-id", os.getcwd()):  # noqa: PTH109
        assert word not in svg


def test_a_picture_is_checked() -> None:
    with pytest.raises(ValueError, match="no such box"):
        Picture((Box("a", "a", "tool"),), (Arrow("a", "b"),))
    with pytest.raises(ValueError, match="same id"):
        Picture((Box("a", "a", "tool"), Box("a", "b", "tool")))


def test_without_graphviz(monkeypatch: pytest.MonkeyPatch, openagi: CFG) -> None:
    monkeypatch.setenv("PATH", "")
    for drawn in (openagi, PDA.from_cfg(openagi)):
        with pytest.raises(MissingDependency, match=r"install Graphviz.*Mermaid or DOT") as caught:
            drawn.to_svg()
        assert "\n" not in str(caught.value)
        assert drawn._repr_svg_() is None
        check_mermaid(drawn.to_mermaid())
        check_dot(drawn.to_dot())


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for dot is a shell script")
@pytest.mark.parametrize(
    ("script", "message"),
    [("while :; do :; done", "within 0.2 seconds"), ("echo broken >&2; exit 1", "failed: broken")],
)
def test_graphviz_fails(tmp_path, monkeypatch: pytest.MonkeyPatch, script: str, message: str) -> None:
    stand_in = tmp_path / "dot"
    stand_in.write_text(f"#!/bin/sh\n{script}\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(FormalLLMError, match=message):
        Picture((Box("a", "a", "tool"),)).to_svg(timeout=0.2 if "while" in script else 20)


def test_networkx_is_imported_late() -> None:
    code = "import sys, formal_llm; sys.exit('networkx' in sys.modules or 'formal_llm.automata.drawing' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_shorten() -> None:
    assert shorten("a\nb\tc\x07") == "a b c␇"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"


# -- grammars ---------------------------------------------------------------------------------------------------


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


# -- automata ---------------------------------------------------------------------------------------------------


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
    assert pda_graph(anbn).edges["more a", "more a", 0] == {
        "read": "a", "pop": None, "push": ("A",), "text": "", "label": "a, ε → A",
    }  # fmt: skip


def test_states_may_be_any_value() -> None:
    pda = PDA([(0, "a\nb", None, ("x", 1), ())], start=0, accepting=[("x", 1)])
    check_mermaid(pda.to_mermaid())
    assert any("('x', 1)" in unescape(label) for label in check_dot(pda.to_dot()))
