"""The settings that all runs of an agent share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from formal_llm.agents.acting import AgentRules
from formal_llm.agents.decoding.writer import ContentOf
from formal_llm.agents.roles import Roles
from formal_llm.llms.usage import Prices
from formal_llm.planning.walks.budget import Budget
from formal_llm.tools.calling import CallLimits


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings that all runs of an agent share.

    Attributes:
        rules: the rules, including the tools.
        roles: the purposes of the states.
        contents: the texts that states may have.
        budget: how much a run may use.
        prices: the prices of tokens.
        calls: limits on each tool call.
        max_tokens: the maximum number of tokens of a text that the environment requests from the model.
        approve: the tools whose calls a person has to approve.
        native: whether inputs are arguments by the strict schemas of tools, as a native turn writes them.
        read_output: reads the answer as the type that was asked for; None if it is a text.
    """

    rules: AgentRules
    roles: Roles
    contents: Mapping[str, ContentOf] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    prices: Prices | None = None
    calls: CallLimits = field(default_factory=lambda: CallLimits(timeout=60.0))
    max_tokens: int = 512
    approve: frozenset[str] = frozenset()
    native: bool = False
    read_output: Callable[[str], object] | None = None
