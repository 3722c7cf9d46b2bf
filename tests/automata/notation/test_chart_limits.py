"""Limits in the comments of a flowchart."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formal_llm import CFG, Flowchart, Limits, Planner, RandomLLM
from formal_llm.automata.models.limits import SumLimit
from formal_llm.errors import AutomatonError, NotationError
from formal_llm.planning.drivers.results import run_of
from tests.automata.charts import flowcharts
from tests.cli.program import run

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
    ("line", "limits"),
    [
        ("limit retry 2", Limits({"retry": 2})),
        ("limit 2 retry", Limits({"retry": 2})),
        ("limit retry, done 2", Limits({"retry": 2, "done": 2})),
        ("require 1 retry, done", Limits({}, {"retry": 1, "done": 1})),
        ("require done 1", Limits({}, {"done": 1})),
        ("limit the retry 2", Limits()),
        ("limit of the number of tries", Limits()),
        ("budget meeting tomorrow", Limits()),
    ],
)
def test_limits_in_plain_words(line: str, limits: Limits) -> None:
    text = CHART.replace("%% %limit 2 retry", f"%% {line}").replace(" %% %require 1 ok=no", "")
    assert Flowchart.from_string(text).limits == limits


def test_a_budget_in_plain_words() -> None:
    text = CHART.replace("%% %limit 2 retry", "%% budget cost 100\n%% %numbers retry cost=30")
    pda = Flowchart.from_string(text).pda()
    assert pda.limits.lines() == ["%require 1 ok=no", "%limit cost <= 100"]
    assert pda.accepts(["retry", "ok=no"] * 2 + ["retry", "ok=yes_who", "done"])
    assert not pda.accepts(["retry", "ok=no"] * 3 + ["retry", "ok=yes_who", "done"])


@pytest.mark.parametrize(
    ("line", "place", "said"),
    [
        ("%% %limt 2 retry", "2:9", "did you mean %limit?"),
        ("%% %accept x", "2:9", "a comment of a flowchart may hold %limit and %require"),
        ("%% %limit 2 rety", "2:17", "did you mean retry?"),
        ("%% %limit retry", "2:15", "the limit has no number"),
        ("%% %limit", "2:9", "the limit has no number"),
        ("%% %limit 2 ok", "2:17", "count its answers: ok=yes_who, ok=no"),
        ("%% %limit 2 S", "2:17", "unknown step or answer in a limit: S"),
        ("%% limit rety 2", "2:14", "did you mean retry?"),
        ("%% limit ok 2", "2:14", "count its answers: ok=yes_who, ok=no"),
        ("%% budget cost 3", "2:15", "no terminal carries it"),
        ("%% limit retry 0", "2:8", "no way through the chart keeps its limits"),
        ("%% %parallel", "2:9", "%parallel is any or drawn, not nothing"),
        ("%% %parallel both", "2:9", "write: %% %parallel drawn"),
        ("%% %limit 1 retry\n%% %limit 2 retry", "3:13", "a second %limit for retry"),
        ("%% %limit 1\n%% %limit 2", "3:11", "a second %limit without names; the first was 1"),
        ("%% %require 1", "2:17", "write: %% %require 1 NAME"),
        ("%% %require * retry", "2:17", "the limit has no number"),
        ("%% %limit cost <= 3", "2:15", "no terminal carries it"),
        ("%% %limit 0 retry", "2:9", "no way through the chart keeps its limits"),
        ("%% %limit " + "9" * 200 + " retry", "2:15", "a number of 200 digits"),
    ],
)
def test_what_cannot_be_read(line: str, place: str, said: str) -> None:
    with pytest.raises(NotationError) as caught:
        Flowchart.from_string(CHART.replace("%% %limit 2 retry", line))
    assert said in str(caught.value)
    assert f"{caught.value.line}:{caught.value.column}" == place


def test_limits_given_in_code_name_what_there_is() -> None:
    chart = Flowchart.from_string(CHART)
    with pytest.raises(AutomatonError, match="did you mean retry"):
        Flowchart(chart.nodes, chart.edges, limits=Limits({"rety": 1}))
    with pytest.raises(AutomatonError, match="no terminal carries it"):
        Flowchart(chart.nodes, chart.edges, limits=Limits(sums=(SumLimit("cost", 3),)))
    with pytest.raises(AutomatonError, match="no answers to count"):
        chart.pda(decisions=False)


def test_as_a_constraint_a_chart_brings_its_limits() -> None:
    chart = Flowchart.from_string(
        "flowchart TD\n%% %limit 2 a\na --> q{?}\nq -->|x| b\nb --> r{?}\nr -->|y| b\nr -->|z| c"
    )
    both = CFG.from_string("S -> a T\nT -> b T | c") & Flowchart.from_string(str(chart)).pda(decisions=False)
    assert both.limits == Limits({"a": 2})
    assert both.accepts(["a", "b", "b", "c"])


def test_mermaid_passes_over_the_comments() -> None:
    # Mermaid's own rule for comments: a line that begins with %% and no brace goes away before the chart is read.
    import re

    cleaned = re.sub(r"^\s*%%(?!{)[^\n]+\n?", "", str(Flowchart.from_string(CHART)), flags=re.MULTILINE)
    assert "limit" not in cleaned
    assert Flowchart.from_string(cleaned).nodes == Flowchart.from_string(CHART).nodes
