"""Flowcharts as text: what they mean, limits in comments, the constructs of Mermaid."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formal_llm import CFG, Flowchart, Limits, Planner, RandomLLM
from formal_llm.automata.languages.word_lists import words
from formal_llm.errors import GrammarWarning, NotationError
from formal_llm.planning.drivers.results import run_of
from tests.automata.charts import WILD, flowcharts
from tests.cli.program import run
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


CHART = """flowchart TD
    %% %limit 2 retry
    %% limit the number of tries, 3 of them: a comment like any other
    S([Start]) --> retry[Try] --> ok{Worked for {who}?}
    ok -->|yes, {who}| done[Tell {who}]
    ok -->|no| retry %% %require 1 ok=no
"""


def test_limits_are_kept_and_shown(tmp_path: Path) -> None:
    text = CHART.replace(", {who}", "").replace(" for {who}", "").replace(" {who}", "")
    chart = Flowchart.from_string(text)
    assert chart.limits == Limits({"retry": 2}, {"ok=no": 1})
    for seed in range(10):
        word = Planner(chart, RandomLLM(seed)).plan("t").word
        assert word == ("retry", "ok=no", "retry", "ok=yes", "done")
    (tmp_path / "c.mmd").write_text(text)
    assert "limit 2 retry; require 1 ok=no" in run("check", "c.mmd", cwd=tmp_path).stdout
    (tmp_path / "plan.txt").write_text("retry ok=yes done")
    assert run("verify", "c.mmd", "plan.txt", cwd=tmp_path).returncode == 1
    free = Flowchart.from_string(
        "\n".join(line for line in text.splitlines() if "%" not in line) + "\n  ok -->|no| retry"
    )
    assert len({run_of(Planner(one, "test:first"))["run"] for one in (chart, free)}) == 2
    assert chart != free
    assert hash(copy.deepcopy(chart)) == hash(pickle.loads(pickle.dumps(chart))) == hash(chart)


@given(flowcharts(), st.data())
@settings(deadline=None, max_examples=60)
def test_what_is_printed_is_read_back(chart: Flowchart, data: st.DataObject) -> None:
    counts = st.none() | st.integers(20, 99)
    limits = Limits(
        data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(chart.terminals, counts))),
        {},
        data.draw(st.none() | st.integers(30, 50)),
    )
    bound = Flowchart(chart.nodes, chart.edges, chart.direction, chart.title, limits)
    assert Flowchart.from_string(str(bound)) == bound
    assert str(Flowchart.from_string(str(bound))) == str(bound)


def test_a_filled_chart_keeps_its_limits_under_the_new_names() -> None:
    text = CHART.replace("%% %limit 2 retry", "%% %limit 1 ok=yes_who retry *").replace("retry *", "done")
    chart = Flowchart.from_string(text).fill({"who": "Ann"})
    assert chart.limits == Limits({"ok=yes_ann": 1, "done": 1}, {"ok=no": 1})
    assert chart.terminals == ("retry", "ok=yes_ann", "ok=no", "done")


@pytest.mark.parametrize(
    "line", ["limit the retry 2", "limit of the number of tries", "budget meeting tomorrow", "done"]
)
def test_other_comments_mean_nothing(line: str) -> None:
    text = CHART.replace("%% %limit 2 retry", f"%% {line}").replace(" %% %require 1 ok=no", "")
    assert Flowchart.from_string(text).limits == Limits()


def test_a_bound_on_a_sum() -> None:
    text = CHART.replace("%% %limit 2 retry", "%% %limit cost <= 100\n%% %numbers retry cost=30")
    pda = Flowchart.from_string(text).pda()
    assert pda.limits.lines() == ["%require 1 ok=no", "%limit cost <= 100"]
    assert pda.accepts(["retry", "ok=no"] * 2 + ["retry", "ok=yes_who", "done"])
    assert not pda.accepts(["retry", "ok=no"] * 3 + ["retry", "ok=yes_who", "done"])


def test_as_a_constraint_a_chart_brings_its_limits() -> None:
    chart = Flowchart.from_string(
        "flowchart TD\n%% %limit 2 a\na --> q{?}\nq -->|x| b\nb --> r{?}\nr -->|y| b\nr -->|z| c"
    )
    both = CFG.from_string("S -> a T\nT -> b T | c") & Flowchart.from_string(str(chart)).pda(decisions=False)
    assert both.limits == Limits({"a": 2})
    assert both.accepts(["a", "b", "b", "c"])


def test_an_arrow_that_waits_beside_one_that_does_not_asks_nothing() -> None:
    chart = Flowchart.from_string("flowchart TD\ns{?} -->|x| a\ns -->|y| b\na --> c\na & b --> c")
    assert {t.question for t in chart.pda().transitions} == {"", "?"}
    assert {" ".join(word) for word in words(chart.pda(decisions=False), 3)} == {"a c", "b c"}


def test_mermaid_passes_over_the_comments() -> None:
    # Mermaid's own rule for comments: a line that begins with %% and no brace goes away before the chart is read.
    import re

    cleaned = re.sub(r"^\s*%%(?!{)[^\n]+\n?", "", str(Flowchart.from_string(CHART)), flags=re.MULTILINE)
    assert "limit" not in cleaned
    assert Flowchart.from_string(cleaned).nodes == Flowchart.from_string(CHART).nodes


PAGE = (Path(__file__).parent / "constructs" / "flowcharts.md").read_text(encoding="utf-8")
CASES = re.findall(r"^(plans|refused):[ ]?([^\n]*)\n\n```mermaid\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
#: By a part of the message the reason why a chart is refused.
REASONS = {
    "goes round in a circle": "no end: every way goes round in a circle",
    "has no answers": "a decision without answers",
    "has two answers": "a decision with the same answer twice",
    "cannot be reached from the start": "a node beside the start",
    "run side by side": "branches that meet without `&`",
    "is drawing only": "an arrow to or from a subgraph",
    "has a shape that is not read": "another shape",
    "are not read": "attributes, and names of arrows",
    "can wait for ever": "arrows that wait for each other",
    "two texts": "two texts or shapes for one node",
    "the style of": "a style for a node that there is not",
    "has no nodes": "no nodes",
}
DOCS = Path(__file__).parents[3] / "docs" / "howto" / "flowcharts.md"


@pytest.mark.parametrize(("what", "told", "text"), CASES)
def test_each_construct(what: str, told: str, text: str) -> None:
    if what == "refused":
        with pytest.raises(NotationError) as caught:
            Flowchart.from_mermaid(text)
        assert next(reason for mark, reason in REASONS.items() if mark in str(caught.value)) == told
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
