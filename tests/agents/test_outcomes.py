"""Lines of a results file of agents."""

from __future__ import annotations

import json

from formal_llm.agents import Agent
from formal_llm.agents.outcomes import outcome_from_data, outcome_to_data
from formal_llm.agents.tools import agent_toolkit
from formal_llm.llms.text_doubles import RandomTextLLM


def test_lines_of_a_results_file_are_read_back() -> None:
    agent = Agent("react", RandomTextLLM(5), agent_toolkit)
    for outcome in agent.run_all(["a?", "b?", "c?"]):
        line = outcome_to_data(outcome)
        assert line is not None
        back = outcome_from_data(json.loads(json.dumps(line)))
        assert (back.transcript, back.calls, back.index) == (outcome.transcript, outcome.calls, outcome.index)
