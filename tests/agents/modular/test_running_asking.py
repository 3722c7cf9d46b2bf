"""Asking: corrections, budgets, what was spent in vain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm.agents.modular import RunBudget
from formal_llm.errors import AgentStopped, InvalidAnswer
from tests.agents.modular.doubles import CALLS, RHINE, rhine


def test_corrections_are_on_record_and_nothing_is_replaced() -> None:
    planned = [{**RHINE[0], "tool": "buy"}, *RHINE]
    run = rhine(planned).run("x")
    assert run.word == ("search", "calculate", "respond") and run.usage.requests == 7
    (correction,) = run.corrections
    assert "'buy' is none of search, calculate" in correction.reason and '"tool": "buy"' in correction.written
    with pytest.raises(InvalidAnswer, match="none of search, calculate"):
        rhine([planned[0], planned[0], *RHINE]).run("x")


@pytest.mark.parametrize(("budget", "kind"), [(RunBudget(requests=3), "requests"), (RunBudget(tokens=300), "tokens")])
def test_budgets(budget: RunBudget, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with pytest.raises(AgentStopped) as caught:
        rhine().run("x", budget=budget, journal=file)
    assert caught.value.kind == kind and not caught.value.run.complete
    assert caught.value.run.usage.requests <= 3 and caught.value.run.word == ("search",)
    # With more it goes on where it stands.
    done = sum(json.loads(line)["what"] == "planner" for line in file.read_text().splitlines()[1:])
    asked = len(file.read_text().splitlines()) - 1
    agent = rhine(RHINE[done:], CALLS[1:] if asked < 5 else CALLS[2:])
    assert agent.run("x", journal=file).answer == "615 kilometres"


def test_tries_in_vain_count(tmp_path: Path) -> None:
    agent = rhine([{**RHINE[0], "tool": "buy"}, *RHINE])
    with pytest.raises(AgentStopped) as caught:
        agent.run("x", budget=RunBudget(requests=1))
    assert caught.value.run.usage.requests == 1
    # Also when the run goes on.
    wrong = {**RHINE[0], "tool": "buy"}
    with pytest.raises(InvalidAnswer):
        rhine([wrong, wrong]).run("x", journal=tmp_path / "run.jsonl")
    assert rhine().run("x", journal=tmp_path / "run.jsonl").usage.requests == 8
