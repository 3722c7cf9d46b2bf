"""Pictures of flowcharts."""

from formal_llm import Flowchart
from tests.pictures.forms import check_mermaid


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
