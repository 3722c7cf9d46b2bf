"""Flowcharts in Mermaid: what is written reads back."""

import re
from dataclasses import replace

import pytest
from hypothesis import given

from formal_llm import Flowchart
from formal_llm.errors import AutomatonError, GrammarWarning, NotationError
from tests.automata.charts import RETURNS, WILD, flowcharts
from tests.strategies import examples


class TestWriting:
    @given(flowcharts())
    @examples(300)
    def test_reading_what_was_written(self, chart):
        assert Flowchart.from_mermaid(chart.to_mermaid()) == chart

    @pytest.mark.parametrize("text", [text for text, *_ in WILD])
    def test_of_charts_as_people_draw(self, text):
        chart = Flowchart.from_mermaid(text)
        again = Flowchart.from_mermaid(str(chart))
        assert again == chart
        assert hash(again) == hash(chart)

    def test_pictures(self):
        assert "diamond" in RETURNS.to_dot()
        assert RETURNS.to_mermaid() == str(RETURNS)

    def test_files(self, tmp_path):
        path = tmp_path / "returns.mmd"
        path.write_bytes(b"\xef\xbb\xbf" + str(RETURNS).replace("\n", "\r\n").encode())
        assert Flowchart.from_file(path) == RETURNS
        path.write_bytes(b"flowchart TD\n\xff\xfe")
        with pytest.raises(NotationError, match="not a text file in UTF-8") as caught:
            Flowchart.from_file(path)
        assert caught.value.file == str(path)
        with pytest.raises(NotationError, match="no such file"):
            Flowchart.from_file(tmp_path / "other.mmd")


class TestLonelyNodes:
    def test_they_are_warned_of_with_their_place(self):
        with pytest.warns(GrammarWarning, match="no arrow leads to pay or from it.*; did you mean Pay") as caught:
            Flowchart.from_string("flowchart TD\nOrder --> Pay\npay[Pay it]")
        assert (caught[0].message.line, caught[0].message.column) == (3, 1)
        with pytest.warns(GrammarWarning, match="draw an arrow to it, or leave it out"):
            Flowchart.from_string("flowchart TD\nOrder --> Pay\nNote[read me]")

    @pytest.mark.parametrize("text", ["A\nB", "A --> C\nB --> C", "A --> B", "S{which?} --> A --> B\nS --> C"])
    def test_starts_that_are_meant_are_not(self, text):
        Flowchart.from_string(f"flowchart TD\n{text}")  # warnings are errors here


@pytest.mark.parametrize(
    "marks",
    [
        "%% %world h", "%% %world Is it healthy?", "class h world", "class x,h world", "h:::world", "h:::big,world",
        "%% %world  is it  Healthy?", "classDef world fill:#eee\nclass h world;",
    ],
)  # fmt: skip
def test_the_worlds_decisions_are_read_by_name_text_and_class(marks: str) -> None:
    body = "a[Probe] --> h{Is it healthy?}\nh -->|yes| b[Ship]\nh -->|no| x{What now?}\nx -->|again| a\nx -->|stop| c\n"
    chart = Flowchart.from_string(f"flowchart TD\n{body}{marks}\n")
    assert chart.world == ({"h", "x"} if marks == "class x,h world" else {"h"})
    assert Flowchart.from_string(str(chart)) == chart
    assert chart != Flowchart.from_string(f"flowchart TD\n{body}")
    assert chart.pda().world == chart.pda(decisions=False).world == chart.world


def test_where_the_world_cannot_decide() -> None:
    text = "flowchart TD\n%% %world {}\ns{{{{Which?}}}} -->|one| a[A]\ns -->|two| a\na --> d{{Well?}}\n" \
        "d -->|yes| b[B]\nd -->|no| e{{Well?}}\ne -->|x| b\ne -->|y| c[C]\n"  # fmt: skip
    for name, said in {
        "s": "several answers of s ('Which?') may be chosen together",
        "a": "the world decides at a ('A'), and nothing is decided there; decisions are s, d, e",
        "Well?": "2 decisions have the text 'Well?'",
        "": "%world names nothing",
    }.items():
        with pytest.raises(NotationError, match=re.escape(said)):
            Flowchart.from_string(text.format(name))


def test_beside_other_branches_the_world_decides_in_turn() -> None:
    chart = Flowchart.from_string(
        "flowchart TD\n%% %world h\na[Begin] --> h{Well?} & d[D]\nh -->|yes| b[B]\nh -->|no| c[C]\nb & c & d --> e[E]\n"
    )
    with pytest.raises(AutomatonError, match="%parallel drawn"):
        chart.pda()
    assert len(replace(chart, order="drawn").pda().world) == 1
