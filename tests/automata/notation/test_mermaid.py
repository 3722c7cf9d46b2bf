"""Mermaid: its syntax, nodes, subgraphs and titles."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Flowchart, Lookahead
from formal_llm.automata.models.flowgraph import SHAPES, normalize_text
from formal_llm.automata.notation.mermaid_groups import meaning
from formal_llm.automata.notation.mermaid_nodes import BRACKETS, COMMENTS, SPACE, NodeScanner, read_text, write_text
from formal_llm.automata.notation.mermaid_title import read_title
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
            ("a", "", "c"), ("b", "", "c"), ("c", "x", "d"), ("c", "x", "e"),
        ]  # fmt: skip
        assert links("a --> b; b-->c;") == [("a", "", "b"), ("b", "", "c")]
        assert links("a <---> b") == links("a <-- x --> b".replace(" x ", " ")) == [("a", "", "b"), ("b", "", "a")]
        assert links("a <-- x --- b") == [("b", "x", "a")]
        assert links("a <--- b") == links("b --> a") == [("b", "", "a")]
        assert links("a x--x b") == links("a o--o b") == links("a x--- b") == [("a", "", "b")]
        assert links("a ~~~ b --> c") == [("b", "", "c")]
        assert links("a e1@--> b\ne1@{ animation: fast }") == [("a", "", "b")]


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
    ("flowchart TD\nA@{ shape: diamnd }-->B", (2, 12), "did you mean diamond"),
    ("flowchart TD\nA@{ shape: diam, colour: red }", (2, 18), "unknown attribute colour"),
    ("flowchart TD\nA@{ shape: diam --> B", (2, 2), "not closed"),
    ("flowchart TD\nA@{ shape }", (2, 5), "cannot be read"),
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
    ("flowchart TD\nA --> B & C\nB --> C & D\nC --> E", (2, 3), "run side by side, but arrows lead from one"),
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


def test_arrows_between_many_nodes_are_bounded() -> None:
    many = " & ".join(f"a{n}" for n in range(400)), " & ".join(f"b{n}" for n in range(400))
    with pytest.raises(NotationError, match="more than 100,000 arrows"):
        Flowchart.from_string(f"flowchart TD\n{many[0]} --> {many[1]}")


class TestNodes:
    @pytest.mark.parametrize("quoted", [False, True])
    @pytest.mark.parametrize(("opening", "closing", "shape"), [(o, c, s) for o, g in BRACKETS.items() for c, s in g])
    def test_brackets(self, opening, closing, shape, quoted):
        text = '"Do (this)"' if quoted else " Do this "
        vertex = read(f"a{opening}{text}{closing} --> b").vertices["a"]
        assert (vertex.text, vertex.shape) == ("Do (this)" if quoted else "Do this", shape)

    @pytest.mark.parametrize("name", SHAPES)
    def test_attributes(self, name):
        vertex = read(f'a@{{ shape: {name}, label: "A }} b", icon: x }} --> b').vertices["a"]
        assert (vertex.text, vertex.shape) == ("A } b", SHAPES[name])

    def test_attributes_on_lines_of_their_own(self):
        vertex = read("a@{\n  label: Say it\n  shape: 'diamond'\n}").vertices["a"]
        assert (vertex.text, vertex.shape) == ("Say it", "diam")

    def test_texts_over_lines_and_placeholders(self):
        found = read('a[Pay\n  the {buyer}] --> b["two\n  lines"] --> c{Is {x} ok?}').vertices
        assert [vertex.text for vertex in found.values()] == ["Pay\nthe {buyer}", "two\nlines", "Is {x} ok?"]

    def test_a_name_may_come_before_its_text(self):
        drawing = read("a --> b\nb[Do it]\na[Go]:::big\na --> b[Do it]")
        assert {vertex.id: vertex.text for vertex in drawing.vertices.values()} == {"a": "Go", "b": "Do it"}

    def test_names(self):
        assert list(read("a-b --> c.d --> é_1 --> 12 --> ends --> End").vertices) == [
            "a-b", "c.d", "é_1", "12", "ends", "End",
        ]  # fmt: skip


class TestScanner:
    def test_goes_past_what_matches_only(self):
        scanner = NodeScanner(SourceText("ab  c", None))
        assert scanner.take_match(re.compile("b")) is None
        assert scanner.at == 0
        assert scanner.take_match(re.compile("ab"))[0] == "ab"
        scanner.take_match(SPACE)
        assert scanner.at == 4
        assert scanner.is_ahead("d", "c")
        assert not scanner.is_ahead("b")

    def test_fails_where_it_stands_or_elsewhere(self):
        scanner = NodeScanner(SourceText("ab\ncd", None, error=NotationError))
        scanner.at = 4
        with pytest.raises(NotationError) as caught:
            scanner.fail_here("wrong")
        assert from_caret(caught.value) == "d"
        with pytest.raises(NotationError) as caught:
            scanner.fail_here("wrong", 0)
        assert from_caret(caught.value) == "ab"

    @given(NASTY | st.text())
    def test_a_text_in_quotes_is_read_back_from_any_bracket(self, text):
        for opening, ((closing, shape), *_) in BRACKETS.items():
            scanner = NodeScanner(SourceText(f"{opening}{write_text(text)}{closing} rest", None))
            assert scanner.read_bracketed_text(opening) == (normalize_text(text), shape)
            assert scanner.is_ahead(" rest")


class TestTexts:
    @given(NASTY | st.text())
    @examples(500)
    def test_reading_what_was_written(self, text):
        text = normalize_text(text)
        written = write_text(text)
        assert '"' not in written[1:-1]
        assert "\n" not in written
        assert read_text(written[1:-1]) == text

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


def arrows(body: str) -> list[tuple[str, str, str]]:
    drawing = read(body)
    made = meaning(drawing.vertices, drawing.links, drawing.groups)
    assert set(made.node_places) == {node.id for node in made.nodes}
    assert len(made.edge_places) == len(made.edges)
    return [(edge.source, edge.text, edge.target) for edge in made.edges]


def test_a_group_behind_an_arrow_is_a_fork_of_its_own() -> None:
    assert arrows("a & b -->|x| c & d") == [
        ("a", "x", "a_all"), ("a_all", "", "c"), ("a_all", "", "d"), ("b", "x", "a_all"),
    ]  # fmt: skip
    assert arrows("a_all --> a --> b & c")[-1] == ("a_all_2", "", "c")
    assert arrows("f@{ shape: fork } --> a & b") == [("f", "", "a"), ("f", "", "b")]


def test_one_answer_and_then_where_a_subgraph_begins() -> None:
    body = "subgraph s\na\nb\nend\nq{?} -->|yes| s\nq -->|no| c"
    assert arrows(body) == [("q", "yes", "s_begin"), ("s_begin", "", "a"), ("s_begin", "", "b"), ("q", "no", "c")]
    assert ("x_all", "", "s_begin") in arrows("subgraph s\na\nb\nend\nx --> s & c")


def test_a_node_lies_in_the_subgraph_that_closes_first() -> None:
    body = "subgraph one\na\nsubgraph two\nb --> c\nend\nb\nend\nX --> two\nX --> one"
    assert [arrow for arrow in arrows(body) if arrow[0] == "X"] == [("X", "", "b"), ("X", "", "a")]


def test_comments_are_left_out() -> None:
    assert arrows('a --> b\nn@{ shape: braces, label: "A note" } --- b\nn --- a') == [("a", "", "b")]


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


#: The shapes of Mermaid, each with its other names.
SHAPES_OF_MERMAID = """
rect proc process rectangle | rounded event | stadium terminal pill | fr-rect subprocess subproc framed-rectangle
subroutine | cyl db database cylinder | datastore data-store | folder directory | bucket | console | browser |
person | circle circ | bang | cloud | diam decision diamond question | hex hexagon prepare | lean-r lean-right
in-out | lean-l lean-left out-in | trap-b priority trapezoid-bottom trapezoid | trap-t manual trapezoid-top
inv-trapezoid | dbl-circ double-circle | text | notch-rect card notched-rectangle | lin-rect lined-rectangle
lined-process lin-proc shaded-process | sm-circ start small-circle | fr-circ stop framed-circle | fork join |
hourglass collate | brace comment brace-l | brace-r | braces | bolt com-link lightning-bolt | doc document | delay
half-rounded-rectangle | h-cyl das horizontal-cylinder | lin-cyl disk lined-cylinder | curv-trap curved-trapezoid
display | div-rect div-proc divided-rectangle divided-process | tri extract triangle | win-pane internal-storage
window-pane | f-circ junction filled-circle | notch-pent loop-limit notched-pentagon | flip-tri manual-file
flipped-triangle | sl-rect manual-input sloped-rectangle | docs documents st-doc stacked-document | st-rect procs
processes stacked-rectangle | bow-rect stored-data bow-tie-rectangle | cross-circ summary crossed-circle | tag-doc
tagged-document | tag-rect tagged-rectangle tag-proc tagged-process | flag paper-tape | odd | lin-doc lined-document
"""


@pytest.mark.parametrize("names", SHAPES_OF_MERMAID.split("|"), ids=lambda names: names.split()[0])
def test_each_shape_has_a_meaning_under_all_of_its_names(names: str) -> None:
    drawn = {read(f"a@{{ shape: {name} }} --> b").vertices["a"].shape for name in names.split()}
    assert len(drawn) == 1
    assert drawn <= {*SHAPES.values(), "comment"}


def test_there_are_no_other_shapes() -> None:
    # Brackets draw an ellipse, which has no name in Mermaid.
    assert {*SHAPES, *COMMENTS} - set(SHAPES_OF_MERMAID.split()) == {"ellipse"}


#: The productions of Mermaid's grammar, as texts; each draws ``a --> b`` and nothing else.
MEANT = [
    "a --> b",
    "a --> b;",
    "a-->b %% a remark",
    "a[a] --> b[b]",
    "a[|kind:task|a] --> b",
    "a:::big --> b:::big",
    "a@{ shape: rect, label: a } --> b",
    'a@{ icon: "fa:user", form: square, label: a, pos: t, h: 60, w: 60, constraint: on } --> b',
    'a@{ img: "https://a.b/c.png", label: a } --> b',
    "a@{ label: a, labelType: text } --> b",
    "a e1@--> b\ne1@{ animate: true, animation: fast, curve: linear }",
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


#: Statements about subgraphs; each draws ``a --> b`` in a subgraph and ``c`` behind it.
SUBGRAPHS = [
    "subgraph s\na --> b\nend\ns --> c",
    "subgraph s [A title]\na --> b\nend\ns --> c",
    'subgraph s["A title"]\ndirection LR\na --> b\nend\ns --> c',
    'subgraph s["`A **title**`"]\na --> b\nend\ns --> c\ns@{ view: collapsed }',
]


@pytest.mark.parametrize("text", SUBGRAPHS)
def test_subgraphs_hold_steps(text: str) -> None:
    chart = Flowchart.from_mermaid(f"flowchart TD\n{text}")
    assert [(edge.source, edge.target) for edge in chart.edges] == [("a", "b"), ("b", "c")]


@pytest.mark.parametrize("text", ["subgraph\na --> b\nend", "subgraph A title of words\na --> b\nend"])
def test_subgraphs_may_have_no_name(text: str) -> None:
    assert len(Flowchart.from_mermaid(f"flowchart TD\n{text}").edges) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("swimlane-beta\na --> b", "another kind"),
        ("flowchart TD\na@{ colour: red } --> b", "unknown attribute colour"),
        ("flowchart TD\na@{ shape: lean_right } --> b", "unknown shape lean_right"),
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
