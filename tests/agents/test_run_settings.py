"""The settings of runs."""

from __future__ import annotations

from formal_llm import Behaviour
from formal_llm.agents.acting import AgentRules
from formal_llm.agents.roles import Roles
from formal_llm.agents.run_settings import RunSettings


def test_what_nobody_says() -> None:
    behaviour = Behaviour.load("direct")
    made = RunSettings(AgentRules(behaviour), Roles.from_markers(behaviour, {}))
    assert made.calls.timeout == 60 and not made.budget.metered and not made.contents and made.max_tokens == 512
