"""Pictures of flowcharts."""

from hypothesis import given

from formal_llm import Flowchart
from formal_llm.automata.drawing.flowchart import flowchart_picture
from formal_llm.pictures.picture import printable
from tests.automata.charts import RETURNS, flowcharts
from tests.pictures.forms import check_dot, check_mermaid, squeeze


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
