"""Mermaid: its syntax, nodes, subgraphs and titles."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Flowchart, Lookahead
from formal_llm.automata.models.flowgraph import SHAPES, normalize_text
from formal_llm.automata.notation.mermaid import BRACKETS, read_text, read_title, write_text
from formal_llm.automata.notation.source import SourceText
from tests.automata.charts import NASTY
from tests.automata.drawings import links, read
from tests.strategies import examples


class TestLinks:
    @pytest.mark.parametrize(
        "link",
        ["-->", "---", "--->", "-----", "--o", "--x", "==>", "===", "====>", "==o", "-.->", "-.-", "-...->", "-.-x"],
    )
    def test_without_text(self, link):
        assert links(f"a{link} b") == links(f"a {link} b") == links(f"a {link}\n b") == [("a", "", "b")]
        assert links(f'a {link}|"say | yes"| b') == [("a", "say | yes", "b")]
        assert links(f"a {link}| yes, in full | b") == [("a", "yes, in full", "b")]

    @pytest.mark.parametrize(
        "link",
        ["--yes-->", "-- yes -->", "-- yes ---", '-- "yes" -->', "-- yes --x ", "==yes==>", "== yes ===", "-.yes.->",
         "-. yes .-", "-. yes ...->", "-- yes ---->", '--"`**yes**`"-->'],
    )  # fmt: skip
    def test_with_text(self, link):
        assert links(f"a {link} b") == [("a", "yes", "b")]

    def test_chains_and_groups(self):
        assert links("a & b --> c -- x --> d & e") == [
            ("a & b", "", "c"), ("c", "x", "d & e"),
        ]  # fmt: skip
        assert links("a --> b; b-->c;") == [("a", "", "b"), ("b", "", "c")]
        assert links("a <---> b") == links("a <-- x --> b".replace(" x ", " ")) == [("a", "", "b"), ("b", "", "a")]
        assert links("a <-- x --- b") == [("b", "x", "a")]
        assert links("a <--- b") == links("b --> a") == [("b", "", "a")]
        assert links("a x--x b") == links("a o--o b") == links("a x--- b") == [("a", "", "b")]
        assert links("a ~~~ b --> c") == [("b", "", "c")]
        assert links("a & b <--> c & a") == [("a & b", "", "c & a"), ("c & a", "", "a & b")]


class TestHeader:
    @pytest.mark.parametrize(
        ("header", "direction"),
        [("graph LR\n", "LR"), ("flowchart TD;", "TB"), ("flowchart\n", "TB"), ("graph BT %% x\n", "BT"),
         ("%%{init: {\n'theme': 1}}%%\n\n  flowchart-elk RL\n", "RL"), ("\n%% hello\ngraph >\n", "LR")],
    )  # fmt: skip
    def test_directions(self, header, direction):
        assert read("a --> b", header).direction == direction


@pytest.mark.parametrize("between", ["\n", "; ", " --> "])
def test_a_large_chart_is_read_and_written(between: str) -> None:
    steps = 6_000
    if between == " --> ":
        text = "flowchart TD\n" + between.join(f"step_number_{n}[Do what is number {n}]" for n in range(steps))
    else:
        text = "flowchart TD" + between + between.join(f"n{n}[Do thing {n}] --> n{n + 1}" for n in range(steps - 1))
    assert len(text) > 170_000
    chart = Flowchart.from_string(text)
    assert len(chart.nodes) == steps
    assert Flowchart.from_string(str(chart)) == chart
    assert chart.to_dot().count("->") >= steps - 1
    assert Lookahead(chart.pda()).shortest() == steps


@pytest.mark.parametrize(
    "text",
    [
        "flowchart TD\n" + "%%{" * 100_000 + "\na --> b",
        'flowchart TD\na["`' + "**x " * 10_000 + '`"] --> b',
        "flowchart TD\n" + "".join(f"subgraph s{n}\n" for n in range(20_000)) + "a --> b\n" + "end\n" * 20_000,
        "flowchart TD\na" + "\n" * 300_000 + "--> b" + " " * 300_000,
    ],
    ids=["directives", "stars", "subgraphs", "blanks"],
)
def test_what_goes_on_and_on_is_read_all_the_same(text: str) -> None:
    assert len(Flowchart.from_string(text).nodes) == 2


class TestNodes:
    @pytest.mark.parametrize("quoted", [False, True])
    @pytest.mark.parametrize(("opening", "closing", "shape"), [(o, *rest) for o, rest in BRACKETS.items()])
    def test_brackets(self, opening, closing, shape, quoted):
        text = '"Do (this)"' if quoted else " Do this "
        node = read(f"a{opening}{text}{closing} --> b").nodes["a"]
        assert (node.text, node.shape) == ("Do (this)" if quoted else "Do this", shape)

    def test_each_shape_has_a_bracket(self):
        assert sorted(shape for _, shape in BRACKETS.values()) == sorted(SHAPES)

    def test_texts_over_lines_and_placeholders(self):
        found = read('a[Pay\n  the {buyer}] --> b["two\n  lines"] --> c{Is {x} ok?}').nodes
        assert [node.text for node in found.values()] == ["Pay\nthe {buyer}", "two\nlines", "Is {x} ok?"]

    def test_a_name_may_come_before_its_text(self):
        drawing = read("a --> b\nb[Do it]\na[Go]:::big\na --> b[Do it]")
        assert {node.id: node.text for node in drawing.nodes.values()} == {"a": "Go", "b": "Do it"}

    def test_names(self):
        assert list(read("a-b --> c.d --> é_1 --> 12 --> ends --> End").nodes) == [
            "a-b", "c.d", "é_1", "12", "ends", "End",
        ]  # fmt: skip


class TestTexts:
    @given(NASTY | st.text())
    @examples(500)
    def test_reading_what_was_written(self, text):
        text = normalize_text(text)
        written = write_text(text)
        assert '"' not in written[1:-1]
        assert "\n" not in written
        assert read_text(written[1:-1]) == text
        for opening, (closing, shape) in BRACKETS.items():
            node = read(f"a{opening}{written}{closing} --> b").nodes["a"]
            assert (node.text, node.shape) == (text, shape)

    @pytest.mark.parametrize(
        ("written", "text"),
        [
            ("a <br> b<br/>c<BR />d", "a\nb\nc\nd"), ("#quot;x#quot; #35;1 #9829; &lt;b&gt; #nbsp;", '"x" #1 ♥ <b>'),
            ("fa:fa-car Car", "Car"),
            ("<b>Yes</b>, <i class='x'>no</i>", "Yes, no"), ("a < b > c & d", "a < b > c & d"),
            ("  a \t  b ", "a b"), ("#nosuch; &nosuch; #99999999;", "#nosuch; &nosuch; #99999999;"),
        ],
    )  # fmt: skip
    def test_entities_and_markup(self, written, text):
        assert read_text(written) == text

    def test_markdown(self):
        assert read_text("The **cat** in __the__ _hat_ snake_case 2*3*4", markdown=True) == (
            "The cat in the hat snake_case 2*3*4"
        )


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("flowchart TD", ""),
        ("---\ntitle: A  plan\n---\nflowchart TD", "A plan"),
        ("---\ntitle: 'It''s'\nconfig:\n  theme: dark\n  anything: goes\n---\n", "It's"),
        ('---\ntitle: "a \\u00e9"\n---\n', "a é"),
        ('---\ntitle: "' + "[" * 9 + "\n---\n", "[" * 9),
        ("---\n---\n", ""),
    ],
)
def test_titles(text: str, title: str) -> None:
    found, end = read_title(SourceText(text, None))
    assert found == title
    assert text[end:].strip() in ("", "flowchart TD")


#: The productions of Mermaid's grammar, as texts; each draws ``a --> b`` and nothing else.
MEANT = [
    "a --> b",
    "a --> b;",
    "a-->b %% a remark",
    "a[a] --> b[b]",
    "a:::big --> b:::big",
    "a --> b\nlinkStyle 0 stroke:#ff3,stroke-width:4px",
    "a --> b\nlinkStyle 0,0 interpolate basis stroke:red",
    "a --> b\nlinkStyle default interpolate basis",
    "a --> b\nstyle a fill:#f9f,stroke:#333",
    "a --> b\nclassDef big,small font-size:12pt",
    "a --> b\nclass a,b big",
    "a --> b\nclick a",
    "a --> b\nclick a callback",
    'a --> b\nclick a callback "a tip"',
    "a --> b\nclick a call callback()",
    'a --> b\nclick a call callback("one",\n  "two; three"\n) "a tip\\nof\ntwo lines"',
    'a --> b\nclick a href "https://a.b/?c;d"',
    'a --> b\nclick a href "https://a.b" "a tip" _blank',
    'a --> b\nclick a "https://a.b" _self',
    "a --> b\naccTitle: A chart --> of two steps",
    "a --> b\naccDescr: A chart --> of two steps",
    "a --> b\naccDescr {\n  A chart\n  c --> d\n}",
    "a --> b\naccDescr{ c --> d }",
    "%%{init: {'theme': 'dark'}}%%\na --> b",
]


@pytest.mark.parametrize("text", MEANT)
def test_what_is_harmless_changes_nothing(text: str) -> None:
    with warnings.catch_warnings(action="error"):
        chart = Flowchart.from_mermaid(f"flowchart TD\n{text}")
    assert [(edge.source, edge.text, edge.target) for edge in chart.edges] == [("a", "", "b")]
    assert [(node.id, node.text) for node in chart.nodes] == [("a", "a"), ("b", "b")]


#: Statements about subgraphs; each draws ``a --> b`` in a subgraph.
SUBGRAPHS = [
    "subgraph s\na --> b\nend",
    "subgraph s [A title]\na --> b\nend",
    'subgraph s["A title"]\ndirection LR\na --> b\nend',
    'subgraph s["`A **title**`"]\na --> b\nend',
    "subgraph\na --> b\nend",
    "subgraph A title of words\na --> b\nend",
    "subgraph s\nsubgraph t\na\nend\na --> b\nend\nstyle s fill:red",
]


@pytest.mark.parametrize("text", SUBGRAPHS)
def test_subgraphs_are_drawing_only(text: str) -> None:
    chart = Flowchart.from_mermaid(f"flowchart TD\n{text}\nb --> c")
    assert [(edge.source, edge.target) for edge in chart.edges] == [("a", "b"), ("b", "c")]


def test_numbers_in_a_text_are_text() -> None:
    text = "flowchart TD\nack[Acknowledge time=5m cost=€3] --> b[Take x=5 now] --> c[x=5] --> d[Set x=y]"
    with pytest.warns(match="'time=5m cost=€3' is text of the step ack.*%% %numbers ack time=5m cost=€3") as caught:
        chart = Flowchart.from_mermaid(text)
    assert len(caught) == 1
    assert [node.text for node in chart.nodes] == ["Acknowledge time=5m cost=€3", "Take x=5 now", "x=5", "Set x=y"]
    with warnings.catch_warnings(action="error"):
        chart = Flowchart.from_mermaid(f"{text}\n%% %numbers ack time=5m cost=€3")
    assert str(chart.numbers["ack"]["time"]) == "5min"
