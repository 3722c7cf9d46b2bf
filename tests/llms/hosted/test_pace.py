"""A server that refuses requests ends no run: all slow down together."""

from __future__ import annotations

from typing import Any

import pytest

from formal_llm import CFG, Planner
from formal_llm.llms import HostedLLM
from tests.slow_server import read_counts, slow_server


@pytest.mark.parametrize(
    ("rps", "tasks"), [pytest.param(20, 120), pytest.param(10, 200, marks=pytest.mark.slow)], ids=str
)
def test_all_tasks_are_planned_and_few_requests_refused(rps: int, tasks: int) -> None:
    with slow_server(0.02, rps=rps) as url:
        llm = HostedLLM("openai:m", base_url=url, api_key="none")
        planner: Any = Planner(CFG.from_string("S -> wash | fold"), llm, search="greedy")
        outcomes = planner.plan_all([f"task {number}" for number in range(tasks)])
        assert all(outcome.plan is not None for outcome in outcomes)
        counts = read_counts(url)
    assert counts["answered"] == tasks
    assert counts["refused"] <= (counts["answered"] + counts["refused"]) / 5
