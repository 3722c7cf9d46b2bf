"""What is wrong with rules for tool calls, told before any run."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.agents.findings import Finding
from formal_llm.agents.guard.plant import Plant
from formal_llm.agents.guard.position import Positions
from formal_llm.agents.guard.rules import Severity
from formal_llm.agents.guard.search import Guarantee
from formal_llm.agents.guard.supervisor import Supervisor


def findings(
    tiers: Sequence[tuple[Severity, Supervisor]],
    positions: Positions,
    plant: Plant,
    guarantee: Guarantee,
    max_places: int,
) -> tuple[Finding, ...]:
    """Conflicts, traps and what can never come, each with the shortest trace that shows it."""
    return ()
