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
from formal_llm.errors import NotationError
from tests.automata.charts import NASTY, WILD
from tests.automata.drawings import links, read
from tests.automata.messages import from_caret
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

    @pytest.mark.parametrize("title", ["Data: a request", "'it''s'", '"a \\"b\\""', "x"])
    def test_titles(self, title):
        expected = {"'it''s'": "it's", '"a \\"b\\""': 'a "b"'}.get(title, title)
        assert read("a", f"---\nconfig:\n  look: x\ntitle: {title}\n---\ngraph TD\n").title == expected


#: A broken text, the line and column of the error, and what it says.
BROKEN = [
    ("", None, "is empty"),
    ("flowchart TD", None, "has no nodes"),
    ("A --> B", (1, 1), "does not begin with its header"),
    ("flowchat TD\nA --> B", (1, 1), "did you mean flowchart"),
    ("sequenceDiagram\nA->>B: hi", (1, 1), "of another kind"),
    ("stateDiagram-v2\n[*] --> A", (1, 1), "of another kind"),
    ("```mermaid\nflowchart TD\nA-->B\n```", (1, 1), "block of Markdown"),
    ("---\ntitle: x\nflowchart TD\nA-->B", (1, 1), "title block"),
    ("flowchart XY\nA-->B", (1, 11), "unknown direction XY"),
    ("flowchart TD A --> B", (1, 14), "new line is missing"),
    ("flowchart TD\nA -> B", (2, 3), "'->' is no arrow.*\n.*\n.*\n  write '-->'"),
    ("flowchart TD\nA => B", (2, 3), "'=>' is no arrow"),
    ("flowchart TD\nA —> B", (2, 3), "'—>' is no arrow"),
    ("flowchart TD\nA -->> B", (2, 3), "'-->>' is no arrow"),
    ("flowchart TD\r\nA --> B\r\n\tB ->> C\r\n", (3, 4), "'->>' is no arrow"),
    ("\ufeffflowchart TD\nA → B", (2, 3), "'→' is no arrow"),
    ("flowchart TD\nA --> B: yes", (2, 8), r"A -->\|text\| B"),
    ("flowchart TD\nA -- yes B", (2, 3), "arrow does not end"),
    ("flowchart TD\nA -.> B", (2, 3), "arrow does not end"),
    ("flowchart TD\nA -->|yes B", (2, 6), "text of the arrow does not end"),
    ('flowchart TD\nA -->|"yes" no| B', (2, 13), "behind its quotes"),
    ("flowchart TD\nA -->", (2, 3), "leads nowhere"),
    ("flowchart TD\n--> B", (2, 1), "missing before this arrow"),
    ("flowchart TD\nA & --> B", (2, 5), "missing before this arrow"),
    ("flowchart TD\nA <-- B", (2, 3), "points backwards"),
    ("flowchart TD\nA --open--> B", (2, 3), "head of the arrow or the first letter"),
    ("flowchart TD\nA[Start --> B[Do]", (2, 2), "'\\[' is not closed"),
    ("flowchart TD\nA(Start\nA --> B", (2, 2), "'\\(' is not closed"),
    ("flowchart TD\nA[Start) --> B", (2, 8), "'\\[' is closed by '\\)'"),
    ("flowchart TD\nA[[x] --> B", (2, 5), "closed by"),
    ('flowchart TD\nA["Start] --> B', (2, 3), "quote is not closed"),
    ('flowchart TD\nA["x" y] --> B', (2, 7), "not closed behind its text"),
    ('flowchart TD\nA[say "hi"] --> B', (2, 7), "put the text in quotes"),
    ("flowchart TD\nA[f(x)] --> B", (2, 4), "put the text in quotes"),
    ("flowchart TD\nA [x] --> B", (2, 3), "directly behind the name"),
    ("flowchart TD\nA --> B]", (2, 8), "no bracket that it closes"),
    ("flowchart TD\nA --> my node", (2, 10), "is one word"),
    ("flowchart TD\nA --> end", (2, 7), "a word of Mermaid"),
    ("flowchart TD\nsubgraph x\nA --> B", (2, 1), "subgraph does not end"),
    ("flowchart TD\nA --> B\nend", (3, 1), "ends no subgraph"),
    ("flowchart TD\nA@{ shape: diamond }-->B", (2, 2), "attributes @.* are not read.*\n.*\n.*\n  write the text"),
    ("flowchart TD\nA e1@--> B", (2, 3), "names of arrows are not read.*\n.*\n.*\n  leave e1@ out"),
    ("flowchart TD\nA(((x))) --> B", (2, 2), "'\\(\\(\\(' has a shape that is not read"),
    ("flowchart TD\nA[/x/] --> B", (2, 2), "'\\[/' has a shape that is not read"),
    ("flowchart TD\nA>x] --> B", (2, 2), "'>' has a shape that is not read"),
    ("flowchart TD\nX --> one\nsubgraph one\nA --> B\nend", (2, 7), "one is the name of the subgraph in line 3"),
    ("flowchart TD\nsubgraph one [Do it]\nA --> B\nend\nB --> one", (5, 7), "draw the arrow to or from a node in"),
    ("flowchart TD\nA[x] --> B\nA[y] --> C", (3, 1), "two texts: 'x' and 'y'"),
    ("flowchart TD\nA[x] --> B\nA(x) --> C", (3, 1), "two shapes"),
    ("flowchart TD\nA\0", None, "not a text"),
    # what can be read and describes no plans
    ("flowchart TD\nA{q} -->|yes| B\nA -->|Yes| C", (3, 3), "two answers 'Yes'"),
    ("flowchart TD\nA --> B{q}", (2, 7), "has no answers"),
    ("flowchart TD\nA --> B --> C --> B", (2, 1), "no end can be reached"),
    ("flowchart TD\nA([Start]) --> B\nC --> B", (3, 1), "no arrow leads to C: it cannot be reached"),
    ("flowchart TD\nA --> B --> A", (2, 1), "no end can be reached from A"),
    ("flowchart TD\nA --> B\nC --> D --> C", (3, 1), "no end can be reached from C"),
    ("flowchart TD\nA --> B & C\nB --> C & D\nC --> E", (2, 3), "run side by side and meet at C without '&'"),
    ("flowchart TD\nA --> B & C\nB --> D{ok?} -->|no| A\nD -->|yes| E", (2, 3), "run side by side"),
    ("flowchart TD\nPay --> Ship\nstyle Shp fill:red", (3, 1), "the style of Shp.*\n.*\n.*\n  did you mean Ship"),
]


@pytest.mark.parametrize(("text", "place", "problem"), BROKEN)
def test_broken_charts(text, place, problem):
    with pytest.raises(NotationError, match=problem) as caught:
        Flowchart.from_mermaid(text, file="chart.mmd")
    error = caught.value
    assert (None if error.line is None else (error.line, error.column)) == place
    assert str(error).startswith("chart.mmd:")
    if place is not None:
        assert from_caret(error) == error.source_line[error.column - 1 :].replace("\t", " ")


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")  # a node without an arrow
@given(st.sampled_from([text for text, *_ in WILD]), st.data())
@examples(400)
def test_no_mutilation_of_a_chart_crashes_the_reader(text, data):
    """Pieces are cut out, doubled and mixed: what comes out is a chart, or an error with a place."""
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 5)))
    more = data.draw(
        st.sampled_from(["]", "[", '"', "|", "--", "-->", "{", "}", "end", "\n", "&", "@{", "<", "o", "\x00"])
        | st.just("")
    )
    try:
        chart = Flowchart.from_mermaid(text[:at] + more + text[end:])
    except NotationError as error:
        assert error.column is None or 1 <= error.column <= len(error.source_line) + 1
    else:
        assert Flowchart.from_mermaid(str(chart)) == chart


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ntitel: x\n---\n", "<string>:2:1: unknown key in the title block: titel"),
        ("---\ntitle: x\nlimits:\n  a: 1\n---\n", "limits are written as comments: %% %limit 2 NAME"),
    ],
)
def test_unknown_keys(text: str, said: str) -> None:
    with pytest.raises(NotationError) as caught:
        read_title(SourceText(text, None))
    assert said in str(caught.value)


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


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("subgraph A\n subgraph B\n  A --> c\n end\nend\nc --> d", (4, 3)),
        ("start --> A\nsubgraph A\n B\nend\nsubgraph B\n A\nend\nA --> stop", (2, 11)),
        ("a --> work\nsubgraph work\n work --> glue\nend", (2, 7)),
    ],
    ids=["a parent inside of its child", "each inside of the other", "a node with the name of its subgraph"],
)
def test_subgraphs_in_a_circle_are_refused_at_once(text: str, place: tuple[int, int]) -> None:
    """As they stand in reports of other readers, which hang or blame something else."""
    with pytest.raises(NotationError, match="a subgraph is drawing only, and no node") as caught:
        Flowchart.from_mermaid(f"flowchart TD\n{text}")
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("swimlane-beta\na --> b", "another kind"),
        ("flowchart BR\na --> b", "unknown direction BR"),
        ("flowchart TD\na! --> b", "unexpected '!'"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(NotationError, match=message):
        Flowchart.from_mermaid(text)


def test_numbers_in_a_text_are_text() -> None:
    text = "flowchart TD\nack[Acknowledge time=5m cost=€3] --> b[Take x=5 now] --> c[x=5] --> d[Set x=y]"
    with pytest.warns(match="'time=5m cost=€3' is text of the step ack.*%% %numbers ack time=5m cost=€3") as caught:
        chart = Flowchart.from_mermaid(text)
    assert len(caught) == 1
    assert [node.text for node in chart.nodes] == ["Acknowledge time=5m cost=€3", "Take x=5 now", "x=5", "Set x=y"]
    with warnings.catch_warnings(action="error"):
        chart = Flowchart.from_mermaid(f"{text}\n%% %numbers ack time=5m cost=€3")
    assert str(chart.numbers["ack"]["time"]) == "5min"
