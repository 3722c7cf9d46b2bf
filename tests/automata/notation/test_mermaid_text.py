"""Texts in Mermaid: there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.models.flowchart_shapes import plain
from formal_llm.automata.notation.mermaid_text import read_text, write_text
from tests.automata.charts import NASTY
from tests.strategies import examples


class TestTexts:
    @given(NASTY | st.text())
    @examples(500)
    def test_reading_what_was_written(self, text):
        text = plain(text)
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
