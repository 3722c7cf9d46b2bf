"""Pictures and graphs of grammars and automata."""

import json
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

from formal_llm import CFG, PDA, Flowchart, MissingDependency, TaskPack, authored
from formal_llm.automata.drawing.cfg import cfg_graph, cfg_picture
from formal_llm.automata.drawing.pda import pda_graph, pda_picture
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.cli.sources import load
from formal_llm.errors import FormalLLMError
from formal_llm.pictures.captions import shorten
from formal_llm.pictures.picture import Arrow, Box, Picture, printable

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
    rf'|    n\d+(\("{LABEL}"\)|\["{LABEL}"\]|\[\["{LABEL}"\]\]|\{{"{LABEL}"\}}'
    rf'|\(\["{LABEL}"\]\)|\(\("{LABEL}"\)\)|\(\(\("{LABEL}"\)\)\))'
    rf'|    n\d+ (-->|-\.->)(\|"{LABEL}"\|)? n\d+'
    r"|    classDef \w+ fill:#\w{6},stroke:#\w{6},color:#\w{6},stroke-width:[\d.]+px(,stroke-dasharray:4 3)?"
    r"|    class n\d+(,n\d+)* \w+"
    r"|    linkStyle \d+(,\d+)* stroke:#\w{6},stroke-width:[\d.]+px"
)


def nasty_picture(text: str) -> Picture:
    boxes = (
        Box("", "", "point"),
        Box(text + "!", text, "tool", tone="marked"),
        Box("end", "end", "open", (text, "x", text)),
        Box("decision", text, "decision", (text, "x"), "faded", (0,)),
        Box("last", text, "long_accepting"),
    )
    arrows = (
        Arrow("", "end"),
        Arrow(text + "!", "end", text, tone="marked", weight=3),
        Arrow("end", "end", text, "dashed", "faded"),
    )
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


@needs_dot
def test_png(openagi: CFG) -> None:
    assert openagi.to_png().startswith(b"\x89PNG\r\n")


def test_without_graphviz(monkeypatch: pytest.MonkeyPatch, openagi: CFG) -> None:
    monkeypatch.setenv("PATH", "")
    for drawn in (openagi, PDA.from_cfg(openagi)):
        with pytest.raises(MissingDependency, match=r"install Graphviz.*Mermaid or DOT") as caught:
            drawn.to_svg()
        assert "\n" not in str(caught.value)
        with pytest.raises(MissingDependency, match="a PNG picture needs"):
            drawn.to_png()
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
    code = "import sys, formal_llm; sys.exit('networkx' in sys.modules)"
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


# -- flowcharts -------------------------------------------------------------------------------------------------


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


def test_large_automata_are_folded() -> None:
    """Twenty states in a row are one arrow; a way around stays one, though it arrives where another arrow does."""
    row = [(n, f"t{n}", None, n + 1, ()) for n in range(20)]
    folded = says(pda_picture(PDA(row, start=0, accepting=[20]), most=30))
    assert folded == [("", "0", ""), ("0", "20", "\n".join(["t0", *(f"then t{n}" for n in range(1, 20))]))]
    around = says(pda_picture(PDA([*row, (0, "skip", None, 20, ())], start=0, accepting=[20]), most=30))
    assert ("0", "20", "skip") in around
    assert len(around) == 4
    ways = [(0, "a", None, 30, ()), (30, "b", None, 2, ())]
    both = says(pda_picture(PDA([*row, *ways], start=0, accepting=[20]), most=30))
    assert ("0", "2", "a\nthen b\nor t0\nthen t1") in both or ("0", "2", "t0\nthen t1\nor a\nthen b") in both
    # A small one is drawn as it is.
    assert len(pda_picture(PDA(row[:15], start=0, accepting=[15])).nodes) == 17


def test_of_a_product_what_leads_nowhere_is_left_out() -> None:
    one = PDA([(0, "a", None, 1, ()), (1, "b", None, 2, ()), (0, "c", None, 2, ())], start=0, accepting=[2])
    other = PDA([("x", "a", None, "y", ()), ("x", "c", None, "z", ())], start="x", accepting=["z"])
    picture = pda_picture(one & other)
    assert picture.title == "1 state from which no plan can be finished left out"
    assert says(picture) == [("", "0", ""), ("0", "2", "c")]
    assert picture.nodes[-1].details == ("z",)


SHIPPED = ["openagi", "cooking", "daily", "risk", *sorted(authored.names("agents"))]


@needs_dot
@pytest.mark.parametrize("what", ["rules", "pda"])
@pytest.mark.parametrize("name", SHIPPED)
def test_texts_of_the_shipped_rules_do_not_overlap(name: str, what: str) -> None:
    """No box lies on another, and no label of an arrow on a box or another label, as Graphviz lays them out."""
    loaded = load(name)
    drawn = loaded.rules
    if what == "pda":
        language, _ = loaded.language("", inputs=None, goal=None, limit=None, require=None, whole=True)
        drawn = as_automaton(language)
    picture = drawn.picture
    assert len(picture.nodes) <= 60
    for title, one in (areas := list(laid_out(picture.to_dot()).items())):
        for other_title, other in areas:
            if title < other_title:
                across = min(one[2], other[2]) - max(one[0], other[0])
                along = min(one[3], other[3]) - max(one[1], other[1])
                assert min(across, along) <= 1, (title, other_title)


def laid_out(dot: str) -> dict[str, tuple[float, float, float, float]]:
    """Where Graphviz puts boxes and the plates of labels: left, bottom, right, top, in points."""
    done = subprocess.run(["dot", "-Tjson"], input=dot, capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    areas = {}
    for number, node in enumerate(found["objects"]):
        (x, y), width, height = (
            map(float, node["pos"].split(",")),
            float(node["width"]) * 72,
            float(node["height"]) * 72,
        )
        areas[f"box {number}"] = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    for number, edge in enumerate(found["edges"]):
        points = [point for shape in edge.get("_ldraw_", ()) if shape["op"] in "pP" for point in shape["points"]]
        if points:
            across, along = zip(*points, strict=True)
            areas[f"label {number}"] = (min(across), min(along), max(across), max(along))
    return areas


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
