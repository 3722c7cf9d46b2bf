"""What is made of each statement and shape of Mermaid's flowcharts (those of Mermaid 11.17)."""

import warnings

import pytest

from formal_llm import Flowchart
from formal_llm.automata.models.flowgraph import SHAPES
from formal_llm.automata.notation.mermaid_nodes import COMMENTS
from formal_llm.errors import NotationError
from tests.automata.drawings import read

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
