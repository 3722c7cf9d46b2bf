"""Decisions that facts decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Flowchart, Planner, ScriptedLLM
from formal_llm.automata.languages.word_lists import words
from formal_llm.errors import AutomatonError
from tests.cli.program import run
from tests.strategies import examples

CHART = """flowchart TD
    claim[Read the claim] --> amount{How much is it?}
    amount -->|"> {limit}"| board[Ask the board]
    amount -->|"amount > 100 and country = DE"| check[Check it]
    amount -->|else| pay[Pay]
    board & check --> good{Is it good?}
    good -->|yes| pay
    good -->|no| refuse[Refuse]
"""


def filled(**facts: object) -> Flowchart:
    return Flowchart.from_mermaid(CHART).fill({"limit": 10_000, **facts})


def test_what_facts_decide_is_not_asked() -> None:
    llm = ScriptedLLM([2])
    plan = Planner(filled(amount=20_000, country="FR"), llm).plan("A claim")
    assert len(llm.questions) == 1
    assert plan.word == ("claim", "amount=10000", "board", "good=no", "refuse")
    assert [list(words(filled(amount=amount, country="de").pda(decisions=False), 2)) for amount in (50, "500")] == [
        [("claim", "pay")], [],
    ]  # fmt: skip
    assert Planner(filled(amount=50, country="DE"), ScriptedLLM([])).plan("A claim").word[-1] == "pay"


@pytest.mark.parametrize(("amount", "step"), [(20_000, "board"), (5, "pay")])
@pytest.mark.parametrize("text", ["amount > 10000", "amount > 10000?"])
def test_a_decision_that_is_a_condition_itself(amount: int, step: str, text: str) -> None:
    chart = Flowchart.from_mermaid(f'flowchart TD\nq{{"{text}"}} -->|Yes| board\nq -->|no| pay')
    assert chart.facts == ("amount",)
    plan = Planner(chart.fill({"amount": amount}), ScriptedLLM([])).plan("A claim")
    assert plan.word[-1] == step
    assert Flowchart.from_mermaid('flowchart TD\nq{"amount > 10000?"} -->|yes| a\nq -->|perhaps| b').facts == ()
    assert Flowchart.from_mermaid('flowchart TD\nq{"amount"} -->|yes| a\nq -->|no| b').facts == ()


@given(st.integers(0, 20_000), st.sampled_from(["DE", "fr", "x"]))
@examples(30)
def test_the_plans_are_those_whose_conditions_hold(amount: int, country: str) -> None:
    first = {word[1] for word in words(filled(amount=amount, country=country).pda(decisions=False), 4)}
    german = amount > 100 and country == "DE"
    expected = {"board"} if amount > 10_000 else set()
    expected |= {"check"} if german else set()
    assert first == (expected or {"pay"})


def test_facts_that_are_missing_leave_the_question() -> None:
    chart = Flowchart.from_mermaid(CHART)
    assert chart.facts == ("amount", "country")
    half = chart.fill({"limit": 5, "amount": 3})
    assert not half.limits
    assert len(Planner(half, llm := ScriptedLLM([3])).plan("x").word) == 3
    assert llm.questions[0].options[0].text == "> 5"
    assert Flowchart.from_mermaid(str(filled(amount=1, country="x"))) == filled(amount=1, country="x")


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(
        AutomatonError, match=r"the flowchart has no \{amuont\}; its names are: \{limit\}, amount, country"
    ):
        filled(amuont=3)
    with pytest.raises(AutomatonError, match=r"in the decision amount.*many > 10000 compares a number and a text"):
        filled(amount="many", country="x")
    two = Flowchart.from_mermaid("flowchart TD\na{?} -->|a > 3| b\na -->|a < 3| c")
    with pytest.raises(AutomatonError, match=r"no answer of the decision a \('\?'\) holds for a=3; draw an arrow"):
        two.fill({"a": 3})
    assert Flowchart.from_mermaid("flowchart TD\na{?} -->|a > 3| b\na -->|no| c").facts == ()


def test_facts_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "claim.mmd").write_text(CHART)
    asked = ["--set", "limit=10", "--set", "amount=5", "--set", "country=DE"]
    assert "Pay" in run("plan", "claim.mmd", "x", *asked, "--llm", "test:first", cwd=tmp_path).stdout
