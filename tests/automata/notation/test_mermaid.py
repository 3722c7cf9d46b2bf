"""Reading Mermaid: what the notation covers, and what is said of everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Flowchart, Lookahead
from formal_llm.errors import NotationError
from tests.automata.charts import WILD
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
