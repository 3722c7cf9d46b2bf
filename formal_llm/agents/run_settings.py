"""How an agent runs: what all its runs share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from formal_llm.agents.acting import AgentRules
from formal_llm.agents.decoding.writer import ContentOf
from formal_llm.agents.roles import Roles
from formal_llm.llms.usage import Prices
from formal_llm.planning.walks.budget import Budget
from formal_llm.tools.calling import CallLimits


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How an agent runs: what all its runs share.

    Attributes:
        rules: the rules with the tools.
        roles: what its states are for.
        contents: what texts of states may be.
        budget: what a run may use.
        prices: what tokens cost.
        calls: what calls of tools may take.
        max_tokens: the most tokens of a text that the environment asks the model for.
    """

    rules: AgentRules
    roles: Roles
    contents: Mapping[str, ContentOf] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    prices: Prices | None = None
    calls: CallLimits = field(default_factory=lambda: CallLimits(timeout=60.0))
    max_tokens: int = 512
