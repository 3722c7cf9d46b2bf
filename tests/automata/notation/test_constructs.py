"""Every construct of Mermaid's page on flowcharts, with the plans it describes or the reason why it has none."""

import re
from pathlib import Path

import pytest

from benchmarks.charts import REASONS, outcome
from formal_llm import Flowchart
from formal_llm.automata.languages.word_lists import words

PAGE = (Path(__file__).parent / "constructs" / "flowcharts.md").read_text(encoding="utf-8")
CASES = re.findall(r"^(plans|refused):[ ]?([^\n]*)\n\n```mermaid\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
DOCS = Path(__file__).parents[3] / "docs" / "howto" / "flowcharts.md"


@pytest.mark.parametrize(("what", "told", "text"), CASES)
def test_each_construct(what: str, told: str, text: str) -> None:
    if what == "refused":
        assert outcome(lambda: Flowchart.from_mermaid(text)) == ("refused", told)
        return
    chart = Flowchart.from_mermaid(text)
    expected = {plan.strip() for plan in told.split("/")}
    assert {" ".join(word) for word in words(chart.pda(decisions=False), 6)} == expected
    assert Flowchart.from_mermaid(str(chart)) == chart


def test_the_page_has_every_reason_and_the_docs_name_each() -> None:
    refused = {told for what, told, _ in CASES if what == "refused"}
    assert refused == set(REASONS.values())
    told = " ".join(DOCS.read_text(encoding="utf-8").split())
    assert [reason for reason in refused if reason not in told] == []
    assert len(CASES) == PAGE.count("```mermaid")
