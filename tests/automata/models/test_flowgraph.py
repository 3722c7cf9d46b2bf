"""What the nodes of flowcharts mean: markers, decisions and steps."""

import pytest

from formal_llm import (
    Flowchart,
)
from tests.automata.charts import RETURNS, WILD


class TestMeaning:
    def test_kinds(self):
        kinds = {node.id: RETURNS.kind(node.id) for node in RETURNS.nodes}
        assert kinds == {
            "ask": "start", "days": "decision", "take": "step", "refuse": "step", "seal": "decision", "half": "step",
            "all": "step", "stop": "end",
        }  # fmt: skip
        assert RETURNS.start == "ask"
        assert repr(RETURNS) == "<Flowchart: 2 decisions, 4 steps>"

    @pytest.mark.parametrize(
        ("first", "kind"),
        [
            ("A([Claim received])", "start"), ("A((Go))", "start"), ("A[Start]", "start"), ("A[Begin!]", "start"),
            ("A[Start the engine]", "step"), ("A(Claim received)", "step"), ("A[ ]", "start"), ("A", "step"),
        ],
    )  # fmt: skip
    def test_the_first_node(self, first, kind):
        assert Flowchart.from_mermaid(f"flowchart TD\n{first} --> B").kind("A") == kind

    @pytest.mark.parametrize(
        ("last", "kind"),
        [
            ("B([End])", "end"), ("B[Stop]", "end"), ("B((Done.))", "end"), ("B([Refuse])", "step"),
            ("B@{ shape: stop }", "end"), ("B[End the call]", "step"), ("B", "step"),
        ],
    )  # fmt: skip
    def test_the_last_node(self, last, kind):
        assert Flowchart.from_mermaid(f"flowchart TD\nA --> {last}").kind("B") == kind

    def test_markers_in_the_middle_are_steps_and_blank_nodes_are_none(self):
        chart = Flowchart.from_mermaid("flowchart TD\nA --> B([End]) --> C(( )) --> D((2)) --> E")
        assert [chart.kind(name) for name in "ABCDE"] == ["step", "step", "junction", "step", "step"]

    def test_a_start_that_is_come_back_to(self):
        chart = Flowchart.from_mermaid("flowchart TD\nS([Start]) --> A{more?}\nA -->|yes| B --> S\nA -->|no| C")
        assert chart.start == "S"
        assert chart.pda().accepts(["A=yes", "B", "A=yes", "B", "A=no", "C"])

    @pytest.mark.parametrize(("text", "decisions", "steps"), WILD)
    def test_as_people_draw(self, text, decisions, steps):
        chart = Flowchart.from_mermaid(text)
        by_kind = {kind: [n.text for n in chart.nodes if chart.kind(n.id) == kind] for kind in ("decision", "step")}
        assert sorted(by_kind["decision"]) == sorted(decisions)
        assert sorted(by_kind["step"]) == sorted(steps)
