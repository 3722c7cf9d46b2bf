"""Runs as values."""

from __future__ import annotations

import pytest

from formal_llm.agents.modular import ModularRun, RunBudget, Scratchpad, Step
from formal_llm.llms.usage import TokenUsage


def test_a_run() -> None:
    pad = Scratchpad().plus(Step("search", "t", "found"), Step("respond", "t", "yes"))
    spent = {"planner": TokenUsage(2, 20, 4), "caller": TokenUsage(1, 1, 1)}
    run = ModularRun("r", "yes", pad, spent=spent)  # type: ignore[arg-type]
    assert run.complete and run.word == ("search", "respond") and run.usage == TokenUsage(3, 21, 5)
    assert str(run).endswith("yes") and not ModularRun("r").complete
    transcript = run.transcript
    assert transcript.word == run.word and transcript.answer == "yes" and transcript.usage.requests == 3
    assert [one.source for one in transcript.segments] == ["environment", "model"]


@pytest.mark.parametrize("name", ["steps", "requests", "tokens"])
def test_budgets(name: str) -> None:
    with pytest.raises(ValueError, match=f"a budget of 0 {name}"):
        RunBudget(**{name: 0})
